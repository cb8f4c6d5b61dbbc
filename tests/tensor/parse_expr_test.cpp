#include "tensor/parse_expr.h"

#include "golden.h"

namespace pruner {
namespace {

// Axes i, j and k; float A[8, 8], int32 ids[8], bool flags[8] and a scalar c.
struct Names {
  Names() : scope{&dag, {}, {}} {
    const auto add = [&](const char* name, std::vector<Iterator> axes, DType dtype) {
      scope.tensors[name] = StageId{dag.size()};
      Stage stage;
      stage.name = name;
      stage.axes = std::move(axes);
      stage.dtype = dtype;
      dag.stages.push_back(stage);
    };
    add("A", {{"a", 8}, {"b", 8}}, DType::kFloat32);
    add("ids", {{"a", 8}}, DType::kInt32);
    add("flags", {{"a", 8}}, DType::kBool);
    add("c", {}, DType::kFloat32);
    for (int v = 0; v < 3; ++v) {
      const std::string name(1, static_cast<char>('i' + v));
      scope.variables[name] = make_var(VarId{v}, name);
    }
  }
  ComputeDag dag;
  ExprScope scope;
};

std::string reprinted(std::string_view text) {
  const Names names;
  const Result<Expr> e = parse_expr(text, names.scope);
  if (!e.ok()) return e.error().message();
  return print(*e, [&](TensorId id) { return names.dag[id].name; });
}

Result<Expr> parsed(std::string_view text) { return parse_expr(text, Names().scope); }

TEST(ParseExpr, ReadsWhatTvmPrintsItself) {
  EXPECT_EQ(reprinted("max(A[floordiv(i, 3), floormod(i, 3)], 0f)"),
            "max(A[(i // 3), (i %% 3)], 0.0)");
  EXPECT_EQ(reprinted("(A[i, j]*-3.5e+2f)"), "(A[i, j] * -350.0)");
  EXPECT_EQ(reprinted("float32((i + 1))"), "cast<float32>((i + 1))");
}

TEST(ParseExpr, PrintsAsItWasWritten) {
  for (const char* text :
       {"(A[i, k] * A[k, j])",
        "max(A[i, j], 0.0)",
        "((i // 2) %% 18)",
        "cast<float32>(i)",
        "tir.if_then_else(((i >= 1) && (i < 7)), A[(i - 1), j], -3.402823466385289e+38)",
        "select((((i %% 6) == 5) || (j != 4)), 1.5, -2.0)",
        "tir.exp((A[i, j] - c[]))",
        "tir.pow(A[i, 0], 2.0)",
        "A[cast<int64>(ids[i]), j]",
        "!(i < 3)",
        "tir.fabs(A[i, j])",
        "(2.0 / A[i, j])",
        "min((i + 1), 7)",
        "-inf",
        "select(flags[i], 1, 0)"}) {
    EXPECT_EQ(reprinted(text), text);
  }
}

TEST(ParseExpr, KnowsPrecedence) {
  EXPECT_EQ(reprinted("i + j * 2 - k"), "((i + (j * 2)) - k)");
  EXPECT_EQ(reprinted("i < 1 || j < 2 && k == 3"), "((i < 1) || ((j < 2) && (k == 3)))");
  EXPECT_EQ(reprinted("i % 4 // 2"), "((i %% 4) // 2)");
  EXPECT_EQ(reprinted(" if_then_else( i<3 , 1 , 2 ) "), "select((i < 3), 1, 2)");
}

TEST(ParseExpr, GivesIntegersTheTypeTheyMeet) {
  EXPECT_EQ(reprinted("A[i, j] * 2"), "(A[i, j] * 2.0)");
  EXPECT_EQ((*parsed("ids[i] + 1"))->dtype, DType::kInt32);
  EXPECT_EQ((*parsed("ids[i] + i"))->dtype, DType::kInt64);
}

TEST(ParseExpr, SaysWhereAndWhat) {
  EXPECT_ERROR(parsed(""), "at character 0: expected an expression, found the end");
  EXPECT_ERROR(parsed("(i + q)"), "at character 5: expected an expression, found \"q)\"");
  EXPECT_ERROR(parsed("(i + 1"), "expected \")\", found the end");
  EXPECT_ERROR(parsed("i 1"), "at character 2: expected the end, found \"1\"");
  EXPECT_ERROR(parsed("B[i]"), "at character 0: expected a tensor of an earlier stage");
  EXPECT_ERROR(parsed("A[i]"), "expected 2 indices, found \"A[i]\"");
  EXPECT_ERROR(parsed("A[i, 0.5]"), "expected integer indices");
  EXPECT_ERROR(parsed("tir.foo(i)"), "expected a known function");
  EXPECT_ERROR(parsed("tir.exp(c[], c[])"),
               "expected a known function with its number of arguments");
  EXPECT_ERROR(parsed("tir.exp(i)"), "expected a float argument");
  EXPECT_ERROR(parsed("cast<word>(i)"), "expected a type such as float32");
  EXPECT_ERROR(parsed("-i"), "expected a number");
}

TEST(ParseExpr, RefusesTypesThatDoNotMeet) {
  EXPECT_ERROR(parsed("A[i, j] + i"), "not float32 and int64");
  EXPECT_ERROR(parsed("select(i < 1, c[], i)"), "not float32 and int64");
  EXPECT_ERROR(parsed("select(i, 1, 2)"), "expected a truth value as condition");
  EXPECT_ERROR(parsed("i && j"), "expected truth values around && or ||");
  EXPECT_ERROR(parsed("!i"), "expected a truth value after !");
  EXPECT_ERROR(parsed("i / 2"), "expected // between integers");
  EXPECT_ERROR(parsed("c[] // 2"), "expected integers around //");
  EXPECT_ERROR(parsed("i // 0"), "expected a divisor other than 0");
}

TEST(ParseExpr, BoundsDepthAndLength) {
  EXPECT_ERROR(parsed(std::string(100'000, '(')), "expected at most 500 levels of nesting");
  EXPECT_ERROR(parsed(std::string(100'000, '!')), "expected at most 500 levels of nesting");
  std::string chain = "i";
  for (int n = 0; n < 100'000; ++n) chain += "+i";
  EXPECT_ERROR(parsed(chain), "expected at most 5000 operators");
}

TEST(ParseBody, ReadsReductions) {
  const Names names;
  const auto body = [&](std::string_view text) { return parse_body(text, names.scope); };
  EXPECT_EQ(body("reduce[(x + y)](A[i, k]; axis=[k]; value_index=0)")->combiner, Combiner::kSum);
  EXPECT_EQ(body("reduce[(x * y)](A[i, k]; axis=[k]; value_index=0)")->combiner, Combiner::kProd);
  EXPECT_EQ(body("reduce[max(x, y)](A[i, k]; axis=[j, k]; value_index=0)")->combiner,
            Combiner::kMax);
  EXPECT_EQ(body("reduce[min(x, y)](A[i, k]; axis=[k]; value_index=0)")->combiner, Combiner::kMin);
  EXPECT_EQ(body("A[i, k]")->combiner, Combiner::kNone);
  EXPECT_ERROR(body("reduce[(x - y)](A[i, k]; axis=[k]; value_index=0)"), "expected a combiner");
  EXPECT_ERROR(body("reduce[(x + y)](A[i, k]; axis=[q]; value_index=0)"), "expected a reduce axis");
  EXPECT_ERROR(body("reduce[(x + y)](A[i, k]; axis=[k]; value_index=1)"), "\"value_index=0\"");
}

}  // namespace
}  // namespace pruner
