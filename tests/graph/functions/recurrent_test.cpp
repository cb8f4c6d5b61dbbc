#include <fmt/format.h>

#include <numeric>
#include <set>

#include "graph/routines/recurrence.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Operand kNone = Operand::none();

// One input, one unit, one sequence of two steps.
TEST(Rnn, FeedsItsStateBack) {
  const Tensor x = floats({2, 1, 1}, {0.5, -1}), w = floats({1, 1, 1}, {2}),
               r = floats({1, 1, 1}, {3}), bias = floats({1, 2}, {0.25, 0.125});
  const double a = std::tanh(1.375), b = std::tanh(-2 + 3 * a + 0.375);
  const std::vector<Tensor> found =
      run_outputs("RNN", {x, Operand::weight(w), Operand::weight(r), Operand::weight(bias)}, 2);
  expect_near(found[0], floats({2, 1, 1, 1}, {a, b}));
  expect_near(found[1], floats({1, 1, 1}, {b}));
}

TEST(Rnn, RunsBothDirectionsWithActivationsOfTheirOwn) {
  const Tensor x = floats({2, 1, 1}, {1, 2}), w = floats({2, 1, 1}, {1, -1}),
               r = floats({2, 1, 1}, {0.5, 0.5});
  const Attributes attributes = {{"direction", std::string("bidirectional")},
                                 {"activations", std::vector<std::string>{"Relu", "LeakyRelu"}},
                                 {"activation_alpha", std::vector<double>{0.5}}};
  const std::vector<Tensor> found = run_outputs("RNN", {x, w, r}, 2, attributes);
  // Forwards 1, 2 + 1/2. Backwards -2 / 2, then (-1 - 1/2) / 2.
  expect_near(found[0], floats({2, 2, 1, 1}, {1, -0.75, 2.5, -1}));
  expect_near(found[1], floats({2, 1, 1}, {2.5, -0.75}));
}

TEST(Rnn, EndsEachSequenceByItsLength) {
  const Tensor x = floats({3, 2, 1}, {1, 10, 2, 20, 3, 30}), one = floats({1, 1, 1}, {1});
  const Attributes linear = {{"activations", std::vector<std::string>{"Affine"}}};
  const Operand lengths = integers({2}, {1, 3}, DType::kInt32);
  std::vector<Tensor> found = run_outputs("RNN", {x, one, one, kNone, lengths}, 2, linear);
  expect_near(found[0], floats({3, 1, 2, 1}, {1, 10, 0, 30, 0, 60}));
  expect_near(found[1], floats({1, 2, 1}, {1, 60}));
  Attributes back = linear;
  back["direction"] = std::string("reverse");
  found = run_outputs("RNN", {x, one, one, kNone, lengths}, 2, back);
  expect_near(found[0], floats({3, 1, 2, 1}, {1, 60, 0, 50, 0, 30}));
  expect_near(found[1], floats({1, 2, 1}, {1, 60}));
}

TEST(Rnn, TakesTheBatchFirst) {
  const Tensor x = floats({2, 1, 1}, {1, 10}), one = floats({1, 1, 1}, {1});
  const Attributes attributes = {{"activations", std::vector<std::string>{"Affine"}},
                                 {"layout", int64_t{1}}};
  const Tensor initial = floats({2, 1, 1}, {0.5, 5});
  const std::vector<Tensor> found =
      run_outputs("RNN", {x, one, one, kNone, kNone, initial}, 2, attributes);
  expect_near(found[0], floats({2, 1, 1, 1}, {1.5, 15}));
  expect_near(found[1], floats({2, 1, 1}, {1.5, 15}));
}

TEST(Gru, ResetsBeforeOrAfterTheProduct) {
  const Tensor x = floats({1, 1, 1}, {1}), w = floats({1, 3, 1}, {0.5, 1, 2}),
               r = floats({1, 3, 1}, {1, -1, 3}), bias = floats({1, 6}, {0, 0, 0.5, 0, 0, 0.25}),
               h0 = floats({1, 1, 1}, {0.5});
  const double z = sigmoid(1), reset = sigmoid(0.5);
  const double before = std::tanh(2 + 3 * reset * 0.5 + 0.75);
  const double after = std::tanh(2 + reset * (3 * 0.5 + 0.25) + 0.5);
  EXPECT_NEAR(run_outputs("GRU", {x, w, r, bias, kNone, h0}, 2)[1].get(0),
              (1 - z) * before + z * 0.5,
              1e-6);
  EXPECT_NEAR(
      run_outputs("GRU", {x, w, r, bias, kNone, h0}, 2, {{"linear_before_reset", int64_t{1}}})[1]
          .get(0),
      (1 - z) * after + z * 0.5,
      1e-6);
}

