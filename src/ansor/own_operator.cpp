#include "ansor/own_operator.h"

#include <algorithm>
#include <set>

#include "ansor/own_points.h"
#include "space/access.h"

namespace pruner::ansor {

namespace {

/// A load of the anchor: the iterators in each index.
struct Operand {
  StageId stage;
  std::vector<std::set<int>> iterators;        // iterators in the index of each dimension
  std::vector<std::optional<Affine>> indices;  // affine form of each index, if it has one

  bool has(int iterator) const {
    return std::ranges::any_of(iterators, [&](const auto& i) { return i.contains(iterator); });
  }
};

std::vector<Operand> operands_of(const Stage& stage) {
  std::vector<Operand> operands;
  visit_uses(stage.body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read == nullptr) return;
    Operand operand{read->tensor, {}, {}};
    for (const Expr& index : read->indices) {
      std::set<int>& in = operand.iterators.emplace_back();
      visit(index, [&](const Expr& part) {
        if (const Var* var = as<Var>(part)) in.insert(var->id.value);
      });
      operand.indices.push_back(to_affine(index));
    }
    operands.push_back(std::move(operand));
  });
  return operands;
}

int64_t extent_of(const Stage& stage, int iterator) {
  const auto i = static_cast<size_t>(iterator);
  return i < stage.axes.size() ? stage.axes[i].extent
                               : stage.reduce_axes[i - stage.axes.size()].extent;
}

/// One dimension of a window: output places and the taps at each.
struct WindowDim {
  size_t dim;  // dimension of the data
  int place, tap;
  int64_t stride, dilation;
};

class OperatorReader {
 public:
  explicit OperatorReader(const ComputeDag& dag) : dag_(dag) {}

  std::optional<OwnOperator> read() {
    if (!find_anchor() || !find_operands() || !find_windows() || !find_roles()) return std::nullopt;
    const std::string text = operator_text();
    if (text.empty()) return std::nullopt;
    read_epilogue();
    found_.text = text + epilogue_;
    // Networks have one name for products with and without batches.
    const std::string_view batch = "batch_";
    found_.name = found_.text.starts_with(batch) ? found_.text.substr(batch.size()) : found_.text;
    found_.anchor = anchor().name;
    found_.data = dag_[data_.stage].name;
    if (weight_.stage.valid()) found_.weight = dag_[weight_.stage].name;
    return std::move(found_);
  }

 private:
  const Stage& anchor() const { return dag_[anchor_]; }
  bool is_spatial(int iterator) const { return iterator < static_cast<int>(anchor().axes.size()); }
  std::vector<int>& axes(AxisRole role) { return found_.axes[static_cast<size_t>(role)]; }
  int64_t size(AxisRole role) const {
    int64_t elements = 1;
    for (const int i : found_.axes[static_cast<size_t>(role)]) elements *= extent_of(anchor(), i);
    return elements;
  }

  /// The one contraction, or else the one reduction.
  bool find_anchor() {
    std::vector<StageId> contractions, reductions;
    for (int s = 0; s < dag_.size(); ++s) {
      if (!dag_[StageId{s}].is_reduction()) continue;
      reductions.push_back(StageId{s});
      if (needs_multi_level_tiling(dag_, StageId{s})) contractions.push_back(StageId{s});
    }
    const std::vector<StageId>& from = contractions.empty() ? reductions : contractions;
    if (from.size() != 1) return false;
    anchor_ = from[0];
    return true;
  }

  // The data are what a window moves over, or what has the first axis that the other has not.
  bool find_operands() {
    std::vector<Operand> operands = operands_of(anchor());
    if (operands.empty() || operands.size() > 2) return false;
    if (operands.size() == 2) {
      size_t data = 0;
      for (int i = static_cast<int>(anchor().axes.size()) - 1; i >= 0; --i) {
        if (operands[0].has(i) != operands[1].has(i)) data = operands[0].has(i) ? 0 : 1;
      }
      for (size_t o = 0; o < 2; ++o) {
        if (!windows_of(operands[o]).empty()) data = o;
      }
      weight_ = operands[1 - data];
      operands[0] = operands[data];
    }
    data_ = operands[0];
    return true;
  }

