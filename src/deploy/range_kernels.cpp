#include "deploy/range_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "analysis/draft.h"
#include "lower/lower.h"
#include "search/search.h"
#include "space/carry_over.h"
#include "space/precision.h"

namespace pruner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUncovered = 100;      // times the least latency: of a shape that no kernel is for
constexpr double kWorthAKernel = 0.01;  // of the sum of all shapes' shares
constexpr double kMeasuredBetter = 0.98;  // what was measured best is faster than any draft says
constexpr int kRepresentatives = 7;       // of a symbol
constexpr double kOtherWeight = 0.25;     // of shapes beside those that matter
constexpr size_t kMostPackings = 3;       // that are compared

/// The extents of a symbol that stand for its range: those that matter, and some that grow by a
/// factor from end to end.
std::vector<int64_t> representatives(const Symbol& symbol, int64_t min, int64_t max) {
  std::set<int64_t> extents = {min, max};
  for (const int64_t extent : symbol.matters)
    if (extent >= min && extent <= max) extents.insert(extent);
  const double ratio = static_cast<double>(max) / static_cast<double>(min);
  for (int i = 1; i + 1 < kRepresentatives; ++i)
    extents.insert(std::llround(static_cast<double>(min) *
                                std::pow(ratio, i / static_cast<double>(kRepresentatives - 1))));
  return {extents.begin(), extents.end()};
}

/// A schedule, and its program where it has one.
struct Option {
  SymbolValues origin;
  Candidate candidate;
  RangeProgram made;
  bool measured = false;  // best at its origin
};

class Chooser {
 public:
  Chooser(TaskRange& task,
          const ScheduleChoice& choice,
          const PackingFits& fits,
          const std::string& name)
      : task_(task),
        choice_(choice),
        fits_(fits),
        name_(name),
        shapes_(representative_shapes(task.symbols(), task.box())) {}

  Result<std::vector<RangeKernel>> run() {
    for (const SymbolValues& shape : shapes_) {
      const Task at = task_.task_at(shape);
      std::optional<Candidate> best;
      if (choice_) best = choice_(at, task_.space_at(shape));
      if (best) add(shape, *best, true);
      add(shape, default_schedule(at, task_.space_at(shape)), false);
    }
    if (options_.empty()) {
      std::vector<RangeKernel> singles;
      TRY(add_single_shapes(task_.box(), singles));
      return singles;
    }
    std::optional<std::vector<RangeKernel>> best;
    double least = kNever;
    for (const std::vector<PackSpec>& packing : packings()) {
      add_others_of(packing);
      const std::vector<size_t> chosen = choose(packing);
      const double cost = cost_of(chosen);
      if (cost >= least) continue;
      least = cost;
      best = assign(chosen);
    }
    if (!best)
      return Error(problem_.empty() ? "no schedule reads its weights as others do" : problem_);
    TRY(cover_rest(*best));
    return *std::move(best);
  }

 private:
  std::vector<PackSpec> packing_of(const Program& program) const {
    std::vector<PackSpec> packs;
    for (const TensorId arg : program.args) packs.push_back(program[arg].pack);
    return packs;
  }
  bool fits(const Program& program) const {
    for (size_t a = 0; a < program.args.size(); ++a)
      if (!fits_(a, program[program.args[a]].pack)) return false;
    return true;
  }

  /// Enters the schedule; where it is no program of the range, with tiles that fit its least shape.
  void add(const SymbolValues& origin, Candidate candidate, bool measured) {
    store_in_caches(task_.space_at(origin)[candidate.sketch], candidate);
    const auto is_it = [&](const Option& o) {
      return o.origin == origin && o.candidate == candidate;
    };
    if (std::ranges::any_of(options_, is_it)) return;
    Result<RangeProgram> made = lower_over_range(task_, origin, candidate, name_, task_.box());
    if (!made.ok()) {
      problem_ = made.error().message();
      Candidate smaller = within(origin, candidate, task_.box().min);
      if (smaller == candidate) return;
      return add(origin, std::move(smaller), false);
    }
    if (!fits(made->program)) return;
    options_.push_back({origin, std::move(candidate), *std::move(made), measured});
  }

  Candidate within(const SymbolValues& origin,
                   const Candidate& candidate,
                   const SymbolValues& least) {
    return with_tiles_within(task_.space_at(origin), candidate, task_.space_at(least));
  }

