#include "graph/partition_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <ranges>

#include "graph/evaluate.h"
#include "support/check.h"
#include "support/cpu_budget.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/mend.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr int kPoints = 8;  // extents that are sampled for each symbol
// The most shapes of a box whose formulas are made of all shapes; stages behind found values are
// small.
constexpr int64_t kFewShapes = 12, kFewFoundShapes = 64;
constexpr int kMostRounds = 40;       // rounds in which formulas are found anew
constexpr int kMostAttempts = 24;     // attempts with other hints
constexpr int64_t kMostLiteral = 16;  // elements of a constant that stands in the code

/// Returns how two partitions differ in more than numbers; empty if only numbers differ.
std::string difference(const Partition& a, const Partition& b) {
  if (a.groups.size() != b.groups.size())
    return fmt::format("there are {} kernels and {}", a.groups.size(), b.groups.size());
  if (a.values.size() != b.values.size()) return "there are other values";
  if (a.inputs != b.inputs || a.outputs != b.outputs) return "there are other inputs or outputs";
  for (size_t v = 0; v < a.values.size(); ++v) {
    const PlannedValue &x = a.values[v], &y = b.values[v];
    const bool placed = x.alias_of == y.alias_of && x.joined == y.joined &&
                        x.slice.has_value() == y.slice.has_value() &&
                        x.constant.has_value() == y.constant.has_value();
    if (!placed || x.dtype != y.dtype || x.shape.size() != y.shape.size())
      return fmt::format("\"{}\" is another value", x.name);
    if (x.slice && (x.slice->of != y.slice->of || x.slice->axis != y.slice->axis ||
                    x.slice->start != y.slice->start))
      return fmt::format("\"{}\" begins elsewhere", x.name);
  }
  for (size_t g = 0; g < a.groups.size(); ++g) {
    const Group &x = a.groups[g], &y = b.groups[g];
    if (x.inputs != y.inputs || x.output != y.output || x.routine != y.routine)
      return fmt::format("\"{}\" is \"{}\"", x.name, y.name);
    if (x.routine != nullptr && y.workspace_bytes > x.workspace_bytes)
      return fmt::format("\"{}\" needs more memory", x.name);
    if (const Result<Unit> alike = DagRange::check_alike(x.dag, y.dag); !alike.ok())
      return fmt::format("\"{}\": {}", x.name, alike.error().message());
  }
  return "";
}

/// Whether `part` is the box of `whole` that begins with its first element.
bool is_box_of(const Tensor& part, const Tensor& whole) {
  if (part.dtype() != whole.dtype() || part.shape().size() != whole.shape().size()) return false;
  if (part.data() == whole.data() && part.shape() == whole.shape()) return true;
  const auto* from = static_cast<const char*>(part.data());
  const auto* in = static_cast<const char*>(whole.data());
  // Rows, of which a last dim is one, are compared at once.
  const std::vector<int64_t>&small = part.shape(), &large = whole.shape();
  const size_t rank = small.size();
  for (size_t d = 0; d < rank; ++d)
    if (small[d] > large[d]) return false;
  const int64_t row = rank == 0 ? 1 : small.back();
  const auto bytes = static_cast<size_t>(row * dtype_bytes(part.dtype()));
  const int64_t rows = part.num_elements() / std::max<int64_t>(row, 1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t left = r, at = 0, stride = rank == 0 ? 1 : large.back();
    for (size_t d = rank - std::min<size_t>(rank, 1); d-- > 0;) {
      at += left % small[d] * stride;
      left /= small[d];
      stride *= large[d];
    }
    if (std::memcmp(from + static_cast<size_t>(r) * bytes,
                    in + static_cast<size_t>(at * dtype_bytes(part.dtype())),
                    bytes) != 0)
      return false;
  }
  return true;
}

/// The box of `whole` that begins with its first element.
Tensor box_of(const Tensor& whole, const std::vector<int64_t>& shape) {
  if (whole.shape() == shape) return whole;
  Tensor part(whole.dtype(), shape);
  const size_t rank = shape.size();
  const int64_t row = rank == 0 ? 1 : shape.back();
  const auto bytes = static_cast<size_t>(row * dtype_bytes(whole.dtype()));
  const int64_t rows = row == 0 ? 0 : part.num_elements() / row;
  const auto* from = static_cast<const std::byte*>(whole.data());
  auto* to = static_cast<std::byte*>(part.data());
  for (int64_t r = 0; r < rows; ++r) {
    int64_t left = r, at = 0, stride = rank == 0 ? 1 : whole.shape().back();
    for (size_t d = rank - std::min<size_t>(rank, 1); d-- > 0;) {
      at += left % shape[d] * stride;
      left /= shape[d];
      stride *= whole.shape()[d];
    }
    std::memcpy(to + static_cast<size_t>(r) * bytes, from + at * dtype_bytes(whole.dtype()), bytes);
  }
  return part;
}

