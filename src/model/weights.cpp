#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "model/safetensors.h"
#include "model/shipped_weights.h"
#include "model/torch_checkpoint.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr std::string_view kNotACheckpoint =
    "not a checkpoint: expected a safetensors file, or torch's .pth or .pkl";

std::string print_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Returns an error for the first number that is not finite, or is below `least`.
Result<Unit> check_numbers(std::string_view name, std::span<const float> values, float least) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || values[i] < least)
      return Error(name,
                   ": element ",
                   i,
                   " is ",
                   values[i],
                   ", expected ",
                   least < 0 ? "a finite number" : "a number above 0");
  }
  return Unit{};
}

Result<Unit> check_scale(const InputRow& input, std::span<const float> scale, size_t expected) {
  const std::string name = fmt::format("scales of {}", input.name);
  if (scale.empty()) return Error("it has no ", name, " (", expected, " numbers)");
  if (scale.size() != expected)
    return Error(name, ": expected ", expected, " numbers, found ", scale.size());
  return check_numbers(name, scale, std::numeric_limits<float>::min());
}

/// Returns the weights of the statements' columns; null if the network reads no statements, or the
/// weights are missing.
WeightTensor* columns_of(ModelWeights& weights) {
  for (const Branch& branch : branches_of(*weights.architecture)) {
    if (branch.input != Input::kStatements) continue;
    const auto layer = weights.tensors.find(fmt::format("{}.weight", branch.first.name));
    const bool fits = layer != weights.tensors.end() && layer->second.shape.size() == 2;
    return fits ? &layer->second : nullptr;
  }
  return nullptr;
}

/// Drops the last columns of the statements, or adds some of zeros.
void resize_columns(ModelWeights& weights, WeightTensor& layer, size_t columns) {
  const auto rows = static_cast<size_t>(layer.shape[0]),
             before = static_cast<size_t>(layer.shape[1]);
  std::vector<float> values(rows * columns);
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(layer.values.begin() + static_cast<std::ptrdiff_t>(r * before),
                std::min(before, columns),
                values.begin() + static_cast<std::ptrdiff_t>(r * columns));
  layer = {{layer.shape[0], static_cast<int64_t>(columns)}, std::move(values)};
  weights.scale[Input::kStatements].resize(columns, 1.0f);
}

/// Adds the scales that stand beside a .pth, under the names of the published text.
Result<Unit> add_scales_beside(const std::string& path, ModelWeights& weights) {
  namespace fs = std::filesystem;
  const fs::path own = fs::path(path).replace_extension(".scales.json");
  const fs::path published = fs::path(path).replace_filename("feature_scales.json");
  std::error_code unknown;
  const fs::path& file = fs::exists(own, unknown) ? own : published;
  if (!fs::exists(file, unknown))
    return Error("missing scales: expected ",
                 own.filename().string(),
                 " or ",
                 published.filename().string(),
                 " beside it");
  const auto read = [&]() -> Result<Unit> {
    TRY_ASSIGN(const std::string text, read_file(file.string()));
    TRY_ASSIGN(const Json json, parse_json(text));
    for (const Branch& branch : branches_of(*weights.architecture)) {
      const char* name = input_row(branch.input).published_scale;
      TRY_ASSIGN(weights.scale[branch.input], json_get<std::vector<float>>(json, name));
    }
    return Unit{};
  };
  const Result<Unit> done = read();
  if (!done.ok())
    return Error("scales of ", file.filename().string(), ": ", done.error().message());
  return Unit{};
}

bool is_pickle(const std::string& path) { return path.ends_with(".pkl"); }

/// Returns the primitives' form as "cuda 40 20 log" (or raw).
std::string print_form(const PrimitiveForm& form) {
  const char* table = form.gpu ? "cuda" : "llvm";
  return fmt::format("{} {} {} {}", table, form.steps, form.width, form.log ? "log" : "raw");
}