  /// Those of the options, the best first, as far as they are compared.
  std::vector<std::vector<PackSpec>> packings() {
    std::vector<std::pair<double, std::vector<PackSpec>>> costs;
    for (const Option& option : options_) {
      const std::vector<PackSpec> packing = packing_of(option.made.program);
      if (std::ranges::find(costs, packing, [](const auto& c) { return c.second; }) != costs.end())
        continue;
      costs.emplace_back(cost_of(choose(packing)), packing);
    }
    std::ranges::stable_sort(costs, {}, [](const auto& c) { return c.first; });
    std::vector<std::vector<PackSpec>> best;
    for (auto& [cost, packing] : costs)
      if (best.size() < kMostPackings) best.push_back(std::move(packing));
    return best;
  }

  /// The best schedules by draft of this packing, at each shape.
  void add_others_of(const std::vector<PackSpec>& packing) {
    if (!packs(packing)) return;
    for (const SymbolValues& shape : shapes_) {
      std::optional<Candidate> best = schedule_of(shape, packing);
      if (best) add(shape, *std::move(best), false);
    }
  }

  static bool packs(const std::vector<PackSpec>& packing) {
    return std::ranges::any_of(packing, [](const PackSpec& p) { return !p.identity(); });
  }

  /// The best by draft of those that read their arguments so.
  std::optional<Candidate> schedule_of(const SymbolValues& shape,
                                       const std::vector<PackSpec>& packing) {
    const Space& space = task_.space_at(shape);
    const Task at = task_.task_at(shape);
    if (!packs(packing)) return default_schedule(at, space);
    return default_schedule_of(at, space, [&](const Candidate& candidate) {
      const LoopNest nest = make_loop_nest(space, candidate);
      const Sketch& sketch = space[candidate.sketch];
      for (size_t a = 0; a < sketch.args.size(); ++a) {
        PackSpec spec;
        if (const PackSpec* order = pruner::packing_of(nest, sketch.args[a])) spec = *order;
        spec.transform = sketch.dag[sketch.args[a]].transform;
        if (spec != packing[a]) return false;
      }
      return true;
    });
  }

  /// Draft seconds of an option at a shape; kNever: it has no program there.
  double latency(const Option& option, const SymbolValues& shape) {
    if (!option.made.box.contains(shape)) return kNever;
    const auto key = std::pair(&option - options_.data(), shape);
    const auto [at, is_new] = latencies_.try_emplace(key, kNever);
    if (!is_new) return at->second;
    const std::optional<TaskRange::Carried> carried =
        task_.carry(option.origin, option.candidate, shape);
    if (carried)
      at->second = draft_latency_s(make_loop_nest(*carried->space, carried->candidate),
                                   carried->space->target);
    return at->second;
  }

  /// The share of a shape's least latency that an option takes: what was measured best there has 1.
  double share(const Option& option, const SymbolValues& shape) {
    const double own = latency(option, shape);
    if (own == kNever) return kUncovered;
    double least = kNever, measured = kNever;
    for (const Option& other : options_) {
      const double its = latency(other, shape);
      least = std::min(least, its);
      if (other.measured && other.origin == shape) measured = std::min(measured, its);
    }
    if (measured == kNever) return own / least;
    if (option.measured && option.origin == shape) return 1;
    return std::max(own / measured, 1 / kMeasuredBetter);
  }

  double cost_of(const std::vector<size_t>& chosen) {
    double sum = 0;
    for (const SymbolValues& shape : shapes_) {
      double least = kUncovered;
      for (const size_t o : chosen) least = std::min(least, share(options_[o], shape));
      sum += weight(shape) * least;
    }
    return sum;
  }

  /// Where some extents matter, others count less.
  double weight(const SymbolValues& shape) const {
    for (size_t s = 0; s < shape.size(); ++s) {
      const std::vector<int64_t>& matters = task_.symbols()[s].matters;
      if (!matters.empty() && std::ranges::find(matters, shape[s]) == matters.end())
        return kOtherWeight;
    }
    return 1;
  }

  /// Option after option, each the one that lowers the cost most.
  std::vector<size_t> choose(const std::vector<PackSpec>& packing) {
    std::vector<size_t> chosen;
    double cost = cost_of(chosen);
    while (chosen.size() < kMostRangeKernels) {
      size_t best = options_.size();
      double least = cost;
      for (size_t o = 0; o < options_.size(); ++o) {
        if (packing_of(options_[o].made.program) != packing) continue;
        std::vector<size_t> more = chosen;
        more.push_back(o);
        const double with = cost_of(more);
        if (with < least) {
          least = with;
          best = o;
        }
      }
      double worth = 0;
      for (const SymbolValues& shape : shapes_) worth += kWorthAKernel * weight(shape);
      if (best == options_.size() || cost - least < worth) break;
      chosen.push_back(best);
      cost = least;
    }
    return chosen;
  }

