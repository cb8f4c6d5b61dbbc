// Operators that draw. What is drawn is a constant: it is made when the network is imported, and
// the same whenever the module runs. ONNX says the distribution, the numbers are ours. Without a
// seed it is the name of the output that decides, so that two calls differ.
#include <cmath>
#include <numbers>

#include "graph/functions/body.h"
#include "support/rng.h"

namespace pruner {

static Rng rng_of(const Body& b) {
  if (b.call().has_attribute("seed"))
    return Rng(static_cast<uint64_t>(static_cast<int64_t>(1000 * b.call().number("seed", 0))));
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : b.call().output().name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Rng(hash);
}

// In (0, 1): a logarithm is taken of it.
static double positive_uniform(Rng& rng) { return (rng.uniform() + 0x1p-54); }

// Box and Muller.
static double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(rng)));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

template <typename Draw>
static Term drawn(Body& b, DType dtype, std::vector<int64_t> shape, const Draw& draw) {
  for (const int64_t extent : shape) {
    if (extent < 1) {
      b.fail(Error("the shape to draw is ", print_shape(shape)));
      return b.scalar(0, dtype);
    }
  }
  Tensor tensor(dtype, std::move(shape));
  Rng rng = rng_of(b);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, draw(rng));
  return b.constant(std::move(tensor));
}

static void random_like(Body& b, DType dtype, const std::vector<int64_t>& shape) {
  if (!is_float(dtype)) return b.fail(Error("real numbers cannot be ", dtype_name(dtype)));
  const OpCall& call = b.call();
  if (call.node.op.starts_with("RandomNormal")) {
    const double mean = call.number("mean", 0), scale = call.number("scale", 1);
    b.output(0, drawn(b, dtype, shape, [&](Rng& rng) { return mean + scale * normal(rng); }));
  } else {
    const double low = call.number("low", 0), high = call.number("high", 1);
    b.output(0,
             drawn(b, dtype, shape, [&](Rng& rng) { return low + (high - low) * rng.uniform(); }));
  }
}

static void random_of_shape(Body& b) {
  random_like(b, b.dtype("dtype", DType::kFloat32), b.call().integers("shape"));
}

static void random_like_input(Body& b) {
  random_like(b, b.dtype("dtype", b.input(0).dtype()), b.input(0).shape());
}

static void bernoulli(Body& b) {
  const Term p = b.input(0);
  const Term u = drawn(b, p.dtype(), p.shape(), [](Rng& rng) { return rng.uniform(); });
  b.output(0, b.cast(b.add("Less", {u, p}), b.dtype("dtype", p.dtype())));
}

// The largest of the logarithms and noise of Gumbel's distribution (C. Maddison and others,
// "A* sampling", 2014) is each class with its probability.
static void multinomial(Body& b) {
  const Term log_p = b.input(0);
  const int64_t samples = b.call().integer("sample_size", 1);
  if (log_p.rank() != 2 || samples < 1)
    return b.fail(
        Error(samples, " samples of ", print_shape(log_p.shape()), ", expected a matrix"));
  const Term noise =
      drawn(b, log_p.dtype(), {log_p.extent(0), samples, log_p.extent(1)}, [](Rng& rng) {
        return -std::log(-std::log(positive_uniform(rng)));
      });
  const Term best = b.add(
      "ArgMax", {b.unsqueeze(log_p, 1) + noise}, {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}});
  b.output(0, b.cast(best, b.dtype("dtype", DType::kInt32)));
}

static constexpr Function kRandomFunctions[] = {
    {"Bernoulli", 1, 1, "dtype:i seed:f", bernoulli},
    {"Multinomial", 1, 1, "dtype:i sample_size:i seed:f", multinomial},
    {"RandomNormal", 0, 0, "dtype:i mean:f scale:f seed:f shape:I", random_of_shape},
    {"RandomNormalLike", 1, 1, "dtype:i mean:f scale:f seed:f", random_like_input},
    {"RandomUniform", 0, 0, "dtype:i high:f low:f seed:f shape:I", random_of_shape},
    {"RandomUniformLike", 1, 1, "dtype:i high:f low:f seed:f", random_like_input},
};

std::span<const Function> random_functions() { return kRandomFunctions; }

}  // namespace pruner