Result<Unit> read_form(std::map<std::string, std::string>& metadata, ModelWeights& weights) {
  constexpr int kMost = 4096;  // steps or numbers, of a file to be believed
  const std::string& text = metadata["primitives"];
  std::istringstream words(text);
  std::string table, numbers;
  PrimitiveForm& form = weights.form;
  words >> table >> form.steps >> form.width >> numbers;
  form.gpu = table == "cuda";
  form.log = numbers == "log";
  const bool fits = !words.fail() && (form.gpu || table == "llvm") &&
                    (form.log || numbers == "raw") && form.steps > 0 && form.steps <= kMost &&
                    form.width > kPrimitiveKinds && form.width <= kMost;
  if (!fits)
    return Error(
        "primitives \"", text, R"(", expected such as "llvm 25 22 log" or "cuda 40 20 raw")");
  std::istringstream names(metadata["heads"]);
  for (std::string name; std::getline(names, name);) weights.heads.push_back(name);
  return Unit{};
}

Result<ModelWeights> from_safetensors(std::string_view bytes) {
  TRY_ASSIGN(SafetensorsFile file, parse_safetensors(bytes));
  ModelWeights weights;
  const std::string& architecture = file.metadata["architecture"];
  weights.architecture = find_architecture(architecture);
  const auto quoted = [](const Architecture& a) { return fmt::format("\"{}\"", a.name); };
  if (weights.architecture == nullptr)
    return Error("architecture \"", architecture, "\", expected ", or_list(quoted));
  const std::string& version = file.metadata["feature_version"];
  std::vector<std::string> versions;
  for (const OlderFeatures& older : kOlderFeatures)
    versions.push_back(std::to_string(older.version));
  versions.push_back(std::to_string(kFeatureVersion));
  if (std::ranges::find(versions, version) == versions.end()) {
    return Error("weights for features of version \"",
                 version,
                 "\", expected \"",
                 fmt::format("{}", fmt::join(versions, "\" or \"")),
                 "\"");
  }
  weights.mode = file.metadata["mode"];
  if (weights.architecture->reads(Input::kPrimitives)) TRY(read_form(file.metadata, weights));
  if (const auto seen = file.metadata.find(kTrainedOnKey); seen != file.metadata.end()) {
    Result<TrainedOn> trained_on = parse_trained_on(seen->second);
    if (!trained_on.ok()) return Error(kTrainedOnKey, ": ", trained_on.error().message());
    weights.trained_on = *std::move(trained_on);
  }
  for (const Branch& branch : branches_of(*weights.architecture)) {
    const char* name = input_row(branch.input).scale_name;
    if (name == nullptr || !file.tensors.contains(name)) continue;
    weights.scale[branch.input] = std::move(file.tensors[name].values);
    file.tensors.erase(name);
  }
  weights.tensors = std::move(file.tensors);
  return weights;
}

Result<ModelWeights> read_any(const std::string& path, std::string_view bytes) {
  // Eight bytes of length, which may begin as a zip or a pickle does, then an object of JSON.
  if (bytes.size() > 8 && bytes[8] == '{') return from_safetensors(bytes);
  if (bytes.starts_with("PK")) {
    Result<ModelWeights> weights = read_torch_state_dict(path);
    if (weights.ok()) TRY(add_scales_beside(path, *weights));
    return weights;
  }
  if (bytes.starts_with("\x80")) return read_torch_pickle(bytes);
  return Error(bytes.empty() ? "the file is empty" : kNotACheckpoint);
}

Result<Unit> write_safetensors(const std::string& path, const ModelWeights& weights, int version) {
  SafetensorsFile file{.metadata = {{"architecture", std::string(weights.architecture->name)},
                                    {"mode", weights.mode},
                                    {"feature_version", std::to_string(version)}},
                       .tensors = weights.tensors};
  if (weights.trained_on) file.metadata[kTrainedOnKey] = print_trained_on(*weights.trained_on);
  if (weights.architecture->reads(Input::kPrimitives)) {
    file.metadata["primitives"] = print_form(weights.form);
    if (!weights.heads.empty())
      file.metadata["heads"] = fmt::format("{}", fmt::join(weights.heads, "\n"));
  }
  for (const Branch& branch : branches_of(*weights.architecture)) {
    const std::vector<float>& scale = weights.scale[branch.input];
    if (!scale.empty())
      file.tensors[input_row(branch.input).scale_name] = {{std::ssize(scale)}, scale};
  }
  return write_file(path, print_safetensors(file));
}

}  // namespace

