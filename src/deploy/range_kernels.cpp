#include "deploy/range_kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "analysis/draft.h"
#include "lower/lower.h"
#include "lower/plain_program.h"
#include "search/search.h"
#include "space/carry_over.h"
#include "space/precision.h"
#include "support/check.h"

namespace pruner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUncovered = 1.5;      // cost of a shape without a kernel, in least latencies
constexpr double kWorthAKernel = 0.01;  // gain that is worth a kernel, per shape
constexpr double kDoubt = 1.1;          // factor on the draft's time if nothing was measured
constexpr double kWorthAChange = 1.01;  // factor on a kernel other than that of the cell before
// `kRepresentatives` is the number of extents that stand for each symbol's range, by the number of
// symbols: one to four or more.
constexpr int kRepresentatives[] = {7, 4, 3, 2};
constexpr int64_t kJudged = 8, kCells = 32;  // growing(): extents at which sets of kernels are
                                             // compared, and where kernels may begin
constexpr int64_t kSmall = 16;               // below max / 16 only representatives are compared
constexpr double kOtherWeight = 0.25;        // weight of shapes beside those that matter
constexpr size_t kMostPackings = 3;          // packings that are compared
constexpr size_t kContenders = 2;            // options of a packing to measure at a shape
constexpr double kNear = 1.4;  // multiple of the least seconds that may be faster in truth

/// Returns the extents that stand for a symbol's range: those that matter, and `count` that grow by
/// a factor from end to end.
std::vector<int64_t> representatives(const Symbol& symbol, int64_t min, int64_t max, int count) {
  std::set<int64_t> extents = {min, max};
  for (const int64_t extent : symbol.matters)
    if (extent >= min && extent <= max) extents.insert(extent);
  const double ratio = static_cast<double>(max) / static_cast<double>(min);
  for (int i = 1; i + 1 < count; ++i)
    extents.insert(std::llround(static_cast<double>(min) *
                                std::pow(ratio, i / static_cast<double>(count - 1))));
  return {extents.begin(), extents.end()};
}

/// Returns extents of a box of one symbol, each longer than the one before by a `fineness`-th.
std::vector<int64_t> growing(const SymbolBox& box, int64_t fineness) {
  std::vector<int64_t> extents;
  for (int64_t n = box.min[0]; n <= box.max[0]; n += std::max<int64_t>(1, n / fineness))
    extents.push_back(n);
  return extents;
}

/// Holds a schedule and its program.
struct Option {
  SymbolValues origin;
  Candidate candidate;
  RangeProgram made;
  std::optional<size_t> like = {};  // option that differs in rows or loop order alone
};

/// Whether each argument may be stored as the program reads it.
bool fit_all(const PackingFits& fits, const Program& program) {
  for (size_t a = 0; a < program.args.size(); ++a)
    if (!fits(a, program[program.args[a]].pack)) return false;
  return true;
}

/// Returns how a candidate's program reads its arguments, without making the program.
std::vector<PackSpec> packing_read(const Space& space, const Candidate& candidate) {
  const LoopNest nest = make_loop_nest(space, candidate);
  std::vector<PackSpec> packing;
  for (const StageId arg : space[candidate.sketch].args) packing.push_back(stored_form(nest, arg));
  return packing;
}

class Chooser {
 public:
  Chooser(TaskRange& task,
          const ScheduleChoice& choice,
          const ScheduleTimes& times,
          const PackingFits& fits,
          const std::string& name,
          const SymbolBox& box)
      : task_(task),
        choice_(choice),
        times_(times),
        fits_(fits),
        name_(name),
        box_(box),
        shapes_(representative_shapes(task.symbols(), box)),
        judged_(shapes_) {
    if (box.min.size() > 1) return;
    for (const int64_t extent : growing(box, kJudged))
      if (extent > box.max[0] / kSmall &&
          std::ranges::find(judged_, SymbolValues{extent}) == judged_.end())
        judged_.push_back({extent});
  }

