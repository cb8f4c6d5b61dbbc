// Operators with a state that the next call takes up: convolutions, and attention that is linear in
// the number of positions.
#include <cmath>

#include "graph/functions/attention.h"

namespace pruner {

// Attributes of ONNX Runtime's forms that ours have for one value only.
static bool are_usual(Body& b, std::initializer_list<std::pair<const char*, int64_t>> usual) {
  for (const auto& [name, value] : usual) {
    const int64_t found = b.call().integer(name, value);
    if (found == value) continue;
    b.fail(Error(name, " is ", found, ", supported is ", value));
    return false;
  }
  return true;
}

// A convolution of each channel that looks back, and the data that the next call looks back to.
static void causal_conv_with_state(Body& b) {
  const OpCall& call = b.call();
  const Term x = b.input(0), weight = b.input(1);
  const int64_t dilation = call.integer("dilation", 1), reach = (weight.extent(2) - 1) * dilation;
  if (!are_usual(b, {{"ndim", 1}, {"channels_last", 0}, {"state_window", 0}})) return;
  if (x.rank() != 3 || weight.rank() != 3) {
    return b.fail(Error("data and weights of ",
                        print_shape(x.shape()),
                        " and ",
                        print_shape(weight.shape()),
                        ", expected [batch, channels, length] and [channels, 1, kernel]"));
  }
  const Term before =
      b.has(3) ? b.input(3) : b.constant(Tensor(x.dtype(), {x.extent(0), x.extent(1), reach}));
  const Term padded = reach > 0 ? b.concat({before, x}, 2) : x;
  std::vector<Term> inputs = {padded, weight};
  if (b.has(2)) inputs.push_back(b.input(2));
  Term y = b.add(
      "Conv", inputs, {{"group", x.extent(1)}, {"dilations", std::vector<int64_t>{dilation}}});
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = y * b.add("Sigmoid", {y});
  } else if (activation != "none") {
    return b.fail(Error("activation is \"", activation, "\", expected silu, swish or none"));
  }
  b.output(0, y);
  b.output(1, reach > 0 ? b.slice(padded, 2, padded.extent(2) - reach, padded.extent(2)) : before);
}

namespace {

// LinearAttention's sizes and rule. The state of each head of the value is a matrix of its keys and
// values.
struct LinearAttention {
  int64_t batch, steps, heads, shared, key_width, value_width;
  bool decays, corrects;
};

}  // namespace

static Result<LinearAttention> linear_attention_of(const OpCall& call) {
  for (size_t i = 0; i < 3; ++i) {
    if (call.rank(i) != 3)
      return Error("input ",
                   i,
                   " is ",
                   print_shape(call.shape(i)),
                   ", expected [batch, positions, heads * width]");
  }
  const int64_t heads = call.integer("q_num_heads", 0), shared = call.integer("kv_num_heads", 0);
  const int64_t query = call.shape(0)[2], key = call.shape(1)[2], value = call.shape(2)[2];
  if (heads < 1 || shared < 1 || heads % shared != 0 || query % heads != 0 || value % shared != 0 ||
      key != query / heads * shared) {
    return Error("q_num_heads ",
                 heads,
                 " and kv_num_heads ",
                 shared,
                 " do not part widths of ",
                 query,
                 ", ",
                 key,
                 " and ",
                 value);
  }
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool decays = rule.starts_with("gated"), corrects = rule.ends_with("delta");
  if (!decays && !corrects && rule != "linear") return Error("update_rule is \"", rule, "\"");
  if (call.has(4) != decays || call.has(5) != corrects) {
    return Error("update_rule ",
                 rule,
                 decays ? " needs" : " takes no",
                 " decay and ",
                 corrects ? "needs a" : "takes no",
                 " beta");
  }
  return LinearAttention{call.shape(0)[0],
                         call.shape(0)[1],
                         heads,
                         shared,
                         query / heads,
                         value / shared,
                         decays,
                         corrects};
}

// Step by step: the state decays, takes up key and value (or what it got wrong of the value), and
// answers the query.
static void linear_attention(Body& b) {
  if (!are_usual(b, {{"state_window", 0}})) return;
  const Result<LinearAttention> found = linear_attention_of(b.call());
  if (!found.ok()) return b.fail(found.error());
  const LinearAttention& a = *found;
  const DType dtype = b.input(0).dtype();
  const DType state_dtype = b.has(3) ? b.input(3).dtype() : dtype;
  Term state =
      b.has(3)
          ? b.cast(b.input(3), DType::kFloat32)
          : b.constant(Tensor(DType::kFloat32, {a.batch, a.shared, a.key_width, a.value_width}));
  std::vector<Term> inputs;
  for (size_t i = 0; i < 6; ++i)
    inputs.push_back(b.has(i) ? b.cast(b.input(i), DType::kFloat32) : Term{});
  const double given = b.call().number("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(a.key_width));
  std::vector<Term> answers;
  for (int64_t t = 0; t < a.steps; ++t) {
    // Returns input i at this step, with its heads as matrices.
    const auto step = [&](size_t i, int64_t rows, int64_t columns) {
      return b.reshape(b.slice(inputs[i], 1, t, t + 1), {a.batch, -1, rows, columns});
    };
    const Term key = step(1, 1, a.key_width);
    Term value = step(2, 1, a.value_width);
    if (a.decays) {
      const bool per_head = inputs[4].extent(2) == a.shared;
      state = state * b.add("Exp", {step(4, per_head ? 1 : a.key_width, 1)});
    }
    if (a.corrects) value = (value - b.add("MatMul", {key, state})) * step(5, 1, 1);
    state = state + b.reshape(key, {a.batch, a.shared, a.key_width, 1}) * value;
    const Term query = step(0, a.heads / a.shared, a.key_width);
    const Term answer = b.add("MatMul", {query, state}) * scale;
    answers.push_back(b.reshape(answer, {a.batch, 1, a.heads * a.value_width}));
  }
  b.output(0, b.cast(b.concat(answers, 1), dtype));
  b.output(1, b.cast(state, state_dtype));
}

// clang-format off
static constexpr Function kStateFunctions[] = {
    {"CausalConvWithState", 2, 4, "activation:s", causal_conv_with_state},
    {"LinearAttention", 3, 6, "chunk_size:i kv_num_heads:i q_num_heads:i scale:f update_rule:s", linear_attention},
    {"com.microsoft::CausalConvWithState", 2, 4, "activation:s channels_last:i dilation:i ndim:i state_window:i", causal_conv_with_state},
    {"com.microsoft::LinearAttention", 3, 6, "chunk_size:i kv_num_heads:i q_num_heads:i scale:f state_window:i update_rule:s", linear_attention},
};
// clang-format on

std::span<const Function> state_functions() { return kStateFunctions; }

}  // namespace pruner
