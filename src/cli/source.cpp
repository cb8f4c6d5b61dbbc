#include "cli/source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <regex>
#include <sstream>

#include "deploy/tensor_file.h"
#include "graph/import_cache.h"
#include "graph/networks/networks.h"
#include "graph/partition_range.h"
#include "graph/pipeline/pipeline.h"
#include "graph/quantize.h"
#include "runtime/gpu_context.h"
#include "space/space.h"
#include "support/file.h"
#include "support/log.h"
#include "support/memory.h"
#include "target/device_file.h"
#include "tensor/check_accesses.h"
#include "tensor/interpreter.h"
#include "tensor/operators.h"

namespace pruner {

namespace {

/// "name:1x3x224x224" -> its two parts.
Result<std::pair<std::string, std::vector<int64_t>>> parse_shape(const char* flag,
                                                                 std::string_view text) {
  const Error error(flag, ": \"", text, "\" is not NAME:1x3x224x224");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return error;
  std::vector<int64_t> shape;
  const char* at = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t extent = 0;
    const auto [next, code] = std::from_chars(at, end, extent);
    if (code != std::errc() || extent < 1) return error;
    shape.push_back(extent);
    if (next == end) break;
    if (*next != 'x') return error;
    at = next + 1;
  }
  return std::pair(std::string(text.substr(0, colon)), shape);
}

/// The inputs of --input-shapes or --decode; an input that stands there twice is an error.
Result<std::map<std::string, std::vector<int64_t>>> parse_shapes(const char* flag,
                                                                 std::string_view text) {
  std::map<std::string, std::vector<int64_t>> shapes;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    TRY_ASSIGN(auto shape, parse_shape(flag, text.substr(0, comma)));
    const auto [at, fresh] = shapes.insert(std::move(shape));
    if (!fresh) return Error(flag, " names \"", at->first, "\" twice");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return shapes;
}

/// "1,3,224" -> a list of int64, of float32 where one is no whole number; nothing for other texts.
std::optional<Tensor> parse_numbers(std::string_view text) {
  std::vector<double> reals;
  std::vector<int64_t> integers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t integer = 0;
    double real = 0;
    const auto whole = std::from_chars(at, end, integer);
    const auto number = std::from_chars(at, end, real);
    if (number.ec != std::errc()) return std::nullopt;
    if (whole.ec == std::errc() && whole.ptr == number.ptr) integers.push_back(integer);
    reals.push_back(real);
    at = number.ptr;
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  const auto n = static_cast<int64_t>(reals.size());
  const bool whole = integers.size() == reals.size();
  Tensor tensor(whole ? DType::kInt64 : DType::kFloat32, {n});
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<size_t>(i);
    if (whole) {
      tensor.set_int(i, integers[place]);
    } else {
      tensor.set(i, reals[place]);
    }
  }
  return tensor;
}

/// "name=file.npy" or "name=1,3" -> its two parts.
Result<std::pair<std::string, GivenConstant>> parse_constant(const std::string& text) {
  const size_t equals = text.find('=');
  const Error error("--constant: \"", text, "\" is not NAME=FILE.npy or NAME=1,3,224");
  if (equals == std::string::npos || equals == 0) return error;
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (value.ends_with(".npy")) {
    Result<Tensor> tensor = read_tensor(value);
    if (!tensor.ok()) return Error("--constant: ", tensor.error().message());
    return std::pair(name, GivenConstant{*std::move(tensor), true});
  }
  std::optional<Tensor> numbers = parse_numbers(value);
  if (!numbers) return error;
  return std::pair(name, GivenConstant{*std::move(numbers), false});
}

/// The text with what does not belong into file names turned to single underscores.
std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
    if (plain || (!name.empty() && name.back() != '_')) name += plain ? c : '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "task" : name;
}

// Reads a file that holds a DAG, or an object with the DAG as its "dag".
Result<ComputeDag> read_dag(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  const Result<Json> json = parse_json(text);
  if (!json.ok())
    return Error(path, ": ", json.error().message(), "; --task takes a compute DAG as JSON");
  const bool wrapped = json->is_object() && json->contains("dag");
  Result<ComputeDag> dag = dag_from_json(wrapped ? json->at("dag") : *json);
  if (!dag.ok()) return Error(path, ": ", dag.error().message());
  if (const Result<Unit> inside = check_accesses(*dag); !inside.ok())
    return Error(path, ": ", inside.error().message());
  return dag;
}

