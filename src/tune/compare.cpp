#include "tune/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace pruner {

namespace {

// Leaders are measured again kFinalPasses times; the fastest time counts, as noise only adds.
constexpr int kFinalPasses = 3;
// A leading candidate slower than this x the last mode's final time is measured again only once.
constexpr double kNear = 1.2;

/// Holds a trial as its run saw it.
struct SeenTrial {
  size_t task;
  Candidate candidate;
  double cost_s;
  double seconds;  // time of the run at the end of the trial's round
  bool led;        // whether it was the best of its task, then or at the end
};

/// `FinalTimes` holds the times of candidates that were measured again, by task.
using FinalTimes = std::vector<std::unordered_map<Candidate, double, CandidateHash>>;

/// Runs one seed of a contestant. The tuner refers to its entry, so the entry does not move.
class Entry {
 public:
  static Result<std::unique_ptr<Entry>> make(std::span<const WeightedTask> tasks,
                                             const Contestant& contestant,
                                             const CompareOptions& options,
                                             const CompareTools& tools);

  /// Does a round, unless the run has ended.
  Result<Unit> step() {
    if (ended()) return Unit{};
    TRY_ASSIGN(end_, tuner_->step());
    return Unit{};
  }
  bool ended() const { return end_.has_value(); }
  const TunedTask& task(size_t index) const { return tuner_->tasks()[index]; }

  /// Marks the best trials at the end, too, beside those that led on the way.
  void mark_last_leaders();
  bool led(size_t task, const Candidate& candidate) const {
    return std::ranges::any_of(trials_, [&](const SeenTrial& t) {
      return t.led && t.task == task && t.candidate == candidate;
    });
  }
  std::span<const SeenTrial> trials() const { return trials_; }
  Result<Unit> append(Record record) {
    record.mode = contestant_.name;
    return writer_.append(record);
  }
  TuningCurve curve(const FinalTimes& final_times) const;

 private:
  Entry(const Contestant& contestant, uint64_t seed, RecordWriter writer)
      : contestant_(contestant), seed_(seed), writer_(std::move(writer)) {}
  void see(const RoundSummary& summary);

  const Contestant& contestant_;
  uint64_t seed_;
  RecordWriter writer_;
  ModeModels models_;
  std::optional<Tuner> tuner_;
  std::optional<TuneEnd> end_;
  std::vector<SeenTrial> trials_;
  std::vector<double> leading_s_;  // best time so far of each task
};

Result<std::unique_ptr<Entry>> Entry::make(std::span<const WeightedTask> tasks,
                                           const Contestant& contestant,
                                           const CompareOptions& options,
                                           const CompareTools& tools) {
  const uint64_t seed = options.tune.seed;
  const std::string path = compared_records(options.work_dir, contestant.name, seed);
  std::error_code code;
  if (std::filesystem::exists(path, code))
    return Error(path, ": is there already; choose another folder with --work-dir");
  TRY_ASSIGN(RecordWriter writer, RecordWriter::open(path));
  std::unique_ptr<Entry> entry(new Entry(contestant, seed, std::move(writer)));
  entry->leading_s_.assign(tasks.size(), kWorstCost);

  Contestant seeded = contestant;
  seeded.models.seed = seed;
  seeded.models.warm_up_samples =
      trials_of_a_round_each(contestant.search.round_size, options.tune.trials, tasks.size());
  TRY_ASSIGN(entry->models_, make_models(seeded));
  TuneOptions tune = options.tune;
  tune.mode = contestant.name;
  tune.policy = contestant.mode.policy;
  tune.search = contestant.search;
  const auto on_round = [e = entry.get(), &tools](const RoundSummary& summary) {
    e->see(summary);
    tools.on_round(e->contestant_, *e->tuner_, summary);
  };
  entry->tuner_.emplace(
      tasks,
      tune,
      TuneTools{tools.measurer, entry->models_.models(), entry->writer_, tools.stop, on_round});
  return entry;
}

void Entry::see(const RoundSummary& summary) {
  if (summary.final) return;
  double& leading_s = leading_s_[summary.task];
  for (const Sample& sample : summary.samples) {
    const bool leads = sample.cost_s < leading_s;
    leading_s = std::min(leading_s, sample.cost_s);
    trials_.push_back({summary.task, sample.candidate, sample.cost_s, tuner_->elapsed_s(), leads});
  }
}

void Entry::mark_last_leaders() {
  for (SeenTrial& trial : trials_) {
    const std::vector<Trial> best = task(trial.task).history.best(1);
    if (!best.empty() && best.front().candidate == trial.candidate) trial.led = true;
  }
}

// A run that had ended at a trial would have measured again the trials that led until then, and
// kept the best.
TuningCurve Entry::curve(const FinalTimes& final_times) const {
  TuningCurve curve{.mode = contestant_.name,
                    .seed = seed_,
                    .trials = tuner_->trials(),
                    .search_s = tuner_->elapsed_s(),
                    .points = {}};
  std::vector<double> best_s(final_times.size(), kWorstCost);
  for (size_t i = 0; i < trials_.size(); ++i) {
    const SeenTrial& trial = trials_[i];
    if (!trial.led) continue;
    const auto found = final_times[trial.task].find(trial.candidate);
    const double cost_s = found == final_times[trial.task].end() ? trial.cost_s : found->second;
    if (cost_s >= best_s[trial.task]) continue;
    best_s[trial.task] = cost_s;
    if (std::ranges::max(best_s) == kWorstCost) continue;
    double total_s = 0;
    for (size_t t = 0; t < best_s.size(); ++t) total_s += task(t).task->weight * best_s[t];
    curve.points.push_back({static_cast<int64_t>(i) + 1, trial.seconds, total_s});
  }
  return curve;
}

using Entries = std::vector<std::unique_ptr<Entry>>;

/// Returns the candidates that led a task in any run, once each, with the time that the run saw.
std::vector<Trial> leaders(const Entries& entries, size_t task) {
  std::vector<Trial> found;
  CandidateSet seen;
  for (const auto& entry : entries) {
    for (const SeenTrial& trial : entry->trials()) {
      if (trial.led && trial.task == task && seen.insert(trial.candidate).second)
        found.push_back({trial.candidate, trial.cost_s});
    }
  }
  return found;
}

/// Returns the final time of the mode that came last; kWorstCost if none is known.
double slowest_final_s(const Entries& entries, size_t task) {
  double slowest_s = 0;
  for (const auto& entry : entries) {
    const double final_s = entry->task(task).history.best_cost_s();
    if (final_s < kWorstCost) slowest_s = std::max(slowest_s, final_s);
  }
  return slowest_s > 0 ? slowest_s : kWorstCost;
}

/// Measures what led a task again, all of it in each pass.
Result<Unit> measure_again(const Entries& entries,
                           size_t index,
                           const CompareTools& tools,
                           FinalTimes& final_times) {
  const TunedTask& tuned = entries.front()->task(index);
  const Task& task = tuned.task->task;
  const double slowest_s = slowest_final_s(entries, index);
  std::vector<Trial> again = leaders(entries, index);
  for (int pass = 0; pass < kFinalPasses && !tools.stop; ++pass) {
    if (pass == 1)
      std::erase_if(again, [&](const Trial& t) { return t.cost_s > kNear * slowest_s; });
    std::vector<Candidate> candidates;
    for (const Trial& trial : again) candidates.push_back(trial.candidate);
    TRY_ASSIGN(const std::vector<MeasureResult> results,
               tools.measurer.measure(task, candidates, slowest_s));
    for (size_t i = 0; i < results.size(); ++i) {  // fewer when stopped
      if (tools.stop && !results[i].ok()) continue;
      double& final_s = final_times[index].try_emplace(candidates[i], kWorstCost).first->second;
      if (results[i].ok()) final_s = std::min(final_s, results[i].cost_s());
      Record record = make_record(task, tuned.space, candidates[i], results[i]);
      record.origin = "final";
      for (const auto& entry : entries) {
        if (entry->led(index, candidates[i])) TRY(entry->append(record));
      }
    }
  }
  return Unit{};
}

}  // namespace