  /// Returns the kernels whose programs are for a range. cover_few() adds the others.
  Result<std::vector<RangeKernel>> run() {
    if (has_few_tasks()) {
      few_.push_back(box_);
      return std::vector<RangeKernel>();
    }
    add_all();
    if (options_.empty()) {
      few_.push_back(box_);
      return std::vector<RangeKernel>();
    }
    std::optional<std::vector<RangeKernel>> best;
    double least = kNever;
    for (const std::vector<PackSpec>& packing : packings()) {
      add_others_of(packing);
      if (contenders_ != nullptr) add_contenders(packing);
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

  /// Adds the known schedules, as far as each is a program of the range.
  void add_all() {
    for (const SymbolValues& shape : shapes_) {
      if (std::optional<Candidate> best = chosen_at(shape)) {
        const size_t before = options_.size();
        add(shape, *best);
        if (options_.size() > before) add_siblings(before);
      }
      const std::optional<Candidate> best = schedule_of(shape, {});
      CHECK(best) << "no legal candidate was drawn for " << task_at(shape).name;
      add(shape, *best);
    }
    if (packing_) add_others_of(*packing_);
  }

  /// Adds kernels for the shapes that run() found no program of a range for: one kernel for each
  /// task that they have, where the tasks are few, else the plain program for all shapes.
  Result<Unit> cover_few(std::vector<RangeKernel>& kernels) {
    std::map<std::string, std::vector<SymbolBox>> of_task;  // boxes of one shape, by the task's key
    for (const SymbolBox& cell : few_)
      each_shape(cell, [&](const SymbolValues& shape) {
        of_task[task_at(shape).key].push_back({shape, shape});
      });
    if (of_task.size() > kMostTasks) {
      Result<RangeKernel> plain = plain_kernel(task_, few_, packing_of_all(kernels), name_);
      if (plain.ok()) {
        kernels.push_back(*std::move(plain));
        return Unit{};
      }
      if (of_task.size() > kMostTasksWithoutPlain) return plain.error();
    }
    for (auto& [key, boxes] : of_task) {
      const std::vector<PackSpec> packing = packing_of_all(kernels);
      const PackingFits fits = [&](size_t a, const PackSpec& pack) {
        return fits_(a, pack) && (packing.empty() || pack == packing[a]);
      };
      const SymbolValues& shape = boxes.front().min;
      TRY_ASSIGN(RangeKernel kernel, shape_kernel(task_, shape, fits, name_, chosen_at(shape)));
      kernel.boxes = std::move(boxes);
      kernels.push_back(std::move(kernel));
    }
    return Unit{};
  }

  /// Makes run() note the trials after which another choice can go by time.
  void note_contenders(std::vector<ShapeTrials>& contenders) { contenders_ = &contenders; }

 private:
  /// Holds the best schedules by draft of the task at a shape, found among those of a packing.
  struct Found {
    std::string key;  // the key of the task
    SymbolValues shape;
    std::vector<Candidate> best;  // empty: none has the packing
  };
  struct Searches {
    std::vector<PackSpec> packing;
    std::vector<Found> found;
  };

  /// Returns the schedule that is known to be good at a shape; nullopt if none is.
  std::optional<Candidate> chosen_at(const SymbolValues& shape) {
    if (!choice_) return std::nullopt;
    return choice_(task_at(shape), task_.space_at(shape));
  }

  /// Whether the range has few tasks, each of many shapes, such as the last layers of a network of
  /// images. Kernels of one task each are as fast as in modules of one shape. If a schedule was
  /// measured at some shape, the answer is no: its times say more of a kernel for all.
  bool has_few_tasks() {
    const int64_t count = box_.num_shapes();
    if (count > kMostShapesCounted) return false;
    std::map<std::string, SymbolValues> tasks;
    bool few = true;
    each_shape(box_, [&](const SymbolValues& shape) {
      if (few) tasks.emplace(task_at(shape).key, shape);
      few = tasks.size() <= kFewTasks;
    });
    if (!few || count < kShapesOfATask * std::ssize(tasks)) return false;
    return std::ranges::none_of(tasks, [&](const auto& task) {
      const std::optional<Candidate> chosen = chosen_at(task.second);
      return chosen && times_ &&
             times_(task_at(task.second), task_.space_at(task.second), *chosen).has_value();
    });
  }

  std::vector<PackSpec> packing_of(const Program& program) const {
    std::vector<PackSpec> packs;
    for (const TensorId arg : program.args) packs.push_back(program[arg].pack);
    return packs;
  }
  /// Returns how the kernels' arguments are stored; empty if no kernel decides it yet.
  std::vector<PackSpec> packing_of_all(const std::vector<RangeKernel>& kernels) const {
    if (!kernels.empty()) return packing_of(kernels.front().program);
    return packing_.value_or(std::vector<PackSpec>());
  }
  /// Adds a schedule; if it is no program of the range, its tiles are cut to fit the least shape.
  void add(const SymbolValues& origin, Candidate candidate) {
    store_in_caches(task_.space_at(origin)[candidate.sketch], candidate);
    const auto is_it = [&](const Option& o) {
      return o.origin == origin && o.candidate == candidate;
    };
    if (std::ranges::any_of(options_, is_it)) return;
    Result<RangeProgram> made = lower_over_range(task_, origin, candidate, name_, box_);
    if (!made.ok()) {
      problem_ = made.error().message();
      Candidate smaller = within(origin, candidate, box_.min);
      if (smaller == candidate) return;
      return add(origin, std::move(smaller));
    }
    if (!fit_all(fits_, made->program)) return;
    options_.push_back({origin, std::move(candidate), *std::move(made)});
    estimates_.clear();
  }

  /// Adds the option with other numbers of rows in registers: at each extent the tiles of some
  /// number leave few rows over. Adds it also with its parallel loops in the other order, which may
  /// not matter at one shape alone.
  void add_siblings(size_t o) {
    const SymbolValues origin = options_[o].origin;
    const Candidate candidate = options_[o].candidate;
    const Sketch& sketch = task_.space_at(origin)[candidate.sketch];
    const auto add_with = [&](DecisionRef decision, int32_t value) {
      Candidate other = candidate;
      other.decisions[static_cast<size_t>(decision)] = value;
      const size_t before = options_.size();
      add(origin, std::move(other));
      if (options_.size() > before) options_.back().like = o;
    };
    for (const OpenTile& tile : open_tiles(sketch, candidate)) {
      if (tile.rows != kFixed) {
        const int32_t rows = candidate.decisions[static_cast<size_t>(tile.rows)];
        for (const int32_t other : {rows - 2, rows - 1, rows + 1})
          if (other > 1) add_with(tile.rows, other);
      }
      const DecisionRef order = sketch.plan(tile.stage).parallel_order;
      if (order != kFixed) add_with(order, 1 - candidate.decisions[static_cast<size_t>(order)]);
    }
  }

  Candidate within(const SymbolValues& origin,
                   const Candidate& candidate,
                   const SymbolValues& least) {
    return with_tiles_within(task_.space_at(origin), candidate, task_.space_at(least));
  }

  /// Returns the packings of the options that are compared, the best first.
  std::vector<std::vector<PackSpec>> packings() {
    if (packing_) return {*packing_};
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

  /// Adds the best schedule by draft with this packing at each shape.
  void add_others_of(const std::vector<PackSpec>& packing) {
    if (!packs(packing)) return;
    for (const SymbolValues& shape : shapes_) {
      std::optional<Candidate> best = schedule_of(shape, packing);
      if (best) add(shape, *std::move(best));
    }
  }

  static bool packs(const std::vector<PackSpec>& packing) {
    return std::ranges::any_of(packing, [](const PackSpec& p) { return !p.identity(); });
  }

  /// Returns the best by draft of the schedules that read their arguments as `packing` says (empty:
  /// in any way). Shapes with the same task share one search. It begins with what was found at the
  /// nearest shape; the first search is at the last shape.
  std::optional<Candidate> schedule_of(const SymbolValues& shape,
                                       const std::vector<PackSpec>& packing) {
    auto known = std::ranges::find(*searches_, packing, &Searches::packing);
    if (known == searches_->end()) {
      searches_->push_back({packing, {}});
      if (shape != shapes_.back()) (void)schedule_of(shapes_.back(), packing);
      known = std::ranges::find(*searches_, packing, &Searches::packing);
    }
    const Task& task = task_at(shape);
    auto found = std::ranges::find(known->found, task.key, &Found::key);
    if (found == known->found.end())
      found = known->found.insert(found, {task.key, shape, search(shape, *known)});
    return found->best.empty() ? std::nullopt : std::optional(found->best.front());
  }

  std::vector<Candidate> search(const SymbolValues& shape, const Searches& known) {
    const Space& space = task_.space_at(shape);
    DraftSearch search;
    if (!known.packing.empty())
      search.accepts = [&](const Candidate& c) { return packing_read(space, c) == known.packing; };
    const auto nearest = std::ranges::min_element(known.found, {}, [&](const Found& found) {
      return found.best.empty() ? kNever : distance(found.shape, shape);
    });
    if (nearest != known.found.end()) {
      for (const Candidate& good : nearest->best) {
        auto like = nearest_like(task_.space_at(nearest->shape), good, space);
        if (like && (!search.accepts || search.accepts(*like)))
          search.near.push_back(*std::move(like));
      }
    }
    return best_by_draft(task_at(shape), space, search);
  }

  /// How far apart two shapes are: the sum of the logarithms of their extents' ratios.
  static double distance(const SymbolValues& a, const SymbolValues& b) {
    double sum = 0;
    for (size_t s = 0; s < a.size(); ++s)
      sum += std::abs(std::log(static_cast<double>(a[s]) / static_cast<double>(b[s])));
    return sum;
  }

  const Task& task_at(const SymbolValues& shape) {
    const auto [at, is_new] = tasks_.try_emplace(shape);
    if (is_new) at->second = task_.task_at(shape);
    return at->second;
  }

  /// Holds the seconds of an option at a shape: by the draft (kNever if the option has no program
  /// there), and measured.
  struct Times {
    double drafted = kNever;
    std::optional<double> measured = {};
  };
  const Times& times(size_t o, const SymbolValues& shape) {
    const auto [at, is_new] = times_known_.try_emplace({o, shape});
    Times& known = at->second;
    const Option& option = options_[o];
    if (!is_new || !option.made.box.contains(shape)) return known;
    const std::optional<TaskRange::Carried> carried =
        task_.carry(option.origin, option.candidate, shape);
    if (!carried) return known;
    const auto& [space, candidate] = *carried;
    known.drafted = draft_latency_s(make_loop_nest(*space, candidate), space->target);
    if (times_) known.measured = times_(task_at(shape), *space, candidate);
    return known;
  }

  /// Returns the seconds of all options at a shape: measured, or the draft's times its error where
  /// the option was measured nearest. For an option without measurement the draft's error is the
  /// others' median here, with some doubt.
  const std::vector<double>& estimates(const SymbolValues& shape) {
    const auto [at, is_new] = estimates_.try_emplace(shape);
    std::vector<double>& seconds = at->second;
    if (!is_new) return seconds;
    std::vector<double> errors;
    std::vector<size_t> unknown;
    for (size_t o = 0; o < options_.size(); ++o) {
      const Times& here = times(o, shape);
      const std::optional<double> error = error_near(o, shape);
      seconds.push_back(here.measured ? *here.measured : here.drafted * error.value_or(kDoubt));
      if (error) errors.push_back(*error);
      if (!error && !here.measured) unknown.push_back(o);
    }
    if (errors.empty()) return seconds;
    std::ranges::nth_element(errors, errors.begin() + std::ssize(errors) / 2);
    for (const size_t o : unknown) seconds[o] *= errors[errors.size() / 2];
    return seconds;
  }

  /// Returns an option's measured time over the draft's, at the nearest measured shape.
  std::optional<double> error_near(size_t o, const SymbolValues& shape) {
    std::optional<double> error;
    double nearest = kNever;
    for (const SymbolValues& other : shapes_) {
      const Times& there = times(o, other);
      if (!there.measured || there.drafted == kNever) continue;
      const double apart = distance(shape, other);
      if (apart >= nearest) continue;
      nearest = apart;
      error = *there.measured / there.drafted;
    }
    if (!error && options_[o].like) return error_near(*options_[o].like, shape);
    return error;
  }

  /// Returns an option's time as a multiple of the shape's least time.
  double share(size_t o, const SymbolValues& shape) {
    const std::vector<double>& seconds = estimates(shape);
    if (seconds[o] == kNever) return kUncovered;
    return seconds[o] / *std::ranges::min_element(seconds);
  }

  /// Notes the options of the packing that may be the fastest at a shape, but were not measured.
  void add_contenders(const std::vector<PackSpec>& packing) {
    for (const SymbolValues& shape : shapes_) {
      const std::vector<double>& seconds = estimates(shape);
      std::vector<std::pair<double, size_t>> fastest;
      for (size_t o = 0; o < options_.size(); ++o)
        if (seconds[o] != kNever && packing_of(options_[o].made.program) == packing)
          fastest.emplace_back(seconds[o], o);
      std::ranges::sort(fastest);
      if (fastest.size() > kContenders) fastest.resize(kContenders);
      for (const auto& [its, o] : fastest)
        if (!times(o, shape).measured && its <= kNear * fastest.front().first) note(o, shape);
    }
  }

  void note(size_t o, const SymbolValues& shape) {
    const auto carried = task_.carry(options_[o].origin, options_[o].candidate, shape);
    const Task& task = task_at(shape);
    auto known =
        std::ranges::find(*contenders_, task.key, [](const ShapeTrials& t) { return t.task.key; });
    if (known == contenders_->end())
      known = contenders_->insert(known, {task, *carried->space, {}});
    if (std::ranges::find(known->candidates, carried->candidate) == known->candidates.end())
      known->candidates.push_back(carried->candidate);
  }

  double cost_of(const std::vector<size_t>& chosen) {
    double sum = 0;
    for (const SymbolValues& shape : judged_) {
      double least = kUncovered;
      for (const size_t o : chosen) least = std::min(least, share(o, shape));
      sum += weight(shape) * least;
    }
    return sum;
  }

  /// Returns the weight of a shape; if some extents matter, shapes of other extents count less.
  double weight(const SymbolValues& shape) const {
    for (size_t s = 0; s < shape.size(); ++s) {
      const std::vector<int64_t>& matters = task_.symbols()[s].matters;
      if (!matters.empty() && std::ranges::find(matters, shape[s]) == matters.end())
        return kOtherWeight;
    }
    return 1;
  }

  /// Chooses option after option, each time the option that lowers the cost most.
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
      for (const SymbolValues& shape : judged_) worth += kWorthAKernel * weight(shape);
      if (best == options_.size() || cost - least < worth) break;
      chosen.push_back(best);
      cost = least;
    }
    return chosen;
  }

  /// Assigns boxes to kernels. The range is cut where a kernel begins and between representative
  /// shapes; each cell goes to the fastest kernel at its middle.
  std::vector<RangeKernel> assign(const std::vector<size_t>& chosen) {
    const SymbolBox& all = box_;
    std::vector<std::vector<int64_t>> cuts;  // extents where cells begin, by symbol
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
      if (all.min.size() == 1)
        for (const int64_t extent : growing(all, kCells)) begins.insert(extent);
      std::erase_if(begins, [&](int64_t b) { return b < all.min[s] || b > all.max[s]; });
      cuts.emplace_back(begins.begin(), begins.end());
    }
    std::vector<RangeKernel> kernels;
    for (const size_t o : chosen) {
      const Option& option = options_[o];
      const Sketch& sketch = task_.space_at(option.origin)[option.candidate.sketch];
      kernels.push_back({option.made.program,
                         {},
                         sketch.name,
                         std::string(precision_of(sketch)),
                         option.origin,
                         option.candidate});
    }
    size_t last = chosen.size();  // the kernel of the cell before
    each_cell(cuts, [&](const SymbolBox& cell) {
      SymbolValues middle;
      for (size_t s = 0; s < cell.min.size(); ++s)
        middle.push_back(static_cast<int64_t>(std::sqrt(cell.min[s] * cell.max[s])));
      size_t best = chosen.size();
      double least = kNever;
      for (size_t k = 0; k < chosen.size(); ++k) {
        if (!options_[chosen[k]].made.box.contains(cell.min)) continue;
        const double its = share(chosen[k], middle) * (k == last ? 1 : kWorthAChange);
        if (its < least) {
          least = its;
          best = k;
        }
      }
      last = best;
      if (best == chosen.size()) {
        add_box(uncovered_, cell);
      } else {
        add_box(kernels[best].boxes, cell);
      }
    });
    std::erase_if(kernels, [](const RangeKernel& kernel) { return kernel.boxes.empty(); });
    return kernels;
  }