  std::vector<WindowDim> windows_of(const Operand& operand) const {
    std::vector<WindowDim> windows;
    for (size_t d = 0; d < operand.indices.size(); ++d) {
      const std::optional<Affine>& index = operand.indices[d];
      if (!index || index->terms.size() != 2) continue;
      const auto& [place, stride] = index->terms[0];
      const auto& [tap, dilation] = index->terms[1];
      if (is_spatial(place.value) && !is_spatial(tap.value))
        windows.push_back({d, place.value, tap.value, stride, dilation});
    }
    return windows;
  }

  bool find_windows() {
    windows_ = windows_of(data_);
    return windows_.empty() ? weight_.stage.valid() : windows_.size() == 2;
  }

  bool find_roles() {
    found_.axes.resize(kAxisRoles);
    for (size_t w = 0; w < windows_.size(); ++w) {
      axes(w == 0 ? AxisRole::kHeight : AxisRole::kWidth).push_back(windows_[w].place);
      axes(w == 0 ? AxisRole::kWindowHeight : AxisRole::kWindowWidth).push_back(windows_[w].tap);
    }
    const int spatial = static_cast<int>(anchor().axes.size());
    const int iterators = spatial + static_cast<int>(anchor().reduce_axes.size());
    for (int i = 0; i < iterators; ++i) {
      const bool windowed = std::ranges::any_of(
          windows_, [&](const WindowDim& w) { return w.place == i || w.tap == i; });
      if (windowed) continue;
      const bool in_data = data_.has(i), in_weight = weight_.stage.valid() && weight_.has(i);
      if (!is_spatial(i)) {
        if (!in_data) return false;
        axes(AxisRole::kInner).push_back(i);
      } else if (in_data && (in_weight || (!weight_.stage.valid() && i > 0))) {
        axes(AxisRole::kShared).push_back(i);
      } else if (in_weight) {
        axes(AxisRole::kColumns).push_back(i);
      } else if (in_data || extent_of(anchor(), i) == 1) {
        axes(AxisRole::kRows).push_back(i);
      } else {
        return false;
      }
    }
    return true;
  }

  std::string operator_text() const {
    const auto list = [](const std::string& name, std::initializer_list<int64_t> values) {
      std::string text = name;
      for (const int64_t value : values) text += " " + std::to_string(value);
      return text;
    };
    const int64_t rows = size(AxisRole::kRows), shared = size(AxisRole::kShared),
                  columns = size(AxisRole::kColumns), inner = size(AxisRole::kInner);
    const std::string bits = dag_[data_.stage].dtype == DType::kFloat16 ? " bits=16" : "";
    if (windows_.empty()) {
      if (shared > 1) return list("batch_matmul", {shared, rows, columns, inner}) + bits;
      const std::set<int>& last = weight_.iterators.back();
      const bool transposed = std::ranges::none_of(last, [&](int i) { return is_spatial(i); });
      return list(transposed ? "dense" : "matmul", {rows, columns, inner}) + bits;
    }
    const int64_t height = size(AxisRole::kHeight), width = size(AxisRole::kWidth),
                  taps_high = size(AxisRole::kWindowHeight),
                  taps_wide = size(AxisRole::kWindowWidth);
    const bool pooled = !weight_.stage.valid();
    if (!pooled && inner > 1 && shared > 1) return "";  // groups
    if (pooled && inner > 1) return "";
    const std::string window = window_text(taps_high, taps_wide);
    if (pooled) {
      const std::string kind = anchor().combiner == Combiner::kMax   ? "max_pool2d"
                               : anchor().combiner == Combiner::kSum ? "avg_pool2d"
                                                                     : "";
      return kind.empty()
                 ? kind
                 : list(kind, {rows, shared, height, width, taps_high, taps_wide}) + window;
    }
    if (columns == 1 && shared > 1)
      return list("depthwise_conv2d", {rows, shared, height, width, taps_high, taps_wide}) + window;
    return list("conv2d", {rows, columns, height, width, inner, taps_high, taps_wide}) + window +
           bits;
  }

