// label: codegen
// Checks what runs under a mode's name: the mode's own model, or a name that says what is missing.
// The search is that of the papers, and constants that no search reads are refused.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "model/learned_model.h"
#include "own_path.h"
#include "record/record.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Modes : testing::Test, RunsCommands {
  Modes() : dir(own_path("modes")) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Modes() override {
    unsetenv("PRUNER_TORCH_PLUGIN");
    fs::remove_all(dir);
  }
  static void lose_the_plugin() { setenv("PRUNER_TORCH_PLUGIN", "/no/such.so", 1); }

  static std::vector<std::string> of(const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> all = {command, "--op", "matmul 64 64 64"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static void expect_error(const std::vector<std::string>& arguments, const std::string& words) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
  static void expect_mode(const std::string& file, const std::string& mode) {
    const Result<RecordFile> read = read_records(file);
    ASSERT_TRUE(read.ok()) << read.error().message();
    ASSERT_FALSE(read->records.empty());
    for (const Record& record : read->records) EXPECT_EQ(record.mode, mode);
  }

  std::string dir;
};

TEST_F(Modes, DoNotRunUnderAFalseName) {
  if (!can_train()) GTEST_SKIP() << "built without LibTorch: every run is untrained";
  lose_the_plugin();
  const std::string words =
      "training needs the plug-in libpruner_torch.so, expected beside the program: install "
      "libtorch-dev, then configure and build again; --allow-untrained goes on without the model";
  expect_error(of("tune", {"--work-dir", dir + "/a"}), "cost model pam: " + words);
  expect_error(of("compare", {"--modes", "ansor,draft-only", "--work-dir", dir + "/a"}),
               "cost model mlp: " + words);
  EXPECT_FALSE(fs::exists(dir + "/a"));
  // A mode that does not train needs no plug-in.
  out(of("tune", {"--cost-model", "draft-only", "--n-trials", "2", "--work-dir", dir + "/b"}));
}

TEST_F(Modes, SayUntrainedWhereverTheyShow) {
  if (!can_train()) GTEST_SKIP() << "built without LibTorch: every run is untrained";
  lose_the_plugin();
  out(of("tune", {"--allow-untrained", "--n-trials", "2", "--work-dir", dir + "/tune"}));
  expect_mode(dir + "/tune/records.json", "pam-untrained");
  EXPECT_NE(read_file(dir + "/tune/run.json")->find("\"pam-untrained\""), std::string::npos);
  const std::string table = out(of("compare",
                                   {"--modes",
                                    "ansor,draft-only",
                                    "--allow-untrained",
                                    "--seeds",
                                    "1",
                                    "--n-trials",
                                    "4",
                                    "--work-dir",
                                    dir + "/compare"}));
  EXPECT_NE(table.find("ansor-untrained"), std::string::npos) << table;
  EXPECT_NE(table.find("| untrained"), std::string::npos) << table;
  for (const char* file : {"comparison.json", "curves.tsv", "curves.svg"})
    EXPECT_NE(read_file(dir + "/compare/" + file)->find("ansor-untrained"), std::string::npos)
        << file;
  expect_mode(dir + "/compare/records-ansor-untrained-0.json", "ansor-untrained");
  expect_mode(dir + "/compare/records-draft-only-0.json", "draft-only");
}

TEST_F(Modes, SearchAsPublished) {
  const std::vector<std::string> tiny = {
      "--cost-model", "draft-only", "--n-trials", "12", "--population", "64"};
  std::vector<std::string> tune = of("tune", {"--search", "as-published", "--work-dir", dir});
  tune.insert(tune.end(), tiny.begin(), tiny.end());
  out(tune);
  expect_mode(dir + "/records.json", "draft-only-as-published");
  const std::string table = out(of("compare",
                                   {"--modes",
                                    "draft-only,draft-only-as-published,random-as-published",
                                    "--population",
                                    "64",
                                    "--seeds",
                                    "1",
                                    "--n-trials",
                                    "6",
                                    "--work-dir",
                                    dir + "/compare"}));
  EXPECT_NE(table.find("draft-only-as-published"), std::string::npos) << table;
  expect_error(of("tune", {"--search", "published"}),
               "--search: \"published\" is not as-published");
  expect_error(of("tune", {"--search", "as-published", "--policy", "uniform"}),
               "the policy uniform has no published form");
}

TEST_F(Modes, TuneInMetaSchedulesSpace) {
  const Result<Unit> trees = find_libraries_of("xgb");
  if (!trees.ok()) GTEST_SKIP() << trees.error().message();
  // Rounds of 64: a third one is of more than 100 samples.
  const std::string tuned = out(of("tune",
                                   {"--cost-model",
                                    "metaschedule",
                                    "--population",
                                    "128",
                                    "--n-trials",
                                    "130",
                                    "--work-dir",
                                    dir}));
  EXPECT_NE(tuned.find("Estimated total latency"), std::string::npos) << tuned;
  expect_mode(dir + "/records.json", "metaschedule");
  const RecordFile file = *read_records(dir + "/records.json");
  for (const Record& record : file.records) {
    for (const auto& [name, value] : record.decisions) {
      const bool lacked = name.ends_with("prefetch") || name.ends_with("streaming");
      EXPECT_EQ(lacked ? value : 0, 0) << name;
    }
  }
  for (const auto& [mode, words] :
       {std::pair{"metaschedule", "64 trials a round"}, {"pruner", "10 trials a round"}}) {
    const std::string plan =
        out(of("tune", {"--cost-model", mode, "--allow-untrained", "--dry-run"}));
    EXPECT_NE(plan.find(words), std::string::npos) << plan;
  }
  expect_error(of("tune", {"--cost-model", "metaschedule", "--draft-size", "1"}),
               "--draft-size: the search of metaschedule has no such constant");
}

TEST_F(Modes, ReadAConstantOrRefuseIt) {
  const auto refuse = [&](const std::vector<std::string>& mode, const std::string& flag) {
    std::vector<std::string> tune = of("tune", {"--work-dir", dir + "/x", flag, "1"});
    tune.insert(tune.end(), mode.begin(), mode.end());
    expect_error(tune, flag + ": the search of ");
  };
  for (const char* flag : {"--draft-size", "--draft-generations", "--redraft-every"})
    refuse({"--cost-model", "random"}, flag);
  for (const char* flag : {"--draft-size", "--verify-generations", "--redraft-every"})
    refuse({"--cost-model", "draft-only"}, flag);
  refuse({"--cost-model", "random", "--search", "as-published"}, "--islands");
  refuse({"--cost-model", "random", "--policy", "uniform"}, "--population");
  // Those that are taken act: another population is another sequence of trials.
  for (const char* population : {"32", "64"})
    out(of("tune",
           {"--cost-model",
            "random",
            "--population",
            population,
            "--verify-generations",
            "1",
            "--n-trials",
            "8",
            "--work-dir",
            dir + "/" + population}));
  const auto decisions = [&](const char* run) {
    std::vector<std::vector<std::pair<std::string, int32_t>>> all;
    const RecordFile file = *read_records(dir + "/" + run + "/records.json");
    for (const Record& r : file.records) all.push_back(r.decisions);
    return all;
  };
  EXPECT_NE(decisions("32"), decisions("64"));
}

TEST_F(Modes, DraftsOfAGpuAreNotForACpu) {
  expect_error(of("tune", {"--psa-form", "release", "--work-dir", dir + "/x"}),
               "--psa-form release: a draft of GPUs; the target is a CPU");
  expect_error(of("compare", {"--modes", "draft-only,random", "--psa-form", "paper"}),
               "--psa-form paper: a draft of GPUs");
  expect_error(of("tune", {"--psa-form", "best"}), "--psa-form: \"best\" is not release");
}

}  // namespace
}  // namespace pruner
