// pruner::Recurrence, of ours: the steps of LSTM, GRU and RNN as one loop, by a routine. The
// products of all inputs with W are a matmul of their own (functions/recurrent.cpp).
#include <bit>

#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

// Inputs and output: PrunerRecurrence.
static Types infer_recurrence(const OpCall& call) {
  const std::vector<int64_t>&x = call.shape(0), &r = call.shape(1);
  const bool fits = x.size() == 5 && r.size() == 5 && r[0] == x[2] && r[2] == x[4] &&
                    r[3] == x[3] && r[4] == PRUNER_UNITS && r[1] * PRUNER_UNITS >= x[4];
  if (!fits) return Error("weights of ", print_shape(r), " for products of ", print_shape(x));
  for (const size_t i : {0, 1, 3, 4, 5, 6})
    if (call.input(i).dtype != DType::kFloat32)
      return Error("input ", i, " is ", dtype_name(call.input(i).dtype), ", expected float32");
  const int64_t last = x[3] == 4 ? 2 : 1;
  return {{{DType::kFloat32, {x[0] + last, x[2], x[1], x[4]}}}};
}

static std::vector<int64_t> recurrence_parameters(const OpCall& call) {
  const std::vector<int64_t>& x = call.shape(0);
  std::vector<int64_t> p = {x[0],
                            x[1],
                            x[2],
                            x[4],
                            x[3],
                            call.integer("backwards", 0),
                            call.integer("has", 0),
                            static_cast<int64_t>(call.input(2).dtype),
                            call.integer("input_forget", 0),
                            std::bit_cast<int64_t>(call.number("clip", 0))};
  const std::vector<int64_t> kinds = call.integers("activations");
  const std::vector<double> alphas = call.numbers("activation_alpha"),
                            betas = call.numbers("activation_beta");
  for (size_t i = 0; i < kinds.size(); ++i) {
    p.push_back(kinds[i]);
    p.push_back(std::bit_cast<int64_t>(alphas[i]));
    p.push_back(std::bit_cast<int64_t>(betas[i]));
  }
  return p;
}

static int64_t recurrence_workspace(const OpCall& call) {
  const int64_t batch = call.shape(0)[1];
  const std::vector<int64_t>& r = call.shape(1);
  return r[0] * 4 * batch * r[1] * PRUNER_UNITS * static_cast<int64_t>(sizeof(float));
}

// A length is at most the number of steps.
static std::vector<int64_t> length_extents(const OpCall& call) { return {call.shape(0)[0] + 1}; }

static constexpr Routine kRecurrence = {
    "pruner_recurrence", pruner_recurrence, 7, recurrence_parameters, recurrence_workspace};

// clang-format off
static constexpr GraphOp kRecurrenceOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"pruner::Recurrence", kOpaque, 7, 7, "activation_alpha:F activation_beta:F activations:I backwards:i clip:f has:i input_forget:i", infer_recurrence, nullptr}.with(kOwn).run_by(kRecurrence).reads_from_zero_at(2, length_extents).shown_as("recurrence"),
};
// clang-format on

std::span<const GraphOp> recurrence_ops() { return kRecurrenceOps; }

}  // namespace pruner
