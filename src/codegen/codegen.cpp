#include "codegen/codegen.h"

#include "codegen/backend.h"

namespace pruner {
namespace {

#if PRUNER_LLVM
constexpr BackendRow kBackends[] = {{Backend::kLlvm, "llvm", llvm_object, llvm_text}};
#else
Result<std::string> no_object(const Program&, const Target&, const std::string&) {
  return Error("this build has no LLVM");
}
Result<std::string> no_text(const Program&, const Target&, CodeText) {
  return Error("this build has no LLVM");
}
constexpr BackendRow kBackends[] = {{Backend::kLlvm, "llvm", no_object, no_text}};
#endif

Result<BackendRow> backend_of(const Target& target) {
  for (const BackendRow& row : kBackends) {
    if (row.backend == target.backend) return row;
  }
  const char* name = target.backend == Backend::kCuda ? "cuda" : "opencl";
  return Error("no code can be made for \"", name, "\" yet; there is: ", kBackends[0].name);
}

}  // namespace

Result<Artifact> compile(const Program& program, const Target& target, const std::string& symbol) {
  TRY_ASSIGN(const BackendRow backend, backend_of(target));
  if (const Result<Unit> valid = verify(program); !valid.ok()) {
    return Error("program ", program.name, ": ", valid.error().message());
  }
  TRY_ASSIGN(std::string object, backend.object(program, target, symbol));
  Artifact artifact{std::move(object), symbol, program.workspace_bytes, program.rewrites, {}};
  for (const TensorId id : program.args) {
    const Buffer& buffer = program[id];
    artifact.arguments.push_back({buffer.dtype, buffer.shape, buffer.output, buffer.pack});
  }
  return artifact;
}

Result<std::string> compile_to_text(const Program& program, const Target& target, CodeText form) {
  TRY_ASSIGN(const BackendRow backend, backend_of(target));
  TRY(verify(program));
  return backend.text(program, target, form);
}

Json to_json(const Artifact& artifact) {
  Json arguments = Json::array();
  for (const Artifact::Argument& a : artifact.arguments) {
    Json json = {{"dtype", dtype_name(a.dtype)}, {"shape", a.shape}, {"output", a.output}};
    if (!a.pack.identity()) json["pack"] = to_json(a.pack);
    arguments.push_back(std::move(json));
  }
  return {{"symbol", artifact.symbol},
          {"workspace_bytes", artifact.workspace_bytes},
          {"rewrites", artifact.rewrites},
          {"arguments", std::move(arguments)}};
}

Result<Artifact> artifact_from_json(const Json& json, std::string object) {
  Artifact artifact;
  artifact.object = std::move(object);
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