  /// Strides, dilations, and the padding that the windows need beyond what there is.
  std::string window_text(int64_t taps_high, int64_t taps_wide) const {
    const int64_t taps[] = {taps_high, taps_wide};
    std::string strides, dilations;
    int64_t before[2], after[2];
    bool dilated = false;
    for (size_t w = 0; w < 2; ++w) {
      const WindowDim& window = windows_[w];
      const int64_t places = extent_of(anchor(), window.place);
      const int64_t needed = (places - 1) * window.stride + window.dilation * (taps[w] - 1) + 1;
      const int64_t missing = std::max<int64_t>(0, needed - source_extent(window.dim, needed));
      const int64_t most =
          anchor().combiner == Combiner::kMax || !weight_.stage.valid() ? taps[w] - 1 : missing;
      before[w] = std::min(missing / 2, most);
      after[w] = std::min(missing - missing / 2, most);
      strides += (w == 0 ? " stride=" : ",") + std::to_string(window.stride);
      dilations += (w == 0 ? " dilation=" : ",") + std::to_string(window.dilation);
      dilated = dilated || window.dilation > 1;
    }
    std::string text = strides;
    text += " padding=" + std::to_string(before[0]) + "," + std::to_string(before[1]) + "," +
            std::to_string(after[0]) + "," + std::to_string(after[1]);
    return dilated ? text + dilations : text;
  }

  /// Returns the extent of dimension `dim` before the data were padded. Returns `otherwise` if the
  /// data do not come from one stage of the same rank.
  int64_t source_extent(size_t dim, int64_t otherwise) const {
    const std::vector<StageId> producers = dag_.producers(data_.stage);
    if (producers.size() != 1) return otherwise;
    const Stage& source = dag_[producers[0]];
    return dim < source.axes.size() && source.axes.size() == dag_[data_.stage].axes.size()
               ? source.axes[dim].extent
               : otherwise;
  }

  // Stages that follow element by element, by the names of operators' epilogues; others have none.
  void read_epilogue() {
    StageId at = anchor_;
    for (;;) {
      const std::vector<StageId> readers = dag_.consumers(at);
      if (readers.size() != 1 || !reads_elementwise(dag_, readers[0], at)) break;
      const Stage& reader = dag_[readers[0]];
      const Binary* body = as<Binary>(reader.body);
      if (body != nullptr && body->op == BinaryOp::kAdd) {
        const Load* a = as<Load>(body->a);
        const Load* b = as<Load>(body->b);
        const Load* other = a != nullptr && a->tensor == at ? b : a;
        if (other != nullptr) {
          const bool whole = dag_[other->tensor].num_elements() == reader.num_elements();
          epilogue_ += whole ? " +residual" : " +bias";
        }
      }
      if (body != nullptr && body->op == BinaryOp::kMax) {
        const FloatImm* least = as<FloatImm>(body->b);
        if (least != nullptr && least->value == 0) epilogue_ += " +relu";
      }
      at = readers[0];
    }
    found_.root = dag_[at].name;
  }

  const ComputeDag& dag_;
  StageId anchor_;
  Operand data_, weight_;
  std::vector<WindowDim> windows_;
  std::string epilogue_;
  OwnOperator found_;
};

}  // namespace

std::optional<OwnOperator> own_operator(const ComputeDag& dag) {
  return OperatorReader(dag).read();
}

PointMatch match_operator(SketchId id,
                          const Sketch& sketch,
                          const OwnOperator& ours,
                          const OwnOperator& record,
                          const Structure& structure) {
  const auto name = [&](const StagePlan& plan) {
    const std::string& own = sketch.dag[plan.stage].name;
    const std::string base = own.substr(0, own.find('.'));
    const std::string suffix = own.substr(base.size());
    if (plan.stage == plan.root && !sketch.dag[plan.stage].is_reduction()) return record.root;
    if (base == ours.anchor) return record.anchor;
    if (base == ours.data) return record.data + suffix;
    if (base == ours.weight) return record.weight + suffix;
    return own;
  };
  PointMatch match = match_by_name(id, sketch, structure, name);
  for (size_t role = 0; role < kAxisRoles; ++role) {
    for (const int i : ours.axes[role]) {
      match.axes.resize(std::max(match.axes.size(), static_cast<size_t>(i) + 1));
      match.axes[i] = record.axes[role];
    }
  }
  return match;
}

}  // namespace pruner::ansor
