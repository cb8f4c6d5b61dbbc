#include "report/html/run_page.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "golden.h"
#include "report/finished_runs.h"
#include "search/search.h"
#include "tensor/operators.h"
#include "tune/task_file.h"
#include "tune/work_dir.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperator = "matmul 32 48 64";

Task host_task(const std::string& op) { return make_task(*parse_operator(op), host_target(1), op); }

struct RunPages : testing::Test {
  RunPages() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() / ("pruner_page_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
  }
  ~RunPages() override { fs::remove_all(dir); }

  /// A work dir without records.
  WorkDir made(const std::string& status, const std::string& input = kOperator) const {
    WorkDir work = *WorkDir::open(dir);
    RunManifest manifest;
    manifest.command = "pruner tune --op 'matmul 32 48 64'";
    manifest.version = "0.1.0";
    manifest.device = device_fingerprint(task.target);
    manifest.input = input;
    manifest.status = status;
    manifest.started = 86400;
    manifest.spent_s = 10;
    manifest.more = run_facts("pam", "online", {}, 1);
    manifest.more.update({{"explore_s", 3.0}, {"model_pairs", {{"right", 30}, {"all", 40}}}});
    EXPECT_TRUE(write_manifest(dir, manifest).ok());
    EXPECT_TRUE(write_task_file(work.file(kWorkDirTasks), std::vector{WeightedTask{task, 3}}).ok());
    return work;
  }
  Record record(const Candidate& candidate, std::vector<double> costs_s) const {
    MeasureResult result;
    result.costs_s = std::move(costs_s);
    result.timestamp = 86400;
    return make_record(task, space, candidate, result);
  }
  void append(const std::vector<Record>& records) const {
    RecordWriter writer = *RecordWriter::open(dir + "/" + kWorkDirRecords);
    for (const Record& r : records) ASSERT_TRUE(writer.append(r).ok());
  }
  /// Eleven programs, the untuned one of 4 ms first, the best 2 ms, which is 2.1 ms measured again;
  /// and a failure.
  void fill(const WorkDir& work) const {
    Rng rng(1);
    std::vector<Record> records = {
        record(default_schedule(task, space), {4e-3, 4e-3, 4.1e-3, 4e-3})};
    for (int i = 0; i < 10; ++i)
      records.push_back(record(sample(space, rng), std::vector<double>(5, 2e-3 + 1e-4 * i)));
    Record again = records[1], failed = records[2];
    again.origin = "final";
    again.result.costs_s = {2.1e-3};
    failed.result.error = MeasureError::kRunTimeout;
    failed.result.error_text = "took <b>longer</b>\nthan 10 s";
    records.insert(records.end(), {again, failed});
    append(records);
    ASSERT_TRUE(work.append_latency(2, 12e-3, 1).ok());
    ASSERT_TRUE(work.append_latency(8, 6.3e-3, 12).ok());
  }
  RunFolder folder() const {
    KnownTasks known;
    Result<RunFolder> read = read_run_folder(dir, known, 1);
    EXPECT_TRUE(read.ok()) << read.error().message();
    return read.ok() ? *std::move(read) : RunFolder{};
  }
  std::string page(const RunPageOptions& options = {}) const {
    KnownTasks known;
    const Result<RunPage> page = make_run_page({dir}, options, known);
    EXPECT_TRUE(page.ok()) << page.error().message();
    return page.ok() ? page->html : "";
  }

  std::string dir;
  Task task = host_task(kOperator);
  Space space = make_space(task);
};

TEST_F(RunPages, ReadWhatTheFolderSays) {
  fill(made("done"));
  const RunFolder run = folder();
  ASSERT_EQ(run.tasks.size(), 1u);
  EXPECT_EQ(run.tasks[0].weight, 3);
  EXPECT_EQ(run.tasks[0].flops, task.flops);
  EXPECT_EQ(run.tasks[0].bytes, traffic_bytes(task.dag));
  EXPECT_EQ(run.tasks[0].trials, 12);
  EXPECT_EQ(run.tasks[0].failed, 1);
  EXPECT_EQ(run.measured, 13);
  EXPECT_DOUBLE_EQ(*run.tasks[0].untuned_s, 4e-3);
  EXPECT_DOUBLE_EQ(*run.tasks[0].best_s, 2.1e-3) << "the time measured again";
  EXPECT_DOUBLE_EQ(*run.sum_s(&TaskFacts::untuned_s), 12e-3);
  EXPECT_EQ(run.trials.size(), 11u);
  for (const TrialFacts& trial : run.trials) EXPECT_GT(trial.drafted_s, 0);
  ASSERT_EQ(run.remeasured.size(), 1u);
  EXPECT_EQ(run.remeasured[0].again_s, std::vector{2.1e-3});
  ASSERT_EQ(run.failures.size(), 1u);
  EXPECT_EQ(run.failures.begin()->first, "run timeout: took <b>longer</b>");
  EXPECT_EQ(run.failures.begin()->second.first, "records.json:13");
  EXPECT_EQ(run.records_hash.size(), 32u);
  EXPECT_GT(run.ceiling.gflops, 0);
}

TEST_F(RunPages, TakeTheCeilingThatTheRunMeasured) {
  fill(made("done"));
  RunManifest manifest = *read_manifest(dir);
  manifest.more["peaks"] = {
      {"peak_gflops", 205.5}, {"unit_gflops", {{"int8", 800}}}, {"bandwidth_gbs", 31}};
  ASSERT_TRUE(write_manifest(dir, manifest).ok());
  const RunFolder run = folder();
  EXPECT_EQ(run.ceiling.gflops, 205.5);
  EXPECT_EQ(run.ceiling.unit_gflops.at("int8"), 800);
  EXPECT_NE(run.ceiling.source.find("measured at the end"), std::string::npos);
}