// Gates i, o, f, c; peepholes of i, o, f.
TEST(Lstm, LooksAtItsCell) {
  const Tensor x = floats({1, 1, 1}, {1}), w = floats({1, 4, 1}, {1, 2, 3, 4}),
               r = floats({1, 4, 1}, {0.5, 0.25, -1, 1}), h0 = floats({1, 1, 1}, {2}),
               c0 = floats({1, 1, 1}, {3}), peep = floats({1, 3}, {0.1, 0.2, -0.3});
  const double i = sigmoid(1 + 1 + 0.3), f = sigmoid(3 - 2 - 0.9), c = f * 3 + i * std::tanh(6);
  const double h = sigmoid(2 + 0.5 + 0.2 * c) * std::tanh(c);
  const std::vector<Tensor> found = run_outputs("LSTM", {x, w, r, kNone, kNone, h0, c0, peep}, 3);
  EXPECT_NEAR(found[0].get(0), h, 1e-6);
  EXPECT_NEAR(found[1].get(0), h, 1e-6);
  EXPECT_NEAR(found[2].get(0), c, 1e-6);
}

TEST(Lstm, ClipsWhatActivationsTakeAndCouplesItsGates) {
  const Tensor x = floats({1, 1, 1}, {10}), w = floats({1, 4, 1}, {1, 1, 1, 1}),
               r = floats({1, 4, 1}, {0, 0, 0, 0}), c0 = floats({1, 1, 1}, {0.25});
  const Attributes attributes = {{"clip", 0.5}, {"input_forget", int64_t{1}}};
  const std::vector<Tensor> found =
      run_outputs("LSTM", {x, w, r, kNone, kNone, kNone, c0}, 3, attributes);
  const double gate = sigmoid(0.5), c = (1 - gate) * 0.25 + gate * std::tanh(0.5);
  EXPECT_NEAR(found[2].get(0), c, 1e-6);
  EXPECT_NEAR(found[0].get(0), gate * std::tanh(c), 1e-6);
}

TEST(Recurrent, StepsAreOneTask) {
  NetworkBuilder b("lstm");
  const ValueId x = b.input("x", {5, 2, 3}, DType::kFloat32);
  const ValueId w = b.constant("w", waves({1, 16, 3})), r = b.constant("r", waves({1, 16, 4}));
  const ValueId y = b.node("LSTM", {x, w, r});
  const Graph graph = run_graph_passes(b.finish({{y, "y"}}));
  std::map<std::string, int> count;
  for (const Node& node : graph.nodes) ++count[node.op];
  EXPECT_EQ(count["Gather"], 5);
  EXPECT_EQ(count["Gemm"], 6);  // one of all inputs
}

