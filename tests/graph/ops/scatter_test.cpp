#include <gmock/gmock.h>

#include "graph/routines/routines.h"
#include "graph/small_graph.h"
#include "pruner/dtype.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

Attribute text(const char* value) { return std::string(value); }

/// Calls a routine that needs no workspace.
void run_routine(PrunerKernel routine,
                 const std::vector<Tensor>& inputs,
                 Ints& parameters,
                 Tensor& output,
                 PrunerPool* pool) {
  std::vector<void*> args;
  for (const Tensor& input : inputs) args.push_back(const_cast<void*>(input.data()));
  args.insert(args.end(), {parameters.data(), output.data()});
  routine(args.data(), nullptr, pool);
}

// The numbers are those of ONNX's test_scatter_elements_*.
TEST(ScatterElements, GivesWhatOnnxsTestsSay) {
  const Tensor row = floats({1, 5}, {1, 2, 3, 4, 5}), two = floats({1, 2}, {1.1, 2.1});
  const auto scatter = [&](Ints indices, const char* reduction) {
    return values_of(run_op("ScatterElements",
                            {row, integers({1, 2}, std::move(indices)), two},
                            {{"axis", int64_t{1}}, {"reduction", text(reduction)}}));
  };
  const auto float32 = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  const double a = float32(1.1), b = float32(2.1);
  EXPECT_EQ(scatter({1, 3}, "none"), (V{1, a, 3, b, 5}));
  EXPECT_EQ(scatter({1, -3}, "none"), (V{1, a, b, 4, 5}));
  EXPECT_EQ(scatter({1, 1}, "none"), (V{1, b, 3, 4, 5}));
  EXPECT_EQ(scatter({1, 1}, "add"), (V{1, float32(float32(2 + a) + b), 3, 4, 5}));
  EXPECT_EQ(scatter({1, 1}, "max"), (V{1, b, 3, 4, 5}));
  EXPECT_EQ(scatter({1, 1}, "min"), (V{1, a, 3, 4, 5}));
  EXPECT_EQ(scatter({1, 1}, "mul"), (V{1, float32(float32(2 * a) * b), 3, 4, 5}));
}

TEST(ScatterElements, IsOfAnyAxis) {
  const Tensor data = waves({3, 4, 5});
  for (int64_t axis = -3; axis < 3; ++axis) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    const Tensor updates = waves({2, 2, 2}, 1);
    Tensor indices(DType::kInt32, {2, 2, 2});
    for (int64_t i = 0; i < 8; ++i) indices.set_int(i, i * 7 % 6 - 3);
    Tensor expected = data.clone();
    for (int64_t i = 0; i < 8; ++i) {
      Ints at = {i / 4, i / 2 % 2, i % 2};
      at[d] = indices.get_int(i);
      if (at[d] < 0) at[d] += data.shape()[d];
      expected.set((at[0] * 4 + at[1]) * 5 + at[2], updates.get(i));
    }
    const Tensor y = run_op("ScatterElements", {data, indices, updates}, {{"axis", axis}});
    EXPECT_EQ(values_of(y), values_of(expected)) << axis;
  }
}

// Several updates of one element are made in the order of the indices, whichever thread has them.
TEST(ScatterElements, OfManyUpdatesIsSharedOutToThreads) {
  PrunerPool* const pool = pruner_pool_create(3, 0);
  const Ints shape = {12, 20, 33};
  const Tensor data = waves(shape);
  for (size_t axis = 0; axis < 3; ++axis) {
    Ints extents = {9, 17, 31};
    extents[axis] = 40;  // more than there are elements: some are updated twice
    const Tensor updates = waves(extents, 1);
    Tensor indices(DType::kInt64, extents), found(DType::kFloat32, shape);
    Tensor replaced = data.clone(), added = data.clone();
    for (int64_t i = 0; i < updates.num_elements(); ++i) {
      indices.set_int(i, i * 7919 % (2 * shape[axis]) - shape[axis]);
      Ints at = {i / (extents[1] * extents[2]), i / extents[2] % extents[1], i % extents[2]};
      at[axis] = indices.get_int(i) + (indices.get_int(i) < 0 ? shape[axis] : 0);
      const int64_t e = (at[0] * shape[1] + at[1]) * shape[2] + at[2];
      replaced.set(e, updates.get(i));
      added.set(e, static_cast<float>(added.get(e) + updates.get(i)));
    }
    for (const PrunerUpdate update : {kReplace, kAdd}) {
      Ints parameters = {PRUNER_FLOAT32, PRUNER_INT64, update, static_cast<int64_t>(axis), 3};
      parameters.insert(parameters.end(), shape.begin(), shape.end());
      parameters.insert(parameters.end(), extents.begin(), extents.end());
      run_routine(pruner_scatter_elements, {data, indices, updates}, parameters, found, pool);
      EXPECT_EQ(values_of(found), values_of(update == kAdd ? added : replaced)) << axis;
    }
  }
  pruner_pool_destroy(pool);
}

