#include "report/run_events.h"

#include <gtest/gtest.h>

#include <sstream>

#include "round_line.h"

namespace pruner {
namespace {

/// The events that `act` writes.
std::vector<Json> events_of(const std::function<void(RunEvents&)>& act) {
  std::FILE* file = std::tmpfile();
  RunEvents events(file);
  act(events);
  EXPECT_TRUE(events.end().ok());
  std::rewind(file);
  std::string text(10000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  std::vector<Json> read;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const Result<Json> event = parse_json(line);
    EXPECT_TRUE(event.ok()) << line;
    read.push_back(*event);
  }
  return read;
}

RoundLine round_of_three() {
  RoundLine line = some_round();
  line.summary.ok = 2;
  line.summary.failed = 1;
  line.summary.round = 12;
  line.summary.samples = {{nullptr, nullptr, {}, 150e-6},
                          {nullptr, nullptr, {}, kWorstCost},
                          {nullptr, nullptr, {}, 123e-6}};
  line.summary.failures = {"timeout"};
  return line;
}

TEST(RunEvents, TellEachTrialTheBestAndTheRound) {
  const std::vector<Json> events =
      events_of([](RunEvents& events) { events.round(round_of_three()); });
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["event"], "measured");
  EXPECT_EQ(events[0]["trial"], 117);
  EXPECT_EQ(events[0]["task"], 3);
  EXPECT_EQ(events[0]["round"], 12);
  EXPECT_DOUBLE_EQ(events[0]["ms"], 0.15);
  EXPECT_EQ(events[1]["event"], "failed");
  EXPECT_EQ(events[1]["reason"], "timeout");
  EXPECT_EQ(events[2]["trial"], 119);
  EXPECT_EQ(events[3]["event"], "best");
  EXPECT_TRUE(events[3]["before_ms"].is_null());
  EXPECT_EQ(events[4]["event"], "round");
  EXPECT_EQ(events[4]["trials"], 120);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["n"], i);
}

TEST(RunEvents, TellABestTimeOnceAndByRun) {
  const std::vector<Json> events = events_of([](RunEvents& events) {
    RoundLine line = some_round();
    events.round(line);  // best, round
    events.round(line);  // round
    line.best_s = 100e-6;
    events.round(line);  // best, round
    line.run = "seed 1 ansor";
    events.round(line);  // best, round
  });
  std::string names;
  for (const Json& event : events) names += event["event"].get<std::string>() + " ";
  EXPECT_EQ(names, "best round round best round best round ");
  EXPECT_DOUBLE_EQ(events[3]["before_ms"], 0.123);
  EXPECT_EQ(events[5]["run"], "seed 1 ansor");
}

TEST(RunEvents, SaysAtTheEndWhatCouldNotBeWritten) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  RunEvents events(full);
  events.write("phase", {{"phase", "read"}});
  EXPECT_FALSE(events.end().ok());
  std::fclose(full);
  RunEvents none;
  none.write("phase", {{"phase", "read"}});
  EXPECT_TRUE(none.end().ok());
}

}  // namespace
}  // namespace pruner