/// Outputs that are a few integers which follow from the shapes, as the Shape of a value: the
/// values that have them.
std::vector<ValueId> numbers_given(const Partition& partition) {
  const std::set<ValueId> read = values_read(partition);
  std::vector<ValueId> numbers;
  for (const ValueId output : partition.outputs) {
    const ValueId owner = partition.storage_of(output).owner;
    const std::optional<Tensor>& constant = partition[owner].constant;
    if (constant && constant->dtype() == DType::kInt64 && !read.contains(owner) &&
        constant->num_elements() <= kMostLiteral)
      numbers.push_back(owner);
  }
  return numbers;
}

std::vector<int64_t> integers_of(const Tensor& tensor) {
  const auto values = tensor.values<int64_t>();
  return {values.begin(), values.end()};
}

/// Every extent, every DAG and the numbers that are given of a network at one shape, as one number.
uint64_t fingerprint(const std::vector<std::vector<int64_t>>& shapes,
                     const std::vector<std::string>& dags) {
  Hasher64 hasher;
  for (const std::vector<int64_t>& shape : shapes)
    hasher.add({reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof(int64_t)});
  for (const std::string& dag : dags) hasher.add(dag);
  return hasher.hash();
}

/// The value that has the parameters of a routine's group.
ValueId parameters_of(const Group& group) { return group.inputs.back(); }

std::vector<int64_t> parameters_in(const Partition& partition, const Group& group) {
  return integers_of(*partition[parameters_of(group)].constant);
}

uint64_t fingerprint(const Partition& partition, std::span<const ValueId> numbers) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> dags;
  for (const PlannedValue& value : partition.values) shapes.push_back(value.shape);
  for (const ValueId id : numbers)
    if (const std::optional<Tensor>& constant = partition[id].constant)
      shapes.push_back(integers_of(*constant));
  for (const Group& group : partition.groups) dags.push_back(group.key);
  return fingerprint(shapes, dags);
}

/// The parameters of a routine's group at one shape of a range.
std::vector<int64_t> parameters_at(const PartitionRange& range,
                                   size_t g,
                                   const SymbolValues& values) {
  const Group& group = range.largest.groups[g];
  const auto varying = range.parameters.find(parameters_of(group));
  return varying == range.parameters.end() ? parameters_in(range.largest, group)
                                           : evaluate_formulas(varying->second, values);
}

/// The fingerprint of a range at one shape, by the range's formulas.
class RangeFingerprint {
 public:
  explicit RangeFingerprint(const PartitionRange& range) : range_(range) {
    for (const ValueId id : numbers_given(range.largest))
      if (range.parameters.contains(id)) numbers_.push_back(id);
    std::map<std::string, size_t> known;
    for (size_t g = 0; g < range.dags.size(); ++g) {
      size_t place = distinct_.size();
      if (range.largest.groups[g].routine == nullptr)
        place = known.try_emplace(range.dags[g].key(), place).first->second;
      if (place == distinct_.size()) distinct_.push_back(g);
      of_group_.push_back(place);
    }
  }

  /// Returns the fingerprint of the network as it was imported at one shape.
  uint64_t of(const Partition& at) const { return fingerprint(at, numbers_); }

  uint64_t at(const SymbolValues& values) const {
    std::vector<std::vector<int64_t>> shapes;
    for (const std::vector<Expr>& shape : range_.shapes)
      shapes.push_back(evaluate_formulas(shape, values));
    for (const ValueId id : numbers_)
      shapes.push_back(evaluate_formulas(range_.parameters.at(id), values));
    std::vector<std::string> keys, dags;
    for (const size_t g : distinct_) keys.push_back(key_at(g, values));
    for (const size_t d : of_group_) dags.push_back(keys[d]);
    return fingerprint(shapes, dags);
  }

 private:
  /// Group::key.
  std::string key_at(size_t g, const SymbolValues& values) const {
    const Routine* const routine = range_.largest.groups[g].routine;
    if (routine == nullptr) return workload_key(range_.dags[g].at(values));
    const auto extents = range_.index_extents.find(g);
    return routine_key(*routine,
                       parameters_at(range_, g, values),
                       extents == range_.index_extents.end()
                           ? std::vector<int64_t>{}
                           : evaluate_formulas(extents->second, values));
  }

