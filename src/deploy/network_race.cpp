#include "deploy/network_race.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "deploy/loaded_module.h"
#include "deploy/race.h"
#include "support/check.h"
#include "support/log.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

constexpr double kWorthIt = 0.98;  // share of the first choice's time that another has to reach
constexpr int kProfiles = 5;       // turns in which kernels are timed
constexpr int kMostRaces = 3;      // races until a difference is certain
constexpr int kFewestRuns = 3, kMostRuns = 30;   // runs of each module in a race
constexpr double kLeastRaceS = 0.3, kRaceS = 5;  // about the least and most seconds of these
// A network that takes so many seconds has modules of the first and the last choice alone, and its
// kernels are not timed.
constexpr double kSlow = 0.5;
constexpr double kPrecise = 0.03;  // width of an interval that says enough
constexpr BenchOptions kProfile{.warm_up = 1, .min_runs = 3, .min_s = 0.03};

struct Contender {
  NamedChoice of;
  std::string file;
  LoadedModule module;
  std::vector<double> medians_ms = {};  // one a turn
  std::vector<double> kernels_ms = {};  // least time of each kernel, all phases in a row

  double ms() const { return percentile(medians_ms, 50); }
};

class Contest {
 public:
  Contest(std::span<const Phase> phases,
          const Target& target,
          std::span<const NamedChoice> choices,
          const ModuleOptions& options,
          TemporaryFolder folder)
      : phases_(phases),
        target_(target),
        choices_(choices),
        options_(options),
        folder_(std::move(folder)) {}

  Result<std::optional<NetworkRace>> run(const std::string& path) {
    TRY(add(choices_.front()));
    // The last choice is built before those between: if the disk is full then, these are left out.
    if (const Result<Unit> last = add(choices_.back()); !last.ok()) {
      log_warning(
          "the module is not raced: the {} one: {}", choices_.back().name, last.error().message());
      TRY(keep(contenders_.front(), path));
      return std::optional<NetworkRace>();
    }
    std::vector<TakenOver> taken_over;
    if (run_s_ <= kSlow) {
      for (size_t c = 1; c + 1 < choices_.size(); ++c) try_to_add(choices_[c]);
      TRY(time_kernels());
      const std::map<std::string, size_t> picked = pick(taken_over);
      if (!taken_over.empty()) try_to_add({kMixed, mixed(picked)});
    }
    TRY(race_all());
    const Contender& best = fastest();
    NetworkRace race{.fastest = best.of.name,
                     .ms = best.ms(),
                     .last_ms = contenders_[kLast].ms(),
                     .over_last = speedup_of(last_over(best))};
    if (best.of.name == kMixed) race.taken_over = std::move(taken_over);
    TRY(keep(best, path));
    return std::optional(std::move(race));
  }

 private:
  static constexpr size_t kLast = 1;  // the last choice's place among the contenders
  static constexpr const char* kMixed = "mixed";

  Result<Unit> add(const NamedChoice& of) {
    const std::string file = folder_.path(std::to_string(contenders_.size()) + ".so");
    TRY(build_module(phases_, target_, of.choice, options_, file));
    TRY_ASSIGN(LoadedModule module, load_module(file, target_.threads));
    if (inputs_.empty())
      for (size_t p = 0; p < phases_.size(); ++p)
        inputs_.push_back(seeded_inputs(module.inputs(static_cast<int>(p)), 0));
    contenders_.push_back({of, file, std::move(module)});
    if (contenders_.size() > 1) return Unit{};
    TRY_ASSIGN(const std::vector<double> once,
               runs(contenders_.front(), {.warm_up = 1, .min_runs = 1, .min_s = 0}));
    run_s_ = once.front();
    return Unit{};
  }
  /// Leaves a module out that cannot be made.
  void try_to_add(const NamedChoice& of) {
    const Result<Unit> added = add(of);
    if (!added.ok()) log_detail("the {} module: {}", of.name, added.error().message());
  }

  static Result<Unit> keep(const Contender& contender, const std::string& path) {
    std::error_code code;
    std::filesystem::rename(contender.file, path, code);
    if (code) return Error(path, ": ", code.message());
    return Unit{};
  }

  Result<Unit> time_kernels() {
    for (int turn = 0; turn < kProfiles; ++turn) {
      for (size_t i = 0; i < contenders_.size(); ++i) {
        Contender& of = contenders_[(i + static_cast<size_t>(turn)) % contenders_.size()];
        std::vector<double> times_ms;
        for (size_t p = 0; p < phases_.size(); ++p) {
          const int phase = static_cast<int>(p);
          TRY_ASSIGN(const std::vector<KernelTime> kernels,
                     of.module.profile(inputs_[p], kProfile, phase));
          for (const KernelTime& kernel : kernels) times_ms.push_back(kernel.median_ms);
        }
        if (of.kernels_ms.empty()) of.kernels_ms = times_ms;
        for (size_t k = 0; k < times_ms.size(); ++k)
          of.kernels_ms[k] = std::min(of.kernels_ms[k], times_ms[k]);
      }
    }
    return Unit{};
  }