Result<Unit> add_unit_columns(ModelWeights& weights) {
  WeightTensor* layer = columns_of(weights);
  const auto older = std::ranges::find_if(kOlderFeatures, [&](const OlderFeatures& o) {
    return layer != nullptr && layer->shape[1] == o.columns;
  });
  if (older == std::end(kOlderFeatures)) return Unit{};
  const InputRow& input = input_row(Input::kStatements);
  TRY(check_scale(input, weights.scale[Input::kStatements], static_cast<size_t>(older->columns)));
  resize_columns(weights, *layer, kRowFeatures);
  return Unit{};
}

static ModelWeights with_columns(ModelWeights weights, int columns) {
  if (WeightTensor* layer = columns_of(weights))
    resize_columns(weights, *layer, static_cast<size_t>(columns));
  return weights;
}

ModelWeights without_units(ModelWeights weights) {
  return with_columns(std::move(weights), kPublishedRowFeatures);
}

std::string head_module(const ModelWeights& weights, size_t head) {
  const std::string module(weights.architecture->head_module);
  return weights.heads.empty() ? module : module + "." + weights.heads[head];
}

size_t WeightSpec::element_count() const {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}

std::vector<ScaledLayer> scaled_layers(ModelWeights& weights) {
  std::vector<ScaledLayer> layers;
  for (const Branch& branch : branches_of(*weights.architecture)) {
    if (input_row(branch.input).scale_name == nullptr) continue;
    const std::string name = branch.first.name;
    layers.push_back({branch.input,
                      weights.scale[branch.input],
                      weights.tensors[name + ".weight"],
                      weights.tensors[name + ".bias"]});
  }
  return layers;
}

size_t head_of(const ModelWeights& weights, std::string_view platform) {
  if (weights.heads.empty()) return 0;
  auto found = std::ranges::find(weights.heads, platform);
  if (found == weights.heads.end()) found = std::ranges::find(weights.heads, kOtherPlatform);
  return found == weights.heads.end() ? 0 : static_cast<size_t>(found - weights.heads.begin());
}

namespace {

/// `name` is the prefix of the layer's tensors' names; `in` is the width of the layer's input.
void add_specs(const Layer& layer,
               const std::string& name,
               int64_t in,
               std::vector<WeightSpec>& specs) {
  const int64_t out = layer.out;
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  if (layer.kind == LayerKind::kAttention) {
    const double xavier = std::sqrt(6.0 / static_cast<double>(3 * out + in));
    specs.push_back({name + ".in_proj_weight", {3 * out, in}, xavier});
    specs.push_back({name + ".in_proj_bias", {3 * out}});
    specs.push_back({name + ".out_proj.weight", {out, out}, bound});
    specs.push_back({name + ".out_proj.bias", {out}});
  } else if (layer.kind == LayerKind::kBatchNorm) {
    specs.push_back({name + ".weight", {out}, 0, 1});
    specs.push_back({name + ".bias", {out}});
    specs.push_back({name + ".running_mean", {out}});
    specs.push_back({name + ".running_var", {out}, 0, 1});
  } else {
    specs.push_back({name + ".weight", {out, in}, bound});
    specs.push_back({name + ".bias", {out}, bound});
    if (in != kRowFeatures) return;
    // A network that never meets a unit starts and stays like the published network.
    for (WeightSpec& spec : std::span(specs).last(2))
      spec.bound = 1 / std::sqrt(static_cast<double>(kPublishedRowFeatures));
    std::prev(specs.end(), 2)->drawn = kPublishedRowFeatures;
  }
}

}  // namespace

