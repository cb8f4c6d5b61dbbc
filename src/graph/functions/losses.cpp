// Losses of classes: the target names a class, its log probability counts.
#include "graph/functions/body.h"

namespace pruner {

namespace {

/// The loss of each target, and the weight of each target if there are weights.
struct Losses {
  Term of_each, weights;
};

}  // namespace

// -log_prob[n, target, ...] * weight[target]; a target that is ignored weighs 0, whatever it is.
static Losses losses_of(Body& b, Term log_prob, Term target, Term weight) {
  const DType index = target.dtype();
  Term ignored;
  if (b.call().has_attribute("ignore_index")) {
    const auto value = static_cast<double>(b.call().integer("ignore_index", 0));
    ignored = b.add("Equal", {target, b.scalar(value, index)});
    target = b.add("Where", {ignored, b.scalar(0, index), target});
  }
  const Term at = b.unsqueeze(target, 1);
  const Term chosen = b.add("GatherElements", {log_prob, at}, {{"axis", int64_t{1}}});
  Losses losses{b.add("Neg", {b.reshape(chosen, target.shape())}), {}};
  if (weight.valid()) losses.weights = b.add("Gather", {weight, target}, {{"axis", int64_t{0}}});
  if (ignored.valid()) {
    const Term zero = b.scalar(0, log_prob.dtype()), one = b.scalar(1, log_prob.dtype());
    const Term counted = losses.weights.valid() ? losses.weights : one;
    losses.weights = b.add("Where", {ignored, zero, counted});
    losses.of_each = b.add("Where", {ignored, zero, losses.of_each});
  }
  if (losses.weights.valid()) losses.of_each = losses.of_each * losses.weights;
  return losses;
}

static void add_loss(Body& b, Term log_prob) {
  const Term target = b.input(1);
  std::vector<int64_t> expected = log_prob.shape();
  if (expected.size() >= 2) expected.erase(expected.begin() + 1);
  if (log_prob.rank() < 2 || expected != target.shape())
    return b.fail(Error("targets of ",
                        print_shape(target.shape()),
                        " do not fit scores of ",
                        print_shape(log_prob.shape())));
  const std::string reduction = b.call().text("reduction", "mean");
  const Losses losses = losses_of(b, log_prob, target, b.has(2) ? b.input(2) : Term{});
  const auto total = [&](const char* op, Term x) {
    return b.add(op, {x}, {{"keepdims", int64_t{0}}});
  };
  if (reduction == "none") return b.output(0, losses.of_each);
  if (reduction == "sum") return b.output(0, total("ReduceSum", losses.of_each));
  if (reduction != "mean")
    return b.fail(Error("reduction is \"", reduction, "\", expected none, sum or mean"));
  if (!losses.weights.valid()) return b.output(0, total("ReduceMean", losses.of_each));
  b.output(0, total("ReduceSum", losses.of_each) / total("ReduceSum", losses.weights));
}

static void negative_log_likelihood(Body& b) { add_loss(b, b.input(0)); }

static void softmax_cross_entropy(Body& b) {
  const Term log_prob = b.add("LogSoftmax", {b.input(0)}, {{"axis", int64_t{1}}});
  add_loss(b, log_prob);
  b.output(1, log_prob);
}

static constexpr Function kLossFunctions[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, "ignore_index:i reduction:s", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 2, 3, "ignore_index:i reduction:s", softmax_cross_entropy},
};

std::span<const Function> loss_functions() { return kLossFunctions; }

}  // namespace pruner
