// TenSet's multi-layer perceptron (section 5): statement rows only.
#include "analysis/features.h"
#include "model/architecture.h"

namespace pruner {

using enum LayerKind;

static constexpr Layer kLayers[] = {
    {.kind = kInput, .input = Input::kStatements},
    {kRelu, "segment_encoder.0", kRowFeatures, 256},
    {kRelu, "segment_encoder.2", 256, 256},
    {kSum},
    {kResidual, "l0.0", 256, 256},
    {kResidual, "l1.0", 256, 256},
    {kLinear, "decoder", 256, 1},
};
static constexpr const char* kModules[] = {"segment_encoder", "norm", "l0", "l1", "decoder"};
static constexpr PublishedClass::Attribute kAttributes[] = {{"add_sigmoid", 0}};

const Architecture kTenSetMlp = {
    .name = "tenset-mlp",
    .command = "mlp",
    .title = "TenSetMLP",
    .layers = kLayers,
    .modules = kModules,
    .has_momentum = true,
    .training = {.patience = 8, .widen_scales = false},
    .pickled_class = {
        {"tvm.auto_scheduler.cost_model.mlp_model SegmentSumMLPModule", kAttributes}}};

}  // namespace pruner