  template <typename Fn>
  void each_cell(const std::vector<std::vector<int64_t>>& cuts, const Fn& fn) {
    uncovered_.clear();
    const SymbolBox& all = box_;
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

  /// Chooses kernels for the parts of the range that no kernel is for, each part as the whole was,
  /// on the packing of the others: below some extent schedules are other programs. Parts of at most
  /// kFewShapes shapes, and all parts but the kMostParts largest ones, go to cover_few().
  Result<Unit> cover_rest(std::vector<RangeKernel>& kernels) {
    const std::vector<PackSpec> packing = packing_of(kernels.front().program);
    const PackingFits as_others = [&](size_t a, const PackSpec& pack) {
      return pack == packing[a];
    };
    std::vector<SymbolBox> parts = std::exchange(uncovered_, {});
    std::ranges::stable_sort(parts, std::greater(), &SymbolBox::num_shapes);
    for (size_t p = 0; p < parts.size(); ++p) {
      const SymbolBox& part = parts[p];
      if (part.num_shapes() <= kFewShapes || p >= kMostParts) {
        few_.push_back(part);
        continue;
      }
      Chooser chooser(task_, choice_, times_, as_others, name_, part);
      chooser.packing_ = packing;
      chooser.contenders_ = contenders_;
      chooser.searches_ = searches_;
      for (const Option& option : options_) chooser.add(option.origin, option.candidate);
      TRY_ASSIGN(std::vector<RangeKernel> more, chooser.run());
      std::ranges::move(more, std::back_inserter(kernels));
      std::ranges::move(chooser.few_, std::back_inserter(few_));
    }
    return Unit{};
  }

  template <typename Fn>
  static void each_shape(const SymbolBox& cell, const Fn& fn) {
    for (int64_t i = 0; i < cell.num_shapes(); ++i) {
      SymbolValues shape = cell.min;
      int64_t rest = i;
      for (size_t s = shape.size(); s-- > 0;) {
        const int64_t extent = cell.max[s] - cell.min[s] + 1;
        shape[s] += rest % extent;
        rest /= extent;
      }
      fn(shape);
    }
  }

  static constexpr size_t kMostParts = 4;  // a grid of two symbols may have as many as cells
  static constexpr int64_t kFewShapes = 3, kMostShapesCounted = 512, kShapesOfATask = 4;
  static constexpr size_t kFewTasks = 8;
  // Kernels of one task take a quarter of a second each to compile, the plain one is slower.
  static constexpr size_t kMostTasks = 32, kMostTasksWithoutPlain = 256;

  TaskRange& task_;
  const ScheduleChoice& choice_;
  const ScheduleTimes& times_;
  const PackingFits& fits_;
  const std::string& name_;
  const SymbolBox box_;
  const std::vector<SymbolValues> shapes_;        // shapes to look for schedules and measure
  std::vector<SymbolValues> judged_;              // shapes at which options are compared
  std::optional<std::vector<PackSpec>> packing_;  // required packing; nullopt: any
  std::vector<Option> options_;
  std::map<SymbolValues, Task> tasks_;
  // Choosers of parts of the range share the searches.
  std::shared_ptr<std::vector<Searches>> searches_ = std::make_shared<std::vector<Searches>>();
  std::map<std::pair<size_t, SymbolValues>, Times> times_known_;  // keys: option and shape
  std::map<SymbolValues, std::vector<double>> estimates_;         // seconds of all options so far
  std::vector<SymbolBox> uncovered_;
  std::vector<SymbolBox> few_;  // shapes that no schedule is a program of a range at
  std::string problem_;
  std::vector<ShapeTrials>* contenders_ = nullptr;
};

}  // namespace