  const PartitionRange& range_;
  std::vector<ValueId> numbers_;
  std::vector<size_t> distinct_;  // groups whose DAGs are unlike, and all that run routines
  std::vector<size_t> of_group_;  // each group's place among these
};

/// Imports each shape once. Constants, which are as large as the network, are held once.
class Shapes {
 public:
  Shapes(std::span<const Symbol> symbols, const PartitionAt& at) : symbols_(symbols), at_(at) {}

  Result<const Partition*> at(const SymbolValues& values) {
    const auto known = made_.find(values);
    if (known != made_.end()) return &known->second;
    Result<Partition> made = at_(values);
    if (!made.ok()) return Error("at ", print(symbols_, values), ": ", made.error().message());
    if (!made_.empty()) share_constants(*made, made_.begin()->second);
    return &made_.emplace(values, *std::move(made)).first->second;
  }
  const std::map<SymbolValues, Partition>& all() const { return made_; }

  /// Calls `judge`, in several threads, with the network at each of these shapes, which is not
  /// kept; then `look` with what `judge` returned, in the order of the shapes, until it returns
  /// false.
  template <typename Judge, typename Look>
  Result<Unit> each(std::span<const SymbolValues> shapes,
                    const Judge& judge,
                    const Look& look) const {
    using Verdict = std::invoke_result_t<Judge, const SymbolValues&, const Partition&>;
    constexpr size_t kBatch = 16;
    const int jobs = usable_cpus();
    for (size_t from = 0; from < shapes.size(); from += kBatch) {
      const std::span some = shapes.subspan(from, std::min(kBatch, shapes.size() - from));
      std::vector<std::optional<Result<Verdict>>> judged(some.size());
      parallel_for(std::ssize(some), jobs, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        const auto known = made_.find(some[at]);
        if (known != made_.end()) {
          judged[at] = judge(some[at], known->second);
          return;
        }
        const Result<Partition> made = at_(some[at]);
        judged[at] = made.ok() ? Result<Verdict>(judge(some[at], *made)) : made.error();
      });
      for (size_t i = 0; i < some.size(); ++i) {
        if (!judged[i]->ok())
          return Error("at ", print(symbols_, some[i]), ": ", judged[i]->error().message());
        if (!look(some[i], **judged[i])) return Unit{};
      }
    }
    return Unit{};
  }

 private:
  static void share_constants(Partition& partition, const Partition& with) {
    const size_t values = std::min(partition.values.size(), with.values.size());
    for (size_t v = 0; v < values; ++v) {
      std::optional<Tensor>& own = partition.values[v].constant;
      const std::optional<Tensor>& other = with.values[v].constant;
      if (own && other && own->shape() == other->shape() && is_box_of(*own, *other)) own = other;
    }
  }

  std::span<const Symbol> symbols_;
  const PartitionAt& at_;
  std::map<SymbolValues, Partition> made_;
};

/// Whether a box of a tensor that begins with its first element is a run of its bytes.
bool is_dense(const std::vector<int64_t>& box, const std::vector<int64_t>& of) {
  return std::ranges::equal(box | std::views::drop(1), of | std::views::drop(1));
}

/// Constants that groups or outputs read and whose values at a shape are no box of those at the
/// greatest, which has the same structure: their names there, and their elements at the greatest.
/// An output is copied, and a routine's input read, as a run of bytes. If a constant's box is no
/// such run, a kernel has to compute the constant, however small it is.
using Varying = std::vector<std::pair<std::string, int64_t>>;
Varying varying_constants(const Partition& largest, const Partition& at) {
  std::set<ValueId> read = values_read(largest), runs;
  for (const ValueId output : largest.outputs) runs.insert(largest.storage_of(output).owner);
  for (const Group& group : largest.groups)
    for (const ValueId input : group.inputs)
      if (group.routine != nullptr) runs.insert(largest.storage_of(input).owner);
  read.insert(runs.begin(), runs.end());
  // Numbers of routines have formulas, as those that are given.
  for (const Group& group : largest.groups)
    if (group.routine != nullptr) read.erase(parameters_of(group));
  for (const ValueId id : numbers_given(largest))
    if (at[id].shape == largest[id].shape) read.erase(id);
  Varying varying;
  for (const ValueId id : read) {
    const PlannedValue& own = at.values[id.value];
    if (!own.constant ||
        (own.constant->num_elements() == 0 && largest[id].constant->num_elements() == 0))
      continue;
    if (runs.contains(id) && !is_dense(own.shape, largest[id].shape)) {
      varying.emplace_back(own.name, std::numeric_limits<int64_t>::max());
    } else if (!is_box_of(*own.constant, *largest[id].constant)) {
      varying.emplace_back(own.name, largest[id].constant->num_elements());
    }
  }
  return varying;
}