Result<Precision> read_precision(const std::string& text, const Target& target) {
  const std::string where = target.is_gpu() ? print(target) : target.device;
  for (const PrecisionRow& row : kPrecisions) {
    const Support support = row.support(target);
    if (text == "auto" && support == Support::kUnit) return row.precision;
    if (text != row.text) continue;
    const std::string lacks = fmt::format(
        "--precision {}: {} has no unit that multiplies {} faster than float32", text, where, text);
    if (support == Support::kNone) return Error(lacks, "; auto takes what there is");
    if (support == Support::kScalar) log_warning("{}; its values take half the bytes", lacks);
    return row.precision;
  }
  return Error("--precision: \"", text, "\" is not f32, tf32, bf16, f16, int8 or auto");
}

Result<Numerics> read_numerics(const std::string& text) {
  for (const NumericsRow& row : kNumerics)
    if (text == row.text) return row.numerics;
  return Error("--numerics: \"", text, "\" is not onnx or ort");
}

/// Returns the options with one extent of each symbol.
SourceOptions at_extents(SourceOptions options,
                         std::span<const Symbol> symbols,
                         const SymbolValues& values) {
  const std::vector<std::string> given = std::exchange(options.dims, {});
  for (const std::string& text : given)  // keeps dimensions of one extent
    if (const Result<Symbol> dim = parse_symbol(text); dim.ok() && dim->min == dim->max)
      options.dims.push_back(text);
  for (size_t s = 0; s < symbols.size(); ++s)
    options.dims.push_back(fmt::format("{}={}", symbols[s].name, values[s]));
  return options;
}

/// Returns the extents at which a symbol is tuned: those that matter, else some that grow by 4.
std::vector<int64_t> tuned_extents(const Symbol& symbol) {
  if (!symbol.matters.empty()) return symbol.matters;
  std::vector<int64_t> extents;
  constexpr int64_t kGrowth = 4;
  constexpr size_t kMost = 4;
  for (int64_t extent = symbol.max; extents.size() < kMost; extent /= kGrowth) {
    extents.push_back(std::max(extent, symbol.min));
    if (extent / kGrowth < symbol.min || extent == 1) break;
  }
  std::ranges::reverse(extents);
  return extents;
}

