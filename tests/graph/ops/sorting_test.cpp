#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/partition.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

struct Ranked {
  V values, indices;
};

Ranked top_k(const Tensor& x, int64_t k, Attributes attributes) {
  const std::vector<Tensor> made = run_outputs("TopK", {x, Ints{k}}, 2, std::move(attributes));
  return {values_of(made[0]), values_of(made[1])};
}

// Computes TopK by its definition, by a sort of each row.
Ranked sorted_rows(const Tensor& x, int64_t k, bool largest) {
  const int64_t n = x.shape().back();
  Ranked all;
  for (int64_t row = 0; row < x.num_elements() / n; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t i) { return x.get(row * n + i); };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return largest ? value(a) > value(b) : value(a) < value(b);
    });
    for (int64_t i = 0; i < k; ++i) {
      all.indices.push_back(static_cast<double>(order[i]));
      all.values.push_back(value(order[i]));
    }
  }
  return all;
}

TEST(TopK, IsTheBeginningOfASort) {
  for (const DTypeRow& row : kDTypes) {
    if (is_only_moved(row.dtype)) continue;
    Tensor x(row.dtype, {3, 37});
    for (int64_t i = 0; i < x.num_elements(); ++i)
      x.set(i, is_float(row.dtype) ? std::sin(double(i * i)) : double(i * i % 23 - 9));
    for (const int64_t k : {1, 2, 36, 37}) {
      for (const bool largest : {true, false}) {
        SCOPED_TRACE(std::string(row.name) + " " + std::to_string(k));
        const Ranked found = top_k(x, k, {{"largest", int64_t{largest}}});
        const Ranked expected = sorted_rows(x, k, largest);
        EXPECT_EQ(found.values, expected.values);
        EXPECT_EQ(found.indices, expected.indices);
      }
    }
  }
}

TEST(TopK, IsOfAnyAxis) {
  const Tensor x = floats({2, 3}, {4, 9, 2, 5, 1, 7});
  const Ranked found = top_k(x, 1, {{"axis", int64_t{0}}});
  EXPECT_EQ(found.values, (V{5, 9, 7}));
  EXPECT_EQ(found.indices, (V{1, 0, 1}));
}

// torch and NumPy take NaN for the greatest, too.
TEST(TopK, TakesNanForTheGreatest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = floats({5}, {nan, 1, -infinity, infinity, -0.0});
  const auto order = [&](int64_t largest) {
    return values_of(run_outputs("TopK", {x, Ints{5}}, 2, {{"largest", largest}})[1]);
  };
  EXPECT_EQ(order(1), (V{0, 3, 1, 4, 2}));
  EXPECT_EQ(order(0), (V{2, 4, 1, 3, 0}));
}

TEST(TopK, NamesWhatDoesNotFit) {
  EXPECT_THAT(refusal("TopK", {floats({3}, {1, 2, 3}), Ints{4}}),
              HasSubstr("k is 4 of an extent of 3"));
  EXPECT_THAT(refusal("TopK", {floats({3}, {1, 2, 3}), integers({1}, {1})}),
              HasSubstr("k is computed at run time; it has to be a constant"));
}

TEST(NonZero, FindsPlaces) {
  const Tensor x = floats({2, 3}, {0, 1, 0, 2, 0, -3});
  const Tensor found = run_op("NonZero", {Operand::weight(x)});
  EXPECT_EQ(found.shape(), (Ints{2, 3}));
  EXPECT_EQ(values_of(found), (V{0, 1, 1, 1, 0, 2}));
  // If the data decide the extent at run time, the result has room for all elements.
  EXPECT_EQ(values_of(run_op("NonZero", {x})), (V{0, 1, 1, -1, -1, -1, 1, 0, 2, -1, -1, -1}));
}

// The numbers are those of ONNX's test_unique_*.
TEST(Unique, TellsSlicesApart) {
  const Tensor x = floats({6}, {2, 1, 1, 3, 4, 3});
  const auto unique = [](const Operand& data, Attributes a) {
    std::vector<V> all;
    for (const Tensor& t : run_outputs("Unique", {data}, 4, std::move(a)))
      all.push_back(values_of(t));
    return all;
  };
  EXPECT_EQ(unique(Operand::weight(x), {}),
            (std::vector<V>{{1, 2, 3, 4}, {1, 0, 3, 4}, {1, 0, 0, 2, 3, 2}, {2, 1, 2, 1}}));
  EXPECT_EQ(unique(Operand::weight(x), {{"sorted", int64_t{0}}}),
            (std::vector<V>{{2, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1}}));
  EXPECT_EQ(unique(x, {}),
            (std::vector<V>{
                {1, 2, 3, 4, 0, 0}, {1, 0, 3, 4, -1, -1}, {1, 0, 0, 2, 3, 2}, {2, 1, 2, 1, 0, 0}}));
  const Operand columns = Operand::weight(floats({2, 3}, {1, 0, 1, 2, 5, 2}));
  EXPECT_EQ(unique(columns, {{"axis", int64_t{1}}}),
            (std::vector<V>{{0, 1, 5, 2}, {1, 0}, {1, 0, 1}, {1, 2}}));
}

// The boxes and numbers are those of ONNX's test_nonmaxsuppression_suppress_by_IOU.
TEST(NonMaxSuppression, KeepsTheBestOfWhatOverlaps) {
  const Tensor boxes = floats({1, 6, 4}, {0, 0,    1, 1,    0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                          0, 10.0, 1, 11.0, 0, 10.1, 1, 11.1, 0, 100,  1, 101});
  const Tensor scores = floats({1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3});
  const auto run = [&](bool constant, int64_t most, double least) {
    const auto of = [&](const Tensor& t) { return constant ? Operand::weight(t) : Operand(t); };
    return values_of(run_op("NonMaxSuppression",
                            {of(boxes),
                             of(scores),
                             Ints{most},
                             Operand::weight(floats({1}, {0.5})),
                             Operand::weight(floats({1}, {least}))}));
  };
  EXPECT_EQ(run(true, 3, 0), (V{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(run(true, 2, 0), (V{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(run(true, 3, 0.4), (V{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(run(false, 3, 0.4), (V{0, 0, 3, 0, 0, 0, -1, -1, -1}));
}

TEST(Found, IsReadOnlyWhereItIsKnown) {
  NetworkBuilder b("found");
  const ValueId x = b.input("x", {4}, DType::kFloat32);
  const ValueId found = b.node("NonZero", {x});
  const Result<Target> target = parse_target("llvm -mcpu=haswell", 1);
  ASSERT_TRUE(target.ok());
  EXPECT_TRUE(partition(b.finish({{b.node("Identity", {found}), "places"}}), *target).ok());
  for (const char* reader : {"Shape", "Abs"}) {
    NetworkBuilder other("reader");
    const ValueId places = other.node("NonZero", {other.input("x", {4}, DType::kFloat32)});
    const Graph graph = other.finish({{other.node(reader, {places}), "y"}});
    const Result<Partition> cut = partition(graph, *target);
    ASSERT_FALSE(cut.ok());
    EXPECT_THAT(cut.error().message(), HasSubstr("reads what NonZero finds, whose extent the"));
  }
}

}  // namespace
}  // namespace pruner