/// The error names a convolution whose taps are fewer at some shapes. Its weights are packed, and
/// packed weights of fewer taps are no box of those of all.
Result<Unit> check_kernel_sizes(const PartitionRange& range) {
  for (const Node& node : range.largest.graph->nodes) {
    if (node.op != "Conv" || !range.largest[node.inputs[1]].constant) continue;
    for (const Expr& extent : range.shapes[node.inputs[1].value])
      if (as<IntImm>(extent) == nullptr)
        return Error(node_label(*range.largest.graph, node), " has fewer taps at other shapes");
  }
  return Unit{};
}

/// A formula for each place of lists of numbers, one list a point of the finder. The error names a
/// place that has none, as `name_of` calls it.
template <typename NameOf>
Result<std::vector<Expr>> formulas_of(const std::vector<std::vector<int64_t>>& lists,
                                      FormulaFinder& finder,
                                      const NameOf& name_of) {
  std::vector<Expr> formulas;
  for (size_t i = 0; i < lists.front().size(); ++i) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& list : lists) values.push_back(list[i]);
    const std::optional<Expr> formula = finder.find(values);
    if (!formula) return Error(name_of(i), " is no formula of the dimensions");
    formulas.push_back(*formula);
  }
  return formulas;
}

/// The formulas of what a routine is told of its shapes, from a network at some points.
Result<Unit> add_routine(std::span<const Partition* const> at_points,
                         size_t g,
                         FormulaFinder& finder,
                         PartitionRange& range) {
  const Group& group = range.largest.groups[g];
  std::vector<std::vector<int64_t>> numbers;  // at each point: the parameters, then the extents
  for (const Partition* at : at_points) {
    numbers.push_back(parameters_in(*at, at->groups[g]));
    const std::vector<int64_t>& extents = at->groups[g].index_extents;
    numbers.back().insert(numbers.back().end(), extents.begin(), extents.end());
    if (numbers.back().size() != numbers.front().size())
      return Error(group.name, ": it has more parameters at other shapes");
  }
  TRY_ASSIGN(std::vector<Expr> formulas, formulas_of(numbers, finder, [&](size_t i) {
               return fmt::format("{}: parameter {}", group.name, i);
             }));
  if (const auto count = static_cast<long>(group.index_extents.size()); count > 0) {
    range.index_extents.emplace(g, std::vector(formulas.end() - count, formulas.end()));
    formulas.erase(formulas.end() - count, formulas.end());
  }
  if (std::ranges::any_of(formulas, [](const Expr& e) { return as<IntImm>(e) == nullptr; }))
    range.parameters.emplace(parameters_of(group), std::move(formulas));
  return Unit{};
}

/// The range that partitions of one structure, at some points, are of; or the number without a
/// formula.
Result<PartitionRange> generalize(std::span<const Symbol> symbols,
                                  const SymbolBox& box,
                                  std::span<const Partition* const> at_points,
                                  const std::vector<SymbolValues>& points,
                                  Partition largest) {
  FormulaFinder finder(symbols, points);
  if (std::ssize(points) == box.num_shapes()) finder.note_all();
  PartitionRange range{box, std::move(largest), {}, {}, {}, {}};
  for (size_t v = 0; v < range.largest.values.size(); ++v) {
    const PlannedValue& value = range.largest.values[v];
    std::vector<std::vector<int64_t>> shapes;
    for (const Partition* at : at_points) shapes.push_back(at->values[v].shape);
    TRY_ASSIGN(std::vector<Expr> shape, formulas_of(shapes, finder, [&](size_t d) {
                 return fmt::format("axis {} of \"{}\"", d, value.name);
               }));
    range.shapes.push_back(std::move(shape));
  }
  for (const ValueId id : numbers_given(range.largest)) {
    // One of another length is a box of the longest.
    const auto is_like = [&](const Partition* at) {
      return (*at)[id].shape == range.largest[id].shape;
    };
    if (!std::ranges::all_of(at_points, is_like)) continue;
    std::vector<std::vector<int64_t>> numbers;
    for (const Partition* at : at_points) numbers.push_back(integers_of(*(*at)[id].constant));
    TRY_ASSIGN(std::vector<Expr> formulas, formulas_of(numbers, finder, [&](size_t i) {
                 return fmt::format("element {} of \"{}\"", i, range.largest[id].name);
               }));
    range.parameters.emplace(id, std::move(formulas));
  }
  for (size_t g = 0; g < range.largest.groups.size(); ++g) {
    if (range.largest.groups[g].routine != nullptr) TRY(add_routine(at_points, g, finder, range));
    std::vector<const ComputeDag*> dags;
    for (const Partition* at : at_points) dags.push_back(&at->groups[g].dag);
    Result<DagRange> dag = DagRange::of(dags, finder);
    if (!dag.ok()) return Error(range.largest.groups[g].name, ": ", dag.error().message());
    range.dags.push_back(*std::move(dag));
  }
  return range;
}

