// Random compute DAGs: operators of random extents, and chains of stages that no operator has.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "space/operator_task.h"
#include "support/rng.h"
#include "tensor/dag_builder.h"

namespace pruner {

/// One to four stages, each reading the last one and placeholders: element by element, reduced, or
/// spread over what it was reduced from; windows, strides, edges and other orders of the axes. In
/// float32, whose values stay within a few units, or in int32.
class RandomDag {
 public:
  explicit RandomDag(Rng& rng) : rng_(rng), type_(once_in(4) ? DType::kInt32 : DType::kFloat32) {}

  ComputeDag make() {
    StageId last = once_in(2) ? reduction({}) : pointwise({});
    for (int64_t more = rng_.below(4); more > 0; --more) {
      const int64_t kind = rng_.below(3);
      last = kind == 0 ? pointwise(last) : kind == 1 ? reduction(last) : spread(last);
    }
    if (type_ == DType::kFloat32 && once_in(6)) {
      last = b_.compute("narrow", b_.shape(last), [&](std::span<const Expr> axes) {
        return cast(DType::kFloat16, b_.at(last, {axes.begin(), axes.end()}));
      });
    }
    return b_.finish({last});
  }

 private:
  struct Axis {
    Expr var;
    int64_t extent;
  };

  bool once_in(int64_t n) { return rng_.below(n) == 0; }

  std::vector<int64_t> extents(int64_t rank, int64_t most) {
    constexpr int64_t kExtents[] = {
        1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33, 48, 64, 100};
    std::vector<int64_t> extents;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t extent = kExtents[rng_.below(std::ssize(kExtents))];
      if (extent > most) extent = 1 + rng_.below(most);
      most = std::max<int64_t>(most / extent, 1);
      extents.push_back(extent);
    }
    return extents;
  }

  Expr number(double value) {
    return type_ == DType::kInt32 ? int_imm(static_cast<int64_t>(8 * value), type_)
                                  : float_imm(value);
  }

  /// An element of a new placeholder, which some of the axes choose.
  Expr operand(std::vector<Axis> axes) {
    for (size_t a = axes.size(); a > 1; --a)
      std::swap(axes[a - 1], axes[static_cast<size_t>(rng_.below(static_cast<int64_t>(a)))]);
    if (axes.size() > 1 && once_in(3)) axes.pop_back();
    std::vector<Expr> indices;
    std::vector<int64_t> shape;
    Expr inside;
    for (size_t a = 0; a < axes.size(); ++a) {
      Expr index = axes[a].var;
      int64_t extent = axes[a].extent;
      const int64_t stride = once_in(6) ? 2 : 1;
      index = index * stride;
      extent = (extent - 1) * stride + 1;
      if (a + 1 < axes.size() && once_in(5)) {  // a window
        index = index + axes[++a].var;
        extent += axes[a].extent - 1;
      } else if (a + 1 < axes.size() && once_in(8)) {  // two axes in one
        ++a;
        index = index * axes[a].extent + axes[a].var;
        extent *= axes[a].extent;
      } else if (extent > 1 && once_in(8)) {  // one at the edge is missing
        inside = inside ? inside && index >= 1 : index >= 1;
        index = index - 1;
        --extent;
      } else if (once_in(12)) {
        index = floor_div(index, 3);
        extent = (extent + 2) / 3;
      }
      indices.push_back(index);
      shape.push_back(extent + (once_in(8) ? 3 : 0));
    }
    DType dtype = type_;
    if (once_in(4)) dtype = type_ == DType::kInt32 ? DType::kInt8 : DType::kFloat16;
    const StageId from = b_.placeholder("in", shape, dtype, once_in(3));
    weights_.push_back(from);
    const Expr read = cast(type_, b_.at(from, indices));
    return inside ? select(inside, read, number(0)) : read;
  }

  Expr combined(Expr a, Expr b) {
    switch (rng_.below(type_ == DType::kInt32 ? 6 : 5)) {
      case 0: return a + b;
      case 1: return a * b;
      case 2: return max(a, b);
      case 3: return min(a, b);
      case 4: return a - b;
      default: return a ^ b;
    }
  }

  Expr function_of(Expr a) {
    if (type_ == DType::kInt32)
      return once_in(2) ? floor_div(a, int_imm(3, type_)) : max(a, number(0));
    switch (rng_.below(6)) {
      case 0: return call(Intrinsic::kTanh, {a});
      case 1: return call(Intrinsic::kSigmoid, {a});
      case 2: return call(Intrinsic::kAbs, {a});
      case 3: return call(Intrinsic::kExp, {min(a, number(1))});
      case 4: return max(a, number(0));
      default: return a * number(0.5) + number(1);
    }
  }

