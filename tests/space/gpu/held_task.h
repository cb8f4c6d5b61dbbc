// Drawn products on tensor cores whose kernels make their first operand themselves, or normalize
// what they add, for the tests of held operands.
#pragma once

#include <set>

#include "space/gpu/warp_space.h"
#include "support/rng.h"
#include "tensor/dag_builder.h"
#include "tensor/operator_dags.h"

namespace pruner {

/// The product of normalized rows, of a depthwise convolution, the sum of a product and normalized
/// rows, or a product that another one gates.
enum class HeldKind : uint8_t { kLayerNorm, kRmsNorm, kDepthwise, kAddedNorm, kGated };
inline constexpr HeldKind kHeldKinds[] = {HeldKind::kLayerNorm,
                                          HeldKind::kRmsNorm,
                                          HeldKind::kDepthwise,
                                          HeldKind::kAddedNorm,
                                          HeldKind::kGated};

struct HeldExtents {
  int64_t rows, terms, columns;
};

/// A task of the kind. Draws the 16-bit type, a bias, the type of the result, and what else may be
/// there or not.
inline Task held_task(Rng& rng, HeldKind kind, const HeldExtents& of, const char* arch) {
  const auto either = [&] { return rng.below(2) == 0; };
  const DType dtype = either() ? DType::kFloat16 : DType::kBFloat16;
  DagBuilder b;
  const auto constant = [&](const char* name, std::vector<int64_t> shape, DType type) {
    return b.placeholder(name, std::move(shape), type, true);
  };
  const auto norm = [&](StageId data, int64_t width, bool rms) {
    const StageId scale = constant("scale", {width}, DType::kFloat32);
    if (rms) return add_rms_norm(b, data, 2, scale, 1e-5);
    return add_layernorm(b, data, 2, scale, constant("shift", {width}, DType::kFloat32), 1e-5);
  };
  StageId out;
  if (kind == HeldKind::kDepthwise) {
    Window window;
    window.stride = {1 + rng.below(2), 1 + rng.below(2)};
    window.pad_before = window.pad_after = {rng.below(2), rng.below(2)};
    const int64_t kernel = 2 + rng.below(2), width = 7, images = 1 + rng.below(2);
    const auto input = [&](size_t d, int64_t outputs) {
      return (outputs - 1) * window.stride[d] + kernel - 2 * window.pad_before[d];
    };
    const int64_t height = (of.rows + images * width - 1) / (images * width);
    const StageId data = b.placeholder(
        "data", {images, input(0, height), input(1, width), of.terms}, DType::kFloat32);
    const StageId taps = constant("taps", {kernel, kernel, of.terms, 1}, DType::kFloat32);
    StageId made = add_depthwise_conv(b, data, taps, window);
    if (either()) made = add_activation(b, made, *find_activation("relu"));
    out = add_conv(b,
                   add_cast(b, made, dtype),
                   constant("weight", {1, 1, of.terms, of.columns}, dtype),
                   {.window = {}, .products = DType::kFloat32});
  } else {
    const bool adds = kind == HeldKind::kAddedNorm;
    const std::vector<int64_t> shape = {1, of.rows, of.terms};
    const bool plain = adds || (kind == HeldKind::kGated && either());
    const bool halves = !plain && either();  // a sum of 16 bits is normalized
    StageId data = b.placeholder("data", shape, plain || halves ? dtype : DType::kFloat32);
    if (halves) data = add_cast(b, data, DType::kFloat32);
    if (!plain) data = add_cast(b, norm(data, of.terms, kind != HeldKind::kLayerNorm), dtype);
    const StageId weight = constant("weight", {of.terms, of.columns}, dtype);
    out = add_matmul(b, data, weight, false, false, DType::kFloat32);
    if (kind == HeldKind::kGated) {
      const StageId gate = add_matmul(
          b, data, constant("gate", {of.terms, of.columns}, dtype), false, false, DType::kFloat32);
      const StageId factors[] = {gate, out};
      out = add_elementwise(b, "T_gated", factors, [](std::span<const Expr> x) {
        return x[0] * call(Intrinsic::kSigmoid, {x[0]}) * x[1];
      });
    }
    if (either()) out = add_add(b, out, constant("bias", {of.columns}, DType::kFloat32));
    if (adds) {
      const StageId added = b.placeholder("added", {1, of.rows, of.columns}, DType::kFloat32);
      out = add_add(b, out, norm(added, of.columns, either()));
    }
  }
  if (either()) out = add_cast(b, out, dtype);
  return make_task(
      b.finish({{out}}), *parse_target(std::string("cuda --arch=") + arch, 0), "held operand");
}

/// Draws the extents, odd ones among them, too.
inline Task drawn_held(Rng& rng, HeldKind kind, const char* arch = "sm_80", int64_t fewest = 8) {
  HeldExtents of{.rows = fewest + rng.below(60),
                 .terms = 16 * (3 + rng.below(9)) - 2 * rng.below(2),
                 .columns = 8 * (1 + rng.below(12))};
  // A norm is computed across threads if its rows have more elements than a warp has lanes.
  if (kind == HeldKind::kAddedNorm) of.columns = std::max<int64_t>(40, of.columns);
  return held_task(rng, kind, of, arch);
}

/// How far results may be apart, beside their size: where a sum in another order is rounded to the
/// other neighbour of 16 bits, one of the products is off by a unit of these.
inline constexpr double kHeldTolerance = 0.02;

/// The part of a task's space that has one kernel of the structure.
inline Space held_space(const Task& task, const std::string& structure) {
  Space space = make_space(task);
  const auto is_other = [&](SketchId id) {
    const Sketch& sketch = space[id];
    std::set<StageId> roots;
    for (const StagePlan& plan : sketch.plans) roots.insert(plan.root);
    return roots.size() > 1 || sketch.name.find(structure) == std::string::npos;
  };
  std::erase_if(space.drawn, is_other);
  EXPECT_FALSE(space.drawn.empty()) << structure << " of\n" << print(task.dag);
  return space;
}

/// The structures that hold operands, each on a device that has it.
inline constexpr WarpDevice kHeldDevices[] = {{"sm_80", "m16n8k16-tile", 8},
                                              {"sm_90", "m64n8k16-tile", 32}};

}  // namespace pruner