// The numbers are those of ONNX's test_scatternd and test_scatternd_add.
TEST(ScatterNd, WritesSlices) {
  const Tensor line = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(
      values_of(run_op("ScatterND",
                       {line, integers({4, 1}, {4, 3, 1, -1}), floats({4}, {9, 10, 11, 12})})),
      (V{1, 11, 3, 10, 9, 6, 7, 12}));
  const Tensor grid = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor rows = integers({2, 1}, {1, 1}), two = floats({2, 3}, {1, 2, 3, 10, 20, 30});
  EXPECT_EQ(values_of(run_op("ScatterND", {grid, rows, two}, {{"reduction", text("add")}})),
            (V{0, 1, 2, 14, 26, 38}));
  const Tensor points = integers({2, 2}, {0, 2, 1, 0});
  EXPECT_EQ(values_of(run_op("ScatterND", {grid, points, floats({2}, {7, 8})})),
            (V{0, 1, 7, 8, 4, 5}));
}

TEST(ScatterNd, ReducesEveryType) {
  for (const DTypeRow& row : kDTypes) {
    if (is_only_moved(row.dtype)) continue;
    const auto tensor = [&](Ints shape, V values) {
      Tensor t(row.dtype, std::move(shape));
      for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
      return t;
    };
    const auto reduce = [&](const char* reduction) {
      return values_of(run_op("ScatterND",
                              {tensor({2}, {3, 1}), integers({2, 1}, {0, 0}), tensor({2}, {2, 5})},
                              {{"reduction", text(reduction)}}));
    };
    SCOPED_TRACE(row.name);
    const bool truth = row.dtype == DType::kBool;
    EXPECT_EQ(reduce("add"), truth ? (V{1, 1}) : (V{10, 1}));
    EXPECT_EQ(reduce("mul"), truth ? (V{1, 1}) : (V{30, 1}));
    EXPECT_EQ(reduce("max"), truth ? (V{1, 1}) : (V{5, 1}));
    EXPECT_EQ(reduce("min"), truth ? (V{1, 1}) : (V{2, 1}));
  }
}

TEST(ScatterNd, OfLongSlicesIsSharedOutToThreads) {
  PrunerPool* const pool = pruner_pool_create(3, 0);
  constexpr int64_t kRows = 40, kSlice = 403, kIndices = 100;
  const Tensor data = waves({kRows, kSlice}), updates = waves({kIndices, kSlice}, 1);
  Tensor indices(DType::kInt64, {kIndices, 1}), found(DType::kFloat32, {kRows, kSlice});
  Tensor replaced = data.clone(), added = data.clone();
  for (int64_t i = 0; i < kIndices; ++i) {
    const int64_t row = i * 31 % kRows;
    indices.set_int(i, row - (i % 2) * kRows);
    for (int64_t e = 0; e < kSlice; ++e) {
      replaced.set(row * kSlice + e, updates.get(i * kSlice + e));
      const double sum = added.get(row * kSlice + e) + updates.get(i * kSlice + e);
      added.set(row * kSlice + e, static_cast<float>(sum));
    }
  }
  for (const PrunerUpdate update : {kReplace, kAdd}) {
    Ints parameters = {PRUNER_FLOAT32, update, kRows * kSlice, kIndices, 1, kSlice, kRows};
    run_routine(pruner_scatter_nd, {data, indices, updates}, parameters, found, pool);
    EXPECT_EQ(values_of(found), values_of(update == kAdd ? added : replaced));
  }
  pruner_pool_destroy(pool);
}

// Halves are computed in float32 and rounded as Tensor rounds.
TEST(ScatterNd, RoundsHalvesAsTensorsDo) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const double value : {1.0, 0.1, 1e-7, 3e-5, -6.1e-5, 60000.0, 3e38, -2e-40}) {
      Tensor data(dtype, {1}), update(dtype, {1}), sum(dtype, {1});
      data.set(0, value);
      update.set(0, value / 3);
      sum.set(0, static_cast<float>(data.get(0) + update.get(0)));
      const Tensor y =
          run_op("ScatterND", {data, integers({1, 1}, {0}), update}, {{"reduction", text("add")}});
      EXPECT_EQ(y.get(0), sum.get(0)) << dtype_name(dtype) << " " << value;
    }
  }
}

TEST(Scatter, NamesWhatDoesNotFit) {
  const Tensor grid = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const auto refused = [&](const char* op, Tensor indices, Tensor updates, Attributes a = {}) {
    return refusal(op, {grid, std::move(indices), std::move(updates)}, std::move(a));
  };
  EXPECT_THAT(
      refused("ScatterElements", integers({3, 3}, {}), floats({3, 3}, {}), {{"axis", int64_t{1}}}),
      HasSubstr("indices of 3x3 and updates of 3x3 for data of 2x3: only axis 1 may be"));
  EXPECT_THAT(refused("ScatterND", integers({1, 3}, {}), floats({1}, {})),
              HasSubstr("indices of 1x3 for data of 2x3"));
  EXPECT_THAT(refused("ScatterND", integers({1, 1}, {}), floats({1}, {})),
              HasSubstr("updates are 1, expected 1x3"));
  EXPECT_THAT(refused("ScatterND", floats({1, 1}, {}), floats({1, 3}, {})),
              HasSubstr("indices are float32, expected int64 or int32"));
  EXPECT_THAT(
      refused("ScatterND", integers({1, 1}, {}), floats({1, 3}, {}), {{"reduction", text("sub")}}),
      HasSubstr("reduction is \"sub\", expected none, add, mul, max or min"));
}

}  // namespace
}  // namespace pruner
