#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "model/safetensors.h"
#include "model/torch_checkpoint.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr const char* kRowScale = "scale.rows";
constexpr const char* kDataflowScale = "scale.dataflow";
constexpr std::string_view kNotACheckpoint =
    "not a checkpoint: expected a safetensors file, or torch's .pth or .pkl";

std::string print_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// The first number that is not finite, or is below `least`.
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

Result<Unit> check_scale(std::string_view name, std::span<const float> scale, int expected) {
  if (scale.empty()) return Error("it has no ", name, " (", expected, " numbers)");
  if (scale.size() != static_cast<size_t>(expected))
    return Error(name, ": expected ", expected, " numbers, found ", scale.size());
  return check_numbers(name, scale, std::numeric_limits<float>::min());
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
    TRY_ASSIGN(weights.row_scale, json_get<std::vector<float>>(json, "statement_scale"));
    if (weights.architecture == Architecture::kPacm) {
      TRY_ASSIGN(weights.dataflow_scale, json_get<std::vector<float>>(json, "access_scale"));
    }
    return Unit{};
  };
  const Result<Unit> done = read();
  if (!done.ok())
    return Error("scales of ", file.filename().string(), ": ", done.error().message());
  return Unit{};
}

bool is_pickle(const std::string& path) { return path.ends_with(".pkl"); }

struct ArchitectureRow {
  Architecture architecture;
  std::string_view name;
};
constexpr ArchitectureRow kArchitectures[] = {{Architecture::kPacm, "pacm"},
                                              {Architecture::kTenSetMlp, "tenset-mlp"},
                                              {Architecture::kTlp, "tlp"}};

/// "cuda 40 20 log" (or raw) and the heads' names, one a line.
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
  const auto row = std::ranges::find(kArchitectures, architecture, &ArchitectureRow::name);
  if (row == std::end(kArchitectures))
    return Error("architecture \"", architecture, R"(", expected "pacm", "tenset-mlp" or "tlp")");
  weights.architecture = row->architecture;
  const std::string& version = file.metadata["feature_version"];
  if (version != std::to_string(kFeatureVersion))
    return Error(
        "weights for features of version \"", version, "\", expected \"", kFeatureVersion, "\"");
  weights.mode = file.metadata["mode"];
  if (weights.architecture == Architecture::kTlp) TRY(read_form(file.metadata, weights));
  if (const auto seen = file.metadata.find(kTrainedOnKey); seen != file.metadata.end()) {
    Result<TrainedOn> trained_on = parse_trained_on(seen->second);
    if (!trained_on.ok()) return Error(kTrainedOnKey, ": ", trained_on.error().message());
    weights.trained_on = *std::move(trained_on);
  }
  weights.row_scale = std::move(file.tensors[kRowScale].values);
  weights.dataflow_scale = std::move(file.tensors[kDataflowScale].values);
  file.tensors.erase(kRowScale);
  file.tensors.erase(kDataflowScale);
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

}  // namespace

std::string_view architecture_name(Architecture architecture) {
  return std::ranges::find(kArchitectures, architecture, &ArchitectureRow::architecture)->name;
}

std::string decoder_name(std::span<const std::string> heads, size_t head) {
  return heads.empty() ? "decoder" : "decoder." + heads[head];
}

size_t head_of(const ModelWeights& weights, std::string_view platform) {
  if (weights.heads.empty()) return 0;
  auto found = std::ranges::find(weights.heads, platform);
  if (found == weights.heads.end()) found = std::ranges::find(weights.heads, kOtherPlatform);
  return found == weights.heads.end() ? 0 : static_cast<size_t>(found - weights.heads.begin());
}

namespace {

std::vector<WeightSpec> tlp_specs(const PrimitiveForm& form, std::span<const std::string> heads) {
  std::vector<WeightSpec> specs;
  const auto add = [&](const std::string& name, int64_t out, int64_t in) {
    specs.push_back({name + ".weight", {out, in}});
    specs.push_back({name + ".bias", {out}});
  };
  add("encoder.0", 64, form.width);
  add("encoder.2", 128, 64);
  add("encoder.4", 256, 128);
  add("encoder.6", 256, 256);
  specs.push_back({"attention.in_proj_weight", {768, 256}});
  specs.push_back({"attention.in_proj_bias", {768}});
  add("attention.out_proj", 256, 256);
  add("l_list.0.0", 256, 256);
  add("l_list.1.0", 256, 256);
  for (size_t head = 0; head < std::max<size_t>(heads.size(), 1); ++head) {
    const std::string decoder = decoder_name(heads, head);
    add(decoder + ".0", 256, 256);
    add(decoder + ".2", 128, 256);
    add(decoder + ".4", 64, 128);
    add(decoder + ".6", 1, 64);
  }
  return specs;
}

}  // namespace

