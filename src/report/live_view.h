// Shows a run on standard error: on a terminal a few lines that stay in their place, elsewhere a
// line for each thing to say.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "report/progress.h"

namespace pruner {

/// `Screen` describes the abilities of a stream.
struct Screen {
  bool live = false;    // drawn lines can be replaced
  bool colour = false;  // live, and NO_COLOR is not set
  size_t width = kAnyWidth;

  /// Returns the screen of a stream: live if `out` is a terminal whose TERM is not "dumb".
  static Screen of(std::FILE* out);
};

/// `LiveView` shows a run. On a terminal it draws at most five lines, none wider than the terminal.
/// These are a bar with trials, total and ETA; the last round; the tasks that improved last; the
/// share of the cores that others have. Elsewhere it writes a line a round, except for rounds that
/// measured nothing or measured the best again. It makes room before a line of the log.
class LiveView {
 public:
  /// If `quiet`, the view shows nothing.
  explicit LiveView(std::FILE* out, bool quiet = false);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  /// Shows the current work: "reading model.onnx". On a terminal the next line replaces the text; a
  /// `passing` text is shown on terminals alone.
  void say(const std::string& doing, bool passing = false);
  void show(const RoundLine& line);
  /// Leaves the shown lines standing.
  void finish();
  bool terminal() const { return live_; }

 private:
  /// `Gain` is a task's gain, in the words of its line.
  struct Gain {
    std::string task, text;
  };

  void note_gain(const RoundLine& line);
  std::vector<std::string> block(const RoundLine& line, const Screen& screen) const;
  void draw(const std::vector<std::string>& lines);
  void clear();

  std::FILE* out_;
  bool quiet_, live_;
  std::mutex mutex_;                      // lines of the log come from any thread
  size_t drawn_ = 0;                      // lines above the cursor that the next lines replace
  std::map<std::string, double> best_s_;  // best time by run and task
  std::vector<Gain> gains_;               // the last gains, newest first
};

/// Returns "[=====>     ]" with `width` columns; `share` is done.
std::string bar(double share, size_t width);

}  // namespace pruner
