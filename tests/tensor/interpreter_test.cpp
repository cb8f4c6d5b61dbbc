#include "tensor/interpreter.h"

#include "naive.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

// The whole output, chosen elements and the naive meaning agree.
void expect_meaning(const ComputeDag& dag, const std::string& what, uint64_t seed = 5) {
  Rng rng(seed);
  const std::vector<Tensor> inputs = random_inputs(dag, rng);
  const std::vector<Tensor> whole = interpret(dag, inputs);
  for (size_t o = 0; o < whole.size(); ++o) {
    const StageId id = dag.outputs()[o];
    const std::vector<int64_t> elements = sample_elements(dag[id].shape(), 200, rng);
    const std::vector<double> chosen = interpret_elements(dag, inputs, id, elements);
    for (size_t i = 0; i < elements.size(); ++i) {
      const double expected = Naive(dag, inputs).element(id, elements[i]);
      // Sums in another order may round to the neighbouring float.
      const double tolerance = 2e-7 * std::abs(expected) + 1e-12;
      ASSERT_NEAR(chosen[i], expected, tolerance) << what << " element " << elements[i];
      ASSERT_NEAR(whole[o].get(elements[i]), expected, tolerance) << what << " " << elements[i];
    }
  }
}

TEST(Interpreter, GivesEveryOperatorItsMeaning) {
  for (const char* op : {"matmul 7 13 11",
                         "matmul 3 300 5 +bias +relu",
                         "matmul 3 5 700",
                         "dense 5 19 24 +gelu",
                         "batch_matmul 3 9 20 17",
                         "conv2d 1 16 7 7 8 3 3 padding=1 +bias +residual +relu",
                         "conv2d 2 5 9 5 3 3 3 stride=2 padding=1",
                         "conv2d 1 8 5 5 8 3 3 padding=1 groups=2 +silu",
                         "conv2d 1 6 5 5 4 3 3 dilation=2 padding=2",
                         "conv2d_transpose 1 4 6 6 4 4 4 padding=1",
                         "depthwise_conv2d 1 24 9 9 3 3 padding=1 multiplier=2",
                         "max_pool2d 1 19 7 7 3 3 stride=2 padding=1",
                         "avg_pool2d 1 5 4 4 3 3 padding=1",
                         "sum 5 600",
                         "softmax 4 19",
                         "layernorm 5 48",
                         "add 2 3 4 +mish",
                         "relu 1000",
                         "relu 1"}) {
    expect_meaning(operator_dag(op), op);
  }
}

TEST(Interpreter, ReadsGatheredRows) {
  DagBuilder b;
  const StageId table = b.placeholder("table", {50, 7}, DType::kFloat16);
  const StageId ids = b.placeholder("ids", {3, 4}, DType::kInt32);
  b.stage(ids).index_bound = 50;
  const StageId rows = b.compute("rows", {3, 4, 7}, [&](auto i) {
    return b.at(table, {cast(DType::kInt64, b.at(ids, {i[0], i[1]})), i[2]});
  });
  expect_meaning(b.finish({rows}), "gather");
}

TEST(Interpreter, ComputesIntegersAndTruthValues) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {40}, DType::kInt32),
                q = b.placeholder("q", {40}, DType::kInt8);
  const StageId f = b.placeholder("f", {40});
  const StageId y = b.compute("y", {40}, [&](auto i) {
    return floor_div(b.at(x, {i[0]}) * 7 - 50, 3) + floor_mod(b.at(x, {i[0]}) - 9, 4);
  });
  const StageId wrapped = b.compute("wrapped", {40}, [&](auto i) {
    return cast(DType::kInt8, b.at(q, {i[0]})) * 100 + b.at(q, {i[0]});
  });
  const StageId flags = b.compute("flags", {40}, [&](auto i) {
    const Expr low = b.at(f, {i[0]}) < float_imm(-0.5);
    return binary(BinaryOp::kOr, low, call(Intrinsic::kNot, {b.at(f, {i[0]}) < float_imm(0.5)}));
  });
  const StageId count = b.reduce(
      "count",
      {},
      {40},
      Combiner::kSum,
      [&](auto, auto r) { return cast(DType::kInt32, b.at(flags, {r[0]})); },
      "");
  const StageId whole = b.compute("whole", {40}, [&](auto i) {
    return cast(DType::kInt32, b.at(f, {i[0]}) * 10) + cast(DType::kInt32, i[0] * 3);
  });
  const ComputeDag dag = b.finish({y, wrapped, flags, count, whole});
  expect_meaning(dag, "integers");
  // int8 wraps as the generated code does.
  Rng rng(1);
  std::vector<Tensor> inputs = random_inputs(dag, rng);
  inputs[1].set_int(3, 5);
  const int64_t at[] = {3};
  EXPECT_EQ(interpret_elements(dag, inputs, wrapped, at)[0], static_cast<int8_t>(505));
}

