#include "lower/task_range.h"

#include <algorithm>
#include <set>

#include "lower/lower.h"
#include "space/carry_over.h"
#include "support/mend.h"
#include "support/rng.h"

namespace pruner {

TaskRange::TaskRange(std::vector<Symbol> symbols,
                     SymbolBox box,
                     DagRange dag,
                     const Target& target,
                     std::string name,
                     std::vector<std::string> forms)
    : symbols_(std::move(symbols)),
      box_(std::move(box)),
      dag_(std::move(dag)),
      target_(target),
      name_(std::move(name)),
      forms_(std::move(forms)) {}

Task TaskRange::task_at(std::span<const int64_t> values) const {
  return make_task(dag_.at(values), target_, name_);
}

const Space& TaskRange::space_at(const SymbolValues& values) {
  std::unique_ptr<Space>& space = spaces_[values];
  if (!space) space = std::make_unique<Space>(make_space(task_at(values), forms_));
  return *space;
}

std::optional<TaskRange::Carried> TaskRange::carry(const SymbolValues& from,
                                                   const Candidate& candidate,
                                                   const SymbolValues& to) {
  std::unique_ptr<Space>& space = carried_[to];
  if (!space) {
    space = std::make_unique<Space>(space_at(to));
    space->any_tiles = true;
  }
  std::optional<Candidate> carried = carry_over(space_at(from), candidate, *space);
  if (!carried) return std::nullopt;
  return Carried{space.get(), *std::move(carried)};
}

namespace {

constexpr int kPoints = 10;        // points per symbol
constexpr int kOthers = 24;        // shapes at random, besides the points
constexpr int64_t kBeyond = 4;     // multiple of the greatest extents that shapes are tried up to
constexpr int kUneven = 24;        // more shapes with other iterations of tiles
constexpr int64_t kLooked = 4096;  // extents of a symbol among which such shapes are looked for
constexpr size_t kFewest = 3;      // least extents of a symbol that show a program elsewhere

class RangeLowering {
 public:
  RangeLowering(TaskRange& task,
                const SymbolValues& origin,
                const Candidate& candidate,
                const std::string& name,
                const SymbolBox& within,
                const std::vector<SymbolValues>& shown)
      : task_(task),
        origin_(origin),
        candidate_(candidate),
        name_(name),
        within_(within),
        shown_(shown) {}

  Result<RangeProgram> run() {
    SymbolBox box = within_;
    if (!is_legal_at(box.max))
      return Error("the schedule is not legal at ", print(task_.symbols(), box.max));
    // Each time the box is smaller, its points are others.
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<SymbolValues> points = points_of(box);
      const SymbolValues corner = corner_of_alike(points);
      if (corner.empty()) break;
      const bool whole = std::ranges::all_of(points, [&](const SymbolValues& point) {
        return SymbolBox{corner, box.max}.contains(point);
      });
      box.min = corner;
      if (!whole) continue;
      extend(box, points.back());
      const std::vector<Tile> tiles = tiles_over(points);
      std::vector<SymbolValues> shown;
      std::vector<Program> programs;
      std::vector<SymbolValues> looked_at = with_uneven(with_others(points, box), box, tiles);
      std::ranges::copy(beyond(box), std::back_inserter(looked_at));
      for (const SymbolValues& shape : shown_)
        if (std::ranges::find(looked_at, shape) == looked_at.end()) looked_at.push_back(shape);
      for (const SymbolValues& point : looked_at) {
        const Program* program = program_at(point);
        if (program == nullptr || !is_alike(*program, *program_at(points.back()))) continue;
        shown.push_back(point);
        programs.push_back(*program);
      }
      if (!show_range(shown, box)) break;
      std::vector<Expr> parts = parts_of(tiles);
      // Numbers of programs count tiles along axes, whose extents are known.
      std::ranges::move(known_extents(), std::back_inserter(parts));
      FormulaFinder finder(task_.symbols(), shown, common_steps(points), parts);
      TRY_ASSIGN(Program program, generalize(programs, task_.symbols(), box, finder));
      TRY(verify(program));
      return RangeProgram{std::move(program), std::move(box)};
    }
    return Error("the schedule is another program at each shape",
                 difference_.empty() ? "" : ": ",
                 difference_);
  }

 private:
  static constexpr int kRounds = 6;

  std::vector<Expr> known_extents() const {
    return is_in(Mend::kKnownExtents) ? task_.dag().extents() : std::vector<Expr>();
  }

