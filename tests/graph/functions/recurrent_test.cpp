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

TEST(Recurrent, RefusesWhatItCannotUnroll) {
  const Tensor w = floats({1, 1, 1}, {1});
  EXPECT_EQ(refusal("RNN", {Tensor(DType::kFloat32, {5000, 1, 1}), w, w}),
            "node \"it\": the sequence has 5000 steps in 1 directions; at most 4096 are unrolled");
  EXPECT_EQ(refusal("RNN",
                    {Tensor(DType::kFloat32, {2, 1, 1}), w, w},
                    {{"activations", std::vector<std::string>{"Square"}}}),
            "node \"it\": the activation \"Square\" is not known");
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
