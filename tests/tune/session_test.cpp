#include "tune/session.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "golden.h"
#include "tensor/operators.h"
#include "tune/fake_measurer.h"
#include "tune/task_file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

WeightedTask operator_task(const char* text,
                           int weight = 1,
                           const char* target = "llvm -mcpu=haswell") {
  return {make_task(*parse_operator(text), *parse_target(target, 2), text), weight};
}

std::vector<WeightedTask> three_tasks() {
  return {operator_task("matmul 256 256 256", 3),
          operator_task("matmul 64 64 64"),
          operator_task("softmax 64 1000", 2)};
}

/// A work dir of its own, and what a session of it came to.
struct TuneSession : testing::Test {
  TuneSession() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir =
        (fs::temp_directory_path() / ("pruner_session_" + std::to_string(getpid()) + test->name()))
            .string();
    fs::remove_all(dir);
    options.work_dir = dir;
    options.tune.trials = 60;
    options.tune.search.random_samples = 64;
    options.tune.search.evolve = {.population = 64, .generations = 1, .elites = 16};
  }
  ~TuneSession() override { fs::remove_all(dir); }

  Result<TuneEnd> run() {
    model = make_calibrated_draft_model();
    const SearchModels models{*model, verify.get()};
    const auto opened = Session::open(
        tasks, options, {machine, models, machine.stop, [](const auto&, const auto&) {}});
    if (!opened.ok()) return opened.error();
    const Result<TuneEnd> end = (*opened)->run();
    trials = (*opened)->tuner().trials();
    latency_s = (*opened)->tuner().total_latency_s();
    task_trials.clear();
    for (const TunedTask& task : (*opened)->tuner().tasks()) task_trials.push_back(task.trials);
    return end;
  }

  std::vector<Record> records(const std::string& origin) const {
    std::vector<Record> found = read_records(dir + "/records.json")->records;
    std::erase_if(found, [&](const Record& r) { return r.origin != origin; });
    return found;
  }

  std::vector<std::string> candidates() const {
    std::vector<std::string> texts;
    for (const Record& r : records("search")) {
      std::string text = r.workload_key + r.sketch_hash;
      for (const auto& [name, value] : r.decisions)
        text += " " + name + "=" + std::to_string(value);
      texts.push_back(text);
    }
    return texts;
  }

  std::string dir;
  std::vector<WeightedTask> tasks = three_tasks();
  SessionOptions options;
  FakeMeasurer machine;
  std::unique_ptr<CostModel> model, verify;  // verify: none
  int64_t trials = 0;
  std::optional<double> latency_s;
  std::vector<int64_t> task_trials;
};

TEST_F(TuneSession, RecordsEveryTrialAndEndsAtTheLimit) {
  const Result<TuneEnd> end = run();
  ASSERT_TRUE(end.ok()) << end.error().message();
  EXPECT_EQ(*end, TuneEnd::kTrials);
  EXPECT_EQ(trials, 60);
  EXPECT_EQ(records("search").size(), 60u);
  EXPECT_FALSE(records("final").empty());
  EXPECT_TRUE(latency_s.has_value());
  EXPECT_EQ(read_manifest(dir)->status, "done");
  EXPECT_EQ(read_manifest(dir)->trials, 60);
}

// Six rounds of ten programs have at most 45 pairs each; the sum goes on where the run does.
TEST_F(TuneSession, CountsThePairsThatTheModelOrderedBeforeItLearned) {
  const auto pairs = [&](const char* which) {
    return read_manifest(dir)->more["model_pairs"][which].get<int64_t>();
  };
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(pairs("all"), 0) << "no model verifies";
  verify = make_draft_model();
  options.tune.trials = 120;
  ASSERT_TRUE(run().ok());
  const int64_t first = pairs("all");
  EXPECT_GT(first, 30);
  EXPECT_LE(first, 6 * 45);
  EXPECT_LE(pairs("right"), first);
  options.tune.trials = 180;
  ASSERT_TRUE(run().ok());
  EXPECT_GT(pairs("all"), first);
  EXPECT_EQ(read_task_file(dir + "/tasks.json")->size(), tasks.size());
}

TEST_F(TuneSession, WritesTheCurveInTheReferencesColumns) {
  ASSERT_TRUE(run().ok());
  std::ifstream in(dir + "/total_latency.tsv");
  std::string first, last;
  std::getline(in, first);
  for (std::string line; std::getline(in, line);) last = line;
  EXPECT_TRUE(first.starts_with("ElapsedTime(s)\t0\tEstimatedLatency(ms)\tN/A\tTrials\t")) << first;
  EXPECT_TRUE(last.ends_with("\tTrials\t60")) << last;
  EXPECT_EQ(last.find("N/A"), std::string::npos);
}

TEST_F(TuneSession, OneSeedIsOneSequence) {
  ASSERT_TRUE(run().ok());
  const std::vector<std::string> first = candidates();
  options.fresh = true;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(candidates(), first);
  options.tune.seed = 1;
  ASSERT_TRUE(run().ok());
  EXPECT_NE(candidates(), first);
}

