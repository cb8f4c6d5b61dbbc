#include "graph/small_graph.h"

namespace pruner {
namespace {

ValueId scalar(NetworkBuilder& b, double value) {
  return b.constant("s" + std::to_string(value), floats({}, {value}));
}

ValueId zero_of(NetworkBuilder& b, DType dtype, int64_t zero) {
  return b.constant("z", integers({}, {zero}, dtype));
}

ValueId quantize(NetworkBuilder& b, ValueId x, double scale, DType dtype, int64_t zero) {
  return b.node("Quantize",
                {x, scalar(b, scale), zero_of(b, dtype, zero)},
                {{"to", std::string(dtype_name(dtype))}});
}

// Every number of a byte.
Tensor numbers(std::vector<int64_t> shape, DType dtype) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_int(i, least_int(dtype) + i * 37 % 256);
  return tensor;
}

// The operators that are left; the tables have what the nodes compute.
std::string tabulated(const Graph& graph) {
  const Tensor input = numbers({4, 64}, graph[graph.inputs[0]].dtype);
  const Graph after = tabulate(graph);
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, std::vector{input});
  const Result<std::vector<Tensor>> found = interpret_graph(after, std::vector{input});
  EXPECT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(values_of((*found)[0]), values_of((*expected)[0]));
  return operators(after);
}

TEST(Tabulate, SlowFunctionsOfBytesAreTables) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    NetworkBuilder b("sigmoid");
    const ValueId x = b.input("x", {4, 64}, dtype);
    const ValueId real = b.node("Dequantize", {x, scalar(b, 0.05), zero_of(b, dtype, 7)});
    const ValueId y = quantize(b, b.node("Sigmoid", {real}), 1.0 / 256, dtype, -100 + 128);
    EXPECT_EQ(tabulated(b.finish({{y, "y"}})), "Lookup");
  }
}

// GELU as files have it: x is read twice, and each step goes through bytes.
TEST(Tabulate, ChainsThroughBytesAreOneTable) {
  NetworkBuilder b("gelu");
  const auto real = [&](ValueId q, double scale, int64_t zero) {
    return b.node("Dequantize", {q, scalar(b, scale), zero_of(b, DType::kUInt8, zero)});
  };
  const ValueId x = real(b.input("x", {4, 64}, DType::kUInt8), 0.05, 128);
  const ValueId erf = quantize(b, b.node("Erf", {x}), 1.0 / 128, DType::kUInt8, 128);
  const ValueId sum = b.node("Add", {real(erf, 1.0 / 128, 128), scalar(b, 1)});
  const ValueId half = real(quantize(b, sum, 1.0 / 100, DType::kUInt8, 0), 1.0 / 100, 0);
  const ValueId y = quantize(b, b.node("Mul", {x, half}), 0.06, DType::kUInt8, 3);
  EXPECT_EQ(tabulated(b.finish({{y, "y"}})), "Lookup");
}

TEST(Tabulate, AnEndOfAKernelAndFunctionsOfTwoStay) {
  NetworkBuilder b("stays");
  const ValueId x = b.input("x", {4, 64}, DType::kUInt8);
  const ValueId real = b.node("Dequantize", {x, scalar(b, 0.05)});
  const ValueId by_row = b.constant("row", floats({64}, std::vector<double>(64, 2)));
  const ValueId scaled = b.node("Sigmoid", {b.node("Mul", {real, by_row})});
  const ValueId y = quantize(b, scaled, 0.01, DType::kUInt8, 3);
  EXPECT_EQ(tabulated(b.finish({{y, "y"}})), "Dequantize Mul Sigmoid Quantize");
  NetworkBuilder c("relu");
  const ValueId q = c.input("x", {4, 64}, DType::kUInt8);
  const ValueId z = c.node("Relu", {c.node("Dequantize", {q, scalar(c, 0.05)})});
  EXPECT_EQ(tabulated(c.finish({{quantize(c, z, 0.06, DType::kUInt8, 3), "y"}})),
            "Dequantize Relu Quantize");
}

}  // namespace
}  // namespace pruner
