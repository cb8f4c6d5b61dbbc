#include "tensor/operators.h"

#include "golden.h"
#include "naive.h"

namespace pruner {
namespace {

std::vector<int64_t> input_shape(const ComputeDag& dag, size_t i) {
  return dag[dag.inputs()[i]].shape();
}
std::vector<int64_t> output_shape(const ComputeDag& dag) { return dag[dag.outputs()[0]].shape(); }
using Shape = std::vector<int64_t>;

TEST(ParseOperator, ADepthwiseConvolutionFollowsAConvolution) {
  const ComputeDag dag =
      operator_dag("conv2d 1 24 9 7 8 1 1 +bias +relu6 +depthwise_conv2d=3,2,1 +bias");
  EXPECT_EQ(input_shape(dag, 3), (Shape{3, 3, 24, 1}));
  EXPECT_TRUE(dag[dag.inputs()[3]].constant);
  EXPECT_EQ(output_shape(dag), (Shape{1, 5, 4, 24}));
  EXPECT_EQ(output_shape(operator_dag("conv2d 1 8 5 5 4 1 1 +depthwise_conv2d=3")),
            (Shape{1, 3, 3, 8}));
}

TEST(ParseOperator, TurnsHeads) {
  const ComputeDag dag = operator_dag("matmul 5 12 8 +rotary_embedding=4");
  EXPECT_EQ(input_shape(dag, 2), (Shape{5, 2}));
  EXPECT_EQ(output_shape(dag), (Shape{5, 3, 4}));
  for (const char* width : {"5", "3", "0", "24", "4,2", "x"})
    EXPECT_FALSE(parse_operator("matmul 5 12 8 +rotary_embedding=" + std::string(width)).ok());
}

TEST(ParseOperator, MakesTheInputFitTheOutput) {
  const ComputeDag conv = operator_dag("conv2d 2 64 28 14 32 3 5 stride=2,1 padding=1,2,0,2");
  EXPECT_EQ(input_shape(conv, 0), (Shape{2, 56, 14, 32}));
  EXPECT_EQ(input_shape(conv, 1), (Shape{3, 5, 32, 64}));
  EXPECT_EQ(output_shape(conv), (Shape{2, 28, 14, 64}));
  const ComputeDag transpose = operator_dag("conv2d_transpose 1 8 9 8 4 4 4 padding=1");
  EXPECT_EQ(input_shape(transpose, 0), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(output_shape(transpose), (Shape{1, 9, 8, 8}));
  const ComputeDag phases = operator_dag("conv2d_transpose 1 8 9 8 4 4 3 padding=1 phases=1 +bias");
  EXPECT_EQ(input_shape(phases, 0), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(input_shape(phases, 1), (Shape{2, 2, 2, 2, 4, 8}));
  EXPECT_EQ(output_shape(phases), (Shape{1, 5, 2, 4, 2, 8}));
  const ComputeDag volume =
      operator_dag("conv3d 2 8 4 28 14 6 3 5 1 stride=1,2,1 padding=1,2,0,0,1,0");
  EXPECT_EQ(input_shape(volume, 0), (Shape{2, 5, 56, 14, 6}));
  EXPECT_EQ(input_shape(volume, 1), (Shape{3, 5, 1, 6, 8}));
  EXPECT_EQ(output_shape(volume), (Shape{2, 4, 28, 14, 8}));
  EXPECT_EQ(output_shape(operator_dag("max_pool2d 1 64 56 56 3 3 stride=2 padding=1")),
            (Shape{1, 56, 56, 64}));
}

TEST(ParseOperator, TakesNamesForPositions) {
  EXPECT_EQ(print(operator_dag("matmul K=8 4 6")), print(operator_dag("matmul 4 6 8")));
}

TEST(ParseOperator, MarksWeightsConstant) {
  const ComputeDag dag = operator_dag("dense 4 6 8 +bias +residual");
  EXPECT_FALSE(dag[dag.inputs()[0]].constant);
  EXPECT_TRUE(dag[dag.inputs()[1]].constant);
  EXPECT_TRUE(dag[dag.inputs()[2]].constant);   // bias
  EXPECT_FALSE(dag[dag.inputs()[3]].constant);  // residual
  const ComputeDag matmul = operator_dag("matmul 4 6 8");
  EXPECT_FALSE(matmul[matmul.inputs()[1]].constant);
}

TEST(ParseOperator, AddsEpiloguesInOrder) {
  const ComputeDag dag = operator_dag("conv2d 1 8 5 5 4 1 1 +bias +residual +relu");
  EXPECT_EQ(input_shape(dag, 2), (Shape{1, 1, 1, 8}));
  EXPECT_EQ(input_shape(dag, 3), (Shape{1, 5, 5, 8}));
  EXPECT_EQ(dag.stages.back().name, "T_relu");
  EXPECT_EQ(input_shape(operator_dag("conv3d 1 8 2 5 5 4 1 1 1 +bias"), 2), (Shape{1, 1, 1, 1, 8}));
}

TEST(ParseOperator, RoundsTheResultAtLast) {
  const ComputeDag dag = operator_dag("matmul 4 6 8 bits=16 +relu +f16");
  EXPECT_EQ(dag.stages.back().dtype, DType::kFloat16);
  EXPECT_EQ(operator_dag("softmax 4 8 +bf16").stages.back().dtype, DType::kBFloat16);
  EXPECT_ERROR(parse_operator("matmul 4 6 8 +f16 +relu"),
               "\"+relu\" comes after the result was rounded to float16");
}

TEST(ParseOperator, GatesByATensor) {
  const ComputeDag dag = operator_dag("matmul 1 2 1 +gate");
  EXPECT_EQ(input_shape(dag, 2), (Shape{1, 2}));
  const auto tensor = [](Shape shape, std::initializer_list<double> values) {
    Tensor t(DType::kFloat32, std::move(shape));
    int64_t i = 0;
    for (const double value : values) t.set(i++, value);
    return t;
  };
  const Tensor found = interpret(
      dag, std::vector{tensor({1, 1}, {2}), tensor({1, 2}, {3, 5}), tensor({1, 2}, {7, 11})})[0];
  EXPECT_EQ(found.get(0), 42);
  EXPECT_EQ(found.get(1), 110);
}

TEST(ParseOperator, KnowsOperatorsOfModelsByName) {
  EXPECT_EQ(print(operator_dag("llama_4_mlp")),
            print(operator_dag("dense 128 8192 5120 +silu +gate")));
  EXPECT_EQ(print(operator_dag("flux_convolution +bias")),
            print(operator_dag("conv2d 1 512 128 128 512 3 3 padding=1 +bias")));
  EXPECT_EQ(output_shape(operator_dag("flux_attention")), (Shape{1, 24, 4608, 128}));
  EXPECT_EQ(output_shape(operator_dag("llama_3_8b_attention")), (Shape{1, 32, 2048, 128}));
  EXPECT_EQ(output_shape(operator_dag("deepseek_r1_expert")), (Shape{16, 2048}));
}

TEST(ParseOperator, NamesWhatIsWrong) {
  EXPECT_ERROR(parse_operator(""), "empty operator, expected one of: matmul, dense");
  EXPECT_ERROR(parse_operator("gemm 1 2 3"),
               "unknown operator \"gemm\", expected one of: matmul, dense");
  EXPECT_ERROR(parse_operator("matmul 1 2"),
               "matmul: K is missing (matmul M N K [bits=32 exponent=5])");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 bits=4"), "bits is 4, expected 32, 19, 16 or 8");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 exponent=8"),
               "exponent is 8, expected 5 or, with bits=16, 8");
  EXPECT_ERROR(parse_operator("attention 1 2 8 16 32 bits=8"),
               "bits is 8; the weights of attention are no whole numbers");
  EXPECT_ERROR(parse_operator("coded_matmul 1 2 32 bits=2"), "bits is 2, expected 8 or 4");
  EXPECT_ERROR(parse_operator("coded_matmul 1 2 33"),
               "block 32 divides K 33 into no whole blocks of bytes");
  EXPECT_ERROR(parse_operator("coded_matmul 1 2 33 bits=4 block=33"),
               "block 33 divides K 33 into no whole blocks of bytes");
  EXPECT_ERROR(parse_operator("matmul 1 2 0"), "matmul: K is 0, expected 1 to 1000000000");
  EXPECT_ERROR(parse_operator("matmul 1 2 -3"), "K is -3");
  EXPECT_ERROR(parse_operator("matmul 1 2 3x"), "K is \"3x\", expected a whole number");
  EXPECT_ERROR(parse_operator("matmul 1 2 3.5"), "K is \"3.5\", expected a whole number");
  EXPECT_ERROR(parse_operator("matmul 1 2 99999999999999999999"), "expected a whole number");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 4"), "\"4\" is one too many");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 K=4"), "K is given twice");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 stride=1"), "unknown argument \"stride\"");
  EXPECT_ERROR(parse_operator("matmul 1 2 3,4"), "K has 2 values, expected 1");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 +swoosh"),
               "unknown epilogue \"+swoosh\", expected +bias");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 +depthwise_conv2d=3"),
               "a depthwise convolution follows an operator of [n, h, w, c]");
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 4 1 1 +depthwise_conv2d=3,1,3"),
               "a depthwise convolution \"3,1,3\" does not fit 5x5");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 +max_pool2d=2"),
               "a pooling follows an operator of [n, h, w, c]");
  for (const char* window : {"0", "9", "2,0", "2,2,2", "2,1,0,1"}) {
    EXPECT_ERROR(parse_operator(std::string("conv2d 1 8 5 5 4 1 1 +avg_pool2d=") + window),
                 "does not fit 5x5");
  }
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 4 1 1 +max_pool2d=two"), "expected a whole number");
  EXPECT_ERROR(parse_operator("matmul 1 2 3 +relu 4"), "\"4\" comes after an epilogue");
  EXPECT_ERROR(parse_operator("softmax"), "DIMS... is missing");
  EXPECT_ERROR(parse_operator("add 1000000 1000000"), "stage A: 1e+12 elements, at most 1e+11");
}