std::vector<SymbolValues> tuned_shapes(std::span<const Symbol> symbols) {
  std::vector<SymbolValues> shapes = {{}};
  for (const Symbol& symbol : symbols) {
    std::vector<SymbolValues> longer;
    for (const SymbolValues& shape : shapes) {
      for (const int64_t extent : tuned_extents(symbol)) {
        longer.push_back(shape);
        longer.back().push_back(extent);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

/// Adds the phase of a network of several shapes, and the tasks of the shapes that are tuned.
Result<Unit> add_ranges(const std::vector<Symbol>& symbols,
                        const HintedPartitionAt& at,
                        const Target& target,
                        Source& source) {
  Result<NetworkRanges> network =
      target.is_gpu() ? partition_each(symbols, at) : partition_over(symbols, at);
  if (!network.ok()) return Error("--dim: ", network.error().message());
  std::vector<Phase> tuned;
  for (const SymbolValues& shape : tuned_shapes(symbols)) {
    TRY_ASSIGN(Partition cut, network->at(shape));
    // Tuning needs shapes only, so the constants, which are as large as the network, are freed.
    for (PlannedValue& value : cut.values) value.constant.reset();
    cut.graph.reset();
    tuned.push_back({print(symbols, shape), std::move(cut)});
  }
  source.tasks = extract_tasks(tuned, target);
  Partition greatest = network->ranges.front().largest;
  source.phases.push_back(
      {"main", std::move(greatest), std::make_shared<const NetworkRanges>(*std::move(network))});
  return Unit{};
}

/// The options of a network's second phase: --decode has the shapes of an ONNX file's inputs, or a
/// built-in network's sequence length.
Result<SourceOptions> decode_options(const SourceOptions& options) {
  SourceOptions decode = options;
  if (options.network.empty()) {
    // The shape of an input in --decode counts, whatever --input-shapes says of the input.
    TRY_ASSIGN(auto shapes, parse_shapes("--decode", options.decode));
    TRY_ASSIGN(auto others, parse_shapes("--input-shapes", options.input_shapes));
    shapes.merge(others);
    decode.input_shapes.clear();
    for (const auto& [name, shape] : shapes)
      decode.input_shapes +=
          (decode.input_shapes.empty() ? "" : ",") + name + ":" + print_shape(shape);
    return decode;
  }
  const char* const end = options.decode.data() + options.decode.size();
  const auto [at, code] = std::from_chars(options.decode.data(), end, decode.sizes.sequence_length);
  if (code != std::errc() || at != end || decode.sizes.sequence_length < 1)
    return Error("--decode: \"", options.decode, "\" is not the length of a sequence, as 1");
  return decode;
}

/// `SourceKind` is the kind of source that a command works on.
enum class SourceKind : uint8_t { kFile, kImages, kTokens, kOperator, kNone };

Result<SourceKind> kind_of(const SourceOptions& options) {
  if (!options.model_file.empty()) return SourceKind::kFile;
  if (!options.ops.empty() || !options.task.empty()) return SourceKind::kOperator;
  if (options.network.empty()) return SourceKind::kNone;
  TRY_ASSIGN(const InputSize size, input_size(options.network));
  return size.is_image ? SourceKind::kImages : SourceKind::kTokens;
}

/// Holds an option, and the advice for each kind of source if it does not act; null: it acts.
struct OptionUse {
  const char* flag;
  bool given;
  const char* on_file;
  const char* on_images;
  const char* on_tokens;
};

std::vector<OptionUse> uses_of(const SourceOptions& options) {
  constexpr const char* kGiveDims =
      "an ONNX file has its own sizes; say what its open dimensions are with --dim NAME=N or "
      "--input-shapes NAME:1x3x224x224";
  constexpr const char* kGiveImage = "this network takes images; use --image-size";
  constexpr const char* kGiveTokens = "this network takes sequences; use --seq-len";
  constexpr const char* kOfFiles =
      "the inputs of built-in networks have sizes only; use --batch-size, --image-size or "
      "--seq-len";
  constexpr const char* kGiveStates = "of an ONNX file --states names what is kept";
  constexpr const char* kNoConstants = "a built-in network has no input that may be a constant";
  const NetworkOptions& sizes = options.sizes;
  return {
      {"--batch-size", sizes.batch_size > 0, kGiveDims, nullptr, nullptr},
      {"--image-size", sizes.image_size > 0, kGiveDims, nullptr, kGiveTokens},
      {"--seq-len", sizes.sequence_length > 0, kGiveDims, kGiveImage, nullptr},
      // A network without a cache says so itself.
      {"--cache-len", sizes.cache_length > 0, kGiveStates, nullptr, nullptr},
      {"--input-shapes", !options.input_shapes.empty(), nullptr, kOfFiles, kOfFiles},
      {"--constant", !options.constants.empty(), nullptr, kNoConstants, kNoConstants},
      {"--states", !options.states.empty(), nullptr, nullptr, nullptr},
      {"--decode", !options.decode.empty(), nullptr, nullptr, nullptr},
      {"--dim", !options.dims.empty(), nullptr, nullptr, nullptr},
  };
}

/// Reads a network's stages; nullopt if no node reads extents that the data decide.
Result<std::optional<std::vector<Phase>>> read_stages(const SourceOptions& options,
                                                      const CutStage& cut) {
  TRY_ASSIGN(NetworkOptions network, network_options(options));
  return stage_phases(import_from(options.model_file, std::move(network)), cut);
}

/// Returns the options with recurrent operators as loops if the target runs loops. The network that
/// verifies a module has nodes of each step instead.
SourceOptions with_loops(SourceOptions options, const Target& target) {
  options.sizes.loops_over_steps = !target.is_gpu();
  return options;
}

Result<Source> network_source(const SourceOptions& options, const Target& target) {
  Source source{.name = network_name(options), .network = true, .phases = {}};
  TRY_ASSIGN(const Precision precision, read_precision(options.precision, target));
  TRY_ASSIGN(const Numerics numerics, read_numerics(options.numerics));
  // The source's ranges keep `cut`, so that checks can make the network anew at any shape.
  const auto cut = [name = source.name, target, precision, numerics](
                       const SourceOptions& of,
                       const std::shared_ptr<const RangeHints>& hints) -> Result<Partition> {
    TRY_ASSIGN(Graph graph, read_network(with_loops(of, target)));
    graph.hints = hints;
    if (precision == Precision::kInt8 && !is_quantized(graph))
      return Error("--precision int8: ", name, " is not quantized; `pruner quantize` does that");
    return partition(std::move(graph), target, precision, numerics);
  };
  TRY_ASSIGN(std::vector<Symbol> symbols, read_symbols(options));
  std::erase_if(symbols, [](const Symbol& s) { return s.min == s.max; });
  if (!symbols.empty()) {
    if (!options.decode.empty() || !options.states.empty() || options.sizes.cache_length > 0)
      return Error("--dim: a module of several shapes keeps nothing from run to run");
    // The imports of a range share their weights; the network of a verification is imported anew.
    SourceOptions shared = options;
    shared.sizes.cache = std::make_shared<ImportCache>();
    TRY(add_ranges(
        symbols,
        [cut, shared, symbols](const SymbolValues& values,
                               const std::shared_ptr<const RangeHints>& hints) {
          return cut(at_extents(shared, symbols, values), hints);
        },
        target,
        source));
    source.phases.front().graph_at = [options, symbols](const SymbolValues& values) {
      return read_network(at_extents(options, symbols, values));
    };
    return source;
  }
  const bool may_be_staged =
      !options.model_file.empty() && options.decode.empty() && options.states.empty();
  const auto add = [&](std::string phase, const SourceOptions& of) -> Result<Unit> {
    Result<Partition> made = cut(of, nullptr);
    if (!made.ok() && may_be_staged) {
      const CutStage cut_stage = [=](Graph graph) {
        return partition(std::move(graph), target, precision, numerics);
      };
      TRY_ASSIGN(std::optional<std::vector<Phase>> stages,
                 read_stages(with_loops(of, target), cut_stage));
      if (stages) {
        source.phases = *std::move(stages);
        return Unit{};
      }
    }
    if (!made.ok()) return made.error();
    source.phases.push_back({std::move(phase), *std::move(made)});
    source.phases.back().graph_at = [of](const SymbolValues&) { return read_network(of); };
    return Unit{};
  };
  TRY(add(options.decode.empty() ? "main" : "prefill", options));
  if (!options.decode.empty()) {
    TRY_ASSIGN(const SourceOptions decode, decode_options(options));
    TRY(add("decode", decode));
    if (source.phases.back().partition.states.empty())
      return Error("--decode: ",
                   source.name,
                   " keeps nothing from run to run; give --cache-len or --states");
  }
  source.tasks = extract_tasks(source.phases, target);
  return source;
}

// Names the task of a DAG by the user's text, its files by the characters that fit a file name.
Source single_source(ComputeDag dag, std::string text, const Target& target) {
  Source source{.name = file_name(text), .phases = {{"main", single_group(dag, text)}}};
  source.tasks.push_back({make_task(std::move(dag), target, std::move(text)), 1});
  return source;
}

// Makes the source of several operators, a task each; equal operators are one task.
Result<Source> operator_source(const std::vector<std::string>& ops, const Target& target) {
  std::optional<Source> source;
  for (const std::string& text : ops) {
    Result<ComputeDag> dag = parse_operator(text);
    if (!dag.ok()) return Error("--op: ", dag.error().message());
    Source one = single_source(*std::move(dag), text, target);
    if (!source) {
      source = std::move(one);
      if (ops.size() > 1) source->name += fmt::format("_and_{}_more", ops.size() - 1);
      continue;
    }
    const auto same = std::ranges::find(
        source->tasks, one.tasks[0].task.key, [](const WeightedTask& t) { return t.task.key; });
    if (same != source->tasks.end()) {
      ++same->weight;
      continue;
    }
    source->tasks.push_back(std::move(one.tasks[0]));
  }
  return *std::move(source);
}

}  // namespace

Partition single_group(ComputeDag dag, const std::string& name) {
  Partition partition{.network = name, .values = {}, .groups = {}, .inputs = {}, .outputs = {}};
  Group group{.name = name,
              .dag = {},
              .key = workload_key(dag),
              .complex = true,
              .inputs = {},
              .output = {}};
  const auto add = [&](StageId id) {
    const Stage& stage = dag[id];
    partition.values.push_back({stage.name, stage.dtype, stage.shape(), std::nullopt, {}});
    return ValueId{static_cast<int32_t>(partition.values.size()) - 1};
  };
  for (const StageId id : dag.inputs()) {
    const ValueId value = add(id);
    group.inputs.push_back(value);
    if (!dag[id].constant) partition.inputs.push_back(value);
  }
  group.output = add(dag.outputs().front());
  partition.outputs = {group.output};
  group.dag = std::move(dag);
  partition.groups.push_back(std::move(group));
  return partition;
}

Result<Unit> draw_constants(Source& source, uint64_t seed) {
  if (source.network) return Unit{};
  Partition& partition = source.phases.front().partition;
  const Group& group = partition.groups.front();
  const std::vector<StageId> inputs = group.dag.inputs();
  double bytes = 0;
  for (const StageId id : inputs)
    bytes += static_cast<double>(group.dag[id].num_elements()) * dtype_bytes(group.dag[id].dtype);
  TRY(check_memory(group.name, bytes));
  Rng rng(seed);
  std::vector<Tensor> values = random_inputs(group.dag, rng);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (group.dag[inputs[i]].constant)
      partition.values[group.inputs[i].value].constant = std::move(values[i]);
  }
  return Unit{};
}

/// A GPU without an arch or a model ("cuda") is the first one here, if there is one.
static void take_arch_of_this_gpu(Target& target) {
  if (!row_of(target.backend).has_arch || !target.gpu.arch.empty()) return;
  const Result<std::vector<GpuFacts>> here = list_gpus(target.backend);
  if (!here.ok()) return;
  const Result<Gpu> gpu = with_facts(target.gpu, here->front());
  if (gpu.ok()) target.gpu = *gpu;
}

void add_sizes(CLI::App& app, NetworkOptions& sizes) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "--batch-size N", sizes.batch_size, 1).help("of a built-in network", "1");
  add_option(app, "--image-size N", sizes.image_size, 1)
      .help("of a built-in network", "its usual one, 224 for most");
  add_option(app, "--seq-len N", sizes.sequence_length, 1).help("of a built-in network", "128");
  add_option(app, "--cache-len N", sizes.cache_length, 1)
      .help("of a built-in decoder: keeps keys and values of so many positions from run to run");
}