  /// generic_points(), moved to where extents that are computed of the symbols are no multiples of
  /// small numbers either: half of a prime may be one of a tile.
  std::vector<SymbolValues> points_of(const SymbolBox& box) const {
    constexpr int64_t kFurthest = 64;
    std::vector<SymbolValues> points = generic_points(box, kPoints);
    const std::vector<Expr> extents = known_extents();
    const auto is_generic_at = [&](const SymbolValues& at) {
      return std::ranges::all_of(extents, [&](const Expr& extent) {
        const int64_t value = evaluate_formula(extent, at);
        return value % 2 != 0 && value % 3 != 0 && value % 5 != 0 && value % 7 != 0;
      });
    };
    for (SymbolValues& point : points) {
      const SymbolValues before = point;
      for (size_t s = 0; s < point.size(); ++s) {
        for (int64_t step = 1; step <= 2 * kFurthest && !is_generic_at(point); ++step) {
          const int64_t moved = before[s] + (step % 2 == 0 ? -step / 2 : (step + 1) / 2);
          point[s] = moved >= box.min[s] && moved <= box.max[s] ? moved : before[s];
        }
      }
      if (!is_generic_at(point)) point = before;
    }
    std::ranges::sort(points);
    const auto repeated = std::ranges::unique(points);
    points.erase(repeated.begin(), repeated.end());
    return points;
  }

  bool is_legal_at(const SymbolValues& values) {
    return task_.carry(origin_, candidate_, values).has_value();
  }

  /// Null where the schedule is not legal.
  const Program* program_at(const SymbolValues& values) {
    const auto [at, is_new] = programs_.try_emplace(values);
    if (!is_new) return at->second.get();
    const std::optional<TaskRange::Carried> carried = task_.carry(origin_, candidate_, values);
    if (!carried) return nullptr;
    Result<Program> program = lower(*carried->space, carried->candidate, name_);
    if (program.ok()) at->second = std::make_unique<Program>(*std::move(program));
    return at->second.get();
  }

  /// The least shape from which on the programs of all points are like that of the greatest point;
  /// empty: there is none.
  SymbolValues corner_of_alike(const std::vector<SymbolValues>& points) {
    if (points.empty()) return {};
    SymbolValues greatest = points[0];
    for (const SymbolValues& point : points)
      for (size_t s = 0; s < point.size(); ++s) greatest[s] = std::max(greatest[s], point[s]);
    const Program* like = program_at(greatest);
    if (like == nullptr) return {};
    std::vector<bool> alike;
    for (const SymbolValues& point : points) {
      const Program* program = program_at(point);
      alike.push_back(program != nullptr && is_alike(*program, *like));
    }
    // `best` is the corner, among the corners that points make, with most points behind it.
    SymbolValues best;
    size_t most = 0;
    for (const SymbolValues& a : points) {
      for (const SymbolValues& b : points) {
        SymbolValues corner;
        for (size_t s = 0; s < a.size(); ++s) corner.push_back(s % 2 == 0 ? a[s] : b[s]);
        size_t count = 0;
        bool all = true;
        for (size_t p = 0; p < points.size(); ++p) {
          const bool behind = std::ranges::equal(
              points[p], corner, [](int64_t value, int64_t least) { return value >= least; });
          count += behind;
          all = all && (!behind || alike[p]);
        }
        if (all && count > most) {
          most = count;
          best = corner;
        }
        if (a.size() < 2) break;
      }
    }
    return best;
  }

  /// A tile of the schedule, and its axis's extent as a formula of the symbols.
  struct Tile {
    OpenTile tile;
    Expr extent;
  };
  /// Returns the tiles whose axis is as long as a formula says.
  std::vector<Tile> tiles_over(const std::vector<SymbolValues>& points) {
    std::vector<Tile> tiles;
    FormulaFinder finder(task_.symbols(), points, {}, known_extents());
    for (OpenTile& tile : open_tiles(task_.space_at(origin_)[candidate_.sketch], candidate_)) {
      std::vector<int64_t> extents;
      for (const SymbolValues& point : points) {
        const auto at = *task_.carry(origin_, candidate_, point);
        const Sketch& sketch = (*at.space)[at.candidate.sketch];
        extents.push_back(iterator_of(sketch.dag[tile.stage], tile.axis).extent);
      }
      if (std::optional<Expr> extent = finder.find(extents))
        tiles.push_back({std::move(tile), *std::move(extent)});
    }
    return tiles;
  }

  /// Returns the parts that numbers of the programs are made of. These are iterations of the tiles'
  /// loops, elements that each loop holds, tiles along the axis, and the last tile's start in
  /// elements and in units.
  static std::vector<Expr> parts_of(const std::vector<Tile>& tiles) {
    std::vector<Expr> parts;
    for (const auto& [tile, extent] : tiles) {
      Expr units(1);
      const std::vector<Expr> iterations = even_iterations(tile, extent);
      for (size_t l = iterations.size(); l-- > 0;) {
        parts.push_back(iterations[l]);
        if (l + 1 < iterations.size()) parts.push_back(units * iterations[l]);
        units = units * iterations[l];
      }
      const Expr held = units * Expr(tile.unit), unit(tile.unit);
      parts.push_back(ceil_div(extent, held));
      parts.push_back(extent - held);
      parts.push_back(ceil_div(extent, unit) - units);
    }
    return parts;
  }

