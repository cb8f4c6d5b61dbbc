// Pools that others define: of all positions, and what undoes a MaxPool.
#include <numeric>

#include "graph/functions/body.h"

namespace pruner {

// The p-th root of the sum of p-th powers over all positions of a channel.
static void global_lp_pool(Body& b) {
  const Term x = b.input(0);
  const int64_t p = b.call().integer("p", 2);
  if (x.rank() < 3 || p < 1)
    return b.fail(Error("data of ", print_shape(x.shape()), " and p = ", p));
  std::vector<int64_t> axes(static_cast<size_t>(x.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  if (p <= 2) return b.output(0, b.reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, axes));
  const auto power = [&](Term of, double exponent) {
    return b.add("Pow", {of, b.scalar(exponent, x.dtype())});
  };
  const auto exponent = static_cast<double>(p);
  const Term powers = power(b.add("Abs", {x}), exponent);
  b.output(0, power(b.reduce("ReduceSum", powers, axes), 1 / exponent));
}

// Zeros, with the values at the places that a MaxPool had them from. Places are counted in the
// output that the attributes say; a larger one has it in its corner.
static void max_unpool(Body& b) {
  const Term x = b.input(0), places = b.input(1);
  const std::vector<int64_t> kernel = b.call().integers("kernel_shape");
  std::vector<int64_t> strides = b.call().integers("strides"), pads = b.call().integers("pads");
  std::vector<int64_t> shape = x.shape();
  if (strides.empty()) strides.assign(kernel.size(), 1);
  if (pads.empty()) pads.assign(2 * kernel.size(), 0);
  if (kernel.size() + 2 != shape.size() || strides.size() != kernel.size() ||
      pads.size() != 2 * kernel.size())
    return b.fail(Error("a kernel of ", kernel.size(), " dimensions for ", print_shape(shape)));
  for (size_t d = 0; d < kernel.size(); ++d) {
    int64_t& extent = shape[d + 2];
    extent = (extent - 1) * strides[d] + kernel[d] - pads[d] - pads[d + kernel.size()];
    if (extent < 1) return b.fail(Error("the output would have an extent of ", extent));
  }
  const Term zeros = b.constant(Tensor(x.dtype(), {element_count(shape)}));
  const Term filled =
      b.add("ScatterElements", {zeros, b.reshape(places, {-1}), b.reshape(x, {-1})});
  const Term made = b.reshape(filled, shape);
  if (!b.has(2)) return b.output(0, made);
  const Result<std::vector<int64_t>> wanted = b.call().constant_integers(2, "output_shape");
  if (!wanted.ok()) return b.fail(wanted.error());
  if (wanted->size() != shape.size())
    return b.fail(Error("output_shape has ", wanted->size(), " elements"));
  std::vector<int64_t> margins(2 * shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) margins[d + shape.size()] = (*wanted)[d] - shape[d];
  b.output(0, b.add("Pad", {made, b.integers(margins)}));
}

static constexpr Function kPoolingFunctions[] = {
    {"GlobalLpPool", 1, 1, "p:i", global_lp_pool},
    {"MaxUnpool", 2, 3, "kernel_shape:I pads:I strides:I", max_unpool},
};

std::span<const Function> pooling_functions() { return kPoolingFunctions; }

}  // namespace pruner
