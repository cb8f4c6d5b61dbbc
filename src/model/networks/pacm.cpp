// Pruner's Pattern-aware Cost Model (section 4.4): statement rows, and the data flow of the tiled
// contraction under self-attention.
#include "analysis/features.h"
#include "model/architecture.h"

namespace pruner {

using enum LayerKind;

static constexpr Layer kLayers[] = {
    {.kind = kInput, .input = Input::kStatements},
    {kRelu, "segment_encoder.0", kRowFeatures, 256},
    {kRelu, "segment_encoder.2", 256, 256},
    {kSum},
    {.kind = kInput, .input = Input::kDataflow},
    {kRelu, "gemm_encoder.0", kDataflowFeatures, 64},
    {kRelu, "gemm_encoder.2", 64, 128},
    {kAttention, "attention", 128, 128, /*heads=*/4},
    {kSum},
    {kConcat},
    {kRelu, "fuse.0", 384, 256},
    {kBatchNorm, "norm", 256, 256},
    {kResidual, "l0.0", 256, 256},
    {kResidual, "l1.0", 256, 256},
    {kLinear, "decoder", 256, 1},
};
static constexpr const char* kModules[] = {
    "segment_encoder", "norm", "fuse", "l0", "l1", "gemm_encoder", "attention", "decoder"};
static constexpr PublishedClass::Attribute kAttributes[] = {
    {"in_dim", kPublishedRowFeatures}, {"hidden_dim", 256}, {"out_dim", 1}};

const Architecture kPacm = {
    .name = "pacm",
    .command = "pam",
    .title = "PaCM",
    .layers = kLayers,
    .modules = kModules,
    .has_momentum = true,
    .training = {.patience = 16},
    .pickled_class = {{"tvm.auto_scheduler.cost_model.pam_model PAMModule", kAttributes}}};

}  // namespace pruner