TEST_F(TuneSession, AReplayedLogGivesItsOwnSequence) {
  tasks.resize(1);
  ASSERT_TRUE(run().ok());
  const std::vector<std::string> first = candidates();
  const Space space = make_space(tasks[0].task);
  std::unordered_map<Candidate, double, CandidateHash> log;
  for (const Record& r : records("search")) log[*resolve(space, r)] = r.result.cost_s();

  FakeMeasurer replay([&](const Candidate& candidate, int) { return log.at(candidate); });
  model = make_calibrated_draft_model();
  options.fresh = true;
  const auto session = Session::open(
      tasks, options, {replay, {*model}, replay.stop, [](const auto&, const auto&) {}});
  ASSERT_TRUE(session.ok() && (*session)->run().ok());
  EXPECT_EQ(candidates(), first);
}

TEST_F(TuneSession, ResumesToATotalAndRepeatsNothing) {
  options.tune.trials = 30;
  ASSERT_TRUE(run().ok());
  const double before_s = *latency_s;
  options.tune.trials = 60;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(trials, 60);
  EXPECT_LE(*latency_s, before_s);
  std::vector<std::string> tried = candidates();
  EXPECT_EQ(tried.size(), 60u);
  std::ranges::sort(tried);
  EXPECT_EQ(std::ranges::adjacent_find(tried), tried.end());
  EXPECT_GE(read_manifest(dir)->spent_s, 0);
}

TEST_F(TuneSession, DoesNothingMoreWhenTheLimitWasReached) {
  ASSERT_TRUE(run().ok());
  const int64_t measured = machine.measured;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(machine.measured, measured);
  EXPECT_EQ(trials, 60);
}

TEST_F(TuneSession, AnInterruptKeepsWhatWasMeasured) {
  machine.stop_after = 25;
  const Result<TuneEnd> end = run();
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, TuneEnd::kInterrupted);
  EXPECT_EQ(records("search").size(), 25u);
  EXPECT_EQ(read_manifest(dir)->status, "interrupted");
  machine.stop_after = -1;
  machine.stop = false;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(records("search").size(), 60u);
}

TEST_F(TuneSession, SetsOldRecordsAsideWhenFresh) {
  ASSERT_TRUE(run().ok());
  options.fresh = true;
  ASSERT_TRUE(run().ok());
  EXPECT_TRUE(fs::exists(dir + "/records.json.1"));
  EXPECT_TRUE(fs::exists(dir + "/run.json.1"));
  EXPECT_EQ(records("search").size(), 60u);
}

TEST_F(TuneSession, TakesNothingFromAnotherThatRuns) {
  ASSERT_TRUE(run().ok());
  const Result<RecordWriter> other = RecordWriter::open(dir + "/records.json");
  ASSERT_TRUE(other.ok());
  for (const bool fresh : {false, true}) {
    options.fresh = fresh;
    EXPECT_ERROR(run(), "another pruner is writing to it");
  }
  EXPECT_FALSE(fs::exists(dir + "/records.json.1"));
  EXPECT_FALSE(fs::exists(dir + "/run.json.1"));
}

TEST_F(TuneSession, RefusesAFolderOfAnotherModelUnlessAsked) {
  ASSERT_TRUE(run().ok());
  tasks = {operator_task("matmul 128 128 128")};
  EXPECT_ERROR(run(), "of another model and 0 of another device; choose another --work-dir");
  EXPECT_EQ(records("search").size(), 60u);
  options.accept_foreign = true;
  options.tune.trials = 20;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(trials, 20);
  EXPECT_EQ(records("search").size(), 80u);
}

TEST_F(TuneSession, RefusesAFolderOfAnotherDevice) {
  ASSERT_TRUE(run().ok());
  for (WeightedTask& task : tasks) task.task.target = *parse_target("llvm -mcpu=skylake-avx512", 2);
  EXPECT_ERROR(run(), "of another device");
}

TEST_F(TuneSession, NamesADamagedLineInTheMiddle) {
  ASSERT_TRUE(run().ok());
  std::string text = *read_file(dir + "/records.json");
  text[text.find('\n') + 1] = '?';
  ASSERT_TRUE(write_file(dir + "/records.json", text).ok());
  EXPECT_ERROR(run(), "records.json:2: ");
  EXPECT_EQ(*read_file(dir + "/records.json"), text);
}

TEST_F(TuneSession, GoesOnAfterATornLastLine) {
  ASSERT_TRUE(run().ok());
  const std::string text = *read_file(dir + "/records.json");
  ASSERT_TRUE(write_file(dir + "/records.json", text.substr(0, text.size() - 20)).ok());
  options.tune.trials = 70;
  const Result<TuneEnd> end = run();
  ASSERT_TRUE(end.ok()) << end.error().message();
  EXPECT_EQ(trials, 70);
}

TEST_F(TuneSession, CannotUseAFileAsAFolder) {
  options.work_dir = "/dev/null/x";
  EXPECT_ERROR(run(), "/dev/null/x: cannot be made");
}

}  // namespace
}  // namespace pruner
