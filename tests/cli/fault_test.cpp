// label: fault
// The whole program while the machine fails it: killed at any moment, a full disk, signals, another
// tuner, a clock that jumps, workers that crash. PRUNER_FAULT_MOMENTS=200 in the environment makes
// the random moments as many, PRUNER_FAULT_TRIALS=1000 the run with faulty workers as long.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "cli/run_program.h"
#include "golden.h"
#include "record/record.h"
#include "support/rng.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// A folder of its own, with that of the program's temporary files in it; the processes of its
/// programs are known by their environment.
struct Fault : testing::Test {
  Fault() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() / ("pruner_fault_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
    fs::create_directories(dir + "/tmp");
  }
  ~Fault() override { fs::remove_all(dir); }

  ProgramSettings settings(const Strings& more = {}) const {
    ProgramSettings all;
    all.environment = {"TMPDIR=" + dir + "/tmp", "FAULT_MARK=" + dir};
    all.environment.insert(all.environment.end(), more.begin(), more.end());
    return all;
  }
  /// With the library of faults and what it is told.
  ProgramSettings faults(const Strings& told) const {
    ProgramSettings all = settings(told);
    all.environment.emplace_back("LD_PRELOAD=" PRUNER_FAULTS);
    return all;
  }
  Strings tune(int trials, const Strings& more = {}) const {
    Strings arguments = {"tune",
                         "--op",
                         "matmul 64 64 64",
                         "--cost-model",
                         "draft-only",
                         "--n-trials",
                         std::to_string(trials),
                         "--work-dir",
                         dir + "/tuned"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Strings compile(const std::string& out) const {
    return {"compile", "--network", "resnet_18", "--image-size", "32", "-o", out};
  }
  std::string records() const { return dir + "/tuned/records.json"; }
  std::vector<Record> read() const { return read_records(records())->records; }

  /// Returns the files that killed runs have left.
  Strings leftovers() const {
    Strings found;
    for (const auto& entry : fs::recursive_directory_iterator(dir))
      if (entry.path().filename().native().starts_with(".pruner")) found.push_back(entry.path());
    return found;
  }
  /// The processes of this test's programs that have the words in their command line.
  std::vector<pid_t> processes(const std::string& words = "") const {
    std::vector<pid_t> pids;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator("/proc", code)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (contents(entry.path() / "environ").find("FAULT_MARK=" + dir) == std::string::npos)
        continue;
      std::string line = contents(entry.path() / "cmdline");
      std::ranges::replace(line, '\0', ' ');
      if (line.find(words) != std::string::npos) pids.push_back(std::stoi(name));
    }
    return pids;
  }
  void expect_no_orphan() const {
    for (int i = 0; i < 300 && !processes().empty(); ++i) sleep_s(0.01);
    EXPECT_TRUE(processes().empty()) << processes().size() << " processes are left";
  }
  /// Every line is a record, but for a torn last one where that is said; how many.
  int64_t expect_whole_records(bool may_be_torn = false) const {
    if (!fs::exists(records())) return 0;
    const RecordFile file = *read_records(records());
    const std::string text = *read_file(records());
    const bool torn = may_be_torn && !text.empty() && text.back() != '\n';
    EXPECT_LE(file.skipped, torn ? 1 : 0) << file.first_skipped;
    return static_cast<int64_t>(file.records.size());
  }
  /// The trials that the run has told of.
  int64_t told() const {
    const std::string curve = contents(dir + "/tuned/total_latency.tsv");
    const size_t last = curve.substr(0, curve.rfind('\n')).rfind("Trials\t");
    return last == std::string::npos ? 0 : std::atoll(curve.c_str() + last + 7);
  }

  std::string dir;
  Rng rng{0};
};

TEST_F(Fault, AKilledTunerLosesNothing) {
  const int moments = setting("PRUNER_FAULT_MOMENTS", 12);
  int64_t before = 0;
  for (int i = 0; i < moments; ++i) {
    // A total that is not reached, with the records of those before.
    StartedProgram program = start_program(tune(100000), settings());
    sleep_s(0.02 + 1.2 * rng.uniform());
    kill(program.pid, SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
    expect_no_orphan();
    const int64_t now = expect_whole_records(true);
    EXPECT_GE(now, before);
    EXPECT_GE(now, told());
    before = now;
  }
  EXPECT_GT(before, 0);
  const auto trials = static_cast<int>(before) + 4;
  const ProgramRun last = start_program(tune(trials), settings()).wait();
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_GE(expect_whole_records(), trials);
  EXPECT_EQ(leftovers(), Strings());
}

TEST_F(Fault, AKilledMeasureLosesNothing) {
  const int moments = setting("PRUNER_FAULT_MOMENTS", 12);
  constexpr size_t kPrograms = 60;
  const std::string bundle = dir + "/bundle";
  const ProgramRun built =
      start_program(tune(kPrograms, {"--build-only", bundle}), settings()).wait();
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const Strings measure = {"measure", bundle, "--records", records(), "--unsigned"};
  int64_t before = 0;
  for (int i = 0; i < moments; ++i) {
    StartedProgram program = start_program(measure, settings());
    sleep_s(0.02 + 0.3 * rng.uniform());
    kill(program.pid, SIGKILL);
    program.wait();
    expect_no_orphan();
    const int64_t now = expect_whole_records(true);
    EXPECT_GE(now, before);
    before = now;
  }
  const ProgramRun last = start_program(measure, settings()).wait();
  EXPECT_EQ(last.exit_code, 0) << last.err;
  std::set<std::string> schedules;
  for (const Record& record : read()) {
    EXPECT_TRUE(record.result.ok()) << record.result.error_text;
    std::string schedule = record.sketch_hash;
    for (const auto& [name, value] : record.decisions) schedule += name + std::to_string(value);
    EXPECT_TRUE(schedules.insert(schedule).second) << "measured twice";
  }
  EXPECT_EQ(schedules.size(), kPrograms);
  EXPECT_EQ(leftovers(), Strings());
}

TEST_F(Fault, KilledWorkersAreNotTheCandidatesFault) {
  const int moments = setting("PRUNER_FAULT_MOMENTS", 24);
  StartedProgram program = start_program(tune(100000), settings());
  const Strings kinds = {"worker build", "worker run"};
  int killed = 0;
  for (int i = 0; i < 20 * moments && killed < moments; ++i) {
    sleep_s(0.05 + 0.2 * rng.uniform());
    std::vector<pid_t> pids = processes(kinds[static_cast<size_t>(rng.below(2))]);
    if (pids.empty()) continue;
    // Candidates have the command line of their runner.
    kill(pids[static_cast<size_t>(rng.below(static_cast<int64_t>(pids.size())))], SIGKILL);
    ++killed;
  }
  kill(program.pid, SIGINT);
  const ProgramRun run = program.wait();
  EXPECT_EQ(run.exit_code, 128 + SIGINT) << run.err;
  expect_no_orphan();
  expect_whole_records();
  // Only one that was hit five times counts as failed.
  const std::vector<Record> all = read();
  EXPECT_LE(std::ranges::count_if(all, [](const Record& r) { return !r.result.ok(); }),
            moments / 20);
  EXPECT_EQ(leftovers(), Strings());
}

/// Runs with a fault at the first of its places, the one `step` further, ..., until none is met;
/// the last one that was.
template <typename Check>
int at_each(
    const std::string& fault, int step, const Fault& test, const Strings& arguments, Check check) {
  for (int n = 1; n < 200; n += step) {
    const ProgramRun run =
        start_program(arguments, test.faults({fault + "=" + std::to_string(n)})).wait();
    if (!check(run)) return n - step;
    EXPECT_EQ(run.exit_code, 1) << fault << "=" << n << "\n" << run.out << run.err;
    EXPECT_EQ(run.err.find("internal"), std::string::npos) << run.err;
    EXPECT_EQ(test.leftovers(), Strings()) << fault << "=" << n;
  }
  ADD_FAILURE() << fault << ": never met none";
  return 0;
}

TEST_F(Fault, AFullOrReadOnlyDiskIsSaidAtEachWrite) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"FAULT_DISK", "No space left on device"}, {"FAULT_READ_ONLY", "Read-only file system"}};
  const int step = setting("PRUNER_FAULT_MOMENTS", 0) > 0 ? 1 : 4;
  for (const auto& [fault, words] : faults) {
    const auto is_said = [&](const ProgramRun& run) {
      return run.err.find(words) != std::string::npos;
    };
    const auto tuned = [&](const ProgramRun& run) {
      expect_whole_records();
      fs::remove_all(dir + "/tuned");
      return is_said(run);
    };
    EXPECT_GT(at_each(fault, step, *this, tune(2), tuned), 5);
    const std::string out = dir + "/m.so";
    ASSERT_TRUE(write_file(out, "old").ok());
    EXPECT_GT(at_each(fault,
                      1,
                      *this,
                      {"compile", "--op", "matmul 16 16 16", "--force", "-o", out},
                      [&](const ProgramRun& run) {
                        EXPECT_EQ(*read_file(out) == "old", is_said(run));
                        return is_said(run);
                      }),
              3);
    EXPECT_NE(*read_file(out), "old");
  }
}