TEST(Interpreter, KeepsWholeInt64) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2}, DType::kInt64);
  const ComputeDag dag =
      b.finish({b.compute("y", {2}, [&](auto i) { return b.at(x, {i[0]}) + 1; })});
  Tensor big(DType::kInt64, {2});
  big.set_int(1, int64_t{1} << 60);
  EXPECT_EQ(interpret(dag, std::vector{big})[0].get_int(1), (int64_t{1} << 60) + 1);
}

TEST(Interpreter, RoundsWhereAStageIsStored) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {1});
  const StageId third =
      b.compute("third", {1}, [&](auto i) { return b.at(x, {i[0]}) / float_imm(3); });
  const StageId half =
      b.compute("half", {1}, [&](auto i) { return cast(DType::kFloat16, b.at(third, {i[0]})); });
  const StageId back = b.compute("back", {1}, [&](auto i) { return b.at(third, {i[0]}) * 3; });
  const ComputeDag dag = b.finish({third, half, back});
  const std::vector<Tensor> out = interpret(dag, std::vector{tensor_of({1}, {1})});
  EXPECT_EQ(out[0].get(0), static_cast<float>(1. / 3));
  EXPECT_EQ(out[1].get(0), 0.333251953125);
  EXPECT_EQ(out[2].get(0), static_cast<float>(3. * static_cast<float>(1. / 3)));
}

TEST(Interpreter, LoadsOnlyTheBranchThatIsTaken) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4});
  const auto shifted = [&](int64_t by) {
    return b.compute("y", {4}, [&](auto i) {
      return select(i[0] >= by && i[0] < 4 + by, b.at(x, {i[0] - by}), float_imm(-1));
    });
  };
  const StageId right = shifted(2), left = shifted(-3);
  const StageId sum = b.reduce(  // the same guard inside a reduction and behind an inlined stage
      "sum",
      {4},
      {3},
      Combiner::kSum,
      [&](auto i, auto r) {
        const Expr at = i[0] + r[0] - 1;
        return select(at >= 0 && at < 4, b.at(right, {at}) + b.at(x, {at}), float_imm(0));
      },
      "");
  const ComputeDag dag = b.finish({right, left, sum});
  const std::vector<Tensor> out = interpret(dag, std::vector{tensor_of({4}, {1, 2, 3, 4})});
  EXPECT_EQ(values_of(out[0]), (std::vector<double>{-1, -1, 1, 2}));
  EXPECT_EQ(values_of(out[1]), (std::vector<double>{4, -1, -1, -1}));
  EXPECT_EQ(values_of(out[2]), (std::vector<double>{1, 5, 11, 10}));
}

TEST(Interpreter, ComputesAReductionOnceAnElement) {
  // A tower of reductions that each read the one below twice: 2^40 reads if they were not kept.
  DagBuilder b;
  StageId x = b.placeholder("x", {4});
  for (int level = 0; level < 40; ++level) {
    x = b.reduce(
        "r",
        {4},
        {1},
        Combiner::kSum,
        [&](auto i, auto) { return (b.at(x, {i[0]}) + b.at(x, {3 - i[0]})) * float_imm(0.5); },
        "");
  }
  const ComputeDag dag = b.finish({x});
  EXPECT_EQ(values_of(interpret(dag, std::vector{tensor_of({4}, {1, 2, 3, 4})})[0])[0], 2.5);
}

TEST(Interpreter, InlinesATowerOfElementwiseStagesOnce) {
  DagBuilder b;
  StageId x = b.placeholder("x", {4});
  for (int level = 0; level < 40; ++level) {
    x = b.compute(
        "y", {4}, [&](auto i) { return (b.at(x, {i[0]}) + b.at(x, {i[0]})) * float_imm(0.5); });
  }
  const ComputeDag dag = b.finish({x});
  EXPECT_EQ(values_of(interpret(dag, std::vector{tensor_of({4}, {1, 2, 3, 4})})[0])[2], 3);
}

TEST(Interpreter, TakesElementsInAnyOrder) {
  const ComputeDag dag = operator_dag("matmul 4 6 8 +relu");
  Rng rng(3);
  const std::vector<Tensor> inputs = random_inputs(dag, rng);
  const Tensor whole = interpret(dag, inputs)[0];
  const std::vector<int64_t> elements = {23, 0, 1, 2, 2, 7, 5, 23};
  const std::vector<double> values = interpret_elements(dag, inputs, dag.outputs()[0], elements);
  for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(values[i], whole.get(elements[i]));
}

