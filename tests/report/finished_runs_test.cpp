#include "report/finished_runs.h"

#include <unistd.h>

#include <filesystem>

#include "golden.h"
#include "record/manifest.h"
#include "tune/work_dir.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct FinishedRuns : testing::Test {
  FinishedRuns() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() / ("pruner_runs_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
  }
  ~FinishedRuns() override { fs::remove_all(dir); }

  /// A work dir whose run ended at `final_ms`.
  std::string work_dir(const std::string& name,
                       const Json& facts,
                       double final_ms,
                       const std::string& device = "cpu") const {
    const WorkDir made = *WorkDir::open(dir + "/" + name);
    EXPECT_TRUE(made.append_latency(1, std::nullopt, 10).ok());
    EXPECT_TRUE(made.append_latency(4, 2 * final_ms / 1e3, 20).ok());
    EXPECT_TRUE(made.append_latency(6, 2 * final_ms / 1e3, 30).ok());
    EXPECT_TRUE(made.append_latency(9, final_ms / 1e3, 40).ok());
    RunManifest manifest;
    manifest.device = device;
    manifest.input = "resnet_50";
    manifest.status = "done";
    manifest.more = facts;
    EXPECT_TRUE(write_manifest(made.path(), manifest).ok());
    return made.path();
  }
  static Json facts(const std::string& mode, int64_t image_size = 224) {
    return run_facts(mode, "online", {{1, 3, image_size, image_size}}, 27);
  }

  std::string dir;
};

TEST_F(FinishedRuns, AreAModeEach) {
  Json measured = facts("pam");
  measured["end_to_end_ms"] = 1.69;
  const auto read =
      compare_runs({work_dir("a", facts("mlp"), 1.592) + "/", work_dir("b", measured, 1.476)});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->subject, "('resnet_50', [(1, 3, 224, 224)]), 27 tasks");
  EXPECT_EQ(read->device, "cpu");
  EXPECT_GOLDEN("report/finished_runs.txt", print_comparison(*read));
  EXPECT_GOLDEN("report/finished_runs.svg", curves_svg(*read));
}

TEST_F(FinishedRuns, OfOneModeAreNamedByTheirPaths) {
  const std::string a = work_dir("a", facts("pam"), 2), b = work_dir("b", facts("pam"), 1);
  const auto read = compare_runs({a, b});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->modes[1].name, "pam (" + b + ")");
  EXPECT_EQ(read->curves[1].mode, read->modes[1].name);
  EXPECT_ERROR(compare_runs({a, b, a}), "a: is there twice");
}

TEST_F(FinishedRuns, MayBeACurveAlone) {
  const std::string path = work_dir("ansor", facts("mlp"), 1.592) + "/total_latency.tsv";
  fs::rename(path, dir + "/ansor.tsv");
  const auto read = compare_runs({dir + "/ansor.tsv"});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->modes[0].name, "ansor");
  EXPECT_EQ(read->modes[0].update, "-");
  EXPECT_EQ(read->curves[0].search_s, 9);
  const std::string table = print_comparison(*read);
  EXPECT_NE(table.find("| Search time (s)              | 9.0    |"), std::string::npos) << table;
  EXPECT_EQ(table.find("Seeds that reach"), std::string::npos) << "there is no other";
}

TEST_F(FinishedRuns, AreOfOneNetworkAndDevice) {
  const std::string a = work_dir("a", facts("mlp"), 2);
  EXPECT_ERROR(compare_runs({a, work_dir("b", facts("pam", 256), 1)}),
               "b: is of ('resnet_50', [(1, 3, 256, 256)]), 27 tasks, ");
  EXPECT_ERROR(compare_runs({a, work_dir("c", facts("pam"), 1, "gpu")}),
               "c: is of gpu, " + a + " of cpu; runs of one device are compared");
}

TEST_F(FinishedRuns, AreFolders) {
  EXPECT_ERROR(compare_runs({dir + "/none"}), "none: no such work dir");
  fs::create_directories(dir + "/empty");
  EXPECT_ERROR(compare_runs({dir + "/empty"}), "empty: no total_latency.tsv is in it; give the");
  EXPECT_ERROR(compare_runs({work_dir("a", Json::object(), 1)}),
               "a/run.json: missing key \"mode\"");
}

}  // namespace
}  // namespace pruner