TEST_F(Fault, AFullFileSystemIsSaid) {
  const std::string disk = dir + "/disk";
  fs::create_directories(disk);
  if (std::system("unshare -m true 2>/dev/null") != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  // The namespace of mounts goes with the program.
  for (const char* size : {"4k", "200k", "2m", "18m"}) {
    ProgramSettings small = settings();
    const std::string script = dir + "/run.sh";
    ASSERT_TRUE(write_file(script,
                           "mount -t tmpfs -o size=" + std::string(size) + ",nr_inodes=100 tmpfs " +
                               disk + " && \"$@\"; code=$?; ls -A " + disk + " >&2; exit $code\n")
                    .ok());
    small.first = "unshare -m sh " + script + " \"$0\" \"$@\"; exit $?";
    const ProgramRun run = start_program(compile(disk + "/m.so"), small).wait();
    EXPECT_EQ(run.exit_code, 1) << size << run.err;
    EXPECT_NE(run.err.find("No space left on device"), std::string::npos) << size << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << size << run.err;  // and nothing is left
  }
  EXPECT_EQ(leftovers(), Strings());
}

TEST_F(Fault, SignalsAtEveryStageEndTheProgramAndLeaveNothing) {
  const int moments = setting("PRUNER_FAULT_MOMENTS", 15);
  const std::string out = dir + "/m.so";
  const std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  int met = 0;
  for (int i = 0; i < moments; ++i) {
    const bool tunes = i % 2 == 0;
    const int signal = kSignals[static_cast<size_t>(i) % kSignals.size()];
    fs::remove(out);
    StartedProgram program =
        start_program(tunes ? tune(100000, {"-o", out}) : compile(out), settings());
    sleep_s(0.03 + 1.5 * rng.uniform());
    const auto start = std::chrono::steady_clock::now();
    kill(program.pid, signal);
    const ProgramRun run = program.wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const bool finished = !tunes && run.exit_code == 0;
    EXPECT_EQ(run.exit_code, finished ? 0 : 128 + signal) << run.err;
    EXPECT_LT(took.count(), 5) << tunes;
    met += !finished;
    expect_no_orphan();
    expect_whole_records();
    EXPECT_TRUE(fs::exists(out) || !finished);  // a signal may come when it has just been placed
    EXPECT_EQ(leftovers(), Strings()) << tunes;
  }
  EXPECT_GT(met, moments / 2);
}

TEST_F(Fault, WhatAKilledCompileLeavesIsSweptByTheNext) {
  const std::string out = dir + "/m.so";
  const int moments = setting("PRUNER_FAULT_MOMENTS", 12);
  int left = 0;
  for (int i = 0; i < moments; ++i) {
    StartedProgram program = start_program(compile(out), settings());
    if (i == 0) {  // whatever the machine's speed: while there is something to leave
      for (int wait = 0; wait < 10000 && leftovers().empty(); ++wait) sleep_s(0.001);
    } else {
      sleep_s(0.05 + 1.5 * rng.uniform());
    }
    kill(program.pid, SIGKILL);
    program.wait();
    left += !leftovers().empty();
  }
  EXPECT_GT(left, 0);
  EXPECT_EQ(start_program(compile(out), settings()).wait().exit_code, 0);
  EXPECT_EQ(leftovers(), Strings());
}

TEST_F(Fault, ASecondTunerKeepsAway) {
  StartedProgram first = start_program(tune(100000), settings());
  for (int i = 0; i < 500 && told() == 0; ++i) sleep_s(0.01);
  for (const Strings& more : {Strings{}, Strings{"--fresh"}}) {
    const ProgramRun second = start_program(tune(8, more), settings()).wait();
    EXPECT_EQ(second.exit_code, 2);
    EXPECT_NE(second.err.find("another pruner is writing to it"), std::string::npos) << second.err;
  }
  EXPECT_FALSE(fs::exists(records() + ".1"));
  kill(first.pid, SIGINT);
  EXPECT_EQ(first.wait().exit_code, 128 + SIGINT);
  expect_whole_records();
}

TEST_F(Fault, AClockThatJumpsChangesNothing) {
  const ProgramRun run = start_program(tune(12), faults({"FAULT_CLOCK=1"})).wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GE(expect_whole_records(), 12);
  for (const Record& record : read()) EXPECT_TRUE(record.result.ok()) << record.result.error_text;
}

TEST_F(Fault, FaultyWorkersCostOnlyTheirTrials) {
  const int trials = setting("PRUNER_FAULT_TRIALS", 40);
  // One of ten ends badly; a hang and a leak take ten seconds each.
  const std::string kinds = trials > 100 ? "ckckckckhl" : "lckck";
  const ProgramRun run = start_program(tune(trials),
                                       faults({"FAULT_WORKERS=" + kinds + ",10",
                                               "FAULT_RUNS=" + dir + "/runs",
                                               "FAULT_BUILDS=" + dir + "/builds"}))
                             .wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expect_no_orphan();
  EXPECT_GE(expect_whole_records(), trials);
  int64_t failed = 0;
  for (const Record& record : read()) {
    failed += !record.result.ok();
    EXPECT_EQ(record.result.ok(), record.result.error_text.empty());
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, trials / 5);
  EXPECT_EQ(leftovers(), Strings());
}

TEST_F(Fault, WorkersThatAlwaysFailAreNoSuccess) {
  const ProgramRun run = start_program(tune(4),
                                       faults({"FAULT_WORKERS=c,1",
                                               "FAULT_RUNS=" + dir + "/runs",
                                               "FAULT_BUILDS=" + dir + "/none/such"}))
                             .wait();
  EXPECT_EQ(run.exit_code, 1) << run.out;
  EXPECT_NE(run.err.find("trials of this run failed"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("SIGSEGV"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(records()), std::string::npos) << run.err;
}

TEST_F(Fault, StandardOutputThatCannotBeWrittenIsAnError) {
  for (const Strings& arguments :
       {Strings{"tasks", "--network", "resnet_50"}, Strings{"--help"}, Strings{"ops", "--json"}}) {
    ProgramSettings full = settings();
    full.out_file = "/dev/full";
    const ProgramRun run = start_program(arguments, full).wait();
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.err, "pruner: standard output: cannot be written: No space left on device\n");
  }
}

TEST_F(Fault, LimitsOfTheShellAreSaid) {
  const auto fail = [&](const std::string& limit, const Strings& arguments, int code) {
    ProgramSettings limited = settings();
    limited.first = limit;
    const ProgramRun run = start_program(arguments, limited).wait();
    EXPECT_EQ(run.exit_code, code) << limit << "\n" << run.out << run.err;
    // One line beside those of what was begun.
    const size_t line = run.err.find("pruner: ");
    EXPECT_EQ(line, run.err.rfind("pruner: ")) << limit << "\n" << run.err;
    EXPECT_EQ(run.err.find('\n', line), run.err.size() - 1) << limit << "\n" << run.err;
    EXPECT_EQ(leftovers(), Strings()) << limit;
    return run.err;
  };
  const std::string out = dir + "/m.so";
  EXPECT_NE(fail("ulimit -f 16", compile(out), 1).find("File too large"), std::string::npos);
  EXPECT_NE(fail("ulimit -f 8", tune(100), 1).find("File too large"), std::string::npos);
  const std::string long_name(300, 'd');
  Strings in_long = tune(4);
  in_long.back() += long_name;
  EXPECT_NE(fail("true", in_long, 2).find("File name too long"), std::string::npos);
  EXPECT_NE(fail("true", compile(dir + '/' + long_name), 2).find("File name too long"),
            std::string::npos);
  for (const int mb : {300, 400, 500})
    fail("ulimit -v " + std::to_string(mb << 10),
         {"compile", "--network", "resnet_50", "-o", out},
         1);
}

TEST_F(Fault, APercentSignInAPathIsALetterAsAnyOther) {
  const std::string out = dir + "/100%/a%b.so";
  fs::create_directories(dir + "/100%");
  const ProgramRun run =
      start_program({"compile", "--op", "matmul 16 16 16", "--force", "-o", out}, settings())
          .wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(fs::exists(out));
}

}  // namespace
}  // namespace pruner
