#include "report/run_events.h"

#include <fmt/format.h>

#include "support/output_file.h"

namespace pruner {

namespace {

Json milliseconds(std::optional<double> seconds) { return seconds ? Json(*seconds * 1e3) : Json(); }

}  // namespace

void RunEvents::write(const char* name, const Json& fields) {
  if (out_ == nullptr) return;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  Json event = {{"event", name}, {"n", written_++}, {"t_s", since.count()}};
  event.update(fields);
  const std::string line = print_json(event) + "\n";
  if (std::fputs(line.c_str(), out_) < 0 || std::fflush(out_) != 0) failed_ = true;
}

void RunEvents::round(const RoundLine& line) {
  const RoundSummary& s = line.summary;
  Json of = {{"round", s.round}, {"task", s.task}};
  if (!line.run.empty()) of["run"] = line.run;
  // Those that are measured again are no trials.
  int64_t trial = line.trials - static_cast<int64_t>(s.final ? 0 : s.samples.size());
  size_t failure = 0;
  for (const Sample& sample : s.samples) {
    Json event = of;
    if (!s.final) event["trial"] = trial++;
    const bool ok = sample.cost_s < kWorstCost;
    if (ok) event["ms"] = sample.cost_s * 1e3;
    if (!ok && failure < s.failures.size()) event["reason"] = s.failures[failure++];
    write(ok ? "measured" : "failed", event);
  }
  if (line.best_s) {
    const auto [at, fresh] =
        best_s_.try_emplace(fmt::format("{}{}", line.run, s.task), *line.best_s);
    const double before_s = std::exchange(at->second, *line.best_s);
    if (fresh || *line.best_s < before_s) {
      Json best = of;
      best.update({{"ms", *line.best_s * 1e3},
                   {"before_ms", fresh ? Json() : Json(before_s * 1e3)},
                   {"total_ms", milliseconds(line.total_s)}});
      write("best", best);
    }
  }
  of.update({{"again", s.final},
             {"ok", s.ok},
             {"failed", s.failed},
             {"trials", line.trials},
             {"explore_s", s.explore_s},
             {"train_s", s.train_s},
             {"build_s", s.build_s},
             {"measure_s", s.measure_s},
             {"best_ms", milliseconds(line.best_s)},
             {"total_ms", milliseconds(line.total_s)},
             {"eta_s", line.eta_s ? Json(*line.eta_s) : Json()}});
  write("round", of);
}

Result<Unit> RunEvents::end() const {
  if (failed_) return cannot_write("--events");
  return Unit{};
}

Json tasks_json(std::span<const WeightedTask> tasks) {
  Json list = Json::array();
  for (size_t i = 0; i < tasks.size(); ++i)
    list.push_back({{"task", i},
                    {"name", tasks[i].task.name},
                    {"key", tasks[i].task.key},
                    {"weight", tasks[i].weight}});
  return list;
}

}  // namespace pruner
