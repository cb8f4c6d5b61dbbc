#include "dataset/make.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "dataset/dataset.h"
#include "dataset/matmul_records.h"
#include "golden.h"
#include "measure/measure.h"
#include "own_path.h"
#include "record/record_stream.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

/// Makings from files in a folder.
struct MakeTest : testing::Test {
  MakeTest() {
    fs::remove_all(folder);
    fs::create_directories(folder + "/logs");
  }
  ~MakeTest() override { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder + "/logs/" + name).parent_path());
    ASSERT_TRUE(write_file(folder + "/logs/" + name, text).ok());
  }
  void pack(const std::string& name, const std::string& text, size_t cut = 0) const {
    const std::string path = folder + "/logs/" + name;
    gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    const std::string bytes = *read_file(path);
    ASSERT_TRUE(write_file(path, bytes.substr(0, bytes.size() - cut)).ok());
  }
  Result<MakeSummary> make() {
    ansor::WorkloadTable workloads;
    RecordedPrograms programs(workloads);
    NetworkTasks none;
    options.records = {folder + "/logs"};
    options.out_file = out;
    return make_dataset(options, {programs, none, none, {}});
  }
  /// The counts of all devices, after a check that each record is counted once.
  DeviceCount count() {
    summary = make();
    EXPECT_TRUE(summary.ok()) << summary.error().message();
    if (!summary.ok()) return {};
    const DeviceCount total = summary->total();
    EXPECT_EQ(total.records, total.kept + total.dropped());
    EXPECT_EQ(summary->lines,
              total.records + pruner::total(summary->unreadable) + summary->other_targets);
    EXPECT_EQ(Dataset::open(out)->size(), total.kept);
    EXPECT_EQ(static_cast<int64_t>(Dataset::open(out)->tasks().size()), total.tasks);
    return total;
  }

  const std::string folder = own_path("make");
  const std::string out = folder + "/a.ds";
  MakeOptions options = {.records = {}, .out_file = {}, .min_sample_size = 1, .targets = {}};
  Result<MakeSummary> summary = Error("not made");
};

TEST_F(MakeTest, HasTheFeaturesOfEveryRecord) {
  write("a.json", record_lines_of(3));
  pack("b.json.gz", record_lines_of(2, {.key = R"(["matmul_layer", 64, 64, 128])"}));
  options.jobs = 3;
  const DeviceCount total = count();
  EXPECT_EQ(total.kept, 5);
  EXPECT_EQ(total.tasks, 2);
  const Dataset dataset = *Dataset::open(out);
  EXPECT_EQ(dataset.tasks()[1].workload_key, R"(["matmul_layer", 64, 64, 128])");
  EXPECT_EQ(std::vector<int32_t>(dataset.task().begin(), dataset.task().end()),
            (std::vector<int32_t>{0, 0, 0, 1, 1}));
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  for (int i = 1; i <= 3; ++i) {
    const RecordedProgram program = *programs.read(*parse_line(record_line({.factor = i})));
    const ProgramFeatures expected = features(program.statements, program.flags);
    EXPECT_TRUE(std::ranges::equal(dataset.rows(i - 1), expected.rows));
    EXPECT_TRUE(std::ranges::equal(dataset.dataflow(i - 1), expected.dataflow));
    EXPECT_DOUBLE_EQ(dataset.latency_s()[static_cast<size_t>(i) - 1], i * 1e-3);
  }
}

TEST_F(MakeTest, IsTheSameFileOnAnyNumberOfThreads) {
  for (int file = 0; file < 5; ++file)
    write(std::to_string(file) + ".json",
          record_lines_of(
              100, {.key = R"(["matmul_layer", 64, 64, )" + std::to_string(8 << file) + "]"}));
  count();
  const std::string one = *read_file(out);
  options.jobs = 4;
  count();
  EXPECT_EQ(*read_file(out), one);
}

TEST_F(MakeTest, KeepsTheBestOrTheLastOfAProgram) {
  const auto lines = [](std::vector<MatmulRecord> records) {
    std::string text;
    for (const MatmulRecord& record : records) text += record_line(record);
    return text;
  };
  write("a.json",
        lines({{.factor = 4, .costs = "[0.002]", .timestamp = 5},
               {.factor = 4, .costs = "[0.001]", .timestamp = 6},
               {.factor = 4, .costs = "[0.003]", .timestamp = 7},
               {.factor = 4, .costs = "[1e10]", .error = 7, .timestamp = 8},
               {.factor = 8, .costs = "[0.004]"}}));
  DeviceCount total = count();
  EXPECT_EQ(total.duplicates, 3);
  EXPECT_EQ(total.kept, 2);
  EXPECT_EQ(total.valid, 4);
  EXPECT_EQ(total.failed, 1);
  EXPECT_EQ(Dataset::open(out)->latency_s()[0], 0.001);
  options.duplicates = DuplicateRule::kLast;
  count();
  EXPECT_EQ(Dataset::open(out)->latency_s()[0], 1e10);
  options.keep_failed = false;
  total = count();
  EXPECT_EQ(total.failed_dropped, 1);
  EXPECT_EQ(Dataset::open(out)->latency_s()[0], 0.003);
}

