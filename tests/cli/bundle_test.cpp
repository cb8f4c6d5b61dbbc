// label: codegen
// Programs that one command builds and another measures, for this CPU.
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/run_program.h"
#include "golden.h"
#include "record/record.h"
#include "runtime/gpu_context.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

using Strings = std::vector<std::string>;

struct BundleCommands : testing::Test {
  std::string path(const std::string& file) const { return folder->path(file); }

  /// `tune` of a small product for six trials.
  ProgramRun tune(const std::string& dir, const Strings& more = {}) const {
    Strings words = {"tune",
                     "--op",
                     "matmul 16 32 24",
                     "--n-trials",
                     "6",
                     "--threads",
                     "1",
                     "--cost-model",
                     "draft-only",
                     "--work-dir",
                     path(dir)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  ProgramRun measure(const std::string& bundle,
                     const std::string& records,
                     const Strings& more = {"--unsigned"}) const {
    Strings words = {"measure", path(bundle), "--records", path(records)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  /// Sketch and decisions of what a search chose.
  std::vector<std::string> schedules(const std::string& file) const {
    std::vector<std::string> found;
    const Result<RecordFile> records = read_records(path(file));
    if (!records.ok()) return found;
    for (const Record& record : records->records) {
      if (record.origin != "search") continue;
      EXPECT_TRUE(record.result.ok()) << record.result.error_text;
      std::string text = record.device + record.mode + record.sketch_hash;
      for (const auto& [name, value] : record.decisions) text += name + std::to_string(value);
      found.push_back(text);
    }
    return found;
  }

  Result<TemporaryFolder> folder = TemporaryFolder::make("");
};

TEST_F(BundleCommands, GiveTheRecordsThatTuneGives) {
  const ProgramRun built = tune("a", {"--build-only", path("b")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("6 programs of 1 task\n"), std::string::npos) << built.out;
  EXPECT_NE(built.out.find("pruner measure " + path("b")), std::string::npos) << built.out;
  const ProgramRun measured = measure("b", "a/records.json");
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_NE(measured.out.find("6 programs measured, 0 of them failed"), std::string::npos)
      << measured.out;
  ASSERT_EQ(tune("t").exit_code, 0);
  ASSERT_EQ(schedules("a/records.json").size(), 6u);
  ASSERT_EQ(schedules("t/records.json").size(), 6u);
  for (size_t i = 0; i < 3; ++i)  // only the first round: the second has learned from it
    EXPECT_EQ(schedules("a/records.json")[i], schedules("t/records.json")[i]);
  const ProgramRun again = measure("b", "a/records.json");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.out.find("0 programs measured, 0 of them failed"), std::string::npos);
  EXPECT_NE(again.out.find("6 were there"), std::string::npos) << again.out;
  // The search goes on from what was measured.
  const ProgramRun more = tune("a", {"--n-trials", "8", "--json"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(schedules("a/records.json").size(), 8u);
  // Programs that are known are neither proposed nor looked at again.
  const ProgramRun none = tune("a", {"--n-trials", "8", "--build-only", path("none")});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_NE(none.out.find("0 programs of 1 task\n"), std::string::npos) << none.out;
  EXPECT_NE(measure("none", "x.json").out.find("0 programs measured"), std::string::npos);
}

TEST_F(BundleCommands, CollectProgramsOfSeveralTasks) {
  const ProgramRun built = run_program({"dataset",
                                        "collect",
                                        "--op",
                                        "matmul 16 32 24",
                                        "--op",
                                        "softmax 8 64",
                                        "--programs-per-task",
                                        "5",
                                        "--threads",
                                        "1",
                                        "-o",
                                        path("r.json"),
                                        "--build-only",
                                        path("b")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("10 programs of 2 tasks"), std::string::npos) << built.out;
  ASSERT_EQ(measure("b", "r.json").exit_code, 0);
  const Result<RecordFile> records = read_records(path("r.json"));
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->records.size(), 10u);
  for (const Record& record : records->records) EXPECT_EQ(record.origin, "collect");
}

TEST_F(BundleCommands, TakeTheProgramsOfModesThatAreCompared) {
  const ProgramRun built = run_program({"compare",
                                        "--op",
                                        "matmul 16 32 24",
                                        "--modes",
                                        "draft-only,random",
                                        "--seeds",
                                        "2",
                                        "--n-trials",
                                        "3",
                                        "--threads",
                                        "1",
                                        "--build-only",
                                        path("b")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("12 programs of 1 task\n"), std::string::npos) << built.out;
  ASSERT_EQ(measure("b", "r.json").exit_code, 0);
  std::map<std::string, int> modes;
  const Result<RecordFile> records = read_records(path("r.json"));
  ASSERT_TRUE(records.ok());
  for (const Record& record : records->records) ++modes[record.mode];
  EXPECT_GT(modes["draft-only"], 0);
  EXPECT_GT(modes["random"], 0);
}

TEST_F(BundleCommands, RefuseWhatCannotBeMeasured) {
  ASSERT_EQ(tune("a", {"--build-only", path("b")}).exit_code, 0);
  const auto refused = [&](const ProgramRun& run, const std::string& why) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  };
  refused(measure("b", "r.json", {}), "give --trust FILE");
  refused(measure("b", "r.json", {"--unsigned", "--budget", "0s"}), "is no time");
  refused(measure("b", "r.json", {"--unsigned", "--device", "cuda:0"}), "this CPU");
  refused(measure("none", "r.json"), path("none"));
  refused(run_program({"measure", path("b"), "--unsigned"}), "--records FILE");
  refused(tune("c", {"--build-only", path("b"), "--target", "cuda --arch=sm_9"}), "--target");
  if (!list_gpus(Backend::kCuda).ok())  // else that is the one which is meant
    refused(tune("c", {"--build-only", path("c.b"), "--target", "cuda"}), "--arch or --model");
  refused(tune("c", {"--build-only", path("c.b"), "-o", path("c.so")}), "nothing for -o");
  std::ofstream(path("no")) << "something else";
  refused(measure("no", "r.json"), "is no bundle");
  refused(tune("c", {"--build-only", path("no")}), "is left alone");
  EXPECT_FALSE(std::filesystem::exists(path("r.json")));
}

}  // namespace
}  // namespace pruner