std::vector<WeightSpec> tensor_specs(Architecture architecture,
                                     const PrimitiveForm& form,
                                     std::span<const std::string> heads) {
  static const std::vector<WeightSpec> kPacm = {{"segment_encoder.0.weight", {256, 174}},
                                                {"segment_encoder.0.bias", {256}},
                                                {"segment_encoder.2.weight", {256, 256}},
                                                {"segment_encoder.2.bias", {256}},
                                                {"norm.weight", {256}},
                                                {"norm.bias", {256}},
                                                {"norm.running_mean", {256}},
                                                {"norm.running_var", {256}},
                                                {"fuse.0.weight", {256, 384}},
                                                {"fuse.0.bias", {256}},
                                                {"l0.0.weight", {256, 256}},
                                                {"l0.0.bias", {256}},
                                                {"l1.0.weight", {256, 256}},
                                                {"l1.0.bias", {256}},
                                                {"gemm_encoder.0.weight", {64, 23}},
                                                {"gemm_encoder.0.bias", {64}},
                                                {"gemm_encoder.2.weight", {128, 64}},
                                                {"gemm_encoder.2.bias", {128}},
                                                {"attention.in_proj_weight", {384, 128}},
                                                {"attention.in_proj_bias", {384}},
                                                {"attention.out_proj.weight", {128, 128}},
                                                {"attention.out_proj.bias", {128}},
                                                {"decoder.weight", {1, 256}},
                                                {"decoder.bias", {1}}};
  static const std::vector<WeightSpec> kTenSetMlp = {{"segment_encoder.0.weight", {256, 174}},
                                                     {"segment_encoder.0.bias", {256}},
                                                     {"segment_encoder.2.weight", {256, 256}},
                                                     {"segment_encoder.2.bias", {256}},
                                                     {"l0.0.weight", {256, 256}},
                                                     {"l0.0.bias", {256}},
                                                     {"l1.0.weight", {256, 256}},
                                                     {"l1.0.bias", {256}},
                                                     {"decoder.weight", {1, 256}},
                                                     {"decoder.bias", {1}}};
  if (architecture == Architecture::kTlp) return tlp_specs(form, heads);
  return architecture == Architecture::kPacm ? kPacm : kTenSetMlp;
}

std::vector<WeightSpec> tensor_specs(const ModelWeights& weights) {
  return tensor_specs(weights.architecture, weights.form, weights.heads);
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
    TRY(check_numbers(fmt::format("tensor \"{}\"", spec.name),
                      tensor.values,
                      spec.name == "norm.running_var" ? 0 : std::numeric_limits<float>::lowest()));
  }
  for (const auto& [name, tensor] : weights.tensors) {
    const bool known = std::any_of(
        specs.begin(), specs.end(), [&](const WeightSpec& spec) { return spec.name == name; });
    if (!known)
      return Error("tensor \"",
                   name,
                   "\": ",
                   architecture_name(weights.architecture),
                   " has none of that name");
  }
  if (weights.architecture == Architecture::kTlp) return Unit{};
  TRY(check_scale("scales of statement rows", weights.row_scale, kRowFeatures));
  if (weights.architecture == Architecture::kPacm) {
    TRY(check_scale("scales of data flow", weights.dataflow_scale, kDataflowFeatures));
  }
  return Unit{};
}

Result<ModelWeights> load_weights(const std::string& path) {
  TRY_ASSIGN(const std::string bytes, read_file(path));
  Result<ModelWeights> weights = read_any(path, bytes);
  const Result<Unit> checked = weights.ok() ? check_weights(*weights) : weights.error();
  if (checked.ok()) return weights;
  const std::string& reason = checked.error().message();
  return reason.starts_with(path) ? checked.error() : Error(path, ": ", reason);
}

Result<Unit> check_weights_file(const std::string& path, Architecture architecture) {
  if (!is_pickle(path) || architecture != Architecture::kTlp) return Unit{};
  return Error(path, ": a .pkl holds PaCM or TenSetMLP; name the file of a TLP .safetensors");
}

Result<Unit> save_weights(const std::string& path, const ModelWeights& weights) {
  TRY(check_weights_file(path, weights.architecture));
  if (is_pickle(path)) return write_file(path, print_torch_pickle(weights));
  SafetensorsFile file{
      .metadata = {{"architecture", std::string(architecture_name(weights.architecture))},
                   {"mode", weights.mode},
                   {"feature_version", std::to_string(kFeatureVersion)}},
      .tensors = weights.tensors};
  if (weights.trained_on) file.metadata[kTrainedOnKey] = print_trained_on(*weights.trained_on);
  const auto add_scale = [&](const char* name, const std::vector<float>& scale) {
    file.tensors[name] = {{static_cast<int64_t>(scale.size())}, scale};
  };
  if (weights.architecture == Architecture::kTlp) {
    file.metadata["primitives"] = print_form(weights.form);
    if (!weights.heads.empty())
      file.metadata["heads"] = fmt::format("{}", fmt::join(weights.heads, "\n"));
  }
  if (!weights.row_scale.empty()) add_scale(kRowScale, weights.row_scale);
  if (!weights.dataflow_scale.empty()) add_scale(kDataflowScale, weights.dataflow_scale);
  return write_file(path, print_safetensors(file));
}

}  // namespace pruner
