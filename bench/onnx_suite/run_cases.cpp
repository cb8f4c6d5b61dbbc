// onnx_cases FOLDER [CASE...]: runs test cases in the layout of onnx's backend tests, each in a
// folder of its own, and writes one line of JSON for each: its name and what became of it.
//
//   FOLDER/CASE/model.onnx            the model
//   FOLDER/CASE/constants.onnx        optional: the same, inputs that say a shape being constants
//   FOLDER/CASE/input_0.pb, ...       a TensorProto for each input of the model, named as it is
//   FOLDER/CASE/output_0.pb, ...      what is expected
//   FOLDER/CASE/tolerance             rtol and atol, |found - expected| <= atol + rtol |expected|
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/tensor_file.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/partition.h"
#include "graph/pipeline/pipeline.h"
#include "support/file.h"
#include "support/json.h"
#include "target/target.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::vector<NamedTensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<int> output_types;  // ONNX's numbers, as the files have them
  double rtol = 1e-3, atol = 1e-7;
};

/// `Verdict` is what became of a case: "pass", "wrong", "type" or "refused", and why.
struct Verdict {
  std::string outcome, reason;
};

Result<onnx::TensorProto> read_proto(const fs::path& path) {
  TRY_ASSIGN(const std::string bytes, read_file(path.string()));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return Error(path.string(), " is no TensorProto");
  return proto;
}

Result<Case> read_case(const fs::path& folder) {
  Case c;
  ExternalData files;
  std::ifstream(folder / "tolerance") >> c.rtol >> c.atol;
  for (int i = 0; fs::exists(folder / fmt::format("input_{}.pb", i)); ++i) {
    TRY_ASSIGN(const onnx::TensorProto proto, read_proto(folder / fmt::format("input_{}.pb", i)));
    TRY_ASSIGN(Tensor tensor, tensor_from_proto(proto, files));
    c.inputs.push_back({proto.name(), std::move(tensor)});
  }
  for (int i = 0; fs::exists(folder / fmt::format("output_{}.pb", i)); ++i) {
    TRY_ASSIGN(const onnx::TensorProto proto, read_proto(folder / fmt::format("output_{}.pb", i)));
    TRY_ASSIGN(Tensor tensor, tensor_from_proto(proto, files));
    c.outputs.push_back(std::move(tensor));
    c.output_types.push_back(proto.data_type());
  }
  return c;
}

bool close(double found, double expected, const Case& c) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= c.atol + c.rtol * std::abs(expected);
}

Verdict compare(const Case& c, std::span<const TensorSpec> specs, std::span<const Tensor> found) {
  if (found.size() != c.outputs.size())
    return {"wrong", fmt::format("{} outputs for {}", found.size(), c.outputs.size())};
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& expected = c.outputs[i];
    if (dtype_to_onnx(found[i].dtype()) != c.output_types[i])
      return {"type",
              fmt::format(
                  "{} for {}", dtype_name(found[i].dtype()), onnx_type_name(c.output_types[i]))};
    if (found[i].shape() != expected.shape())
      return {"wrong",
              fmt::format(
                  "shape {} for {}", print_shape(found[i].shape()), print_shape(expected.shape()))};
    for (int64_t e = 0; e < expected.num_elements(); ++e) {
      const bool same = is_float(expected.dtype()) ? close(found[i].get(e), expected.get(e), c)
                                                   : found[i].get_int(e) == expected.get_int(e);
      if (same) continue;
      return {"wrong",
              fmt::format(
                  "{}[{}] is {}, expected {}", specs[i].name, e, found[i].get(e), expected.get(e))};
    }
  }
  return {"pass", ""};
}

/// Writes the model's module: one stage after the other where the data decide extents, as the
/// command line does.
Result<Unit> build(const fs::path& model, const std::string& scratch, const std::string& path) {
  const Target target = host_target(2);
  const ModuleOptions options = {.jobs = 1, .work_dir = scratch};
  NetworkOptions network;
  network.loops_over_steps = true;
  const CutStage cut = [&](Graph graph) { return partition(std::move(graph), target); };
  TRY_ASSIGN(const std::optional<std::vector<Phase>> stages,
             stage_phases(import_from(model.string(), network), cut));
  if (stages) {
    TRY(build_module(*stages, target, nullptr, options, path));
    return Unit{};
  }
  TRY_ASSIGN(Graph graph, import_onnx(model.string(), network));
  TRY_ASSIGN(const Partition parts, cut(std::move(graph)));
  TRY(build_module(parts, target, {}, options, path));
  return Unit{};
}

Result<Verdict> run_model(const fs::path& model, const Case& c, const fs::path& scratch) {
  const std::string path = (scratch / "case.so").string();
  TRY(build(model, scratch.string(), path));
  TRY_ASSIGN(LoadedModule module, load_module(path, 2));
  std::vector<NamedTensor> given;
  for (const TensorSpec& spec : module.inputs()) {
    const auto at = std::ranges::find(c.inputs, spec.name, &NamedTensor::name);
    if (at != c.inputs.end()) given.push_back(*at);
  }
  TRY_ASSIGN(const std::vector<Tensor> inputs, match_tensors(module.inputs(), std::move(given)));
  TRY_ASSIGN(const std::vector<Tensor> found, module.run(inputs));
  return compare(c, module.outputs(), found);
}

Verdict attempt(const fs::path& model, const fs::path& folder, const fs::path& scratch) {
  const auto tried = [&]() -> Result<Verdict> {
    TRY_ASSIGN(const Case c, read_case(folder));
    return run_model(model, c, scratch);
  };
  Result<Verdict> verdict = tried();
  if (verdict.ok()) return *std::move(verdict);
  return {"refused", verdict.error().message()};
}

void run_case(const fs::path& folder, const fs::path& scratch) {
  const Verdict plain = attempt(folder / "model.onnx", folder, scratch);
  Json line = {
      {"case", folder.filename().string()}, {"outcome", plain.outcome}, {"reason", plain.reason}};
  if (plain.outcome != "pass" && fs::exists(folder / "constants.onnx")) {
    const Verdict constants = attempt(folder / "constants.onnx", folder, scratch);
    line["constants"] = {{"outcome", constants.outcome}, {"reason", constants.reason}};
  }
  std::cout << print_json(line) << std::endl;
}

}  // namespace

int run_cases(const fs::path& folder, std::span<char* const> names) {
  const fs::path scratch = fs::temp_directory_path() / fmt::format("onnx_cases_{}", getpid());
  fs::create_directories(scratch);
  for (const char* name : names) run_case(folder / name, scratch);
  fs::remove_all(scratch);
  return 0;
}

}  // namespace pruner

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: onnx_cases FOLDER CASE...\n";
    return 2;
  }
  return pruner::run_cases(argv[1], {argv + 2, argv + argc});
}
