// What a run shows on standard error: on a terminal a few lines that stay in their place, elsewhere
// a line for each thing to say.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "report/progress.h"

namespace pruner {

/// What a stream can show.
struct Screen {
  bool live = false;    // lines can be drawn over
  bool colour = false;  // NO_COLOR is not set either
  size_t width = kAnyWidth;

  /// Of a stream: a terminal that moves its cursor (TERM is not "dumb"), or not.
  static Screen of(std::FILE* out);
};

/// Shows a run. On a terminal at most five lines: a bar with trials, total and ETA; the last round;
/// the tasks that improved last; how busy others keep the cores. Each is at most as wide as the
/// terminal. Elsewhere a line a round; rounds that measured nothing, or again what had led, have
/// none. Before a line of the log it makes room.
class LiveView {
 public:
  /// `quiet`: it shows nothing.
  explicit LiveView(std::FILE* out, bool quiet = false);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  /// What is being done: "reading model.onnx". On a terminal the next line takes its place; a
  /// `passing` one is for terminals alone.
  void say(const std::string& doing, bool passing = false);
  void show(const RoundLine& line);
  /// Leaves what is shown standing.
  void finish();
  bool terminal() const { return live_; }

 private:
  /// A task's gain, in the words of its line.
  struct Gain {
    std::string task, text;
  };

  void note_gain(const RoundLine& line);
  std::vector<std::string> block(const RoundLine& line, const Screen& screen) const;
  void draw(const std::vector<std::string>& lines);
  void clear();

  std::FILE* out_;
  bool quiet_, live_;
  std::mutex mutex_;  // lines of the log come from any thread
  size_t drawn_ = 0;  // lines above the cursor that the next ones take the place of
  std::map<std::string, double> best_s_;  // by run and task
  std::vector<Gain> gains_;               // the last ones, newest first
};

/// "[=====>     ]" of `width` columns, of which `share` is done.
std::string bar(double share, size_t width);

}  // namespace pruner