TEST(InterpreterDeathTest, NamesTheReadThatIsOutside) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4});
  const StageId y = b.compute("y", {4}, [&](auto i) { return b.at(x, {i[0] + 1}); });
  const StageId z = b.compute("z", {3}, [&](auto i) { return b.at(y, {i[0] + 2}); });
  const ComputeDag dag = b.finish({y, z});
  const std::vector<Tensor> in = {tensor_of({4}, {1, 2, 3, 4})};
  EXPECT_DEATH(interpret(dag, in), "stage y reads x at 4 of dim 0, whose extent is 4");
  const int64_t last[] = {2};  // z reads y outside, before y would read x outside
  EXPECT_DEATH(interpret_elements(dag, in, z, last),
               "stage z reads y at 4 of dim 0, whose extent is 4");
  const int64_t first[] = {0};
  EXPECT_EQ(interpret_elements(dag, in, y, first)[0], 2);
}

TEST(InterpreterDeathTest, ChecksItsInputs) {
  const ComputeDag dag = operator_dag("add 2 2");
  EXPECT_DEATH(interpret(dag, {}), "0 inputs for 2 placeholders");
  const std::vector<Tensor> wrong = {Tensor(DType::kFloat32, {2, 2}),
                                     Tensor(DType::kFloat32, {2, 3})};
  EXPECT_DEATH(interpret(dag, wrong), "input 1 does not fit B");
}

TEST(Interpreter, EvaluatesWinogradAsTheConvolutionItIs) {
  // F(2, 3) over one row: constant tables, strided tiles, a reduction read at computed positions.
  const Result<ComputeDag> dag = dag_from_json(*parse_json(R"json([
    {"op": "d", "kind": "placeholder", "shape": [8], "dtype": "float32"},
    {"op": "g", "kind": "placeholder", "shape": [3], "dtype": "float32"},
    {"op": "B", "kind": "compute", "axis": [["i", 4], ["j", 4]], "reduce_axis": [], "attrs": {},
     "body": ["select(((i == 0) && (j == 0)), 1.0, select(((i == 2) && (j == 0)), -1.0, select(((i == 1) && ((j == 1) || (j == 2))), select((j == 1), 1.0, -1.0), select(((i == 2) && ((j == 1) || (j == 2))), 1.0, select(((i == 1) && (j == 3)), 1.0, select(((i == 3) && (j == 3)), -1.0, 0.0))))))"]},
    {"op": "v", "kind": "compute", "axis": [["eps", 4], ["p", 3]], "reduce_axis": [["a", 4]], "attrs": {},
     "body": ["reduce[(x + y)]((d[((p * 2) + a)] * B[a, eps]); axis=[a]; value_index=0)"]},
    {"op": "u", "kind": "compute", "axis": [["eps", 4]], "reduce_axis": [], "attrs": {},
     "body": ["select((eps == 0), g[0], select((eps == 1), (((g[0] + g[1]) + g[2]) * 0.5), select((eps == 2), (((g[0] - g[1]) + g[2]) * 0.5), g[2])))"]},
    {"op": "m", "kind": "compute", "axis": [["eps", 4], ["p", 3]], "reduce_axis": [], "attrs": {},
     "body": ["(v[eps, p] * u[eps])"]},
    {"op": "y", "kind": "compute", "axis": [["x", 6]], "reduce_axis": [], "attrs": {}, "output": true,
     "body": ["select(((x %% 2) == 0), ((m[0, (x // 2)] + m[1, (x // 2)]) + m[2, (x // 2)]), ((m[1, (x // 2)] - m[2, (x // 2)]) - m[3, (x // 2)]))"]}])json"));
  ASSERT_TRUE(dag.ok()) << dag.error().message();
  expect_meaning(*dag, "winograd");
  const std::vector<double> d = {1, 2, 4, 8, 16, 32, 64, 128}, g = {3, 5, 7};
  const std::vector<Tensor> in = {tensor_of({8}, d), tensor_of({3}, g)};
  const Tensor y = interpret(*dag, in)[0];
  for (size_t x = 0; x < 6; ++x) {
    EXPECT_EQ(y.get(static_cast<int64_t>(x)), d[x] * g[0] + d[x + 1] * g[1] + d[x + 2] * g[2]);
  }
}

}  // namespace
}  // namespace pruner
