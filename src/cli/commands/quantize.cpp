// pruner quantize: a network of float32 and data like those that it will see, to a QDQ file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/commands.h"
#include "cli/source.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "graph/quantize.h"
#include "support/temporary_folder.h"

namespace pruner {

namespace {

// Element `number` of `samples` that lie one behind the other along the first dimension.
Tensor sample_of(const Tensor& all, const TensorSpec& spec, int64_t number) {
  Tensor sample(spec.dtype, spec.shape);
  const int64_t bytes = sample.num_elements() * dtype_bytes(spec.dtype);
  const auto* from = static_cast<const std::byte*>(all.data()) + number * bytes;
  std::copy_n(from, bytes, static_cast<std::byte*>(sample.data()));
  return sample;
}

// Returns how many samples of an input an array holds.
Result<int64_t> count_samples(const TensorSpec& spec, const Tensor& all) {
  const std::vector<int64_t>&shape = spec.shape, &found = all.shape();
  const bool fits = all.dtype() == spec.dtype && !shape.empty() && found.size() == shape.size() &&
                    std::equal(shape.begin() + 1, shape.end(), found.begin() + 1) && found[0] > 0 &&
                    found[0] % shape[0] == 0;
  if (fits) return found[0] / shape[0];
  if (all.dtype() == spec.dtype && found == shape) return 1;
  return Error("\"",
               spec.name,
               "\" is ",
               dtype_name(all.dtype()),
               " ",
               print_shape(found),
               ", expected ",
               dtype_name(spec.dtype),
               " ",
               print_shape(shape),
               ", or several of them along the first dimension");
}

/// Calibration data: the inputs of several runs.
struct Samples {
  std::vector<TensorSpec> specs;
  std::vector<Tensor> arrays;  // one an input
  int64_t count = 0;

  std::vector<Tensor> inputs(int64_t number) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < specs.size(); ++i)
      tensors.push_back(sample_of(arrays[i], specs[i], number));
    return tensors;
  }
};

Result<Samples> match_samples(const Graph& graph, std::vector<NamedTensor> given) {
  Samples samples;
  for (const ValueId id : graph.inputs)
    samples.specs.push_back({graph[id].name, graph[id].dtype, graph[id].shape});
  std::vector<TensorSpec> as_found = samples.specs;
  for (TensorSpec& spec : as_found) {
    const auto it = std::ranges::find(given, spec.name, &NamedTensor::name);
    if (it != given.end()) {
      TRY_ASSIGN(const int64_t count, count_samples(spec, it->tensor));
      if (samples.count > 0 && count != samples.count)
        return Error("\"",
                     spec.name,
                     "\" holds ",
                     count,
                     " samples, \"",
                     samples.specs[0].name,
                     "\" ",
                     samples.count);
      samples.count = count;
      spec.shape = it->tensor.shape();
    }
  }
  TRY_ASSIGN(samples.arrays, match_tensors(as_found, std::move(given)));
  samples.count = std::max<int64_t>(samples.count, 1);
  return samples;
}

struct Quantize {
  SourceOptions what;
  std::string calibration, out_file;
  int threads = 0, jobs = 0;

  void add_to(CLI::App& app) {
    what.add_network_to(app);
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--calibration FILE", calibration)
        .help("an .npz file with inputs by name: one sample, or several along the first dimension");
    add_threads(app, threads);
    add_jobs(app, jobs);
    add_out_file(app, out_file, "the ONNX file to write", {FileKind::kOnnx});
  }

  /// Measures the range of each value over all samples.
  Result<std::vector<ValueRange>> measure(const Graph& graph,
                                          std::span<const ValueId> values,
                                          const Samples& samples) const {
    TargetOptions on;
    on.threads = threads;
    TRY_ASSIGN(const Target target, read_target(on));
    TRY_ASSIGN(const Partition cut, partition(with_ranges_of(graph, values), target));
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
    const std::string path = folder.path("calibration.so");
    const ScheduleChoice none = [](const Task&, const Space&) { return std::nullopt; };
    TRY(build_module(cut, target, none, {.jobs = jobs, .work_dir = ""}, path));
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    std::vector<ValueRange> ranges(values.size());
    for (int64_t sample = 0; sample < samples.count; ++sample) {
      TRY_ASSIGN(const std::vector<Tensor> found, module.run(samples.inputs(sample)));
      for (size_t i = 0; i < values.size(); ++i) {
        const double low = found[2 * i].get(0), high = found[2 * i + 1].get(0);
        if (!std::isfinite(low) || !std::isfinite(high))
          return Error(calibration,
                       ": sample ",
                       sample,
                       " makes \"",
                       graph[values[i]].name,
                       "\" infinite or no number");
        ValueRange& range = ranges[i];
        range.low = sample == 0 ? low : std::min(range.low, low);
        range.high = sample == 0 ? high : std::max(range.high, high);
      }
    }
    return ranges;
  }

  Result<int> run(const Invocation& call) const {
    if (calibration.empty())
      return Error("quantize: --calibration is missing; name an .npz file of inputs");
    TRY(check_options(what));
    if (!what.decode.empty())
      return Error("--decode: a quantized file has one phase; give --decode to `pruner compile`");
    TRY_ASSIGN(Graph network, read_network(what));
    const std::string name = network_name(what);
    const Graph graph = prepared_to_quantize(std::move(network));
    Result<std::vector<ValueId>> values = values_to_quantize(graph);
    if (!values.ok()) return Error(name, ": ", values.error().message());
    TRY_ASSIGN(std::vector<NamedTensor> given, read_tensors(calibration));
    const Result<Samples> samples = match_samples(graph, std::move(given));
    if (!samples.ok()) return Error(calibration, ": ", samples.error().message());
    TRY_ASSIGN(const std::vector<ValueRange> ranges, measure(graph, *values, *samples));
    const std::string path = out_file.empty() ? name + ".int8.onnx" : out_file;
    TRY(export_onnx(quantized(graph, *values, ranges), path));
    return call.show(
        {{"file", path}, {"values", values->size()}, {"samples", samples->count}},
        fmt::format(
            "{}: {} values in 256 steps, by {} samples\n", path, values->size(), samples->count));
  }
};

}  // namespace

RunCommand make_quantize(CLI::App& app) { return make_command<Quantize>(app); }

}  // namespace pruner