Result<ModeModels> make_models(const Contestant& contestant) {
  return make_models(contestant.mode,
                     contestant.search.ingredients,
                     contestant.models,
                     contestant.ablation,
                     contestant.draft_form);
}

std::string compared_records(const std::string& work_dir, const std::string& mode, uint64_t seed) {
  return fmt::format("{}/records-{}-{}.json", work_dir, mode, seed);
}

Result<Unit> set_aside_records(const std::string& work_dir,
                               const std::string& mode,
                               uint64_t seed) {
  const std::string path = compared_records(work_dir, mode, seed);
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Unit{};
  TRY_ASSIGN(const RecordWriter held, RecordWriter::open(path));  // not while another run writes it
  int number = 1;
  while (std::filesystem::exists(fmt::format("{}.{}", path, number), code)) ++number;
  std::filesystem::rename(path, fmt::format("{}.{}", path, number), code);
  if (code) return Error(path, ": cannot be set aside: ", code.message());
  return Unit{};
}

Result<std::vector<TuningCurve>> compare_modes(std::span<const WeightedTask> tasks,
                                               std::span<const Contestant> contestants,
                                               const CompareOptions& options,
                                               const CompareTools& tools) {
  Entries entries;
  for (const Contestant& contestant : contestants) {
    TRY_ASSIGN(std::unique_ptr<Entry> entry, Entry::make(tasks, contestant, options, tools));
    entries.push_back(std::move(entry));
  }
  // A trial of nobody's: the measurer starts its workers for the first one.
  const TunedTask& first = entries.front()->task(0);
  const Candidate candidate = default_schedule(first.task->task, first.space);
  TRY(tools.measurer.measure(first.task->task, {&candidate, 1}, kFailedCost));
  // Who comes first to a task pays for its set-up on the measurer: each begins a turn in its turn.
  const auto ended = [](const std::unique_ptr<Entry>& entry) { return entry->ended(); };
  for (size_t turn = 0; !std::ranges::all_of(entries, ended); ++turn) {
    for (size_t i = 0; i < entries.size(); ++i) TRY(entries[(turn + i) % entries.size()]->step());
  }
  for (const auto& entry : entries) entry->mark_last_leaders();
  FinalTimes final_times(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) TRY(measure_again(entries, i, tools, final_times));

  std::vector<TuningCurve> curves;
  for (const auto& entry : entries) {
    curves.push_back(entry->curve(final_times));
    curves.back().complete = !tools.stop;
  }
  return curves;
}

Result<Unit> build_modes(std::span<const WeightedTask> tasks,
                         std::span<const Contestant> contestants,
                         const CompareOptions& options,
                         const BuildTools& tools) {
  for (const Contestant& contestant : contestants) {
    const std::unique_ptr<Measurer> measurer = tools.measurer_of(contestant);
    const CompareTools one{*measurer, tools.stop, tools.on_round};
    TRY_ASSIGN(const std::unique_ptr<Entry> entry, Entry::make(tasks, contestant, options, one));
    while (!entry->ended()) TRY(entry->step());
  }
  return Unit{};
}

}  // namespace pruner
