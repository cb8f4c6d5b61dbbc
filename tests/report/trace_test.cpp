#include "report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "report/trace_checks.h"

namespace pruner {
namespace {

using testing::HasSubstr;

TEST(TraceRun, HasTheKernelsOneAfterTheOtherWithinTheRun) {
  const TracedRun run{10e-3, {{"conv", "tiles", 8e6, 4e3, 5, "float32"}, {"relu", "", 0, 1, 2}}};
  const Json json = trace_json(trace_run(run, "net.so", 2));
  EXPECT_EQ(trace_fault(json), "");
  const std::vector<Json> spans = spans_of(json);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["dur"], 10e3);
  EXPECT_EQ(spans[0]["args"]["outside_kernels_ms"], 3);
  EXPECT_EQ(spans[1]["name"], "conv");
  EXPECT_EQ(spans[1]["ts"], 0);
  EXPECT_EQ(spans[1]["args"]["threads"], 2);
  EXPECT_EQ(spans[2]["ts"], 5e3) << "microseconds";
  EXPECT_EQ(spans[2]["dur"], 2e3);
}

TEST(TraceRun, IsAsLongAsItsKernelsWhereTheirClockSaysMore) {
  const Json json = trace_json(trace_run({1e-3, {{"a", "", 0, 0, 2}}}, "m", 1));
  EXPECT_EQ(trace_fault(json), "");
  EXPECT_EQ(spans_of(json)[0]["dur"], 2e3);
}

TEST(TraceJson, BeginsWhereTheFirstSpanDoesAndNamesTracks) {
  const Trace trace{"p", {"a", "b"}, {{"x", "c", 1, {7.5, 8}}, {"y", "c", 0, {7, 7.25}}}};
  const Json json = trace_json(trace);
  EXPECT_EQ(trace_fault(json), "");
  EXPECT_EQ(spans_of(json)[0]["ts"], 0.5e6);
  EXPECT_EQ(spans_of(json)[1]["ts"], 0);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "p");
  EXPECT_EQ(trace_json(Trace{"none", {}, {}})["traceEvents"].size(), 1u);
}

TEST(TraceFault, FindsWhatOverlaps) {
  Trace trace{"p", {"a"}, {{"x", "c", 0, {1, 3}}, {"y", "c", 0, {2, 4}}}};
  EXPECT_THAT(trace_fault(trace_json(trace)), HasSubstr("y overlaps x"));
  trace.spans[1].time = {2, 3};
  EXPECT_EQ(trace_fault(trace_json(trace)), "");
  trace.spans[1].time = {3, 2};
  EXPECT_THAT(trace_fault(trace_json(trace)), HasSubstr("y ends before it begins"));
}

}  // namespace
}  // namespace pruner
