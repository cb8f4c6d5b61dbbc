#include "graph/networks/networks.h"

#include <algorithm>

namespace pruner {

// Whether images; the least, greatest and usual size in pixels or tokens; the step between sizes.
static constexpr InputSize kImage = {true, 32, 4096, 224};
static constexpr InputSize kMultipleOf16 = {true, 32, 4096, 224, 16};
static constexpr InputSize kVideo = {true, 16, 4096, 112};
static constexpr InputSize kTokens = {false, 1, 512, 128};

static constexpr NetworkRow kNetworks[] = {
    {"alexnet", build_alexnet, {true, 63, 4096, 224}},
    {"bert_base", build_bert_base, kTokens},
    {"bert_base_seq_class", build_bert_base_seq_class, kTokens},
    {"bert_large", build_bert_large, kTokens},
    {"bert_medium", build_bert_medium, kTokens},
    {"bert_tiny", build_bert_tiny, kTokens},
    {"clip_vit_b32", build_clip_vit_b32, {true, 32, 4096, 224, 32}},
    {"convnext_tiny", build_convnext_tiny, kImage},
    {"dcgan", build_dcgan, {true, 32, 4096, 64, 16}},
    {"deeplabv3_resnet50", build_deeplabv3_resnet50, kImage},
    {"densenet_121", build_densenet_121, kImage},
    {"detr", build_detr, kImage},
    {"efficientnet_b0", build_efficientnet_b0, kImage},
    {"efficientnet_b4", build_efficientnet_b4, kImage},
    {"googlenet", build_googlenet, kImage},
    {"gpt2", build_gpt2, {false, 1, 1024, 128}, 1024},
    {"inception_v3", build_inception_v3, {true, 75, 4096, 299}},
    {"llama_135m", build_llama_135m, {false, 1, 2048, 128}, 2048},
    {"mnasnet1_0", build_mnasnet1_0, kImage},
    {"mobilebert", build_mobilebert, kTokens},
    {"mobilebert_seq_class", build_mobilebert_seq_class, kTokens},
    {"mobilenet_v2", build_mobilenet_v2, kImage},
    {"mobilenet_v3", build_mobilenet_v3, kImage},
    {"r3d_18", build_r3d_18, kVideo},
    {"regnet_y_400mf", build_regnet_y_400mf, kImage},
    {"resnet3d_18", build_resnet3d_18, kVideo},
    {"resnet_18", build_resnet_18, kImage},
    {"resnet_50", build_resnet_50, kImage},
    {"resnext_50", build_resnext_50, kImage},
    {"swin_t", build_swin_t, kImage},
    {"unet", build_unet, kMultipleOf16},
    {"vgg_16", build_vgg_16, kImage},
    {"vit", build_vit, kMultipleOf16},
    {"vit_pruner", build_vit_pruner, {true, 32, 4096, 256, 32}},
    {"whisper_tiny", build_whisper_tiny, {false, 1, 1500, 1500}},
    {"wide_resnet_50", build_wide_resnet_50, kImage},
};

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const NetworkRow& row : kNetworks) names.emplace_back(row.name);
  return names;
}

static Result<Unit> check_size(const InputSize& size, int64_t given) {
  if (given >= size.least && given <= size.most && given % size.step == 0) return Unit{};
  const std::string multiple =
      size.step == 1 ? "" : "a multiple of " + std::to_string(size.step) + " from ";
  return Error(size.is_image ? "image size " : "sequence length ",
               given,
               ", expected ",
               multiple,
               size.least,
               " to ",
               size.most);
}

static Result<Unit> check_cache(const NetworkRow& row, const NetworkOptions& options) {
  const int64_t length = options.cache_length, rows = options.sequence_length;
  if (length == 0 || (length >= rows && length <= row.most_cached)) return Unit{};
  if (row.most_cached == 0) return Error(row.name, " has no cache");
  return Error("a cache of ",
               length,
               " positions for sequences of ",
               rows,
               ", expected ",
               rows,
               " to ",
               row.most_cached);
}

static Result<const NetworkRow*> find_network(std::string_view name) {
  const auto row = std::ranges::find(kNetworks, name, &NetworkRow::name);
  if (row != std::end(kNetworks)) return row;
  std::string known;
  for (const std::string& n : network_names()) known += (known.empty() ? "" : ", ") + n;
  return Error("there is no network \"", name, "\"; built in are ", known);
}

Result<InputSize> input_size(std::string_view network) {
  TRY_ASSIGN(const NetworkRow* row, find_network(network));
  return row->size;
}

Result<Graph> build_network(std::string_view name, const NetworkOptions& options) {
  TRY_ASSIGN(const NetworkRow* row, find_network(name));
  if (options.batch_size < 1 || options.batch_size > 4096) {
    return Error("batch size ", options.batch_size, ", expected 1 to 4096");
  }
  NetworkOptions sized = options;
  int64_t& size = row->size.is_image ? sized.image_size : sized.sequence_length;
  if (size == 0) size = row->size.usual;
  TRY(check_size(row->size, size));
  TRY(check_cache(*row, sized));
  return row->build(sized);
}

}  // namespace pruner