TEST_F(MakeTest, BadLabelsNeverEnter) {
  write("a.json",
        record_lines_of(3) + record_line({.factor = 5, .costs = "[0]"}) +
            record_line({.factor = 6, .costs = "[1e10]"}) +
            record_line({.factor = 7, .costs = "[-1]"}) +
            record_line({.factor = 8, .costs = "[NaN]"}) + record_lines_of(5));
  const DeviceCount total = count();
  EXPECT_EQ(total.bad_label, 3);
  EXPECT_EQ(total.kept, 5);
  EXPECT_EQ(summary->bad_label.at("a latency of 0").first, folder + "/logs/a.json:4");
  EXPECT_EQ(summary->unreadable.begin()->second.first, folder + "/logs/a.json:7");
  const Dataset dataset = *Dataset::open(out);
  for (const double latency : dataset.latency_s()) {
    EXPECT_GT(latency, 0);
    EXPECT_LT(latency, 1);
  }
}

TEST_F(MakeTest, ReadsOnPastWhatIsDamaged) {
  pack("torn.json.gz", record_lines_of(200), 40);
  write("whole.json", "{\"i\": [\n[1, 2]\nhello\n" + record_lines_of(3));
  write("empty.json", "");
  write("README.md", "# these are logs\n");
  const DeviceCount total = count();
  EXPECT_GE(total.kept, 3);
  EXPECT_EQ(summary->unreadable_files.at(kEndsEarly).first, folder + "/logs/torn.json.gz");
  EXPECT_EQ(summary->other_files, 2);
  EXPECT_GE(pruner::total(summary->unreadable), 3);
}

TEST_F(MakeTest, RefusesTwoDevicesUnlessBothAreWanted) {
  write("k80/a.json", record_lines_of(3));
  write("v100/a.json", record_lines_of(4));
  EXPECT_ERROR(make(), "records of several devices: \"cuda -keys=cuda,gpu -max_num_threads=1024");
  EXPECT_FALSE(fs::exists(out));
  options.targets = {parse_device_label("cuda --model=v100")};
  DeviceCount total = count();
  EXPECT_EQ(total.kept, 4);
  EXPECT_EQ(summary->other_targets, 3);
  options.targets.push_back(parse_device_label("cuda --model=k80"));
  EXPECT_EQ(count().tasks, 2);
  options.targets.clear();
  options.mixed_targets = true;
  total = count();
  EXPECT_EQ(total.kept, 7);
  ASSERT_EQ(summary->devices.size(), 2u);
  EXPECT_EQ(summary->devices[0].kept, 3);
  const Dataset dataset = *Dataset::open(out);
  std::set<uint64_t> ids(dataset.id().begin(), dataset.id().end());
  EXPECT_EQ(ids.size(), 7u);  // one program on two devices is two
  EXPECT_TRUE(dataset.tasks()[1].target.ends_with("-model=v100"));
}

TEST_F(MakeTest, TwoTextsOfOneDeviceAreOne) {
  write("a.json", record_lines_of(3) + record_lines_of(3, {.target = "cuda -arch=sm_70"}));
  const DeviceCount total = count();
  EXPECT_EQ(total.tasks, 1);
  EXPECT_EQ(total.duplicates, 3);
  EXPECT_EQ(summary->devices.size(), 1u);
}

TEST_F(MakeTest, LeavesSmallTasksAndThoseBeyondTheFirstOut) {
  const auto key = [](int n) { return R"(["matmul_layer", 64, 64, )" + std::to_string(n) + "]"; };
  write("a.json", record_lines_of(2, {.key = key(8)}));
  write("b.json", record_lines_of(5, {.key = key(16)}));
  write("c.json", record_lines_of(6, {.key = key(32)}));
  write("d.json", record_line({.costs = "[1e10]", .error = 2, .key = key(64)}));
  options.min_sample_size = 3;
  DeviceCount total = count();
  EXPECT_EQ(total.too_few, 3);
  EXPECT_EQ(total.kept, 11);
  options.max_tasks = 1;
  total = count();
  EXPECT_EQ(total.beyond, 6);
  EXPECT_EQ(total.kept, 5);
  EXPECT_EQ(Dataset::open(out)->tasks()[0].workload_key, key(16));
  options.min_sample_size = 1;
  options.max_tasks = 0;
  EXPECT_EQ(count().too_few, 1);  // nothing is known of a task whose trials all failed
}

