// pruner run: a module on the arrays of an .npz file, or on some that are made.
#include <fmt/format.h>

#include <set>

#include "cli/commands.h"
#include "cli/phase.h"
#include "deploy/loaded_module.h"
#include "report/top_values.h"
#include "report/trace.h"
#include "support/file.h"

namespace pruner {

namespace {

/// Makes the inputs of --fill.
Result<std::vector<Tensor>> filled_inputs(std::span<const TensorSpec> specs,
                                          const std::string& fill,
                                          uint64_t seed) {
  if (fill == "random") return seeded_inputs(specs, seed);
  if (fill != "ones" && fill != "zeros")
    return Error("--fill: \"", fill, "\" is not random, ones or zeros");
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    Tensor& tensor = tensors.emplace_back(spec.dtype, spec.shape);
    for (int64_t i = 0; fill == "ones" && i < tensor.num_elements(); ++i)
      is_float(spec.dtype) ? tensor.set(i, 1) : tensor.set_int(i, 1);
  }
  return tensors;
}

/// The names of outputs, each once: an output that has the name of an earlier one gets a number,
/// "y_2". No number makes a name that another output has.
std::vector<std::string> names_once(std::span<const TensorSpec> specs) {
  std::set<std::string> taken;
  for (const TensorSpec& spec : specs) taken.insert(spec.name);
  std::set<std::string> given;
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) {
    std::string name = spec.name;
    const auto is_free = [&] {
      return !given.contains(name) && (name == spec.name || !taken.contains(name));
    };
    for (int number = 2; !is_free(); ++number) name = fmt::format("{}_{}", spec.name, number);
    given.insert(name);
    names.push_back(std::move(name));
  }
  return names;
}

struct Run {
  std::string path, inputs_file, outputs_file, fill, trace_file;
  int threads = 0;                // 0: the number the module was tuned for
  std::string phase;              // empty: the first one
  std::vector<std::string> dims;  // extents of --fill, if the module has several shapes
  int64_t top = 0;                // values shown of each row
  uint64_t seed = 0;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--module FILE", path).help("the module (made by `pruner compile`)");
    add_threads(app, threads);
    add_phase(app, phase);
    add_option(app, "--dim NAME=N", dims)
        .help("of --fill, for a module of several shapes: as seq=77", "the greatest");
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--inputs FILE", inputs_file).help("an .npz file with the inputs by name");
    add_option(app, "--fill KIND", fill)
        .help("in place of --inputs: random (floats in [-1, 1), integers 0 or 1), ones or zeros");
    add_seed(app, seed);
    add_option(app, "--outputs FILE", outputs_file)
        .writes()
        .replaces({FileKind::kZip})
        .help("the .npz file to write");
    add_option(app, "--top N", top)
        .help("show so many of the largest values along the last axis of each output");
    add_option(app, "--trace FILE", trace_file)
        .writes()
        .replaces({FileKind::kJson})
        .help("write one run's kernels as Chrome's trace events, for Perfetto");
  }

  Result<Unit> check_options() const {
    if (path.empty()) return Error("run: --module is missing; `pruner compile` makes one");
    if (outputs_file.empty() && top == 0 && trace_file.empty())
      return Error("run: --outputs is missing; name an .npz file to write, or use --top 5");
    if (!inputs_file.empty() && !fill.empty())
      return Error("run: --inputs and --fill exclude each other");
    if (!dims.empty() && fill.empty())
      return Error("run: --dim is for --fill; arrays of --inputs have their shapes");
    return Unit{};
  }

  /// Reads or fills the inputs. Arrays of a file decide the shape if the module has several.
  Result<std::vector<Tensor>> read_inputs(const LoadedModule& module, int number) const {
    std::vector<TensorSpec> specs = module.inputs(number);
    if (!fill.empty()) {
      TRY_ASSIGN(const std::vector<int64_t> extents, find_extents(module, dims));
      TRY_ASSIGN(const TensorSpecs at, module.specs_at(extents, number));
      return filled_inputs(at.inputs, fill, seed);
    }
    if (!module.symbols().empty())
      for (TensorSpec& spec : specs) spec.shape.assign(spec.shape.size(), kAnyExtent);
    std::vector<NamedTensor> given;
    // A network without inputs needs no file.
    if (!inputs_file.empty()) {
      TRY_ASSIGN(given, read_tensors(inputs_file));
    }
    Result<std::vector<Tensor>> inputs = match_tensors(specs, std::move(given));
    if (!inputs.ok())
      return Error(inputs_file.empty() ? "--inputs (or --fill random)" : inputs_file,
                   ": ",
                   inputs.error().message());
    return inputs;
  }

  Result<int> run(const Invocation& call) const {
    TRY(check_options());
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    TRY_ASSIGN(const int number, find_phase(module, phase));
    TRY_ASSIGN(const std::vector<Tensor> inputs, read_inputs(module, number));
    TRY_ASSIGN(std::vector<Tensor> outputs, module.run(inputs, number));
    std::vector<TensorSpec> specs = module.outputs(number);
    const std::vector<std::string> names = names_once(specs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      specs[i].shape = outputs[i].shape();
      specs[i].name = names[i];
    }
    Json json = {{"outputs", Json::object()}};
    std::string text;
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < outputs.size(); ++i) {
      json["outputs"][specs[i].name] = outputs[i].shape();
      const std::vector<TopRow> rows =
          top > 0 ? top_values(outputs[i], top) : std::vector<TopRow>();
      if (top > 0) json["top"][specs[i].name] = top_json(rows);
      text += print_top(specs[i], rows);
      named.push_back({specs[i].name, std::move(outputs[i])});
    }
    if (!outputs_file.empty()) TRY(write_tensors(outputs_file, named));
    if (!trace_file.empty()) {
      TRY_ASSIGN(const TracedRun traced, module.trace(inputs, number));
      const Trace trace = trace_run(traced, path, module.threads());
      TRY(write_file(trace_file, print_json(trace_json(trace)) + "\n"));
    }
    return call.show(json, text);
  }
};

}  // namespace

RunCommand make_run(CLI::App& app) { return make_command<Run>(app); }

}  // namespace pruner
