// Element-wise functions that ONNX defines by others.
#include "graph/functions/body.h"

namespace pruner {

static Term where(Term condition, Term then, Term otherwise) {
  return condition.body->add("Where", {condition, then, otherwise});
}

static Term same(Term like, double value) { return like.body->scalar(value, like.dtype()); }

static void cast_like(Body& b) {
  Attributes attributes = b.call().node.attributes;
  attributes["to"] = std::string(dtype_name(b.input(1).dtype()));
  b.output(0, b.add("Cast", {b.input(0)}, std::move(attributes)));
}

// x where it is above 0, else alpha * (exp(x / alpha) - 1).
static void celu(Body& b) {
  const Term x = b.input(0);
  const double alpha = b.call().number("alpha", 1);
  const Term below = b.add("Expm1", {x / alpha}) * alpha;
  b.output(0, where(b.add("Greater", {x, same(x, 0)}), x, below));
}

static void mean(Body& b) {
  std::vector<Term> all;
  for (size_t i = 0; i < b.call().num_inputs(); ++i) all.push_back(b.input(i));
  const auto count = static_cast<double>(all.size());
  b.output(0, b.add("Sum", std::move(all)) / count);
}

static void shrink(Body& b) {
  const Term x = b.input(0);
  const double lambda = b.call().number("lambd", 0.5), bias = b.call().number("bias", 0);
  const Term below = where(b.add("Less", {x, same(x, -lambda)}), x + bias, same(x, 0));
  b.output(0, where(b.add("Greater", {x, same(x, lambda)}), x - bias, below));
}

// x * sigmoid(alpha * x)
static Term swished(Term x, double alpha) { return x * x.body->add("Sigmoid", {x * alpha}); }

static void swish(Body& b) { b.output(0, swished(b.input(0), b.call().number("alpha", 1))); }

static void swiglu(Body& b) {
  b.output(0, swished(b.input(0), b.call().number("alpha", 1)) * b.input(1));
}

static void thresholded_relu(Body& b) {
  const Term x = b.input(0);
  const Term above = b.add("Greater", {x, same(x, b.call().number("alpha", 1))});
  b.output(0, where(above, x, same(x, 0)));
}

static constexpr Function kActivationFunctions[] = {
    {"CastLike", 2, 2, "round_mode:s saturate:i", cast_like},
    {"Celu", 1, 1, "alpha:f", celu},
    {"Mean", 1, kAnyNumber, "", mean},
    {"Shrink", 1, 1, "bias:f lambd:f", shrink},
    {"SwiGLU", 2, 2, "alpha:f", swiglu},
    {"Swish", 1, 1, "alpha:f", swish},
    {"ThresholdedRelu", 1, 1, "alpha:f", thresholded_relu},
};

std::span<const Function> activation_functions() { return kActivationFunctions; }

}  // namespace pruner