// Each operator, with each of what it can be told, as one loop and as nodes for each step.
TEST(Recurrent, LoopsGiveWhatTheirStepsDo) {
  using Names = std::vector<std::string>;
  constexpr int64_t kSteps = 6, kBatch = 5, kInputs = 3;
  struct Row {
    const char* op;
    int64_t hidden;
    Attributes attributes;
    std::set<size_t> inputs;  // optional inputs that are there: 3 B, 4 lengths, 5 h, 6 c, 7 P
    DType dtype = DType::kFloat32;
  };
  const auto text = [](const char* value) { return Attribute(std::string(value)); };
  const Attribute both = text("bidirectional"), back = text("reverse"), one = int64_t{1};
  const Row rows[] = {
      {"RNN", 5, {}, {}},
      {"RNN", 16, {{"direction", both}}, {3, 4, 5}},
      {"RNN", 33, {{"activations", Names{"Relu"}}, {"direction", back}}, {3, 4}},
      {"RNN", 20, {{"activations", Names{"Softsign"}}, {"layout", one}}, {3, 5}},
      {"RNN", 20, {{"activations", Names{"Elu"}}, {"clip", 0.3}}, {3}},
      {"RNN", 20, {{"activations", Names{"ScaledTanh"}}, {"activation_alpha", V{0.7}}}, {3}},
      {"RNN", 20, {{"activations", Names{"ThresholdedRelu"}}, {"activation_alpha", V{0.1}}}, {3}},
      {"RNN", 20, {{"activations", Names{"HardSigmoid"}}}, {3}},
      {"RNN", 20, {{"activations", Names{"LeakyRelu", "Affine"}}, {"direction", both}}, {3}},
      {"GRU", 7, {}, {}},
      {"GRU", 32, {{"direction", both}}, {3, 4, 5}},
      {"GRU", 19, {{"linear_before_reset", one}, {"direction", both}}, {3, 4, 5}},
      {"GRU", 19, {{"linear_before_reset", one}, {"layout", one}}, {}},
      {"GRU", 16, {{"activations", Names{"HardSigmoid", "Softsign"}}}, {3}, DType::kFloat16},
      {"LSTM", 4, {}, {}},
      {"LSTM", 16, {{"direction", both}}, {3, 4, 5, 6, 7}},
      {"LSTM", 37, {{"direction", back}, {"layout", one}}, {3, 4, 5, 6}},
      {"LSTM", 24, {{"input_forget", one}, {"clip", 0.5}}, {3, 6}},
      {"LSTM", 24, {{"activations", Names{"Sigmoid", "Elu", "Relu"}}}, {3, 6}, DType::kBFloat16},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} of {} units", row.op, row.hidden));
    const std::string op = row.op;
    const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1, h = row.hidden;
    const auto direction = row.attributes.find("direction");
    const bool has_both = direction != row.attributes.end() &&
                          std::get<std::string>(direction->second) == "bidirectional";
    const int64_t d = has_both ? 2 : 1;
    const bool batch_first = row.attributes.contains("layout");
    int seed = 0;
    const auto drawn = [&](const Ints& shape) {
      const Tensor wave = waves(shape, ++seed);
      Tensor made(row.dtype, shape);
      for (int64_t i = 0; i < made.num_elements(); ++i) made.set(i, wave.get(i) / 2);
      return made;
    };
    const Ints state = batch_first ? Ints{kBatch, d, h} : Ints{d, kBatch, h};
    std::vector<Operand> operands = {
        drawn(batch_first ? Ints{kBatch, kSteps, kInputs} : Ints{kSteps, kBatch, kInputs}),
        Operand::weight(drawn({d, gates * h, kInputs})),
        Operand::weight(drawn({d, gates * h, h}))};
    const Ints shapes[] = {{d, 2 * gates * h}, {}, state, state, {d, 3 * h}};
    for (size_t i = 3; i < (gates == 4 ? 8 : 6); ++i) {
      if (!row.inputs.contains(i)) operands.push_back(kNone);
      if (row.inputs.contains(i) && i == 4)
        operands.emplace_back(integers({kBatch}, {6, 1, 0, 4, 6}, DType::kInt32));
      if (row.inputs.contains(i) && i != 4) operands.emplace_back(drawn(shapes[i - 3]));
    }
    const size_t outputs = gates == 4 ? 3 : 2;
    const NodeCase loop = make_node_case(op, operands, outputs, row.attributes, true);
    EXPECT_EQ(std::ranges::count(loop.graph.nodes, "pruner::Recurrence", &Node::op), 1);
    const NodeCase nodes = make_node_case(op, operands, outputs, row.attributes);
    const Result<std::vector<Tensor>> found = interpret_graph(loop.graph, loop.inputs);
    const Result<std::vector<Tensor>> expected = interpret_graph(nodes.graph, nodes.inputs);
    ASSERT_TRUE(found.ok() && expected.ok());
    const double tolerance = row.dtype == DType::kFloat32 ? 2e-6 : 0.02;
    for (size_t i = 0; i < outputs; ++i) expect_near((*found)[i], (*expected)[i], tolerance);
  }
}

