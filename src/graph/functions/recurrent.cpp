// LSTM, GRU and RNN. The products of all inputs with W are one matmul; a step multiplies the state
// by R and adds the step's row of those products. The steps are one loop (ops/recurrence.cpp), or
// nodes for each step. The nodes gather the row by an index, so that every step is the same task.
// DynamicQuantizeLSTM multiplies bytes: the inputs have one scale for all steps, the state has a
// scale for each step.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "graph/functions/quantized.h"
#include "graph/routines/routines.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int64_t kMostSteps = 4096;    // steps of all directions; each is a dozen nodes
constexpr size_t kMostActivations = 3;  // activations of a direction; an LSTM has the most

struct Activation {
  std::string_view name;
  int constants;       // how many of alpha and beta the function takes
  double alpha, beta;  // the defaults, unless the call gives others
  Term (*of)(Term x, double alpha, double beta);
  std::optional<PrunerActivationKind> kind;  // the function in a loop; nullopt: no loop has it
};

Term plain(const char* op, Term x) { return x.body->add(op, {x}); }
Term with_alpha(const char* op, Term x, double alpha) {
  return x.body->add(op, {x}, {{"alpha", alpha}});
}

constexpr Activation kActivations[] = {
    {"Affine",
     2,
     1,
     0,
     [](Term x, double alpha, double beta) { return x * alpha + beta; },
     kRecurrenceAffine},
    {"Elu",
     1,
     1,
     0,
     [](Term x, double alpha, double) { return with_alpha("Elu", x, alpha); },
     kRecurrenceElu},
    {"HardSigmoid",
     2,
     0.2,
     0.5,
     [](Term x, double alpha, double beta) {
       return x.body->add("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
     },
     kRecurrenceHardSigmoid},
    {"LeakyRelu",
     1,
     0.01,
     0,
     [](Term x, double alpha, double) { return with_alpha("LeakyRelu", x, alpha); },
     kRecurrenceLeakyRelu},
    {"Relu", 0, 0, 0, [](Term x, double, double) { return plain("Relu", x); }, kRecurrenceRelu},
    {"ScaledTanh",
     2,
     1,
     1,
     [](Term x, double alpha, double beta) { return plain("Tanh", x * beta) * alpha; },
     kRecurrenceScaledTanh},
    {"Sigmoid",
     0,
     0,
     0,
     [](Term x, double, double) { return plain("Sigmoid", x); },
     kRecurrenceSigmoid},
    {"Softplus",
     0,
     0,
     0,
     [](Term x, double, double) { return plain("Softplus", x); },
     std::nullopt},
    {"Softsign",
     0,
     0,
     0,
     [](Term x, double, double) { return plain("Softsign", x); },
     kRecurrenceSoftsign},
    {"Tanh", 0, 0, 0, [](Term x, double, double) { return plain("Tanh", x); }, kRecurrenceTanh},
    {"ThresholdedRelu",
     1,
     1,
     0,
     [](Term x, double alpha, double) { return with_alpha("ThresholdedRelu", x, alpha); },
     kRecurrenceThresholdedRelu},
};

struct State {
  Term h, c;  // only an LSTM has c
};

/// One direction of a call.
struct Direction {
  Body& b;
  int64_t gates, steps, batch, hidden;
  std::vector<Activation> activations;
  double clip;                       // 0: none
  bool reverse;                      // whether steps go from the last to the first
  Term products = {};                // X * W and the biases that are added first, per step
  Term r = {}, r_bias = {};          // [gates * hidden, hidden]; the bias if it stays with R
  std::vector<Term> peepholes = {};  // gates i, o, f, [1, hidden] each; or none
  Term in_sequence;                  // whether a sequence has the step, [steps, batch, 1]; or none
  State state;
  std::optional<Quantized> r_bytes = {};  // replaces R: [hidden, gates * hidden]
  Term late_bias = {};                    // bias that is added after R's products; or none

  Term activated(size_t which, Term x) const {
    if (clip > 0) x = b.add("Clip", {x, b.scalar(-clip, x.dtype()), b.scalar(clip, x.dtype())});
    const Activation& f = activations[which];
    return f.of(x, f.alpha, f.beta);
  }
  std::vector<Term> parts(Term x, int64_t n) const {
    if (n == 1) return {x};
    return b.add_many("Split", {x}, static_cast<size_t>(n), {{"axis", int64_t{1}}});
  }
  /// Returns h * R^T + more for the gates [first, last): `more` and R's rows belong to these gates.
  /// R as bytes has all gates.
  Term recurrent(Term h, int64_t first, int64_t last, Term more) const {
    if (r_bytes) {
      const Term sum = more + quantized_product(dynamically_quantized(h), *r_bytes);
      return late_bias.valid() ? sum + late_bias : sum;
    }
    const bool all = first == 0 && last == gates;
    const Term weights = all ? r : b.slice(r, 0, first * hidden, last * hidden);
    return b.add("Gemm", {h, weights, more}, {{"transB", int64_t{1}}});
  }
};

using Cell = State (*)(const Direction&, Term products, const State&);

State rnn_cell(const Direction& d, Term products, const State& s) {
  return {d.activated(0, d.recurrent(s.h, 0, 1, products)), {}};
}

// Gates z, r, h.
State gru_cell(const Direction& d, Term products, const State& s) {
  Term z, r, candidate;
  if (d.r_bias.valid()) {  // linear_before_reset
    const std::vector<Term> x = d.parts(products, 3);
    const std::vector<Term> h = d.parts(d.recurrent(s.h, 0, 3, d.r_bias), 3);
    z = d.activated(0, x[0] + h[0]);
    r = d.activated(0, x[1] + h[1]);
    candidate = d.activated(1, x[2] + r * h[2]);
  } else {
    const int64_t split = 2 * d.hidden;
    const Term both = d.recurrent(s.h, 0, 2, d.b.slice(products, 1, 0, split));
    const std::vector<Term> gates = d.parts(both, 2);
    z = d.activated(0, gates[0]);
    r = d.activated(0, gates[1]);
    const Term rest = d.b.slice(products, 1, split, 3 * d.hidden);
    candidate = d.activated(1, d.recurrent(r * s.h, 2, 3, rest));
  }
  return {(1.0 - z) * candidate + z * s.h, {}};
}

// Gates i, o, f, c.
State lstm_cell(const Direction& d, Term products, const State& s) {
  std::vector<Term> gates = d.parts(d.recurrent(s.h, 0, 4, products), 4);
  const auto peep = [&](size_t gate, Term c) {
    if (!d.peepholes.empty()) gates[gate] = gates[gate] + d.peepholes[gate] * c;
  };
  peep(0, s.c);
  peep(2, s.c);
  const Term in = d.activated(0, gates[0]);
  const bool coupled = d.b.call().integer("input_forget", 0) != 0;
  const Term forget = coupled ? 1.0 - in : d.activated(0, gates[2]);
  const Term c = forget * s.c + in * d.activated(1, gates[3]);
  peep(1, c);
  return {d.activated(0, gates[1]) * d.activated(2, c), c};
}

struct Kind {
  int64_t gates;
  std::vector<std::string> activations;  // names for one direction, unless the call gives others
  Cell cell;
  bool quantized = false;  // W and R are bytes, the gates their last dimension
};

// Whether two names differ in upper and lower case at most, as ONNX Runtime compares them.
bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a,
      b,
      {},
      [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

// Returns the activations of all directions. ONNX: the call names them all, and an activation that
// takes constants has the next of alpha and beta.
Result<std::vector<Activation>> activations_of(const Body& b,
                                               const Kind& kind,
                                               int64_t directions) {
  std::vector<std::string> names = b.call().texts("activations");
  const size_t expected = kind.activations.size() * static_cast<size_t>(directions);
  for (int64_t d = 0; names.size() < expected && (d > 0 || names.empty()); ++d)
    names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  if (names.size() != expected)
    return Error("activations has ", names.size(), " names, expected ", expected);
  const std::vector<double> alphas = b.call().numbers("activation_alpha");
  const std::vector<double> betas = b.call().numbers("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> activations;
  for (const std::string& name : names) {
    const auto is_named = [&](const Activation& a) { return same_letters(a.name, name); };
    const auto row = std::ranges::find_if(kActivations, is_named);
    if (row == std::end(kActivations)) return Error("the activation \"", name, "\" is not known");
    Activation activation = *row;
    if (row->constants >= 1 && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (row->constants >= 2 && beta < betas.size()) activation.beta = betas[beta++];
    activations.push_back(activation);
  }
  return activations;
}

// Returns element d of the first dimension.
Term element(Term x, int64_t d) {
  std::vector<int64_t> shape = x.shape();
  if (shape.empty()) return x;
  const Term part = shape[0] == 1 ? x : x.body->slice(x, 0, d, d + 1);
  shape.erase(shape.begin());
  return x.body->reshape(part, shape);
}

// Returns element d of the first dimension, as a constant if x is constant.
Term known_element(Term x, int64_t d) {
  const std::optional<Tensor>& all = x.constant();
  if (!all || all->shape().empty()) return element(x, d);
  Tensor part(all->dtype(), {all->shape().begin() + 1, all->shape().end()});
  const auto bytes = static_cast<size_t>(part.bytes());
  std::memcpy(part.data(), static_cast<const std::byte*>(all->data()) + d * bytes, bytes);
  return x.body->constant(std::move(part));
}

// Returns row `step` of [steps, ...], gathered by an index.
Term row(Term x, int64_t step) {
  Tensor index(DType::kInt64, {});
  index.set_int(0, step);
  return x.body->add("Gather", {x, x.body->constant(std::move(index))}, {{"axis", int64_t{0}}});
}

class Recurrence {
 public:
  Recurrence(Body& b, Kind kind) : b_(b), kind_(std::move(kind)) {}
  void write();

 private:
  Result<Unit> check();
  Result<Unit> check_shape(size_t i, const char* what, const std::vector<int64_t>& expected) const;
  Result<Unit> check_lengths() const;
  Result<Unit> check_weights(int64_t rows) const;
  Result<Unit> check_bytes(int64_t rows) const;
  Term in_sequence();
  Term initial(size_t i, int64_t d);
  void add_weights(Direction& d, int64_t index);
  void add_products(Direction& d, int64_t index);
  void add_bytes(Direction& d, int64_t index);
  void quantize_inputs(Term in_sequence);
  Term turned(Term by_step) const;
  std::vector<Term> run(Direction& d);
  void write_nodes(const std::vector<Activation>& activations);
  bool may_loop(const std::vector<Activation>& activations) const;
  bool adds_before_reset() const;
  Term all_products();
  Term packed_weights() const;
  void write_loop(const std::vector<Activation>& activations);
  Term by_direction(Term states) const;
  Term joined(std::vector<Term> parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : b_.concat(std::move(parts), axis);
  }

  Body& b_;
  Kind kind_;
  bool batch_first_ = false;
  int64_t steps_ = 0, batch_ = 0, hidden_ = 0, directions_ = 1;
  Term x_;             // [steps * batch, inputs]
  Quantized x_bytes_;  // [steps, batch, inputs]; the quantized kind has it
};

Result<Unit> Recurrence::check_shape(size_t i,
                                     const char* what,
                                     const std::vector<int64_t>& expected) const {
  if (!b_.has(i) || b_.call().shape(i) == expected) return Unit{};
  return Error(what,
               " has the shape ",
               print_shape(b_.call().shape(i)),
               ", expected ",
               print_shape(expected));
}

Result<Unit> Recurrence::check() {
  const OpCall& call = b_.call();
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return Error("direction is \"", direction, "\", expected forward, reverse or bidirectional");
  directions_ = direction == "bidirectional" ? 2 : 1;
  if (call.rank(0) != 3 || call.rank(2) != 3)
    return Error("X and R need three dimensions, found ",
                 print_shape(call.shape(0)),
                 " and ",
                 print_shape(call.shape(2)));
  batch_first_ = call.integer("layout", 0) != 0;
  steps_ = call.shape(0)[batch_first_ ? 1 : 0];
  batch_ = call.shape(0)[batch_first_ ? 0 : 1];
  hidden_ = call.shape(2)[kind_.quantized ? 1 : 2];
  const int64_t rows = kind_.gates * hidden_;
  TRY(kind_.quantized ? check_bytes(rows) : check_weights(rows));
  TRY(check_shape(3, "B", {directions_, 2 * rows}));
  TRY(check_shape(4, "sequence_lens", {batch_}));
  TRY(check_lengths());
  std::vector<int64_t> state = {directions_, batch_, hidden_};
  if (batch_first_) std::swap(state[0], state[1]);
  TRY(check_shape(5, "initial_h", state));
  TRY(check_shape(6, "initial_c", state));
  TRY(check_shape(7, "P", {directions_, 3 * hidden_}));
  return Unit{};
}

Result<Unit> Recurrence::check_lengths() const {
  if (!b_.has(4) || !b_.call().input(4).constant) return Unit{};
  const Tensor& lengths = *b_.call().input(4).constant;
  for (int64_t i = 0; i < lengths.num_elements(); ++i)
    if (const int64_t n = lengths.get_int(i); n < 0 || n > steps_)
      return Error("sequence_lens holds ", n, ", expected 0 to ", steps_);
  return Unit{};
}

Result<Unit> Recurrence::check_weights(int64_t rows) const {
  TRY(check_shape(1, "W", {directions_, rows, b_.call().shape(0)[2]}));
  return check_shape(2, "R", {directions_, rows, hidden_});
}

// Checks W and R as bytes. There is a scale and a zero point for each direction, or for each of a
// direction's columns.
Result<Unit> Recurrence::check_bytes(int64_t rows) const {
  TRY(check_shape(1, "W", {directions_, b_.call().shape(0)[2], rows}));
  TRY(check_shape(2, "R", {directions_, hidden_, rows}));
  static constexpr const char* kSteps[] = {"W_scale", "W_zero_point", "R_scale", "R_zero_point"};
  for (size_t i = 8; i < 12; ++i) {
    if (!b_.has(i)) return Error("input ", i, " (", kSteps[i - 8], ") is missing");
    if (b_.call().rank(i) != 1) TRY(check_shape(i, kSteps[i - 8], {directions_, rows}));
    if (b_.call().rank(i) == 1) TRY(check_shape(i, kSteps[i - 8], {directions_}));
  }
  return Unit{};
}

// Returns whether each sequence has each step; nothing if every sequence has all steps.
Term Recurrence::in_sequence() {
  if (!b_.has(4)) return {};
  const std::optional<Tensor>& lengths = b_.call().input(4).constant;
  bool full = lengths.has_value();
  for (int64_t i = 0; full && i < batch_; ++i) full = lengths->get_int(i) >= steps_;
  if (full) return {};
  Tensor steps(DType::kInt64, {steps_, 1, 1});
  std::iota(steps.values<int64_t>().begin(), steps.values<int64_t>().end(), 0);
  const Term length = b_.reshape(b_.cast(b_.input(4), DType::kInt64), {1, batch_, 1});
  return b_.add("Less", {b_.constant(std::move(steps)), length});
}

Term Recurrence::initial(size_t i, int64_t d) {
  if (!b_.has(i)) return b_.constant(Tensor(x_.dtype(), {batch_, hidden_}));
  return element(by_direction(b_.input(i)), d);
}

void Recurrence::add_products(Direction& d, int64_t index) {
  const int64_t rows = kind_.gates * hidden_;
  std::vector<Term> operands = {x_, element(b_.input(1), index)};
  d.r = element(b_.input(2), index);
  const bool apart = adds_before_reset();
  if (b_.has(3)) {
    const Term bias = element(b_.input(3), index);
    const Term of_x = b_.slice(bias, 0, 0, rows), of_h = b_.slice(bias, 0, rows, 2 * rows);
    operands.push_back(apart ? of_x : of_x + of_h);
    if (apart) d.r_bias = of_h;
  } else if (apart) {
    d.r_bias = b_.constant(Tensor(x_.dtype(), {rows}));
  }
  d.products =
      b_.reshape(b_.add("Gemm", operands, {{"transB", int64_t{1}}}), {steps_, batch_, rows});
}

void Recurrence::add_weights(Direction& d, int64_t index) {
  if (kind_.quantized) {
    add_bytes(d, index);
  } else {
    add_products(d, index);
  }
  if (!b_.has(7)) return;
  const Term all = element(b_.input(7), index);
  for (int64_t gate = 0; gate < 3; ++gate)
    d.peepholes.push_back(
        b_.reshape(b_.slice(all, 0, gate * hidden_, (gate + 1) * hidden_), {1, hidden_}));
}

// Quantizes the inputs like ONNX Runtime: steps that no sequence has do not count in their range.
void Recurrence::quantize_inputs(Term in_sequence) {
  Term x = b_.reshape(x_, {steps_, batch_, x_.extent(1)});
  if (in_sequence.valid()) {
    const Term some = b_.reduce("ReduceMax", in_sequence, {{1}});
    x = b_.add("Where", {some, x, b_.scalar(0, x.dtype())});
  }
  x_bytes_ = dynamically_quantized(x);
}

// Returns each sequence from its last step to its first, [steps, batch, ...]; steps behind a
// sequence stay.
Term Recurrence::turned(Term by_step) const {
  const Term lengths = b_.cast(b_.input(4), DType::kInt64);
  return b_.add("ReverseSequence",
                {by_step, lengths},
                {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}});
}

void Recurrence::add_bytes(Direction& d, int64_t index) {
  const int64_t rows = kind_.gates * hidden_;
  const auto bytes = [&](size_t i, size_t steps) {
    return Quantized{known_element(b_.input(i), index),
                     known_element(b_.input(steps), index),
                     known_element(b_.input(steps + 1), index)};
  };
  Quantized x = x_bytes_;
  if (d.reverse && d.in_sequence.valid()) x.values = turned(x.values);
  x.values = b_.reshape(x.values, {steps_ * batch_, x.values.extent(2)});
  d.products = b_.reshape(quantized_product(x, bytes(1, 8)), {steps_, batch_, rows});
  d.r_bytes = bytes(2, 10);
  if (!b_.has(3)) return;
  const Term bias = known_element(b_.input(3), index);
  d.late_bias = b_.slice(bias, 0, 0, rows) + b_.slice(bias, 0, rows, 2 * rows);
}

// Returns the result of each step, in the order of X. A sequence that is over keeps its state, and
// its result is zero.
std::vector<Term> Recurrence::run(Direction& d) {
  std::vector<Term> made(static_cast<size_t>(steps_));
  const bool is_turned = kind_.quantized && d.in_sequence.valid();
  const bool shows_steps = b_.wants(0);
  for (int64_t i = 0; i < steps_; ++i) {
    const int64_t step = d.reverse && !is_turned ? steps_ - 1 - i : i;
    State before = d.state;
    // ONNX Runtime scales a step's states without those of sequences that are over.
    if (is_turned && shows_steps && i > 0) before.h = made[static_cast<size_t>(i - 1)];
    State next = kind_.cell(d, row(d.products, step), before);
    made[static_cast<size_t>(step)] = next.h;
    if (d.in_sequence.valid()) {
      const Term in = row(d.in_sequence, step);
      const auto chosen = [&](Term a, Term b) { return b_.add("Where", {in, a, b}); };
      made[static_cast<size_t>(step)] = chosen(next.h, b_.scalar(0, next.h.dtype()));
      next.h = chosen(next.h, d.state.h);
      if (next.c.valid()) next.c = chosen(next.c, d.state.c);
    }
    d.state = next;
  }
  return made;
}

void Recurrence::write() {
  if (const Result<Unit> checked = check(); !checked.ok()) return b_.fail(checked.error());
  const Result<std::vector<Activation>> activations = activations_of(b_, kind_, directions_);
  if (!activations.ok()) return b_.fail(activations.error());
  const Term x = b_.input(0);
  x_ = b_.reshape(batch_first_ ? b_.transpose(x, {1, 0, 2}) : x, {steps_ * batch_, x.extent(2)});
  if (may_loop(*activations)) return write_loop(*activations);
  if (steps_ * directions_ <= kMostSteps) return write_nodes(*activations);
  b_.fail(Error("the sequence has ",
                steps_,
                " steps in ",
                directions_,
                " directions; at most ",
                kMostSteps,
                " are unrolled"));
}

void Recurrence::write_nodes(const std::vector<Activation>& activations) {
  const Term in = in_sequence();
  if (kind_.quantized) quantize_inputs(in);
  const bool backwards = b_.call().text("direction", "forward") == "reverse";
  const auto each = static_cast<std::ptrdiff_t>(kind_.activations.size());
  std::vector<Term> y, y_h, y_c;
  for (int64_t i = 0; i < directions_; ++i) {
    const auto first = activations.begin() + i * each;
    Direction d{.b = b_,
                .gates = kind_.gates,
                .steps = steps_,
                .batch = batch_,
                .hidden = hidden_,
                .activations = {first, first + each},
                .clip = b_.call().number("clip", 0),
                .reverse = backwards || i == 1,
                .in_sequence = in,
                .state = {initial(5, i), kind_.gates == 4 ? initial(6, i) : Term{}}};
    add_weights(d, i);
    Term steps = b_.reshape(joined(run(d), 0), {steps_, batch_, hidden_});
    if (kind_.quantized && d.reverse && d.in_sequence.valid()) steps = turned(steps);
    y.push_back(b_.reshape(steps, {steps_, 1, batch_, hidden_}));
    y_h.push_back(b_.reshape(d.state.h, {1, batch_, hidden_}));
    if (d.state.c.valid()) y_c.push_back(b_.reshape(d.state.c, {1, batch_, hidden_}));
  }
  const Term all = joined(y, 1);
  b_.output(0, batch_first_ ? b_.transpose(all, {2, 0, 1, 3}) : all);
  b_.output(1, by_direction(joined(y_h, 0)));
  if (!y_c.empty()) b_.output(2, by_direction(joined(y_c, 0)));
}

// Turns the call's states, [batch, directions, hidden] if the batch comes first, into
// [directions, batch, hidden], and those into the call's.
Term Recurrence::by_direction(Term states) const {
  return batch_first_ ? b_.transpose(states, {1, 0, 2}) : states;
}

bool Recurrence::may_loop(const std::vector<Activation>& activations) const {
  return b_.call().graph.loops_over_steps && !kind_.quantized &&
         (x_.dtype() == DType::kFloat32 || dtype_bytes(x_.dtype()) == 2) &&
         std::ranges::all_of(activations, [](const Activation& a) { return a.kind.has_value(); });
}

// Whether R's products have a bias of their own, which the reset multiplies, too.
bool Recurrence::adds_before_reset() const {
  return kind_.gates == 3 && b_.call().integer("linear_before_reset", 0) != 0;
}

// Returns the products of X and W of all directions: [steps, batch, directions, gates, hidden].
Term Recurrence::all_products() {
  const int64_t rows = kind_.gates * hidden_, all = directions_ * rows;
  std::vector<Term> operands = {x_, b_.reshape(b_.input(1), {all, x_.extent(1)})};
  if (b_.has(3)) {
    const Term bias = b_.input(3), of_x = b_.slice(bias, 1, 0, rows);
    operands.push_back(
        b_.reshape(adds_before_reset() ? of_x : of_x + b_.slice(bias, 1, rows, 2 * rows), {all}));
  }
  return b_.reshape(b_.add("Gemm", operands, {{"transB", int64_t{1}}}),
                    {steps_, batch_, directions_, kind_.gates, hidden_});
}

// Returns R in the layout of PrunerRecurrence.
Term Recurrence::packed_weights() const {
  const int64_t blocks = ceil_div(hidden_, PRUNER_UNITS);
  const int64_t behind = blocks * PRUNER_UNITS - hidden_;
  Term r = b_.reshape(b_.input(2), {directions_, kind_.gates, hidden_, hidden_});
  if (behind > 0) {
    const int64_t pads[] = {0, 0, 0, 0, 0, 0, behind, 0};
    r = b_.add("Pad", {r, b_.integers(pads)});
  }
  r = b_.reshape(r, {directions_, kind_.gates, blocks, PRUNER_UNITS, hidden_});
  return b_.cast(b_.transpose(r, {0, 2, 4, 1, 3}), DType::kFloat32);
}

void Recurrence::write_loop(const std::vector<Activation>& activations) {
  const int64_t rows = kind_.gates * hidden_;
  // A bit for each direction: of two the second one goes backwards.
  const bool reverse = b_.call().text("direction", "forward") == "reverse";
  const int64_t backwards = reverse ? 1 : 2 * (directions_ - 1);
  int64_t has = 0;
  std::vector<Term> inputs = {b_.cast(all_products(), DType::kFloat32), packed_weights()};
  const auto add = [&](bool is_there, int64_t bit, const auto& term) {
    if (is_there) has |= bit;
    inputs.push_back(is_there ? b_.cast(term(), DType::kFloat32)
                              : b_.constant(Tensor(DType::kFloat32, {1})));
  };
  // The lengths stay the caller's tensor, which a message about one of them names.
  if (b_.has(4)) has |= PRUNER_HAS_LENGTHS;
  inputs.push_back(b_.has(4) ? b_.input(4) : b_.constant(Tensor(DType::kInt64, {1})));
  add(b_.has(5), PRUNER_HAS_H, [&] { return by_direction(b_.input(5)); });
  add(kind_.gates == 4 && b_.has(6), PRUNER_HAS_C, [&] { return by_direction(b_.input(6)); });
  add(adds_before_reset(), PRUNER_HAS_BIAS, [&] {
    return b_.has(3) ? b_.slice(b_.input(3), 1, rows, 2 * rows)
                     : b_.constant(Tensor(DType::kFloat32, {directions_, rows}));
  });
  add(b_.has(7), PRUNER_HAS_PEEPHOLES, [&] { return b_.input(7); });
  std::vector<int64_t> kinds;
  std::vector<double> alphas, betas;
  const size_t each = kind_.activations.size();
  for (size_t i = 0; i < static_cast<size_t>(directions_) * kMostActivations; ++i) {
    // An operator with fewer activations does not ask for the others.
    const size_t which = std::min(i % kMostActivations, each - 1);
    const Activation& activation = activations[i / kMostActivations * each + which];
    kinds.push_back(*activation.kind);
    alphas.push_back(activation.alpha);
    betas.push_back(activation.beta);
  }
  const Term all = b_.add("pruner::Recurrence",
                          inputs,
                          {{"activations", kinds},
                           {"activation_alpha", alphas},
                           {"activation_beta", betas},
                           {"backwards", backwards},
                           {"clip", b_.call().number("clip", 0)},
                           {"has", has},
                           {"input_forget", b_.call().integer("input_forget", 0)}});
  const Term y = b_.cast(b_.slice(all, 0, 0, steps_), x_.dtype());
  b_.output(0, batch_first_ ? b_.transpose(y, {2, 0, 1, 3}) : y);
  for (int64_t i = 0; i < (kind_.gates == 4 ? 2 : 1); ++i) {
    const Term last = b_.slice(all, 0, steps_ + i, steps_ + i + 1);
    b_.output(static_cast<size_t>(i) + 1,
              by_direction(b_.cast(b_.reshape(last, {directions_, batch_, hidden_}), x_.dtype())));
  }
}

void lstm(Body& b) { Recurrence(b, {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_cell}).write(); }
void dynamic_quantize_lstm(Body& b) {
  Recurrence(b, {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_cell, true}).write();
}
void gru(Body& b) { Recurrence(b, {3, {"Sigmoid", "Tanh"}, gru_cell}).write(); }
void rnn(Body& b) { Recurrence(b, {1, {"Tanh"}, rnn_cell}).write(); }

// clang-format off
constexpr Function kRecurrentFunctions[] = {
    {"GRU", 3, 6, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i linear_before_reset:i output_sequence:i", gru},
    {"LSTM", 3, 8, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i layout:i output_sequence:i", lstm},
    {"RNN", 3, 6, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i output_sequence:i", rnn},
    {"com.microsoft::DynamicQuantizeLSTM", 3, 12, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i", dynamic_quantize_lstm},
};
// clang-format on

}  // namespace

std::span<const Function> recurrent_functions() { return kRecurrentFunctions; }

}  // namespace pruner
