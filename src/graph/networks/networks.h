// The built-in networks: what the rows of kNetworks build, each in a file of this folder, at its
// published size with seeded weights.
#pragma once

#include "graph/partition.h"

namespace pruner {

/// The image sizes or sequence lengths that a network takes: `least` to `most`, multiples of
/// `step`; `usual` where none is given.
struct InputSize {
  bool is_image;  // else a sequence length
  int64_t least, most, usual;
  int64_t step = 1;
};

/// The sizes of a built-in network; the error lists the networks that there are.
Result<InputSize> input_size(std::string_view network);

/// One built-in network. `build` gets a size inside the row's; its errors are about that size.
struct NetworkRow {
  std::string_view name;
  Result<Graph> (*build)(const NetworkOptions&);
  InputSize size;
  int64_t most_cached = 0;  // positions that a decoder's cache may have; 0: it has none
};

Result<Graph> build_alexnet(const NetworkOptions& options);
Result<Graph> build_bert_base(const NetworkOptions& options);
Result<Graph> build_bert_base_seq_class(const NetworkOptions& options);
Result<Graph> build_bert_large(const NetworkOptions& options);
Result<Graph> build_bert_medium(const NetworkOptions& options);
Result<Graph> build_bert_tiny(const NetworkOptions& options);
Result<Graph> build_clip_vit_b32(const NetworkOptions& options);
Result<Graph> build_convnext_tiny(const NetworkOptions& options);
Result<Graph> build_dcgan(const NetworkOptions& options);
Result<Graph> build_deeplabv3_resnet50(const NetworkOptions& options);
Result<Graph> build_densenet_121(const NetworkOptions& options);
Result<Graph> build_detr(const NetworkOptions& options);
Result<Graph> build_efficientnet_b0(const NetworkOptions& options);
Result<Graph> build_efficientnet_b4(const NetworkOptions& options);
Result<Graph> build_googlenet(const NetworkOptions& options);
Result<Graph> build_gpt2(const NetworkOptions& options);
Result<Graph> build_inception_v3(const NetworkOptions& options);
Result<Graph> build_llama_135m(const NetworkOptions& options);
Result<Graph> build_mnasnet1_0(const NetworkOptions& options);
Result<Graph> build_mobilebert(const NetworkOptions& options);
Result<Graph> build_mobilebert_seq_class(const NetworkOptions& options);
Result<Graph> build_mobilenet_v2(const NetworkOptions& options);
Result<Graph> build_mobilenet_v3(const NetworkOptions& options);
Result<Graph> build_r3d_18(const NetworkOptions& options);
Result<Graph> build_regnet_y_400mf(const NetworkOptions& options);
Result<Graph> build_resnet3d_18(const NetworkOptions& options);
Result<Graph> build_resnet_18(const NetworkOptions& options);
Result<Graph> build_resnet_50(const NetworkOptions& options);
Result<Graph> build_resnext_50(const NetworkOptions& options);
Result<Graph> build_swin_t(const NetworkOptions& options);
Result<Graph> build_unet(const NetworkOptions& options);
Result<Graph> build_vgg_16(const NetworkOptions& options);
Result<Graph> build_vit(const NetworkOptions& options);
Result<Graph> build_vit_pruner(const NetworkOptions& options);
Result<Graph> build_whisper_tiny(const NetworkOptions& options);
Result<Graph> build_wide_resnet_50(const NetworkOptions& options);

}  // namespace pruner
