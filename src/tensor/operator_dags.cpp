#include "tensor/operator_dags.h"

#include <algorithm>

#include "support/check.h"

namespace pruner {

std::vector<Expr> broadcast_index(std::span<const int64_t> shape,
                                  std::span<const int64_t> out_shape,
                                  std::span<const Expr> vars) {
  const size_t lead = out_shape.size() - shape.size();
  std::vector<Expr> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    index.push_back(shape[d] == out_shape[lead + d] ? vars[lead + d] : Expr(0));
  }
  return index;
}

static std::vector<int64_t> broadcast_shapes(std::vector<int64_t> a, std::vector<int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t lead = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    int64_t& extent = a[lead + d];
    CHECK(extent == b[d] || extent == 1 || b[d] == 1) << extent << " against " << b[d];
    extent = std::max(extent, b[d]);
  }
  return a;
}

StageId add_elementwise(DagBuilder& b,
                        std::string name,
                        std::span<const StageId> inputs,
                        const std::function<Expr(std::span<const Expr>)>& fn) {
  std::vector<int64_t> shape;
  for (StageId input : inputs) shape = broadcast_shapes(shape, b.shape(input));
  const auto body = [&](std::span<const Expr> vars) {
    std::vector<Expr> values;
    for (StageId input : inputs) {
      values.push_back(b.at(input, broadcast_index(b.shape(input), shape, vars)));
    }
    return fn(values);
  };
  return b.compute(std::move(name), shape, body, inputs.size() > 1 ? "broadcast" : "elemwise");
}

StageId add_add(DagBuilder& b, StageId lhs, StageId rhs) {
  const StageId inputs[] = {lhs, rhs};
  return add_elementwise(b, "T_add", inputs, [](auto x) { return x[0] + x[1]; });
}

StageId add_activation(DagBuilder& b, StageId data, const Activation& activation) {
  return add_elementwise(
      b, std::string(activation.stage), std::span(&data, 1), [&](std::span<const Expr> x) {
        return activation.fn(x[0]);
      });
}

Expr product(const Expr& a, const Expr& b, const Products& products) {
  const DType type = products.sums.value_or(sum_type(a->dtype));
  const auto factor = [&](const Expr& x) {
    return products.tf32 ? call(Intrinsic::kTf32, {cast(type, x)}) : cast(type, x);
  };
  return factor(a) * factor(b);
}

StageId add_cast(DagBuilder& b, StageId stage, DType dtype) {
  if (b.stage(stage).dtype == dtype) return stage;
  return add_elementwise(
      b, "T_cast", {{stage}}, [&](std::span<const Expr> x) { return cast(dtype, x[0]); });
}

StageId add_heads(DagBuilder& b, StageId data, int64_t width) {
  std::vector<int64_t> shape = b.shape(data);
  CHECK(!shape.empty() && shape.back() % width == 0) << "heads of " << width;
  shape.back() /= width;
  shape.push_back(width);
  const auto body = [&](std::span<const Expr> i) {
    std::vector<Expr> at(i.begin(), i.end() - 1);
    at.back() = at.back() * width + i.back();
    return b.at(data, at);
  };
  return b.compute("T_reshape", shape, body, "injective");
}

StageId add_dense(DagBuilder& b, StageId data, StageId weight, const Products& products) {
  std::vector<int64_t> shape = b.shape(data);
  const std::vector<int64_t> weights = b.shape(weight);
  CHECK(!shape.empty() && weights.size() == 2 && shape.back() == weights[1])
      << "a dense weight is [n, k] with the data's k";
  shape.back() = weights[0];
  const auto body = [&](std::span<const Expr> i, std::span<const Expr> k) {
    std::vector<Expr> index(i.begin(), i.end());
    index.back() = k[0];
    return product(b.at(data, index), b.at(weight, {i.back(), k[0]}), products);
  };
  std::vector<std::string> names;
  if (shape.size() == 2) names = {"i", "j", "k"};
  const StageId out =
      b.reduce("T_dense", shape, {weights[1]}, Combiner::kSum, body, "dense", std::move(names));
  b.allow_repacking(out, weight);
  return products.sums ? out : add_cast(b, out, b.stage(data).dtype);
}