void add_op(CLI::App& app, std::vector<std::string>& ops) {
  add_option(app, "--op TEXT", ops)
      .help("an operator, e.g. 'matmul 512 512 512 +relu' (`pruner ops`); each one is a task");
}

Result<Unit> check_one_operator(const SourceOptions& options) {
  if (options.ops.size() <= 1) return Unit{};
  return Error("--op: ", options.ops.size(), " operators are given; a module is of one");
}

std::string SourceOptions::named_text() const {
  if (!ops.empty()) return fmt::format("{}", fmt::join(ops, ", "));
  return network + model_file + task;
}

static void add_network_name(CLI::App& app, SourceOptions& options) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "MODEL.onnx", options.model_file).help("the network: an ONNX file");
  add_option(app, "--network NAME", options.network)
      .help("a built-in network (`pruner networks` lists them)");
}

void SourceOptions::add_to(CLI::App& app, const char* task_help) {
  add_network_name(app, *this);
  add_others_to(app, task_help);
}

void SourceOptions::add_network_to(CLI::App& app) {
  add_network_name(app, *this);
  add_inputs_to(app);
}

void SourceOptions::add_others_to(CLI::App& app, const char* task_help) {
  begin_group(app, OptionGroup::kInput);
  add_op(app, ops);
  add_option(app, "--task FILE", task).help(task_help);
  add_inputs_to(app);
  add_option(app, "--precision NAME", precision)
      .help(
          "what a network's products multiply: f32, tf32, bf16, f16, int8 (of a quantized "
          "network), or auto: what is fastest",
          "f32");
  add_option(app, "--numerics NAME", numerics)
      .help(
          "whose results a quantized network has where two differ: onnx (each operator rounds as "
          "ONNX defines it) or ort (ONNX Runtime's, after its optimizer)",
          "onnx");
}