// A step of an LSTM, whose gates are c, i, f and o of nothing but `x`, by the vectors of each
// instruction set that is here, beside double.
TEST(Recurrent, ActivationsAreRightInVectorsOfEachLength) {
  constexpr int64_t kItems = 9, kHidden = 21, kPadded = 32;
  PrunerRecurrence p = {};
  p.steps = 1, p.batch = kItems, p.directions = 1, p.hidden = kHidden, p.gates = 4;
  for (PrunerActivation& f : p.activations[0]) f.kind = kRecurrenceTanh;
  p.activations[0][0].kind = kRecurrenceSigmoid;
  const std::vector<float> weights(2 * kHidden * 4 * PRUNER_UNITS);
  std::vector<float> h(kItems * kPadded), x(kItems * 4 * kHidden);
  const double picked[] = {0, -0.0, 1e-30, -1e-6, 0.01, -0.3, 0.9, 3, -8, 20, -60, 90, -200, 1e30};
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 3 == 0 ? picked[i / 3 % std::size(picked)]
                                         : 12 * std::sin(static_cast<double>(i)));
  std::vector<int64_t> items(kItems);
  std::iota(items.begin(), items.end(), 0);
  for (const int lanes : {4, 8, 16}) {
    const PrunerRecurrenceUnits units = pruner_recurrence_units(lanes);
    if (units == nullptr) continue;
    SCOPED_TRACE(lanes);
    std::vector<float> next(h.size()), c(h.size());
    const PrunerRecurrenceStep s = {&p,
                                    0,
                                    0,
                                    kPadded,
                                    x.data(),
                                    weights.data(),
                                    nullptr,
                                    nullptr,
                                    h.data(),
                                    next.data(),
                                    c.data(),
                                    nullptr,
                                    0};
    units(&s, items.data(), kItems, 0, 2);
    for (int64_t item = 0; item < kItems; ++item) {
      for (int64_t unit = 0; unit < kHidden; ++unit) {
        const auto gate = [&](int64_t g) { return double{x[(item * 4 + g) * kHidden + unit]}; };
        const double cell = sigmoid(gate(0)) * std::tanh(gate(3));
        const double made = sigmoid(gate(1)) * std::tanh(cell);
        const int64_t at = item * kPadded + unit;
        ASSERT_NEAR(c[at], cell, 6e-7 * std::abs(cell) + 1e-37) << gate(0) << " " << gate(3);
        ASSERT_NEAR(next[at], made, 9e-7 * std::abs(made) + 1e-37) << gate(1) << " " << cell;
      }
    }
  }
}

TEST(Recurrent, RefusesWhatItCannotUnroll) {
  const Tensor w = floats({1, 1, 1}, {1});
  EXPECT_EQ(refusal("RNN", {Tensor(DType::kFloat32, {5000, 1, 1}), w, w}),
            "node \"it\": the sequence has 5000 steps in 1 directions; at most 4096 are unrolled");
  EXPECT_EQ(refusal("RNN",
                    {Tensor(DType::kFloat32, {2, 1, 1}), w, w},
                    {{"activations", std::vector<std::string>{"Square"}}}),
            "node \"it\": the activation \"Square\" is not known");
  EXPECT_EQ(refusal("RNN", {Tensor(DType::kFloat32, {2, 1, 1}), w, w, kNone, Ints{3}}),
            "node \"it\": sequence_lens holds 3, expected 0 to 2");
  EXPECT_EQ(refusal("LSTM", {Tensor(DType::kFloat32, {2, 1, 1}), w, w}),
            "node \"it\": W has the shape 1x1x1, expected 1x4x1");
}

// X is 255 steps of 1 / 255, and so exact; so is the state, which begins with 1.
TEST(DynamicQuantizeLstm, MultipliesBytes) {
  const Operand w = Operand::weight(integers({1, 1, 4}, {10, 20, 30, 40}, DType::kInt8));
  const Operand r = Operand::weight(integers({1, 1, 4}, {1, 2, 3, 4}, DType::kInt8));
  const Operand zero = Operand::weight(integers({1}, {0}, DType::kInt8));
  const Operand w_scale = Operand::weight(floats({1}, {0.01}));
  const Operand r_scale = Operand::weight(floats({1, 4}, {0.1, 0.2, 0.3, 0.4}));
  const Operand r_zero = Operand::weight(integers({1, 4}, {0, 0, 0, 0}, DType::kInt8));
  const Tensor one = floats({1, 1, 1}, {1});
  const std::vector<Tensor> found =
      run_outputs("com.microsoft::DynamicQuantizeLSTM",
                  {one, w, r, kNone, kNone, one, one, kNone, w_scale, zero, r_scale, r_zero},
                  3,
                  {{"hidden_size", int64_t{1}}});
  const double in = sigmoid(0.1 + 0.1), out = sigmoid(0.2 + 0.4), forget = sigmoid(0.3 + 0.9),
               cell = forget + in * std::tanh(0.4 + 1.6);
  expect_near(found[2], floats({1, 1, 1}, {cell}));
  expect_near(found[1], floats({1, 1, 1}, {out * std::tanh(cell)}));
  EXPECT_EQ(refusal("com.microsoft::DynamicQuantizeLSTM", {one, w, r}),
            "node \"it\": input 8 (W_scale) is missing");
}

}  // namespace
}  // namespace pruner
