// The network that is being drawn: the choices of chance, the values and nodes so far, and what is
// known of each value. Each function of steps.h appends a few nodes through these functions.
#pragma once

#include <string>
#include <vector>

#include "graph/ops/op.h"
#include "random_graph.h"
#include "support/rng.h"

namespace pruner {

using Ints = std::vector<int64_t>;
using Ids = std::vector<ValueId>;

inline constexpr int64_t kMostElements = 4000;  // bound on one tensor

/// `Facts` is what is known of a value beside its type.
struct Facts {
  bool exact = true;   // every schedule computes the value bit for bit
  bool whole = false;  // the elements are whole numbers, whose sums are exact
  double scale = 0;    // the largest absolute value among the elements and all they follow from
  double slack = 0;    // the difference that is allowed beside what rounding makes
  bool apart = false;  // only the step that made the value may read it
};

/// How the facts of a result follow from the facts of its operands.
enum class Kind {
  kMoves,    // the elements are elements of the operands, or follow from one without rounding
  kAdds,     // the elements are sums and products: exact if the operands are whole numbers
  kValues,   // each element is a continuous function of one, rounded
  kSmooth,   // the elements are a continuous function of the operands, rounded
  kChooses,  // comparisons decide the elements, so the operands have to be exact
  kRounds,   // the elements are rounded to whole numbers; each may be off by one
  kMasks,    // some elements of the operands are hidden behind one that is very low
};

class GraphMaker {
 public:
  explicit GraphMaker(uint64_t seed);

  // Chance.
  Rng& rng() { return rng_; }
  bool one_in(int64_t n) { return rng_.below(n) == 0; }
  int64_t between(int64_t low, int64_t high) { return low + rng_.below(high - low + 1); }
  template <typename T>
  T choose(std::initializer_list<T> list) {
    return list.begin()[rng_.below(std::ssize(list))];
  }
  int64_t extent();
  Ints shape(int64_t rank);
  Ints permutation(int64_t rank);
  int64_t axis_of(ValueId x) { return rng_.below(std::max<int64_t>(rank(x), 1)); }
  /// The same axis, counted from the front or from the end.
  int64_t written(int64_t axis, ValueId x) { return one_in(2) ? axis : axis - rank(x); }
  /// Whether fresh tensors of floats hold whole numbers.
  bool whole() const { return whole_; }
  /// The type of most fresh tensors.
  DType usual_dtype() const { return dtype_; }

  // Values.
  const Graph& graph() const { return made_.graph; }
  const Value& value(ValueId id) const { return graph()[id]; }
  const Ints& shape_of(ValueId id) const { return value(id).shape; }
  int64_t extent_of(ValueId id, int64_t d) const { return shape_of(id)[static_cast<size_t>(d)]; }
  DType dtype(ValueId id) const { return value(id).dtype; }
  int64_t rank(ValueId id) const { return std::ssize(shape_of(id)); }
  bool real(ValueId id) const { return is_float(dtype(id)); }
  bool number(ValueId id) const { return dtype(id) != DType::kBool; }
  bool integer(ValueId id) const { return number(id) && !real(id); }
  const Facts& facts(ValueId id) const { return facts_[static_cast<size_t>(id.value)]; }
  ValueId constant(Tensor tensor);
  /// An input that has the elements of `tensor`.
  ValueId input(const Tensor& tensor);
  /// An input of drawn elements; a weight is a constant for the most part.
  ValueId fresh(DType dtype, const Ints& shape, bool weight = false);
  /// An input, or a weight, whose elements are drawn from all that an integer type holds.
  ValueId codes(DType dtype, const Ints& shape, bool weight = false);
  /// A divisor: no element is near 0.
  ValueId positive(DType dtype, const Ints& shape);
  ValueId integers(const Ints& values, DType dtype = DType::kInt64);
  ValueId scalar(double value, DType dtype);
  /// Indices of an extent; some are counted from the end.
  ValueId indices(const Ints& shape, int64_t extent);
  /// Every value of the network that is no constant, that other steps may read, and that fits.
  template <typename Fits>
  Ids all_that(const Fits& fits) const;
  /// A value that fits, the later the likelier; a fresh input of shape `otherwise` if none fits.
  template <typename Fits>
  ValueId pick(const Fits& fits, const Ints& otherwise);
  ValueId pick_any();
  ValueId pick_number(int64_t least_rank);
  ValueId pick_real(int64_t least_rank);
  /// A value of shape [n, c, spatial...].
  ValueId pick_image();
  /// Another operand of an element-wise operator on `x`.
  ValueId partner(ValueId x);

  // Nodes.
  /// Returns the outputs of a new node. Returns none if the operator refuses the call, or if a
  /// result is one that a network may not have.
  Ids add(
      const std::string& op, Ids inputs, Kind kind, Attributes attributes = {}, size_t outputs = 1);
  /// Returns whether a node with one output was added.
  bool one(const std::string& op, Ids inputs, Kind kind, Attributes attributes = {}) {
    return !add(op, std::move(inputs), kind, std::move(attributes)).empty();
  }
  /// Makes a value an output of the network.
  void keep(ValueId id) { kept_.push_back(id); }
  /// Makes a value that is read no output of the network.
  void hide(ValueId id) { hidden_.push_back(id); }
  /// Allows a value to differ by `slack`; no other step may read it.
  void loosen(ValueId id, double slack);
  /// Calls `step` and returns what it returns. Nothing of a step that gives up stays in the
  /// network.
  bool attempt(bool (*step)(GraphMaker&));
  /// Chooses the outputs. Drops the inputs that no node reads.
  RandomGraph finish() &&;

 private:
  Tensor& tensor(ValueId id) { return made_.tensors[static_cast<size_t>(id.value)]; }
  ValueId add_value(Value value, Tensor tensor, Facts facts);
  void undo(size_t values, size_t nodes, size_t inputs);
  Facts known_of(Kind kind, const Ids& inputs) const;
  Facts within_body(ValueId id, Kind kind, const Ids& inputs) const;
  bool accept(ValueId id, Kind kind, const Ids& inputs);

  RandomGraph made_;
  std::vector<Facts> facts_;
  Ids kept_, hidden_;
  Rng rng_;
  bool whole_ = false;
  DType dtype_ = DType::kFloat32;
  int64_t largest_ = 19;
};

template <typename Fits>
Ids GraphMaker::all_that(const Fits& fits) const {
  Ids fitting;
  for (int32_t v = 0; v < static_cast<int32_t>(graph().values.size()); ++v) {
    const ValueId id{v};
    if (!value(id).constant && !facts(id).apart && fits(id)) fitting.push_back(id);
  }
  return fitting;
}

template <typename Fits>
ValueId GraphMaker::pick(const Fits& fits, const Ints& otherwise) {
  const Ids fitting = all_that([&](ValueId id) { return rank(id) > 0 && fits(id); });
  if (fitting.empty() || one_in(8)) return fresh(dtype_, otherwise);
  const int64_t n = std::ssize(fitting);
  return fitting[std::max({rng_.below(n), rng_.below(n), rng_.below(n)})];
}

}  // namespace pruner