void SourceOptions::add_inputs_to(CLI::App& app) {
  add_sizes(app, sizes);
  add_shapes_to(app);
  add_option(app, "--states PAIRS", states)
      .help(
          "inputs that an instance keeps, and the outputs that they are in its next run: "
          "'past.*=present.*,...'");
  add_option(app, "--decode SHAPES", decode)
      .help(
          "a second phase over the same weights and states: its input shapes, "
          "'input_ids:1x1,...', or of a built-in network its sequence length");
}

void SourceOptions::add_shapes_to(CLI::App& app) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "--input-shapes SHAPES", input_shapes)
      .help("for dynamic dims: name:1x3x224x224,...");
  add_option(app, "--dim NAME=RANGE", dims)
      .help(
          "for a dim that has a name: seq=77, or a range of extents, seq=1..512@64,128 (after @ "
          "those "
          "that matter); of a built-in network: batch, seq, size");
  add_option(app, "--constant NAME=VALUE", constants)
      .help("makes an input a constant: name=FILE.npy or name=1,3,224");
}

void TargetOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kTarget);
  add_option(app, "--target TARGET", name)
      .help("e.g. 'llvm -mcpu=haswell', 'cuda --model=a100'", "this machine");
  add_threads(app, threads);
}

void add_psa(CLI::App& app, std::string& device) {
  begin_group(app, OptionGroup::kTarget);
  add_option(app, "--psa DEVICE", device)
      .help("device whose numbers the analysis takes: a name (`pruner device list`) or FILE.json",
            "the target");
}