std::vector<WeightSpec> tensor_specs(const ModelWeights& weights) {
  const Architecture& architecture = *weights.architecture;
  std::vector<WeightSpec> specs;
  for (const std::string_view module : architecture.modules) {
    const size_t copies = module == architecture.head_module ? weights.heads.size() : 1;
    for (size_t head = 0; head < std::max<size_t>(copies, 1); ++head) {
      for (const Layer& layer : architecture.layers) {
        if (module_of(layer.name) != module) continue;
        const std::string name = tensors_of(layer, head_module(weights, head));
        add_specs(layer, name, layer.in > 0 ? layer.in : weights.form.width, specs);
      }
    }
  }
  return specs;
}

Result<Unit> check_weights(const ModelWeights& weights) {
  const std::vector<WeightSpec> specs = tensor_specs(weights);
  for (const WeightSpec& spec : specs) {
    const auto row = weights.tensors.find(spec.name);
    const std::string expected = print_shape(spec.shape);
    if (row == weights.tensors.end())
      return Error("tensor \"", spec.name, "\": expected ", expected, ", found none");
    const WeightTensor& tensor = row->second;
    if (tensor.shape != spec.shape)
      return Error(
          "tensor \"", spec.name, "\": expected ", expected, ", found ", print_shape(tensor.shape));
    TRY(check_numbers(
        fmt::format("tensor \"{}\"", spec.name),
        tensor.values,
        spec.name.ends_with(".running_var") ? 0 : std::numeric_limits<float>::lowest()));
  }
  for (const auto& [name, tensor] : weights.tensors) {
    if (std::ranges::find(specs, name, &WeightSpec::name) == specs.end())
      return Error("tensor \"", name, "\": ", weights.architecture->name, " has none of that name");
  }
  for (const Branch& branch : branches_of(*weights.architecture)) {
    const InputRow& input = input_row(branch.input);
    if (input.scale_name != nullptr)
      TRY(check_scale(input, weights.scale[branch.input], static_cast<size_t>(input.width)));
  }
  return Unit{};
}

Result<ModelWeights> load_weights(const std::string& path) {
  TRY_ASSIGN(const std::string bytes, read_model_file(path));
  Result<ModelWeights> weights = read_any(path, bytes);
  Result<Unit> checked = weights.ok() ? add_unit_columns(*weights) : weights.error();
  if (checked.ok()) checked = check_weights(*weights);
  if (checked.ok()) return weights;
  const std::string& reason = checked.error().message();
  return reason.starts_with(path) ? checked.error() : Error(path, ": ", reason);
}

Result<ModelWeights> load_weights(const std::string& path, const Architecture& expected) {
  TRY_ASSIGN(ModelWeights weights, load_weights(path));
  if (weights.architecture == &expected) return weights;
  return Error(path, ": weights of ", weights.architecture->name, ", expected ", expected.name);
}

Result<Unit> check_weights_file(const std::string& path, const Architecture& architecture) {
  if (!is_pickle(path) || architecture.pickled_class) return Unit{};
  const auto pickled = [](const Architecture& a) {
    return std::string(a.pickled_class ? a.title : "");
  };
  return Error(path,
               ": a .pkl holds ",
               or_list(pickled),
               "; name the file of a ",
               architecture.title,
               " .safetensors");
}

Result<Unit> save_weights(const std::string& path, const ModelWeights& weights) {
  TRY(check_weights_file(path, *weights.architecture));
  if (is_pickle(path)) return write_file(path, print_torch_pickle(without_units(weights)));
  for (const OlderFeatures& older : kOlderFeatures) {
    const ModelWeights narrow = with_columns(weights, older.columns);
    ModelWeights widened = narrow;
    TRY(add_unit_columns(widened));
    if (widened == weights) return write_safetensors(path, narrow, older.version);
  }
  return write_safetensors(path, weights, kFeatureVersion);
}

}  // namespace pruner