  static std::vector<Axis> axes_of(std::span<const Expr> vars, std::span<const int64_t> extents) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < vars.size(); ++i) axes.push_back({vars[i], extents[i]});
    return axes;
  }

  StageId pointwise(StageId last) {
    const std::vector<int64_t> shape =
        last.valid() ? b_.shape(last) : extents(1 + rng_.below(4), 4096);
    return b_.compute("point", shape, [&](std::span<const Expr> vars) {
      const std::vector<Axis> axes = axes_of(vars, shape);
      Expr value = last.valid() ? b_.at(last, {vars.begin(), vars.end()}) : operand(axes);
      if (once_in(2)) value = combined(value, operand(axes));
      return once_in(2) ? function_of(value) : value;
    });
  }

  /// Over some of the last stage's axes, or over new ones.
  StageId reduction(StageId last) {
    std::vector<int64_t> shape, reduced;
    std::vector<bool> kept;
    if (last.valid()) {
      for (const int64_t extent : b_.shape(last)) {
        kept.push_back(once_in(2));
        (kept.back() ? shape : reduced).push_back(extent);
      }
      if (shape.empty() || once_in(3)) shape.push_back(extents(1, 32)[0]);
    } else {
      shape = extents(1 + rng_.below(3), 1024);
    }
    if (reduced.empty()) reduced = extents(1 + rng_.below(2), 128);
    double terms = 1;
    for (const int64_t extent : reduced) terms *= static_cast<double>(extent);
    constexpr Combiner kCombiners[] = {
        Combiner::kSum, Combiner::kSum, Combiner::kMax, Combiner::kMin};
    const Combiner combiner = kCombiners[rng_.below(4)];
    const size_t before = weights_.size();
    const auto body = [&](std::span<const Expr> vars, std::span<const Expr> terms_of) {
      std::vector<Axis> axes = axes_of(vars, shape);
      for (const Axis& axis : axes_of(terms_of, reduced)) axes.push_back(axis);
      Expr value;
      if (last.valid()) {
        std::vector<Expr> indices;
        size_t spatial = 0, reduce = 0;
        for (const bool keep : kept) indices.push_back(keep ? vars[spatial++] : terms_of[reduce++]);
        value = b_.at(last, indices);
      } else {
        value = operand(axes);
      }
      if (!once_in(3)) value = value * operand(axes);
      const bool mean = combiner == Combiner::kSum && type_ == DType::kFloat32 && once_in(2);
      return mean ? value * float_imm(1 / terms) : value;
    };
    const StageId made = b_.reduce("fold", shape, reduced, combiner, body, "");
    for (size_t w = before; w < weights_.size(); ++w)
      if (once_in(2)) b_.allow_repacking(made, weights_[w]);
    return made;
  }

  /// Over the last stage's axes and others, which an operand has.
  StageId spread(StageId last) {
    std::vector<int64_t> shape = b_.shape(last);
    const auto at = static_cast<size_t>(rng_.below(std::ssize(shape) + 1));
    shape.insert(shape.begin() + static_cast<int64_t>(at), extents(1, 8)[0]);
    return b_.compute("spread", shape, [&](std::span<const Expr> vars) {
      std::vector<Expr> indices(vars.begin(), vars.end());
      indices.erase(indices.begin() + static_cast<int64_t>(at));
      return combined(b_.at(last, indices), operand(axes_of(vars, shape)));
    });
  }

  Rng& rng_;
  DType type_;
  DagBuilder b_;
  std::vector<StageId> weights_;
};

/// An operator of kSmallOperators with some of its extents changed.
inline ComputeDag random_operator(Rng& rng) {
  while (true) {
    std::istringstream words(kSmallOperators[rng.below(std::ssize(kSmallOperators))]);
    std::string text;
    for (std::string word; words >> word; text += word + ' ') {
      if (word.find_first_not_of("0123456789") != std::string::npos) continue;
      const int64_t extent = std::min<int64_t>(std::stoll(word), 40);
      if (rng.below(2) == 0) word = std::to_string(std::max<int64_t>(extent + rng.below(7) - 3, 1));
    }
    const Result<ComputeDag> dag = parse_operator(text);
    if (dag.ok() && flop_count(*dag) < 1e6) return *dag;
  }
}

}  // namespace pruner