  /// Returns the contender of each task, by the task's key, that its kernels are fastest with.
  std::map<std::string, size_t> pick(std::vector<TakenOver>& taken_over) const {
    std::vector<const Group*> groups;  // in the order of the kernels
    for (const Phase& phase : phases_)
      for (const Group& group : phase.partition.groups) groups.push_back(&group);
    std::map<std::string, std::vector<double>> ms;  // a time for each contender
    std::map<std::string, std::string> names;
    for (size_t c = 0; c < contenders_.size(); ++c) {
      if (contenders_[c].kernels_ms.size() != groups.size()) return {};
      for (size_t g = 0; g < groups.size(); ++g) {
        if (groups[g]->routine != nullptr) continue;
        std::vector<double>& of = ms[groups[g]->key];
        of.resize(contenders_.size());
        of[c] += contenders_[c].kernels_ms[g];
        names[groups[g]->key] = groups[g]->name;
      }
    }
    std::map<std::string, size_t> picked;
    for (const auto& [key, of] : ms) {
      const auto best = static_cast<size_t>(std::ranges::min_element(of) - of.begin());
      if (best == 0 || of[best] > kWorthIt * of[0]) continue;
      picked[key] = best;
      taken_over.push_back({names[key], contenders_[best].of.name});
    }
    return picked;
  }

  /// The choice of the picked contenders, else the first choice.
  ScheduleChoice mixed(const std::map<std::string, size_t>& picked) const {
    return [this, picked](const Task& task, const Space& space) {
      const auto other = picked.find(task.key);
      const size_t place = other == picked.end() ? 0 : other->second;
      const ScheduleChoice& choice = contenders_[place].of.choice;
      return choice ? choice(task, space) : std::nullopt;
    };
  }

  /// Races all until it is certain how much faster the fastest is than the last choice's module.
  Result<Unit> race_all() {
    std::vector<Racer> racers;
    for (Contender& of : contenders_)
      racers.push_back(
          {of.of.name, [this, &of](const BenchOptions& turn) { return runs(of, turn); }});
    const int count =
        static_cast<int>(std::clamp(kRaceS / run_s_, double{kFewestRuns}, double{kMostRuns}));
    const BenchOptions options{.warm_up = 1, .min_runs = count, .min_s = kLeastRaceS};
    const int most = run_s_ > kSlow ? 1 : kMostRaces;
    for (int race = 0; race < most; ++race) {
      TRY_ASSIGN(const RaceTimes times, pruner::race(racers, options));
      for (size_t c = 0; c < contenders_.size(); ++c)
        std::ranges::copy(times.medians_ms[c], std::back_inserter(contenders_[c].medians_ms));
      const Speedup speedup = speedup_of(last_over(fastest()));
      if (speedup.low > 1 || speedup.high - speedup.low < kPrecise) break;
    }
    return Unit{};
  }

  /// Seconds of the runs of a turn; of several phases one number, the sum of their medians.
  Result<std::vector<double>> runs(Contender& of, const BenchOptions& turn) {
    if (phases_.size() == 1) return of.module.time_runs(inputs_[0], turn);
    double sum = 0;
    for (size_t p = 0; p < phases_.size(); ++p) {
      TRY_ASSIGN(std::vector<double> seconds,
                 of.module.time_runs(inputs_[p], turn, static_cast<int>(p)));
      sum += percentile(std::move(seconds), 50);
    }
    return std::vector{sum};
  }

  const Contender& fastest() const {
    return *std::ranges::min_element(contenders_, {}, &Contender::ms);
  }
  /// The time of the last choice's module over another one's, turn by turn.
  std::vector<double> last_over(const Contender& other) const {
    std::vector<double> ratios;
    for (size_t turn = 0; turn < other.medians_ms.size(); ++turn)
      ratios.push_back(contenders_[kLast].medians_ms[turn] / other.medians_ms[turn]);
    return ratios;
  }

  std::span<const Phase> phases_;
  const Target& target_;
  std::span<const NamedChoice> choices_;
  const ModuleOptions& options_;
  TemporaryFolder folder_;
  std::vector<std::vector<Tensor>> inputs_;  // a list for each phase
  std::vector<Contender> contenders_;
  double run_s_ = 0;  // seconds of a run of the first module
};

}  // namespace

Speedup speedup_of(std::vector<double> ratios) {
  CHECK(!ratios.empty());
  std::ranges::sort(ratios);
  const size_t n = ratios.size();
  // The k-th least and the k-th greatest ratio bound the median, except with the chance that fewer
  // than k of n fair coins show heads, twice.
  double chance = std::pow(0.5, static_cast<double>(n)), sum = chance;
  size_t k = 0;
  while (sum <= 0.025 && k + 1 < (n + 1) / 2) {
    chance *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    sum += chance;
    if (sum <= 0.025) ++k;
  }
  return {percentile(ratios, 50), ratios[k], ratios[n - 1 - k]};
}

Result<std::optional<NetworkRace>> build_fastest(std::span<const Phase> phases,
                                                 const Target& target,
                                                 std::span<const NamedChoice> choices,
                                                 const ModuleOptions& options,
                                                 const std::string& path) {
  CHECK(choices.size() > 1) << "there is nothing to race with";
  const std::string parent = std::filesystem::path(path).parent_path().string();
  std::optional<TemporaryFolder> folder = TemporaryFolder::make_in(parent.empty() ? "." : parent);
  if (!folder) return Error(path, ": ", std::strerror(errno));
  ModuleOptions of = options;
  if (of.reports.empty()) of.reports = path;
  return Contest(phases, target, choices, of, *std::move(folder)).run(path);
}

}  // namespace pruner