class Ranges {
 public:
  Ranges(std::span<const Symbol> symbols, const PartitionAt& at)
      : symbols_(symbols), shapes_(symbols, at) {}

  /// Returns the formulas of the input shapes, found from all shapes that were looked at.
  Result<std::vector<std::vector<Expr>>> input_shapes() {
    std::vector<SymbolValues> points;
    for (const auto& [values, partition] : shapes_.all()) points.push_back(values);
    FormulaFinder finder(symbols_, points);
    const Partition& first = shapes_.all().begin()->second;
    std::vector<std::vector<Expr>> shapes;
    for (size_t i = 0; i < first.inputs.size(); ++i) {
      std::vector<std::vector<int64_t>> extents;
      for (const auto& [values, partition] : shapes_.all())
        extents.push_back(partition[partition.inputs[i]].shape);
      TRY_ASSIGN(std::vector<Expr> shape, formulas_of(extents, finder, [&](size_t d) {
                   return fmt::format("axis {} of input \"{}\"", d, first[first.inputs[i]].name);
                 }));
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

  /// Constants that had other values at other shapes, with their elements at the greatest.
  const std::map<std::string, int64_t>& varying() const { return varying_; }

  Result<std::vector<PartitionRange>> run() {
    const Result<Unit> covered = cover(box_of(symbols_));
    if (covered.ok() && ranges_.size() <= kMostRanges) return std::move(ranges_);
    const bool none =
        std::ranges::all_of(symbols_, [](const Symbol& s) { return s.matters.empty(); });
    if (!covered.ok() && none) return covered.error();
    return shapes_that_matter();
  }

  Result<std::vector<PartitionRange>> run_each() {
    std::vector<std::vector<int64_t>> extents = extents_that_matter();
    if (box_of(symbols_).num_shapes() <= kMostApart) {
      for (size_t s = 0; s < symbols_.size(); ++s) {
        extents[s].clear();
        for (int64_t n = symbols_[s].max; n >= symbols_[s].min; --n) extents[s].push_back(n);
      }
    }
    const std::vector<SymbolValues> chosen = shapes_of(extents);
    if (!chosen.empty() && std::ssize(chosen) <= kMostApart) return ranges_at(chosen);
    return Error("a kernel for GPUs is for one shape, and a module has kernels for at most ",
                 kMostApart,
                 " shapes; say at which it is to run, as --dim ",
                 example());
  }

 private:
  /// Covers the box with one range, or a part of the box with one and then the rest, by symbols.
  Result<Unit> cover(const SymbolBox& box) {
    if (ranges_.size() > kMostRanges) return Unit{};
    const Result<const Partition*> at_largest = shapes_.at(box.max);
    if (!at_largest.ok() && has_nothing(box.max)) {
      log_detail("no network {}", at_largest.error().message());
      return cover_without(box);
    }
    TRY_ASSIGN(const Partition* largest, at_largest);
    SymbolBox part = box;
    if (box.min != box.max) {
      TRY_ASSIGN(part.min, corner(box));
    }
    TRY_ASSIGN(PartitionRange range, range_of(part, *largest));
    ranges_.push_back(std::move(range));
    SymbolBox left = box;
    for (size_t s = 0; s < box.min.size(); ++s) {
      if (part.min[s] == box.min[s]) continue;
      left.max = box.max;
      left.min[s] = box.min[s];
      left.max[s] = part.min[s] - 1;
      TRY(cover(left));
      left.min[s] = part.min[s];
    }
    return Unit{};
  }

  static bool has_nothing(const SymbolValues& values) {
    return std::ranges::find(values, 0) != values.end();
  }

  /// Covers a box in which a symbol may be 0 and whose greatest shape is no network: another symbol
  /// may have to be 0, too. Shapes that are no network are left without a range.
  Result<Unit> cover_without(const SymbolBox& box) {
    for (size_t s = 0; s < box.min.size(); ++s) {
      if (box.min[s] > 0 || box.max[s] == 0) continue;
      SymbolBox none = box, some = box;
      none.max[s] = 0;
      some.min[s] = 1;
      TRY(cover(none));
      return cover(some);
    }
    return Unit{};
  }

  /// The least shape that has the structure of the greatest, and so all between them: symbol after
  /// symbol, the others at their greatest first and at their least in the end.
  Result<SymbolValues> corner(const SymbolBox& box) {
    SymbolValues corner = box.max;
    for (size_t s = 0; s < corner.size(); ++s) {
      int64_t unlike = box.min[s] - 1;  // the greatest of these known
      int64_t next = box.min[s];
      while (unlike + 1 < corner[s]) {
        SymbolValues values = corner;
        values[s] = next;
        TRY_ASSIGN(const bool alike, is_like_largest(values, box));
        (alike ? corner[s] : unlike) = next;
        next = next == box.min[s] && !alike ? next + 1 : unlike + (corner[s] - unlike) / 2;
      }
    }
    return corner;
  }

  Result<bool> is_like_largest(const SymbolValues& values, const SymbolBox& box) {
    TRY_ASSIGN(const Partition* largest, shapes_.at(box.max));
    const Result<const Partition*> at_other = shapes_.at(values);
    if (!at_other.ok() && has_nothing(values)) return false;
    TRY_ASSIGN(const Partition* other, at_other);
    const std::string differs = difference(*largest, *other);
    if (!differs.empty() && difference_.empty())
      difference_ = fmt::format("at {} {}", print(symbols_, values), differs);
    return differs.empty();
  }

  Result<PartitionRange> range_of(const SymbolBox& box, const Partition& largest) {
    std::vector<SymbolValues> points = generic_points(box, kPoints);
    for (const SymbolValues& end : {box.min, box.max})
      if (std::ranges::find(points, end) == points.end()) points.push_back(end);
    if (box.min == box.max) points = {box.max};
    // A few shapes are all compared in any case, and no formula is found at a part of them.
    const bool found = std::ranges::any_of(symbols_, &Symbol::found);
    if (box.num_shapes() <= (found ? kFewFoundShapes : kFewShapes))
      points = checked_shapes(box, {}, {}).shapes;
    const bool checks = is_in(Mend::kCheckedExtents);
    std::map<SymbolValues, uint64_t> imported;  // fingerprints
    // Each round adds a shape at which a formula of the round before was wrong.
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<const Partition*> at_points;
      for (const SymbolValues& point : points) {
        TRY_ASSIGN(const Partition* at, shapes_.at(point));
        at_points.push_back(at);
      }
      for (const Partition* at : at_points) {
        if (const std::string differs = difference(largest, *at); !differs.empty())
          return Error("the network has another structure at other shapes: ", differs);
        TRY(none_varies(varying_constants(largest, *at), "at other shapes"));
      }
      TRY_ASSIGN(PartitionRange range, generalize(symbols_, box, at_points, points, largest));
      if (range.largest.graph != nullptr) TRY(check_kernel_sizes(range));
      if (box.min == box.max || !checks) return range;
      const std::vector<SymbolValues> shapes =
          checked_shapes(box, extents_of(range), checked_counts(symbols_)).shapes;
      TRY_ASSIGN(const SymbolValues wrong, find_wrong_shape(range, shapes, imported));
      if (wrong.empty()) return range;
      points.push_back(wrong);
    }
    return Error("no formula was found that is right at all shapes, the last one not at ",
                 print(symbols_, points.back()));
  }

  /// Notes all varying constants; the error names the first constant and ends with `where`.
  Result<Unit> none_varies(const Varying& varying, std::string_view where) {
    varying_.insert(varying.begin(), varying.end());
    if (varying.empty()) return Unit{};
    return Error("the constant \"",
                 varying[0].first,
                 "\" has other values ",
                 where,
                 ", which no formula gives; a module for one shape (--dim ",
                 print(symbols_, box_of(symbols_).max),
                 ") has its own");
  }

  /// The first shape at which the range is not what is imported there; empty: there is none.
  Result<SymbolValues> find_wrong_shape(const PartitionRange& range,
                                        const std::vector<SymbolValues>& shapes,
                                        std::map<SymbolValues, uint64_t>& imported) {
    const RangeFingerprint formulas(range);
    std::vector<SymbolValues> open;
    for (const SymbolValues& shape : shapes) {
      const auto known = imported.find(shape);
      if (known == imported.end()) {
        open.push_back(shape);
      } else if (known->second != formulas.at(shape)) {
        return shape;
      }
    }
    struct Verdict {
      std::string difference;  // in structure; empty: none
      Varying varying = {};
      uint64_t imported = 0, of_formulas = 0;
    };
    const auto judge = [&](const SymbolValues& shape, const Partition& at) {
      Verdict verdict{difference(range.largest, at)};
      if (!verdict.difference.empty()) return verdict;
      verdict.varying = varying_constants(range.largest, at);
      if (!verdict.varying.empty()) return verdict;
      verdict.imported = formulas.of(at);
      verdict.of_formulas = formulas.at(shape);
      return verdict;
    };
    SymbolValues wrong;
    std::optional<Error> problem;
    TRY(shapes_.each(open, judge, [&](const SymbolValues& shape, const Verdict& verdict) {
      const std::string here = print(symbols_, shape), greatest = print(symbols_, range.box.max);
      const Result<Unit> same =
          none_varies(verdict.varying, fmt::format("at {} than at {}", here, greatest));
      if (!same.ok()) problem = same.error();
      if (!verdict.difference.empty())
        problem = Error("at ",
                        here,
                        " the network has another structure than at ",
                        greatest,
                        ": ",
                        verdict.difference);
      if (problem) return false;
      imported.emplace(shape, verdict.imported);
      if (verdict.imported != verdict.of_formulas) wrong = shape;
      return wrong.empty();
    }));
    if (problem) return *problem;
    return wrong;
  }

  Result<std::vector<PartitionRange>> shapes_that_matter() {
    const std::vector<SymbolValues> chosen = shapes_of(extents_that_matter());
    if (chosen.empty() || chosen.size() > kMostRanges) {
      return Error("the network has another structure at more than ",
                   kMostRanges,
                   " of its shapes (",
                   difference_,
                   "); say at which it is to run, as --dim ",
                   example());
    }
    return ranges_at(chosen);
  }

  /// Returns the extents of each symbol that matter, the greatest first.
  std::vector<std::vector<int64_t>> extents_that_matter() const {
    std::vector<std::vector<int64_t>> extents;
    for (const Symbol& symbol : symbols_) {
      extents.emplace_back(symbol.matters.rbegin(), symbol.matters.rend());
      if (symbol.min == symbol.max) extents.back() = {symbol.min};
    }
    return extents;
  }

  /// Returns all shapes of these extents of the symbols.
  static std::vector<SymbolValues> shapes_of(const std::vector<std::vector<int64_t>>& extents) {
    std::vector<SymbolValues> shapes = {{}};
    for (const std::vector<int64_t>& of_symbol : extents) {
      std::vector<SymbolValues> longer;
      for (const SymbolValues& values : shapes) {
        for (const int64_t extent : of_symbol) {
          longer.push_back(values);
          longer.back().push_back(extent);
        }
      }
      shapes = std::move(longer);
    }
    return shapes;
  }

  Result<std::vector<PartitionRange>> ranges_at(const std::vector<SymbolValues>& chosen) {
    ranges_.clear();
    for (const SymbolValues& values : chosen) {
      TRY_ASSIGN(const Partition* at, shapes_.at(values));
      TRY_ASSIGN(PartitionRange range, range_of({values, values}, *at));
      ranges_.push_back(std::move(range));
    }
    return std::move(ranges_);
  }

  /// Returns a range of the first symbol with extents that matter, as --dim takes it.
  std::string example() const {
    const Symbol& first = symbols_[0];
    return fmt::format("{0}={1}..{2}@{1},{2}", first.name, first.min, first.max);
  }

  std::span<const Symbol> symbols_;
  Shapes shapes_;
  std::vector<PartitionRange> ranges_;
  std::string difference_;  // the first that was found
  std::map<std::string, int64_t> varying_;
};

}  // namespace

