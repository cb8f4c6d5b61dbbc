#include "report/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "report/time_text.h"
#include "support/log.h"

namespace pruner {

namespace {

constexpr size_t kUsualWidth = 80;  // columns of a terminal that does not say its width
constexpr size_t kLogWidth = 120;   // columns of a round's line if there is no terminal
constexpr size_t kGains = 2;        // gains that are shown
constexpr size_t kBarWidth = 24;
constexpr size_t kLeastBar = 8;

constexpr const char *kGreen = "\x1b[32m", *kDim = "\x1b[2m", *kPlain = "\x1b[0m";

std::string coloured(const std::string& text, const char* colour, const Screen& screen) {
  return screen.colour ? colour + text + kPlain : text;
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the share that is done: of one run by trials if there is a limit, else by time.
std::optional<double> share_done(const RoundLine& line) {
  if (line.run.empty() && line.trial_limit != kNoTrialLimit)
    return static_cast<double>(line.trials) / static_cast<double>(line.trial_limit);
  if (!line.eta_s || line.elapsed_s <= 0) return std::nullopt;
  return line.elapsed_s / (line.elapsed_s + *line.eta_s);
}

}  // namespace

Screen Screen::of(std::FILE* out) {
  if (isatty(fileno(out)) == 0 || variable("TERM") == "dumb") return {};
  winsize size{};
  const bool told = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {.live = true,
          .colour = variable("NO_COLOR").empty(),
          // In the last column some terminals begin a new line.
          .width = (told ? size.ws_col : kUsualWidth) - 1};
}

std::string bar(double share, size_t width) {
  const size_t inside = width - 2;
  const auto done = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(inside));
  std::string text = "[" + std::string(done, '=') + std::string(inside - done, ' ') + "]";
  if (done > 0 && done < inside) text[done] = '>';
  return text;
}

LiveView::LiveView(std::FILE* out, bool quiet)
    : out_(out), quiet_(quiet), live_(Screen::of(out).live) {
  if (!quiet_ && live_)
    before_log([this] {
      const std::lock_guard lock(mutex_);
      clear();
      std::fflush(out_);
    });
}

LiveView::~LiveView() {
  finish();
  if (!quiet_ && live_) before_log(nullptr);
}

void LiveView::say(const std::string& doing, bool passing) {
  if (quiet_ || (passing && !live_)) return;
  const std::lock_guard lock(mutex_);
  draw({live_ ? fit(doing, Screen::of(out_).width) : doing});
}

void LiveView::show(const RoundLine& line) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  note_gain(line);
  const Screen screen = Screen::of(out_);
  const bool says_nothing = line.summary.final || line.summary.ok + line.summary.failed == 0;
  if (live_)
    draw(block(line, screen));
  else if (!says_nothing)
    draw({print(line, kLogWidth)});
}

void LiveView::finish() {
  const std::lock_guard lock(mutex_);
  drawn_ = 0;
}

void LiveView::note_gain(const RoundLine& line) {
  if (!line.best_s) return;
  const std::string task = fmt::format("{}{}", line.run, line.summary.task);
  const auto [at, fresh] = best_s_.try_emplace(task, *line.best_s);
  const double before_s = std::exchange(at->second, *line.best_s);
  if (fresh || *line.best_s >= before_s || line.summary.final) return;
  std::erase_if(gains_, [&](const Gain& gain) { return gain.task == task; });
  gains_.insert(gains_.begin(),
                {task,
                 fmt::format("improved: {}: {} -> {} (-{:.0f} %), {}",
                             line.summary.task,
                             time_text(before_s),
                             time_text(line.best_s),
                             100 * (1 - *line.best_s / before_s),
                             line.task_name)});
  gains_.resize(std::min(gains_.size(), kGains));
}

std::vector<std::string> LiveView::block(const RoundLine& line, const Screen& screen) const {
  const size_t width = screen.width;
  std::string head = print_whole(line);
  const size_t room = width > head.size() + 1 ? std::min(kBarWidth, width - head.size() - 1) : 0;
  head = fit(std::move(head), width);
  if (const std::optional<double> share = share_done(line); share && room >= kLeastBar)
    head = coloured(bar(*share, room), kGreen, screen) + " " + head;
  std::vector<std::string> lines = {std::move(head), print_round(line, width)};
  for (const Gain& gain : gains_) lines.push_back(coloured(fit(gain.text, width), kGreen, screen));
  if (line.busy && line.busy->cores_s > 0)
    lines.push_back(coloured(fit(fmt::format("cores: other processes had {:.0f} % of their time",
                                             100 * line.busy->share()),
                                 width),
                             kDim,
                             screen));
  return lines;
}

void LiveView::draw(const std::vector<std::string>& lines) {
  clear();
  for (const std::string& line : lines) fmt::print(out_, "{}\n", line);
  std::fflush(out_);
  if (live_) drawn_ = lines.size();
}

// Moves the cursor up to the first drawn line, and clears all lines below.
void LiveView::clear() {
  if (drawn_ > 0) fmt::print(out_, "\x1b[{}A\r\x1b[J", drawn_);
  drawn_ = 0;
}

}  // namespace pruner