  /// Returns the points and shapes at which tiles have other iterations than at the points: one of
  /// each kind, up to a few. Otherwise tiles that differ at some shape would pass for the others'.
  static std::vector<SymbolValues> with_uneven(std::vector<SymbolValues> points,
                                               const SymbolBox& box,
                                               const std::vector<Tile>& tiles) {
    if (tiles.empty()) return points;
    std::set<std::vector<int64_t>> kinds;
    const auto is_new_kind = [&](const SymbolValues& values) {
      std::vector<int64_t> kind;
      for (const auto& [tile, extent] : tiles)
        for (const int64_t its : even_iterations(tile, evaluate_formula(extent, values)))
          kind.push_back(its);
      return kinds.insert(kind).second;
    };
    for (const SymbolValues& point : points) is_new_kind(point);
    int added = 0;
    for (const SymbolValues& other : {box.min, box.max}) {
      for (size_t s = 0; s < box.min.size(); ++s) {
        const int64_t step = 1 + (box.max[s] - box.min[s]) / kLooked;
        SymbolValues values = other;
        for (values[s] = box.min[s]; values[s] <= box.max[s] && added < kUneven; values[s] += step)
          if (is_new_kind(values) && std::ranges::find(points, values) == points.end())
            points.push_back(values), ++added;
      }
    }
    return points;
  }

  /// Shapes past the box: on the few of a small one many formulas agree which differ at one that
  /// shows nothing, as its program is not like the others.
  std::vector<SymbolValues> beyond(const SymbolBox& box) const {
    SymbolBox next{box.max, box.max};
    for (int64_t& extent : next.max) extent = std::min(kBeyond * extent, kMostSymbolExtent);
    return points_of(next);
  }

  /// Elements that its loops advance by, the same at the first and the last point.
  std::vector<int64_t> common_steps(const std::vector<SymbolValues>& points) {
    const std::set<int64_t> first = steps_at(points.front()), last = steps_at(points.back());
    std::vector<int64_t> steps;
    std::ranges::set_intersection(first, last, std::back_inserter(steps));
    return steps;
  }
  std::set<int64_t> steps_at(const SymbolValues& values) {
    const std::optional<TaskRange::Carried> carried = task_.carry(origin_, candidate_, values);
    std::set<int64_t> steps;
    for (const NestStage& stage : make_loop_nest(*carried->space, carried->candidate).stages)
      for (const NestLoop& loop : stage.loops) steps.insert(loop.step);
    steps.erase(1);
    return steps;
  }

  bool is_alike(const Program& a, const Program& b) {
    std::string differs = difference_beside_numbers(a, b);
    const bool alike = differs.empty();
    if (!alike) difference_ = std::move(differs);
    return alike;
  }

  /// The points, the ends and shapes between them, of which most are like them; all where they are
  /// few.
  static std::vector<SymbolValues> with_others(std::vector<SymbolValues> points,
                                               const SymbolBox& box) {
    const auto add = [&](const SymbolValues& values) {
      if (std::ranges::find(points, values) == points.end()) points.push_back(values);
    };
    add(box.min);
    add(box.max);
    if (box.min.size() == 1 && box.max[0] - box.min[0] < kOthers) {
      for (int64_t v = box.min[0]; v <= box.max[0]; ++v) add({v});
    }
    Rng rng(1);
    for (int i = 0; i < kOthers; ++i) {
      SymbolValues values;
      for (size_t s = 0; s < box.min.size(); ++s)
        values.push_back(box.min[s] + rng.below(box.max[s] - box.min[s] + 1));
      add(values);
    }
    return points;
  }

  /// Whether each symbol has extents enough among the points, odd and even ones: of odd ones alone
  /// twice the half, rounded up, is one more.
  static bool show_range(const std::vector<SymbolValues>& points, const SymbolBox& box) {
    for (size_t s = 0; s < box.min.size(); ++s) {
      std::set<int64_t> extents, parities;
      for (const SymbolValues& point : points) {
        extents.insert(point[s]);
        parities.insert(point[s] % 2);
      }
      if (box.min[s] < box.max[s] && (extents.size() < kFewest || parities.size() < 2))
        return false;
    }
    return true;
  }

  /// Down as far as the program stays like that of `like`, symbol after symbol: below, a tile is as
  /// long as its axis.
  void extend(SymbolBox& box, const SymbolValues& like) {
    for (size_t s = 0; s < box.min.size(); ++s) {
      SymbolValues values = box.min;
      while (values[s] > within_.min[s]) {
        --values[s];
        const Program* program = program_at(values);
        if (program == nullptr || !is_alike(*program, *program_at(like))) break;
        box.min = values;
      }
    }
  }

  TaskRange& task_;
  const SymbolValues& origin_;
  const Candidate& candidate_;
  const std::string& name_;
  const SymbolBox& within_;
  const std::vector<SymbolValues>& shown_;
  std::map<SymbolValues, std::unique_ptr<Program>> programs_;
  std::string difference_;  // the last one that was found
};

}  // namespace

Result<RangeProgram> lower_over_range(TaskRange& task,
                                      const SymbolValues& origin,
                                      const Candidate& candidate,
                                      const std::string& name,
                                      const SymbolBox& within,
                                      const std::vector<SymbolValues>& shown) {
  return RangeLowering(task, origin, candidate, name, within, shown).run();
}

}  // namespace pruner