std::vector<Expr> extents_of(const PartitionRange& range) {
  std::vector<Expr> distinct;
  for (const std::vector<Expr>& shape : range.shapes) {
    for (const Expr& e : shape) {
      const auto equals = [&](const Expr& other) { return structural_equal(e, other); };
      if (as<Binary>(e) != nullptr && std::ranges::none_of(distinct, equals)) distinct.push_back(e);
    }
  }
  return distinct;
}

Partition partition_at(const PartitionRange& range,
                       const std::vector<size_t>& groups,
                       const SymbolValues& shape) {
  const Partition& largest = range.largest;
  Partition made{largest.network, {}, largest.groups, largest.inputs, largest.outputs};
  for (size_t v = 0; v < largest.values.size(); ++v) {
    const PlannedValue& value = largest.values[v];
    made.values.push_back({value.name,
                           value.dtype,
                           evaluate_formulas(range.shapes[v], shape),
                           std::nullopt,
                           value.alias_of,
                           value.slice,
                           value.joined});
  }
  for (const size_t g : groups) {
    made.groups[g].dag = range.dags[g].at(shape);
    for (const ValueId input : made.groups[g].inputs) {
      const ValueId owner = largest.storage_of(input).owner;
      PlannedValue& value = made.values[owner.value];
      if (range.parameters.contains(owner)) {
        const std::vector<int64_t> numbers = parameters_at(range, g, shape);
        value.constant = Tensor(DType::kInt64, {std::ssize(numbers)});
        std::ranges::copy(numbers, value.constant->values<int64_t>().begin());
      } else if (largest[owner].constant && !value.constant) {
        value.constant = box_of(*largest[owner].constant, value.shape);
      }
    }
  }
  return made;
}

