#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/time_text.h"

namespace pruner {

namespace {

std::string task_text(const RoundLine& line) {
  return fmt::format("{}: {}, best {}{}",
                     line.summary.task,
                     line.task_name,
                     time_text(line.best_s),
                     line.summary.final ? ", measured again" : "");
}

}  // namespace

RoundLine round_line(const Tuner& tuner, const RoundSummary& summary, int64_t trial_limit) {
  const TunedTask& tuned = tuner.tasks()[summary.task];
  RoundLine line{.summary = summary,
                 .task_name = tuned.task->task.name,
                 .flops = tuned.task->task.flops,
                 .trials = tuner.trials(),
                 .trial_limit = trial_limit,
                 .total_s = tuner.total_latency_s(),
                 .elapsed_s = tuner.elapsed_s(),
                 .eta_s = tuner.eta_s()};
  if (tuned.history.best_cost_s() < kWorstCost) line.best_s = tuned.history.best_cost_s();
  return line;
}

std::optional<double> eta_s(double elapsed_s, int64_t trials, int64_t limit) {
  if (trials <= 0) return std::nullopt;
  return elapsed_s / static_cast<double>(trials) *
         static_cast<double>(std::max<int64_t>(limit - trials, 0));
}

std::string print_whole(const RoundLine& line) {
  const std::string run = line.run.empty() ? "" : line.run + ": ";
  const std::string limit =
      line.trial_limit == kNoTrialLimit ? "" : fmt::format("/{}", line.trial_limit);
  return fmt::format("{}[{:>4}{}] total {}, ETA {}",
                     run,
                     line.trials,
                     limit,
                     time_text(line.total_s),
                     clock_text(line.eta_s));
}

std::string print_round(const RoundLine& line, size_t width) {
  const RoundSummary& s = line.summary;
  std::string text = task_text(line);
  const std::string details[] = {
      line.best_s && line.flops > 0
          ? fmt::format(", {:.2f} GFLOPS", line.flops / *line.best_s / 1e9)
          : "",
      fmt::format("; {} ok, {} failed", s.ok, s.failed),
      fmt::format("; explore {:.1f} s, train {:.1f} s, build {:.1f} s, measure {:.1f} s",
                  s.explore_s,
                  s.train_s,
                  s.build_s,
                  s.measure_s)};
  for (const std::string& detail : details) {
    if (text.size() + detail.size() > width) break;
    text += detail;
  }
  return fit(std::move(text), width);
}

std::string print(const RoundLine& line, size_t width) {
  const std::string whole = print_whole(line) + "; ";
  return whole + print_round(line, width - std::min(width, whole.size()));
}

std::string fit(std::string text, size_t width) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= width) return text;
  if (width < kCut.size()) return text.substr(0, width);
  return text.substr(0, width - kCut.size()).append(kCut);
}

}  // namespace pruner