  /// Each kernel's boxes: the range is cut where a kernel begins and between representative shapes,
  /// and each cell goes to the fastest kernel at its middle.
  std::vector<RangeKernel> assign(const std::vector<size_t>& chosen) {
    const SymbolBox& all = task_.box();
    std::vector<std::vector<int64_t>> cuts;  // where cells begin
    for (size_t s = 0; s < all.min.size(); ++s) {
      std::set<int64_t> begins = {all.min[s]};
      for (const size_t o : chosen) begins.insert(options_[o].made.box.min[s]);
      std::set<int64_t> extents;
      for (const SymbolValues& shape : shapes_) extents.insert(shape[s]);
      int64_t before = 0;
      for (const int64_t extent : extents) {
        if (before > 0) begins.insert(static_cast<int64_t>(std::sqrt(before * extent)) + 1);
        before = extent;
      }
      std::erase_if(begins, [&](int64_t b) { return b < all.min[s] || b > all.max[s]; });
      cuts.emplace_back(begins.begin(), begins.end());
    }
    std::vector<RangeKernel> kernels;
    for (const size_t o : chosen) {
      const Option& option = options_[o];
      const Sketch& sketch = task_.space_at(option.origin)[option.candidate.sketch];
      kernels.push_back({option.made.program, {}, sketch.name, std::string(precision_of(sketch))});
    }
    each_cell(cuts, [&](const SymbolBox& cell) {
      SymbolValues middle;
      for (size_t s = 0; s < cell.min.size(); ++s)
        middle.push_back(static_cast<int64_t>(std::sqrt(cell.min[s] * cell.max[s])));
      size_t best = chosen.size();
      double least = kNever;
      for (size_t k = 0; k < chosen.size(); ++k) {
        if (!options_[chosen[k]].made.box.contains(cell.min)) continue;
        const double its = share(options_[chosen[k]], middle);
        if (its < least) {
          least = its;
          best = k;
        }
      }
      if (best == chosen.size()) {
        uncovered_.push_back(cell);
      } else {
        join(kernels[best].boxes, cell);
      }
    });
    std::erase_if(kernels, [](const RangeKernel& kernel) { return kernel.boxes.empty(); });
    return kernels;
  }

  template <typename Fn>
  void each_cell(const std::vector<std::vector<int64_t>>& cuts, const Fn& fn) {
    uncovered_.clear();
    const SymbolBox& all = task_.box();
    std::vector<size_t> at(cuts.size(), 0);
    while (true) {
      SymbolBox cell;
      for (size_t s = 0; s < cuts.size(); ++s) {
        cell.min.push_back(cuts[s][at[s]]);
        cell.max.push_back(at[s] + 1 < cuts[s].size() ? cuts[s][at[s] + 1] - 1 : all.max[s]);
      }
      fn(cell);
      size_t s = cuts.size();
      while (s-- > 0) {
        if (++at[s] < cuts[s].size()) break;
        at[s] = 0;
        if (s == 0) return;
      }
    }
  }

  /// A cell behind the last box along the last symbol makes it longer.
  static void join(std::vector<SymbolBox>& boxes, const SymbolBox& cell) {
    if (!boxes.empty()) {
      SymbolBox longer = boxes.back();
      if (longer.max.back() + 1 == cell.min.back()) {
        longer.max.back() = cell.max.back();
        SymbolBox same = cell;
        same.min.back() = longer.min.back();
        if (same == longer) {
          boxes.back() = longer;
          return;
        }
      }
    }
    boxes.push_back(cell);
  }

  /// Kernels for the cells that none is for: of schedules that are one program in the cell, and of
  /// single shapes where a few are left.
  Result<Unit> cover_rest(std::vector<RangeKernel>& kernels) {
    const std::vector<PackSpec> packing = packing_of(kernels.front().program);
    std::vector<SymbolBox> left = std::exchange(uncovered_, {});
    while (!left.empty()) {
      const SymbolBox cell = left.back();
      left.pop_back();
      const std::optional<SymbolBox> covered = add_for_cell(cell, packing, kernels);
      if (!covered) {
        TRY(add_single_shapes(cell, kernels));
        continue;
      }
      // What lies before it, symbol after symbol.
      SymbolBox part = cell;
      for (size_t s = 0; s < cell.min.size(); ++s) {
        if (covered->min[s] == cell.min[s]) continue;
        SymbolBox before = part;
        before.max[s] = covered->min[s] - 1;
        left.push_back(before);
        part.min[s] = covered->min[s];
      }
    }
    return Unit{};
  }

  static int64_t count_of(const SymbolBox& cell) {
    int64_t count = 1;
    for (size_t s = 0; s < cell.min.size(); ++s) count *= cell.max[s] - cell.min[s] + 1;
    return count;
  }

