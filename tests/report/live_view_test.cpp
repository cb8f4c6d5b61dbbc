// On no terminal; tests/cli/terminal_test.cpp has one.
#include "report/live_view.h"

#include <gtest/gtest.h>

#include <functional>

#include "round_line.h"

namespace pruner {
namespace {

std::string shown(bool quiet, const std::function<void(LiveView&)>& act) {
  std::FILE* file = std::tmpfile();
  {
    LiveView view(file, quiet);
    EXPECT_FALSE(view.terminal());
    act(view);
  }
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

void a_run(LiveView& view) {
  view.say("reading", true);  // on terminals
  view.say("27 tasks");
  RoundLine line = some_round();
  view.show(line);
  line.summary.final = true;  // measured again
  view.show(line);
  line.summary = {.task = 3};  // nothing measured
  view.show(line);
}

TEST(LiveView, WritesALineForARoundWhereThereIsNoTerminal) {
  EXPECT_EQ(shown(false, a_run), "27 tasks\n" + print(some_round(), 120) + "\n");
}

TEST(LiveView, ShowsNothingWhereItIsToBeQuiet) { EXPECT_EQ(shown(true, a_run), ""); }

TEST(Bar, ShowsAShare) {
  EXPECT_EQ(bar(0, 12), "[          ]");
  EXPECT_EQ(bar(0.35, 12), "[==>       ]");
  EXPECT_EQ(bar(1, 12), "[==========]");
  EXPECT_EQ(bar(7, 12), bar(1, 12));
}

}  // namespace
}  // namespace pruner