Result<Target> read_target(const TargetOptions& options) {
  Result<Target> target = parse_target(options.name, options.threads);
  if (!target.ok()) return Error("--target: ", target.error().message());
  take_arch_of_this_gpu(*target);
  if (options.device.empty()) return target;
  Result<Target> seen = with_abstraction(*target, options.device);
  if (!seen.ok()) return Error("--psa: ", seen.error().message());
  return seen;
}

Result<std::vector<Symbol>> read_symbols(const SourceOptions& options) {
  std::vector<Symbol> symbols;
  for (const std::string& text : options.dims) {
    Result<Symbol> symbol = parse_symbol(text);
    if (!symbol.ok()) return Error("--dim: ", symbol.error().message());
    if (std::ranges::find(symbols, symbol->name, &Symbol::name) != symbols.end())
      return Error("--dim names \"", symbol->name, "\" twice");
    symbols.push_back(*std::move(symbol));
  }
  return symbols;
}

// Sets the extent of dimension `name` of a built-in network.
static Result<Unit> set_size(NetworkOptions& network, const std::string& name, int64_t extent) {
  if (name == "batch") {
    network.batch_size = extent;
  } else if (name == "seq") {
    network.sequence_length = extent;
  } else if (name == "size") {
    network.image_size = extent;
  } else {
    return Error("--dim names \"", name, "\"; a built-in network has batch, seq and size");
  }
  return Unit{};
}

Result<NetworkOptions> network_options(const SourceOptions& options) {
  NetworkOptions network = options.sizes;
  if (network.batch_size == 0) network.batch_size = 1;
  TRY_ASSIGN(const std::vector<Symbol> symbols, read_symbols(options));
  for (const Symbol& symbol : symbols) {
    if (symbol.min < symbol.max)
      return Error("--dim ",
                   print(symbol),
                   ": one extent is needed here, as ",
                   symbol.name,
                   "=",
                   symbol.max);
    if (options.network.empty()) {
      network.dims[symbol.name] = symbol.min;
    } else {
      TRY(set_size(network, symbol.name, symbol.min));
    }
  }
  TRY_ASSIGN(network.input_shapes, parse_shapes("--input-shapes", options.input_shapes));
  for (const std::string& text : options.constants) {
    TRY_ASSIGN(auto constant, parse_constant(text));
    const auto [at, fresh] = network.constants.insert(std::move(constant));
    if (!fresh) return Error("--constant names \"", at->first, "\" twice");
  }
  return network;
}

Result<Graph> read_network(const SourceOptions& options) {
  if (options.model_file.empty() == options.network.empty())
    return Error("give one of MODEL.onnx and --network");
  TRY_ASSIGN(const NetworkOptions network, network_options(options));
  TRY_ASSIGN(Graph graph,
             options.network.empty() ? import_onnx(options.model_file, network)
                                     : build_network(options.network, network));
  if (const Result<Unit> marked = mark_states(graph, options.states); !marked.ok())
    return Error("--states: ", marked.error().message());
  return graph;
}

std::string network_name(const SourceOptions& options) {
  if (!options.network.empty()) return options.network;
  return std::filesystem::path(options.model_file).stem().string();
}