  Result<Unit> add_single_shapes(const SymbolBox& cell, std::vector<RangeKernel>& kernels) {
    const int64_t count = count_of(cell);
    if (count > kMostSingleShapes)
      return Error("no schedule found is one program at ",
                   print(task_.symbols(), cell.min),
                   " to ",
                   print(task_.symbols(), cell.max),
                   problem_.empty() ? "" : ": " + problem_);
    for (int64_t i = 0; i < count; ++i) {
      SymbolValues shape = cell.min;
      int64_t rest = i;
      for (size_t s = shape.size(); s-- > 0;) {
        const int64_t extent = cell.max[s] - cell.min[s] + 1;
        shape[s] += rest % extent;
        rest /= extent;
      }
      TRY(add_single_shape(shape, kernels));
    }
    return Unit{};
  }

  /// The part of the cell that a new kernel is for.
  std::optional<SymbolBox> add_for_cell(const SymbolBox& cell,
                                        const std::vector<PackSpec>& packing,
                                        std::vector<RangeKernel>& kernels) {
    if (count_of(cell) <= kFewShapes) return std::nullopt;
    std::optional<RangeProgram> best;
    std::string sketch_name, precision;
    const auto offer = [&](const SymbolValues& origin, Candidate candidate) {
      store_in_caches(task_.space_at(origin)[candidate.sketch], candidate);
      Result<RangeProgram> made = lower_over_range(task_, origin, candidate, name_, cell);
      if (!made.ok() || packing_of(made->program) != packing) return;
      if (best && best->box.min <= made->box.min) return;
      const Sketch& sketch = task_.space_at(origin)[candidate.sketch];
      sketch_name = sketch.name;
      precision = std::string(precision_of(sketch));
      best = *std::move(made);
    };
    for (const SymbolValues& shape : {cell.min, cell.max}) {
      std::optional<Candidate> found = schedule_of(shape, packing);
      if (found) offer(shape, *std::move(found));
    }
    for (const Option& option : std::vector<Option>(options_))
      offer(option.origin, option.candidate);
    if (!best) return std::nullopt;
    const SymbolBox box = best->box;
    kernels.push_back({std::move(best->program), {box}, sketch_name, precision});
    return box;
  }

  Result<Unit> add_single_shape(const SymbolValues& shape, std::vector<RangeKernel>& kernels) {
    const Space& space = task_.space_at(shape);
    std::optional<Program> program;
    const auto accepts = [&](const Candidate& candidate) {
      Result<Program> made = lower(space, candidate, name_);
      if (!made.ok() || !fits(*made)) return false;
      if (!kernels.empty() && packing_of(*made) != packing_of(kernels.front().program))
        return false;
      program = *std::move(made);
      return true;
    };
    const Task at = task_.task_at(shape);
    std::optional<Candidate> found = default_schedule(at, space);
    if (!accepts(*found)) found = default_schedule_of(at, space, accepts);
    if (!found || !accepts(*found))
      return Error("no schedule at ",
                   print(task_.symbols(), shape),
                   " reads its weights as those of other shapes do");
    const Sketch& sketch = space[found->sketch];
    kernels.push_back(
        {*std::move(program), {{shape, shape}}, sketch.name, std::string(precision_of(sketch))});
    return Unit{};
  }

  static constexpr int64_t kFewShapes = 3, kMostSingleShapes = 16;

  TaskRange& task_;
  const ScheduleChoice& choice_;
  const PackingFits& fits_;
  const std::string& name_;
  const std::vector<SymbolValues> shapes_;
  std::vector<Option> options_;
  std::map<std::pair<ptrdiff_t, SymbolValues>, double> latencies_;  // by option
  std::vector<SymbolBox> uncovered_;
  std::string problem_;
};

}  // namespace

void store_in_caches(const Sketch& sketch, Candidate& candidate) {
  for (size_t d = 0; d < candidate.decisions.size(); ++d)
    if (sketch.decisions[d].kind == DecisionKind::kStreaming) candidate.decisions[d] = 0;
}

std::vector<SymbolValues> representative_shapes(std::span<const Symbol> symbols,
                                                const SymbolBox& box) {
  std::vector<SymbolValues> shapes = {{}};
  for (size_t s = 0; s < symbols.size(); ++s) {
    std::vector<SymbolValues> longer;
    for (const SymbolValues& shape : shapes) {
      for (const int64_t extent : representatives(symbols[s], box.min[s], box.max[s])) {
        longer.push_back(shape);
        longer.back().push_back(extent);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

Result<std::vector<RangeKernel>> range_kernels(TaskRange& task,
                                               const ScheduleChoice& choice,
                                               const PackingFits& fits,
                                               const std::string& name) {
  return Chooser(task, choice, fits, name).run();
}

}  // namespace pruner
