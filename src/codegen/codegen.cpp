// The table of backends, and artifacts as JSON.
#include "codegen/codegen.h"

#include "codegen/backend.h"
#include "codegen/c/dialect.h"
#include "codegen/launch.h"

namespace pruner {
namespace {

#if PRUNER_LLVM
constexpr CodeRow kLlvmRow = {Backend::kLlvm, llvm_object, llvm_text};
#else
Result<std::string> no_object(const Program&, const Target&, const std::string&) {
  return Error("this build has no LLVM");
}
Result<std::string> no_text(const Program&, const Target&, CodeText) {
  return Error("this build has no LLVM");
}
constexpr CodeRow kLlvmRow = {Backend::kLlvm, no_object, no_text};
#endif

constexpr CodeRow kCodeRows[] = {
    kLlvmRow,
    {Backend::kCuda, cuda_object, gpu_text, kCudaC.most_declared},
    {Backend::kOpenCl, opencl_object, gpu_text, kOpenClC.most_declared}};

const CodeRow& code_of(Backend backend) {
  const CodeRow* row = kCodeRows;
  while (row->backend != backend) ++row;
  return *row;
}

// A program must be of the kind that the target runs, and keep the rules.
Result<Unit> check(const Program& program, const Target& target) {
  if (const Result<Unit> valid = verify(program); !valid.ok()) {
    return Error("program ", program.name, ": ", valid.error().message());
  }
  if (!program.symbols.empty() && target.backend != Backend::kLlvm) {
    return Error("program ",
                 program.name,
                 " is one for a range of shapes, which are for target \"llvm\" only");
  }
  const bool for_gpu = !launches(program).empty();
  if (for_gpu == target.is_gpu()) return Unit{};
  return Error("program ",
               program.name,
               " is one for ",
               for_gpu ? "GPUs" : "CPUs",
               ", the target is \"",
               backend_name(target.backend),
               "\"");
}

}  // namespace

Result<Artifact> compile(const Program& program, const Target& target, const std::string& symbol) {
  TRY(check(program, target));
  Artifact artifact;
  artifact.backend = target.backend;
  TRY_ASSIGN(artifact.object, code_of(target.backend).object(program, target, symbol));
  artifact.symbol = symbol;
  artifact.workspace_bytes = program.workspace_bytes;
  artifact.rewrites = program.rewrites;
  artifact.launches = plan_launches(program, symbol, code_of(target.backend).most_declared);
  for (const TensorId id : program.args) {
    const Buffer& buffer = program[id];
    artifact.arguments.push_back({buffer.dtype, buffer.shape, buffer.output, buffer.pack});
  }
  return artifact;
}

Result<std::string> compile_to_text(const Program& program, const Target& target, CodeText form) {
  TRY(check(program, target));
  const bool of_cpu = form <= CodeText::kAssembly;
  if (of_cpu == target.is_gpu()) {
    return Error(of_cpu ? "emitted, llvm and asm are the code of target llvm; of a GPU there is "
                          "cuda, opencl, ptx"
                        : "cuda, opencl and ptx are the code of target cuda or opencl");
  }
  return code_of(target.backend).text(program, target, form);
}

static Json to_json(const Artifact::Launch& launch) {
  return {{"kernel", launch.kernel},
          {"blocks", launch.blocks},
          {"threads", launch.threads},
          {"shared_bytes", launch.shared_bytes},
          {"arguments", launch.arguments},
          {"workspace", launch.workspace},
          {"dynamic_bytes", launch.dynamic_bytes},
          {"early", launch.early}};
}

static Result<Artifact::Launch> launch_from_json(const Json& json) {
  Artifact::Launch launch;
  TRY_ASSIGN(launch.kernel, json_get<std::string>(json, "kernel"));
  TRY_ASSIGN(launch.blocks, json_get<int64_t>(json, "blocks"));
  TRY_ASSIGN(launch.threads, json_get<int64_t>(json, "threads"));
  TRY_ASSIGN(launch.shared_bytes, json_get<int64_t>(json, "shared_bytes"));
  TRY_ASSIGN(launch.arguments, json_get<std::vector<int>>(json, "arguments"));
  TRY_ASSIGN(launch.workspace, json_get<bool>(json, "workspace"));
  TRY_ASSIGN(launch.dynamic_bytes, json_get<int64_t>(json, "dynamic_bytes"));
  // Files of before have no such launches.
  if (json.contains("early")) {
    TRY_ASSIGN(launch.early, json_get<bool>(json, "early"));
  }
  return launch;
}

Json to_json(const Artifact& artifact) {
  Json arguments = Json::array();
  for (const Artifact::Argument& a : artifact.arguments) {
    Json json = {{"dtype", dtype_name(a.dtype)}, {"shape", a.shape}, {"output", a.output}};
    if (!a.pack.identity()) json["pack"] = to_json(a.pack);
    arguments.push_back(std::move(json));
  }
  Json launches = Json::array();
  for (const Artifact::Launch& launch : artifact.launches) launches.push_back(to_json(launch));
  return {{"backend", backend_name(artifact.backend)},
          {"launches", std::move(launches)},
          {"symbol", artifact.symbol},
          {"workspace_bytes", artifact.workspace_bytes},
          {"rewrites", artifact.rewrites},
          {"arguments", std::move(arguments)}};
}

Result<Artifact> artifact_from_json(const Json& json, std::string object) {
  Artifact artifact;
  artifact.object = std::move(object);
  TRY_ASSIGN(const std::string backend, json_get<std::string>(json, "backend"));
  artifact.backend = parse_backend(backend).value_or(artifact.backend);
  TRY_ASSIGN(const Json launches, json_get<Json>(json, "launches"));
  for (const Json& launch : launches) {
    TRY_ASSIGN(Artifact::Launch one, launch_from_json(launch));
    artifact.launches.push_back(std::move(one));
  }
  TRY_ASSIGN(artifact.symbol, json_get<std::string>(json, "symbol"));
  TRY_ASSIGN(artifact.workspace_bytes, json_get<int64_t>(json, "workspace_bytes"));
  TRY_ASSIGN(artifact.rewrites, json_get<bool>(json, "rewrites"));
  TRY_ASSIGN(const Json arguments, json_get<Json>(json, "arguments"));
  for (const Json& argument : arguments) {
    Artifact::Argument& a = artifact.arguments.emplace_back();
    TRY_ASSIGN(const std::string dtype, json_get<std::string>(argument, "dtype"));
    const std::optional<DType> known = parse_dtype(dtype);
    if (!known) return Error("unknown dtype \"", dtype, "\"");
    a.dtype = *known;
    TRY_ASSIGN(a.shape, json_get<std::vector<int64_t>>(argument, "shape"));
    TRY_ASSIGN(a.output, json_get<bool>(argument, "output"));
    if (argument.contains("pack")) {
      TRY_ASSIGN(a.pack, pack_spec_from_json(argument.at("pack")));
    }
  }
  return artifact;
}

}  // namespace pruner