StageId add_matmul(DagBuilder& b,
                   StageId lhs,
                   StageId rhs,
                   bool transpose_lhs,
                   bool transpose_rhs,
                   const Products& products) {
  std::vector<int64_t> a = b.shape(lhs), w = b.shape(rhs);
  CHECK(a.size() >= 2 && w.size() >= 2) << "matmul of tensors with less than two dims";
  const int64_t m = a[a.size() - (transpose_lhs ? 1 : 2)];
  const int64_t k = a[a.size() - (transpose_lhs ? 2 : 1)];
  const int64_t n = w[w.size() - (transpose_rhs ? 2 : 1)];
  CHECK(k == w[w.size() - (transpose_rhs ? 1 : 2)]) << "matmul: the operands' k differ";
  a.resize(a.size() - 2);
  w.resize(w.size() - 2);
  std::vector<int64_t> shape = broadcast_shapes(a, w);
  const std::vector<int64_t> batch = shape;
  shape.insert(shape.end(), {m, n});

  const auto operand = [&](StageId id,
                           std::span<const int64_t> own_batch,
                           auto vars,
                           Expr row,
                           Expr column,
                           bool transpose) {
    std::vector<Expr> index = broadcast_index(own_batch, batch, vars.first(batch.size()));
    if (transpose) std::swap(row, column);
    index.push_back(row);
    index.push_back(column);
    return b.at(id, index);
  };
  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    return product(operand(lhs, a, i, i[i.size() - 2], r[0], transpose_lhs),
                   operand(rhs, w, i, r[0], i.back(), transpose_rhs),
                   products);
  };
  const std::string tag = batch.empty() ? "matmul" : "batch_matmul";
  // TVM's name has N, or T for a transposed operand.
  const std::string order = std::string("_") + "NT"[transpose_lhs] + "NT"[transpose_rhs];
  std::vector<std::string> names;
  if (batch.size() == 1) names = {"b", "i", "j", "k"};
  if (batch.empty()) names = {"i", "j", "k"};
  const StageId out =
      b.reduce("T_" + tag + order, shape, {k}, Combiner::kSum, body, tag, std::move(names));
  b.allow_repacking(out, rhs);
  return products.sums ? out : add_cast(b, out, b.stage(lhs).dtype);
}

namespace {

// A code as it is when it is made a float: times `unit`, by whose inverse the data are multiplied.
struct ScaledCode {
  Expr real;
  Expr unit = {};  // empty: 1
  Expr inverse = {};
};

// One half of an int8. A shift to the right leaves the upper half with its sign; one to the left
// leaves the lower half as the upper bits of a word.
ScaledCode half_of(const Expr& byte, const Expr& number) {
  constexpr int64_t kHalf = 16, kToTop = int64_t{1} << 28;
  const auto either = [&](const Expr& lower, const Expr& upper) {
    return select(binary(BinaryOp::kEq, number, Expr(0)), lower, upper);
  };
  const Expr word = cast(DType::kInt32, byte);
  const Expr code =
      either(word * int_imm(kToTop, DType::kInt32), floor_div(word, int_imm(kHalf, DType::kInt32)));
  return {cast(DType::kFloat32, code),
          either(float_imm(kToTop), float_imm(1)),
          either(float_imm(1.0 / kToTop), float_imm(1))};
}

}  // namespace

StageId add_coded_matmul(DagBuilder& b, StageId data, const CodedMatrix& matrix) {
  const auto [codes, scales, zeros, bits, block, zero] = matrix;
  const int64_t per_byte = 8 / bits, inner = block / per_byte, blocks = b.shape(scales)[0];
  std::vector<int64_t> shape = b.shape(data);
  CHECK((bits == 8 || bits == 4) && block % per_byte == 0 && shape.back() == blocks * block &&
        b.shape(codes)[0] == blocks * inner)
      << "a matrix of codes does not fit its data";
  shape.back() = b.shape(codes)[1];
  // The blocks go around the bytes of one, these around the halves of a byte; one block alone has
  // no axis.
  std::vector<int64_t> extents = {inner};
  std::vector<std::string> names = {"k"};
  if (blocks > 1) extents.insert(extents.begin(), blocks), names.insert(names.begin(), "kb");
  if (per_byte > 1) extents.push_back(per_byte), names.emplace_back("half");
  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    const Expr number = blocks > 1 ? r[0] : Expr(0);
    const Expr byte = number * Expr(inner) + r[blocks > 1];
    const std::vector<Expr> place = {number, i.back()};
    std::vector<Expr> index(i.begin(), i.end());
    index.back() = per_byte > 1 ? byte * Expr(per_byte) + r.back() : byte;
    const Expr code = b.at(codes, {byte, i.back()});
    auto [real, unit, inverse] =
        per_byte > 1 ? half_of(code, r.back()) : ScaledCode{cast(DType::kFloat32, code)};
    if (zeros.valid() || zero != 0) {
      const Expr offset = zeros.valid() ? cast(DType::kFloat32, b.at(zeros, place))
                                        : float_imm(static_cast<double>(zero));
      real = real - (unit ? offset * unit : offset);
    }
    const Expr x = b.at(data, index);
    return (inverse ? x * inverse : x) * (real * b.at(scales, place));
  };
  for (size_t axis = shape.size(); axis-- > 0;)
    names.insert(names.begin(),
                 shape.size() == 2 ? std::string(1, "ij"[axis]) : "ax" + std::to_string(axis));
  const StageId out =
      b.reduce("T_coded_matmul", shape, extents, Combiner::kSum, body, "matmul", std::move(names));
  for (const StageId constant : {codes, scales, zeros})
    if (constant.valid()) b.allow_repacking(out, constant);
  return out;
}

}  // namespace pruner