// Returns an error if --dim and a size's own option both give that size of a built-in network.
static Result<Unit> check_said_once(const SourceOptions& options) {
  TRY_ASSIGN(const std::vector<Symbol> symbols, read_symbols(options));
  struct Size {
    const char *name, *flag;
    bool given;
  };
  for (const Size& size : {Size{"batch", "--batch-size", options.sizes.batch_size > 0},
                           {"size", "--image-size", options.sizes.image_size > 0},
                           {"seq", "--seq-len", options.sizes.sequence_length > 0}})
    if (size.given && std::ranges::find(symbols, size.name, &Symbol::name) != symbols.end())
      return Error(
          "--dim ", size.name, " and ", size.flag, " are the same size; leave out one of them");
  return Unit{};
}

Result<Unit> check_options(const SourceOptions& options) {
  TRY_ASSIGN(const SourceKind kind, kind_of(options));
  for (const OptionUse& use : uses_of(options)) {
    if (!use.given) continue;
    const bool dim = use.flag == std::string_view("--dim");
    switch (kind) {
      case SourceKind::kFile:
        if (use.on_file != nullptr) return Error(use.flag, ": ", use.on_file);
        break;
      case SourceKind::kImages:
        if (use.on_images != nullptr) return Error(use.flag, ": ", use.on_images);
        break;
      case SourceKind::kTokens:
        if (use.on_tokens != nullptr) return Error(use.flag, ": ", use.on_tokens);
        break;
      case SourceKind::kOperator:
        return Error(use.flag, " is of networks; an operator has the extents given");
      case SourceKind::kNone:
        if (!dim) return Error(use.flag, ": no network is named that it could be about");
        break;
    }
  }
  TRY(parse_shapes("--input-shapes", options.input_shapes));
  return check_said_once(options);
}

Result<Source> read_source(const SourceOptions& options, const Target& target) {
  const int given = !options.model_file.empty() + !options.network.empty() + !options.ops.empty() +
                    !options.task.empty();
  const std::string one = "; give one of MODEL.onnx, --network, --op and --task";
  const bool task = !options.task.empty();
  if (given == 0) return Error("nothing to work on", one);
  if (given > 1)
    return Error("several things to work on",
                 one,
                 task ? " (with --print, --task is the number of a task)" : "");
  TRY(check_options(options));
  if (!options.network.empty() || !options.model_file.empty()) {
    return network_source(options, target);
  }
  if (options.precision != SourceOptions().precision)
    return Error("--precision is of networks; an operator says it, e.g. bits=16 (`pruner ops`)");
  if (options.numerics != SourceOptions().numerics)
    return Error("--numerics is of networks; leave it out");
  if (task) {
    TRY_ASSIGN(ComputeDag dag, read_dag(options.task));
    return single_source(
        std::move(dag), std::filesystem::path(options.task).stem().string(), target);
  }
  return operator_source(options.ops, target);
}

void add_forms(CLI::App& app, std::string& forms) {
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--forms NAMES", forms)
      .help(
          "forms of a task to use: direct, split-k, winograd-2x2, winograd-4x4, bf16-2-parts, "
          "bf16-3-parts, implicit-gemm, implicit-gemm-split-k, key-blocks, packed-panels",
          "all that keep to float32's accuracy");
}

void add_tasks(CLI::App& app, std::string& tasks) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "--tasks REGEX", tasks).help("only the tasks whose name matches", "all");
}

Result<std::vector<std::string>> read_forms(const std::string& text) {
  const std::vector<std::string> known = form_names();
  std::vector<std::string> forms;
  std::istringstream in(text);
  for (std::string form; std::getline(in, form, ',');) {
    if (std::ranges::find(known, form) == known.end())
      return Error(fmt::format(
          "--forms: \"{}\" is no form of a task; use {}", form, fmt::join(known, ", ")));
    forms.push_back(form);
  }
  return forms;
}

Result<Unit> keep_matching(const std::string& pattern, std::vector<WeightedTask>& tasks) {
  if (pattern.empty()) return Unit{};
  // std::regex calls itself for each group of a pattern and each character of a text.
  constexpr size_t kMost = 1000;
  if (pattern.size() > kMost)
    return Error("--tasks: ", pattern.size(), " characters, expected at most ", kMost);
  try {
    const std::regex regex(pattern);
    std::erase_if(tasks, [&](const WeightedTask& t) {
      return !std::regex_search(t.task.name.substr(0, kMost), regex);
    });
  } catch (const std::regex_error& e) {
    return Error("--tasks: \"", pattern, "\" is no regular expression: ", e.what());
  }
  if (tasks.empty())
    return Error("--tasks: no task's name matches \"", pattern, "\"; see pruner tasks");
  return Unit{};
}

}  // namespace pruner