void store_in_caches(const Sketch& sketch, Candidate& candidate) {
  for (size_t d = 0; d < candidate.decisions.size(); ++d)
    if (sketch.decisions[d].kind == DecisionKind::kStreaming) candidate.decisions[d] = 0;
}

void add_box(std::vector<SymbolBox>& boxes, const SymbolBox& box) {
  if (!boxes.empty()) {
    SymbolBox longer = boxes.back();
    if (longer.max.back() + 1 == box.min.back()) {
      longer.max.back() = box.max.back();
      SymbolBox same = box;
      same.min.back() = longer.min.back();
      if (same == longer) {
        boxes.back() = longer;
        return;
      }
    }
  }
  boxes.push_back(box);
}

std::vector<SymbolValues> representative_shapes(std::span<const Symbol> symbols,
                                                const SymbolBox& box) {
  std::vector<SymbolValues> shapes = {{}};
  const size_t counts = std::min(std::size(kRepresentatives), std::max<size_t>(symbols.size(), 1));
  const int count = kRepresentatives[counts - 1];
  for (size_t s = 0; s < symbols.size(); ++s) {
    std::vector<SymbolValues> longer;
    for (const SymbolValues& shape : shapes) {
      for (const int64_t extent : representatives(symbols[s], box.min[s], box.max[s], count)) {
        longer.push_back(shape);
        longer.back().push_back(extent);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

/// Returns the plain kernel of a task without a reduction whose extents the data decide. Such a
/// task moves or combines elements, so that tiles gain little, and a range of several symbols would
/// have dozens of kernels. Returns nullopt if the task is another one, or its weights are stored in
/// another way.
static std::optional<RangeKernel> plain_kernel_of_found(const TaskRange& task,
                                                        const PackingFits& fits,
                                                        const std::string& name) {
  const bool reduces = std::ranges::any_of(task.dag().form().stages, &Stage::is_reduction);
  if (reduces || std::ranges::none_of(task.symbols(), &Symbol::found)) return std::nullopt;
  Result<RangeKernel> plain = plain_kernel(task, {task.box()}, {}, name);
  if (!plain.ok() || !fit_all(fits, plain->program)) return std::nullopt;
  return *std::move(plain);
}

Result<std::vector<RangeKernel>> range_kernels(TaskRange& task,
                                               const ScheduleChoice& choice,
                                               const ScheduleTimes& times,
                                               const PackingFits& fits,
                                               const std::string& name) {
  if (std::optional<RangeKernel> plain = plain_kernel_of_found(task, fits, name))
    return std::vector<RangeKernel>{*std::move(plain)};
  Chooser chooser(task, choice, times, fits, name, task.box());
  TRY_ASSIGN(std::vector<RangeKernel> kernels, chooser.run());
  TRY(chooser.cover_few(kernels));
  return kernels;
}

Result<RangeKernel> shape_kernel(TaskRange& task,
                                 const SymbolValues& shape,
                                 const PackingFits& fits,
                                 const std::string& name,
                                 std::optional<Candidate> found) {
  const Space& space = task.space_at(shape);
  const auto accepts = [&](const Candidate& candidate) {
    const std::vector<PackSpec> packing = packing_read(space, candidate);
    for (size_t a = 0; a < packing.size(); ++a)
      if (!fits(a, packing[a])) return false;
    return true;
  };
  const Task at = task.task_at(shape);
  if (found) store_in_caches(space[found->sketch], *found);
  if (!found || !accepts(*found)) found = default_schedule(at, space);
  if (!accepts(*found)) found = default_schedule_of(at, space, accepts);
  const auto error = [&] {
    return Error("no schedule at ",
                 print(task.symbols(), shape),
                 " reads its weights as those of other shapes do");
  };
  if (!found) return error();
  TRY_ASSIGN(Program program, lower(space, *found, name));
  if (!fit_all(fits, program)) return error();
  const Sketch& sketch = space[found->sketch];
  return RangeKernel{
      std::move(program), {{shape, shape}}, sketch.name, std::string(precision_of(sketch))};
}

Result<RangeKernel> plain_kernel(const TaskRange& task,
                                 std::vector<SymbolBox> boxes,
                                 const std::vector<PackSpec>& packing,
                                 const std::string& name) {
  TRY_ASSIGN(Program program, plain_program(task, packing, name));
  const ComputeDag& dag = task.dag().form();
  const std::string precision(dtype_name(dag[dag.outputs().back()].dtype));
  return RangeKernel{std::move(program), std::move(boxes), std::string(kPlain), precision};
}

Result<std::vector<ShapeTrials>> contenders(TaskRange& task,
                                            const ScheduleChoice& choice,
                                            const ScheduleTimes& times) {
  std::vector<ShapeTrials> contenders;
  const auto any = [](size_t, const PackSpec&) { return true; };
  const PackingFits fits = any;
  const std::string name = "kernel";
  Chooser chooser(task, choice, times, fits, name, task.box());
  chooser.note_contenders(contenders);
  TRY(chooser.run());
  return contenders;
}

}  // namespace pruner