TEST(ParseOperator, RefusesWindowsThatDoNotFit) {
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 6 3 3 groups=4"), "groups 4 does not divide CI 6");
  EXPECT_ERROR(parse_operator("conv2d 1 6 5 5 8 3 3 groups=4"), "groups 4 does not divide CO 6");
  EXPECT_ERROR(parse_operator("conv2d 1 8 1 1 4 3 3 padding=2"),
               "HO 1 with this padding leaves an input of -1");
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 4 3 3 stride=0"), "stride is 0, expected 1");
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 4 3 3 stride=1,2,3"),
               "stride has 3 values, expected 1 or 2");
  EXPECT_ERROR(parse_operator("conv3d 1 8 2 5 5 4 1 3 3 stride=1,2"),
               "stride has 2 values, expected 1 or 3 (conv3d N CO DO HO WO CI KD KH KW");
  EXPECT_ERROR(parse_operator("conv3d 1 8 2 5 5 4 1 3 3 padding=1,2"),
               "padding has 2 values, expected 1 or 3 or 6");
  EXPECT_ERROR(parse_operator("conv3d 1 8 1 5 5 4 3 3 3 padding=2"),
               "DO 1 with this padding leaves an input of -1");
  EXPECT_ERROR(parse_operator("conv3d 1 8 2 5 5 4 1 3 3 +max_pool2d=2"),
               "a pooling follows an operator of [n, h, w, c]");
  EXPECT_ERROR(parse_operator("conv2d 1 8 5 5 4 3 3 padding=1,2,3"), "expected 1 or 2 or 4");
  EXPECT_ERROR(parse_operator("conv2d_transpose 1 8 2 2 4 3 3"),
               "HO 2 is less than one kernel makes");
  EXPECT_ERROR(parse_operator("conv2d_transpose 1 8 9 9 4 3 3 dilation=2 phases=1"),
               "phases=1 has no dilation");
  EXPECT_ERROR(parse_operator("avg_pool2d 1 8 5 5 2 2 padding=2"), "padding 2 is not below KH 2");
}

TEST(OperatorHelp, HasARowForEachOperator) {
  EXPECT_GOLDEN("tensor/operator_help.txt", operator_help());
}

}  // namespace
}  // namespace pruner