TEST_F(MakeTest, DrawsFilesBySeed) {
  for (int file = 0; file < 8; ++file)
    write(std::to_string(file) + ".json",
          record_line({.key = R"(["matmul_layer", 64, 64, )" + std::to_string(8 << file) + "]"}));
  options.sample_in_files = 3;
  EXPECT_EQ(count().kept, 3);
  const std::string first = *read_file(out);
  count();
  EXPECT_EQ(*read_file(out), first);
  std::set<std::string> files = {first};
  for (options.seed = 1; options.seed < 5; ++options.seed) {
    count();
    files.insert(*read_file(out));
  }
  EXPECT_GT(files.size(), 1u);
  options.sample_in_files = 100;
  EXPECT_EQ(count().kept, 8);
}

TEST_F(MakeTest, SaysWhyThereIsNothing) {
  EXPECT_ERROR(make(), "none of 0 lines in 0 files is a record to keep");
  write("a.json", "{\"i\": [\n");
  EXPECT_ERROR(make(), "a.json:1)");
  write("a.json", record_line({.costs = "[0]"}));
  EXPECT_ERROR(make(), "1 a latency of 0 (first: ");
  write("a.json", record_line({}));
  options.min_sample_size = 2;
  EXPECT_ERROR(make(), "1 of tasks with fewer than 2 programs (--min-sample-size)");
  EXPECT_ERROR(make(), "the largest task has 1: pass --min-sample-size 1 or less");
  EXPECT_FALSE(fs::exists(out));
  options.records = {folder + "/none*"};
}

TEST_F(MakeTest, ReadsOurOwnRecordsOfOperators) {
  const Task task = make_task(*parse_operator("matmul 64 64 64"),
                              *parse_target("llvm -mcpu=haswell --threads=2", 0),
                              "matmul 64 64 64");
  const Space space = make_space(task);
  Rng rng(3);
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    MeasureResult result;
    result.costs_s = {1e-3 * (i + 1)};
    lines += print_line(make_record(task, space, sample(space, rng), result)) + "\n";
  }
  write("own.json", lines);
  EXPECT_EQ(count().kept + count().duplicates, 6);
}

struct Oracle {
  int64_t records = 0, ok = 0;
};

/// tasks.tsv, summed over the files below `folder`.
Oracle oracle_of(const std::string& path, const std::string& folder) {
  std::ifstream in(path);
  Oracle sum;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(folder)) continue;
    std::istringstream fields(line);
    std::string file, key, target, records, ok;
    std::getline(fields, file, '\t');
    std::getline(fields, key, '\t');
    std::getline(fields, target, '\t');
    std::getline(fields, records, '\t');
    std::getline(fields, ok, '\t');
    sum.records += std::stoll(records);
    sum.ok += std::stoll(ok);
  }
  return sum;
}

// The counts of public records are those of the list that came with them.
TEST_F(MakeTest, CountsPublicRecordsAsTheirListDoes) {
  const std::string logs = PRUNER_SHARED_DATA "/ansor-logs/";
  if (!fs::exists(logs)) GTEST_SKIP() << "no records under " << logs;
  for (const char* part : {"apache-tvm-ci-logs", "lac-dcc-bennu/benchmarks"}) {
    const Oracle oracle = oracle_of(logs + "tasks.tsv", std::string(part) + "/");
    ASSERT_GT(oracle.records, 0) << part;
    ansor::WorkloadTable workloads;
    ASSERT_TRUE(workloads.add_file(PRUNER_SHARED_DATA "/tenset-tasks/tasks.jsonl").ok());
    RecordedPrograms programs(workloads);
    NetworkTasks none;
    options.records = {logs + part};
    options.out_file = out;
    options.mixed_targets = true;
    options.jobs = 2;
    const auto made = make_dataset(options, {programs, none, none, {}});
    ASSERT_TRUE(made.ok()) << made.error().message();
    EXPECT_EQ(made->total().records, oracle.records) << part;
    EXPECT_EQ(made->total().valid, oracle.ok) << part;
    EXPECT_EQ(made->total().records, made->total().kept + made->total().dropped());
  }
}

}  // namespace
}  // namespace pruner
