// TLP (Zhai et al., ASPLOS 2023): schedule primitives. Each step is encoded alone, 8 heads of
// self-attention see all, and what each step is decoded to is summed up; MTL-TLP has a decoder for
// each platform.
#include "model/architecture.h"

namespace pruner {

using enum LayerKind;

static constexpr Layer kLayers[] = {
    {.kind = kInput, .input = Input::kPrimitives},
    {kRelu, "encoder.0", 0, 64},
    {kRelu, "encoder.2", 64, 128},
    {kRelu, "encoder.4", 128, 256},
    {kRelu, "encoder.6", 256, 256},
    {kAttention, "attention", 256, 256, /*heads=*/8},
    {kResidual, "l_list.0.0", 256, 256},
    {kResidual, "l_list.1.0", 256, 256},
    {kRelu, "decoder.0", 256, 256},
    {kRelu, "decoder.2", 256, 128},
    {kRelu, "decoder.4", 128, 64},
    {kLinear, "decoder.6", 64, 1},
    {kSum},
};
static constexpr const char* kModules[] = {"encoder", "attention", "l_list", "decoder"};

const Architecture kTlp = {.name = "tlp",
                           .command = "tlp",
                           .title = "TLP",
                           .layers = kLayers,
                           .modules = kModules,
                           .head_module = "decoder",
                           .training = {.batch = 1024, .validation_share = 0.1}};

}  // namespace pruner
