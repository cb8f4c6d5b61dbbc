#include "tune/work_dir.h"

#include <unistd.h>

#include <filesystem>

#include "golden.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct LatencyCurve : testing::Test {
  LatencyCurve() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() / ("pruner_curve_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
  }
  ~LatencyCurve() override { fs::remove_all(dir); }

  std::string dir;
};

TEST_F(LatencyCurve, IsWrittenAsTheReferenceDoesAndReadBack) {
  const WorkDir made = *WorkDir::open(dir);
  ASSERT_TRUE(made.append_latency(5.4, std::nullopt, 10).ok());
  ASSERT_TRUE(made.append_latency(9.6, 1.4764e-3, 20).ok());
  ASSERT_TRUE(made.append_latency(12, 1.4764e-3, 30).ok());
  ASSERT_TRUE(made.append_latency(14, 0.0123456e-3, 40).ok());
  ASSERT_TRUE(made.append_latency(15, 0.0123456e-3, 50).ok());
  EXPECT_EQ(*read_file(made.curve()),
            "ElapsedTime(s)\t5\tEstimatedLatency(ms)\tN/A\tTrials\t10\n"
            "ElapsedTime(s)\t10\tEstimatedLatency(ms)\t1.476\tTrials\t20\n"
            "ElapsedTime(s)\t12\tEstimatedLatency(ms)\t1.476\tTrials\t30\n"
            "ElapsedTime(s)\t14\tEstimatedLatency(ms)\t0.012346\tTrials\t40\n"
            "ElapsedTime(s)\t15\tEstimatedLatency(ms)\t0.012346\tTrials\t50\n");
  const Result<TuningCurve> curve = read_latency_curve(made.curve());
  ASSERT_TRUE(curve.ok()) << curve.error().message();
  EXPECT_EQ(curve->trials, 50);
  EXPECT_EQ(curve->search_s, 15);
  ASSERT_EQ(curve->points.size(), 2u);
  EXPECT_EQ(curve->points[0], (CurvePoint{20, 10, 1.476 / 1e3}));
  EXPECT_EQ(curve->points[1], (CurvePoint{40, 14, 0.012346 / 1e3}));
}

TEST_F(LatencyCurve, LosesOnlyALineThatWasCutShort) {
  const WorkDir made = *WorkDir::open(dir);
  ASSERT_TRUE(made.append_latency(5, 2e-3, 10).ok());
  ASSERT_TRUE(append_file(made.curve(), "ElapsedTime(s)\t9\tEsti").ok());
  EXPECT_EQ(read_latency_curve(made.curve())->trials, 10);
  ASSERT_TRUE(append_file(made.curve(), "\n").ok());
  EXPECT_ERROR(read_latency_curve(made.curve()),
               "total_latency.tsv:2: is no line of a tuning curve");
  ASSERT_TRUE(write_file(made.curve(), "").ok());
  EXPECT_ERROR(read_latency_curve(made.curve()), "has no line");
}

}  // namespace
}  // namespace pruner