std::set<ValueId> values_read(const Partition& partition) {
  std::set<ValueId> read;
  for (const Group& group : partition.groups)
    for (const ValueId input : group.inputs) read.insert(partition.storage_of(input).owner);
  return read;
}

namespace {

/// Hints that go further than these; nullopt: they already say all.
std::optional<RangeHints> further(RangeHints hints, const std::map<std::string, int64_t>& varying) {
  bool is_new = false;
  for (const auto& [name, elements] : varying)
    is_new |= (elements <= kMostLiteral ? hints.literals : hints.computed).insert(name).second;
  if (is_new) return hints;
  for (bool RangeHints::*hint : {&RangeHints::keeps_all, &RangeHints::any_extents}) {
    if (hints.*hint) continue;
    hints.*hint = true;
    return hints;
  }
  return std::nullopt;
}

}  // namespace

Result<NetworkRanges> partition_over(const std::vector<Symbol>& symbols,
                                     const HintedPartitionAt& at) {
  std::shared_ptr<const RangeHints> hints;
  std::optional<Error> first;  // first error, which says more of the network than of the hints
  for (int attempt = 0;; ++attempt) {
    const PartitionAt hinted = [at, hints](const SymbolValues& values) {
      return at(values, hints);
    };
    Ranges ranges(symbols, hinted);
    NetworkRanges network{symbols, {}};
    Result<std::vector<PartitionRange>> found = ranges.run();
    if (found.ok()) {
      network.ranges = *std::move(found);
      TRY_ASSIGN(network.input_shapes, ranges.input_shapes());
      network.at = hinted;
      return network;
    }
    log_detail("the shapes are no range as they are: {}", found.error().message());
    if (!first) first = found.error();
    std::optional<RangeHints> more =
        further(hints == nullptr ? RangeHints() : *hints, ranges.varying());
    if (!more || attempt == kMostAttempts) return *first;
    hints = std::make_shared<const RangeHints>(*std::move(more));
  }
}

// The symbols end where the ranges do: a module has a plan for its greatest extents.
static void narrow_symbols(NetworkRanges& network) {
  for (size_t s = 0; s < network.symbols.size(); ++s) {
    Symbol& symbol = network.symbols[s];
    std::swap(symbol.min, symbol.max);
    for (const PartitionRange& range : network.ranges) {
      symbol.min = std::min(symbol.min, range.box.min[s]);
      symbol.max = std::max(symbol.max, range.box.max[s]);
    }
  }
}

Result<NetworkRanges> partition_each(const std::vector<Symbol>& symbols,
                                     const HintedPartitionAt& at) {
  const PartitionAt alone = [at](const SymbolValues& values) { return at(values, nullptr); };
  Ranges ranges(symbols, alone);
  NetworkRanges network{symbols, {}};
  TRY_ASSIGN(network.ranges, ranges.run_each());
  TRY_ASSIGN(network.input_shapes, ranges.input_shapes());
  network.at = alone;
  narrow_symbols(network);
  return network;
}

}  // namespace pruner