TEST_F(RunPages, AreComplete) {
  fill(made("done", "</script><script>alert(1)</script>"));
  const std::string html = page({.peers = {{"other", 9}}, .refresh_s = 5});
  for (const char* id : {"verdict",
                         "curves",
                         "tasks",
                         "layers",
                         "phases",
                         "failures",
                         "calibration",
                         "decisions",
                         "noise",
                         "about"}) {
    EXPECT_NE(html.find(std::string("<section id=\"") + id + "\""), std::string::npos) << id;
    EXPECT_NE(html.find(std::string("href=\"#") + id + "\""), std::string::npos) << id;
  }
  EXPECT_NE(html.find("12.000 ms \u2192 6.300 ms, 1.90 x as fast"), std::string::npos);
  EXPECT_NE(html.find("75.0 % of 40 pairs"), std::string::npos);
  EXPECT_NE(html.find("1970-01-02 00:00 UTC"), std::string::npos);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(html.find("<b>longer"), std::string::npos);
  EXPECT_EQ(html.find("http-equiv=\"refresh\""), std::string::npos) << "the run is done";
  EXPECT_EQ(html.find("http://"), std::string::npos) << "it needs nothing else";
  EXPECT_EQ(html, page({.peers = {{"other", 9}}})) << "the same twice";
}

TEST_F(RunPages, OfARunThatGoesOnAreReadAgain) {
  const WorkDir work = made("running");
  append({});
  const std::string html = page({.refresh_s = 5});
  EXPECT_NE(html.find("<meta http-equiv=\"refresh\" content=\"5\">"), std::string::npos);
  EXPECT_NE(html.find("Nothing is measured yet."), std::string::npos);
  EXPECT_NE(html.find("still going"), std::string::npos);
  EXPECT_EQ(page().find("http-equiv=\"refresh\""), std::string::npos) << "nobody writes it anew";
  fill(work);
  EXPECT_NE(page().find("1.90 x as fast"), std::string::npos);
}

TEST_F(RunPages, OfFailuresAloneSaySo) {
  const WorkDir work = made("done");
  Record failed = record(default_schedule(task, space), {});
  failed.result.error = MeasureError::kBuildTimeout;
  append({failed, failed});
  ASSERT_TRUE(work.append_latency(2, std::nullopt, 2).ok());
  const std::string html = page();
  EXPECT_NE(html.find("No time yet: 1 of 1 tasks have no valid trial."), std::string::npos);
  EXPECT_NE(html.find("2 of 2 trials (100.0 %)"), std::string::npos);
}

TEST_F(RunPages, WithoutTheirTasksFileKnowOperators) {
  fill(made("done"));
  fs::remove(dir + "/" + kWorkDirTasks);
  const RunFolder run = folder();
  EXPECT_EQ(run.tasks.at(0).flops, task.flops);
  EXPECT_DOUBLE_EQ(*run.tasks[0].untuned_s, 4e-3);
  EXPECT_EQ(run.no_draft, "");
}

TEST_F(RunPages, OfAnotherMachineHaveNoDraft) {
  fill(made("done"));
  RunManifest manifest = *read_manifest(dir);
  manifest.device = "another machine x64";
  ASSERT_TRUE(write_manifest(dir, manifest).ok());
  std::string text = *read_file(dir + "/" + kWorkDirRecords);
  const std::string own = Json(device_fingerprint(task.target)).dump();
  for (size_t at = text.find(own); at != std::string::npos; at = text.find(own, at + 1))
    text.replace(at, own.size(), "\"another machine x64\"");
  ASSERT_TRUE(write_file(dir + "/" + kWorkDirRecords, text).ok());
  const RunFolder run = folder();
  EXPECT_EQ(run.no_draft, "the run was on another machine (another machine x64).");
  EXPECT_EQ(run.ceiling.gflops, 0);
  EXPECT_DOUBLE_EQ(*run.tasks[0].best_s, 2.1e-3);
  EXPECT_NE(page().find("There is no draft of what was measured: the run was on"),
            std::string::npos);
}

TEST_F(RunPages, NameWhatIsMissing) {
  KnownTasks known;
  EXPECT_ERROR(read_run_folder(dir, known, 1), "no such work dir");
  fs::create_directories(dir);
  EXPECT_ERROR(read_run_folder(dir, known, 1), "no run.json is in it; give the work dir of a");
  made("done");
  EXPECT_ERROR(read_run_folder(dir, known, 1), "no records.json is in it");
  append({});
  ASSERT_TRUE(write_file(dir + "/" + kWorkDirTasks, "{}\n").ok());
  EXPECT_ERROR(read_run_folder(dir, known, 1), "tasks.json:1: missing key \"workload_key\"");
}

TEST_F(RunPages, OfTenThousandRecordsAreSmallAndSoonMade) {
  const WorkDir work = made("done");
  Rng rng(1);
  std::vector<Record> records;
  for (int i = 0; i < 10000; ++i)
    records.push_back(record(sample(space, rng), std::vector<double>(10, 1e-3 + 1e-7 * i)));
  append(records);
  for (int i = 1; i <= 1000; ++i) ASSERT_TRUE(work.append_latency(i, 1.0 / i, 10 * i).ok());
  const auto start = std::chrono::steady_clock::now();
  const std::string html = page();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(html.size(), size_t{2} << 20);
  EXPECT_LT(seconds.count(), 20) << "some 1 s on an idle machine";
  EXPECT_NE(html.find("<dd>10000, of this device</dd>"), std::string::npos);
}

}  // namespace
}  // namespace pruner
