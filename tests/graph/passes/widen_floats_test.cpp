#include <functional>

#include "graph/small_graph.h"

namespace pruner {
namespace {

constexpr DType kTypes[] = {DType::kFloat16, DType::kBFloat16};

Tensor rounded(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.set(i, tensor.get(i));
  return result;
}

// A constant whose elements are numbers of bfloat16, so that every type has them.
ValueId constant(NetworkBuilder& b, DType dtype, std::vector<int64_t> shape, double phase) {
  const Tensor tensor = rounded(waves(std::move(shape), phase), DType::kBFloat16);
  return b.constant("w" + std::to_string(phase), rounded(tensor, dtype));
}

using Build = std::function<ValueId(NetworkBuilder&, ValueId, DType)>;

Graph network(DType dtype, std::vector<int64_t> shape, const Build& build) {
  NetworkBuilder b("widened");
  const ValueId x = b.input("x", std::move(shape), dtype);
  return b.finish({{build(b, x, dtype), "y"}});
}

Tensor run(const Graph& graph, const Tensor& input) {
  const Result<std::vector<Tensor>> outputs = interpret_graph(graph, std::vector{input});
  EXPECT_TRUE(outputs.ok());
  return (*outputs)[0];
}

// The operators that are left of a network of `dtype`. It gives the bits that the network of
// float32 gives, rounded, and nearly what it gave.
std::string widened(DType dtype, std::vector<int64_t> shape, const Build& build) {
  const Graph before = network(dtype, shape, build);
  const Graph after = widen_floats(before, {});
  EXPECT_EQ(after[after.inputs[0]].dtype, dtype);
  EXPECT_EQ(after[after.outputs[0]].dtype, before[before.outputs[0]].dtype);
  const Tensor input = rounded(rounded(waves(shape), DType::kBFloat16), dtype);
  const Tensor exact = run(network(DType::kFloat32, shape, build), rounded(input, DType::kFloat32));
  const Tensor found = run(after, input);
  EXPECT_EQ(values_of(found), values_of(rounded(exact, found.dtype())));
  expect_near(found, run(before, input), dtype == DType::kFloat16 ? 0.01 : 0.08);
  return operators(after);
}

TEST(WidenFloats, ContractionsReadFloat32) {
  for (const DType dtype : kTypes) {
    const auto build = [](NetworkBuilder& b, ValueId x, DType t) {
      const ValueId y = b.node("Relu", {b.node("Conv", {x, constant(b, t, {4, 3, 3, 3}, 1)})});
      return b.node("Conv", {y, constant(b, t, {2, 4, 1, 1}, 2), constant(b, t, {2}, 3)});
    };
    EXPECT_EQ(widened(dtype, {1, 3, 6, 6}, build), "Cast Conv Relu Conv Cast");
  }
}

TEST(WidenFloats, IntermediateValuesAreNotRounded) {
  for (const DType dtype : kTypes) {
    const auto build = [](NetworkBuilder& b, ValueId x, DType t) {
      const ValueId y = b.node("Add", {x, constant(b, t, {4, 8}, 1)});
      const ValueId z = b.node("Mul", {b.node("Exp", {y}), y});
      const ValueId s = b.node("Softmax", {b.node("Div", {z, constant(b, t, {8}, 0.5)})});
      return b.node("ReduceSum", {b.node("Sub", {s, x}), b.integers("axes", {1})});
    };
    EXPECT_EQ(widened(dtype, {4, 8}, build), "Cast Add Exp Mul Div Softmax Sub ReduceSum Cast");
  }
}

TEST(WidenFloats, AnInputIsMovedAsItLies) {
  const DType dtype = DType::kFloat16;
  const auto computed = [](NetworkBuilder& b, ValueId x, DType) {
    const ValueId y = b.node("Reshape", {b.node("Exp", {x}), b.integers("s", {3, 8})});
    return b.node("Neg", {b.node("Transpose", {y}, {{"perm", Ints{1, 0}}})});
  };
  EXPECT_EQ(widened(dtype, {4, 6}, computed), "Cast Exp Reshape Transpose Neg Cast");
  const auto input = [](NetworkBuilder& b, ValueId x, DType) {
    return b.node("Neg", {b.node("Concat", {x, x}, {{"axis", int64_t{0}}})});
  };
  EXPECT_EQ(widened(dtype, {4, 6}, input), "Concat Cast Neg Cast");
}

// A Cast of the file itself still rounds.
TEST(WidenFloats, CastsOfTheNetworkRound) {
  const auto build = [](NetworkBuilder& b, ValueId x, DType t) {
    const ValueId y =
        b.node("Cast", {b.node("Sqrt", {b.node("Abs", {x})})}, {{"to", std::string("float32")}});
    const ValueId z = b.node("Cast", {b.node("Exp", {y})}, {{"to", std::string("bfloat16")}});
    return b.node("Cast", {b.node("Floor", {z})}, {{"to", std::string(dtype_name(t))}});
  };
  EXPECT_EQ(widened(DType::kFloat16, {4, 6}, build), "Cast Abs Sqrt Exp Cast Cast Floor Cast");
}

TEST(WidenFloats, BitsAndRoutinesTakeTheTypeItself) {
  NetworkBuilder b("typed");
  const ValueId x = b.input("x", {1, 2}, DType::kFloat16);
  const ValueId at = b.constant("at", integers({1, 2}, {1, 0}));
  const ValueId bits = b.node("BitCast", {b.node("Exp", {x})}, {{"to", std::string("uint16")}});
  const ValueId scattered =
      b.node("ScatterElements", {b.node("Neg", {x}), at, x}, {{"axis", int64_t{1}}});
  const Graph graph = widen_floats(b.finish({{bits, "bits"}, {scattered, "scattered"}}), {});
  EXPECT_EQ(operators(graph), "Cast Exp Cast BitCast Neg Cast ScatterElements");
}

TEST(WidenFloats, LeavesOtherTypesAlone) {
  EXPECT_EQ(widened(DType::kFloat32,
                    {4, 6},
                    [](NetworkBuilder& b, ValueId x, DType) { return b.node("Exp", {x}); }),
            "Exp");
}

}  // namespace
}  // namespace pruner
