#include "report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pruner {

namespace {

std::string best_text(const RoundLine& line) {
  if (!line.best_s) return "best -";
  const std::string best = fmt::format("best {:.3f} ms", *line.best_s * 1e3);
  return line.flops > 0 ? fmt::format("{}, {:.2f} GFLOPS", best, line.flops / *line.best_s / 1e9)
                        : best;
}

}  // namespace

std::string clock_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  const int64_t s = static_cast<int64_t>(*seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

RoundLine round_line(const Tuner& tuner, const RoundSummary& summary, int64_t trial_limit) {
  const TunedTask& tuned = tuner.tasks()[summary.task];
  RoundLine line{.summary = summary,
                 .task_name = tuned.task->task.name,
                 .flops = tuned.task->task.flops,
                 .trials = tuner.trials(),
                 .trial_limit = trial_limit,
                 .total_s = tuner.total_latency_s(),
                 .eta_s = tuner.eta_s()};
  if (tuned.history.best_cost_s() < kWorstCost) line.best_s = tuned.history.best_cost_s();
  return line;
}

std::string print(const RoundLine& line) {
  const RoundSummary& s = line.summary;
  const std::string limit =
      line.trial_limit == kNoTrialLimit ? "" : fmt::format("/{}", line.trial_limit);
  const std::string total = line.total_s ? fmt::format("{:.3f} ms", *line.total_s * 1e3) : "-";
  return fmt::format(
      "[{:>4}{}] {}task {:>2}: {}; {} ok, {} failed; explore {:.1f} s, train {:.1f} s, build "
      "{:.1f} s, "
      "measure {:.1f} s; total {}; ETA {}; {}",
      line.trials,
      limit,
      s.final ? "again " : "",
      s.task,
      best_text(line),
      s.ok,
      s.failed,
      s.explore_s,
      s.train_s,
      s.build_s,
      s.measure_s,
      total,
      clock_text(line.eta_s),
      line.task_name);
}

LiveLine::LiveLine(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) != 0) {}

void LiveLine::show(const std::string& line) {
  if (terminal_) {
    winsize size{};
    const size_t width =
        ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    fmt::print(out_, "\r\x1b[K{}", line.substr(0, width - 1));
  } else {
    fmt::print(out_, "{}\n", line);
  }
  std::fflush(out_);
  open_ = terminal_;
}

void LiveLine::finish() {
  if (open_) fmt::print(out_, "\n");
  open_ = false;
}

}  // namespace pruner
