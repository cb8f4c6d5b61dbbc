// label: codegen
// pruner transfer, as a user runs it.
#include <unistd.h>

#include <filesystem>

#include "ansor/cpu_steps.h"
#include "cli/run_program.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Transfer : testing::Test, RunsCommands {
  Transfer() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir =
        (fs::temp_directory_path() / ("pruner_transfer_" + std::to_string(getpid()) + test->name()))
            .string();
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Transfer() override { fs::remove_all(dir); }

  /// Tunes an operator for a few trials; its records.
  std::string tuned(const std::string& name, const std::string& op) const {
    json({"tune", "--op", op, "--n-trials", "6", "--work-dir", dir + "/" + name});
    return dir + "/" + name + "/records.json";
  }

  std::string dir;
};

TEST_F(Transfer, MeasuresTheSchedulesOfTheClass) {
  const std::string a = tuned("a", "matmul 64 64 64 +relu");
  const std::string b = tuned("b", "matmul 48 128 32 +relu");
  tuned("c", "softmax 64 64");
  const std::string pool = dir + "/*/records.json";
  const Json all = json(
      {"transfer", "--op", "matmul 96 80 40 +relu", "--pool", pool, "--work-dir", dir + "/tt/all"});
  ASSERT_EQ(all["sources"].size(), 3u);
  const Json& task = all["tasks"][0];
  EXPECT_EQ(task["class"], "matmul+relu");
  EXPECT_EQ(task["offers"].get<int>() + task["not_adaptable"].size(), 2u);
  EXPECT_LE(task["latency_ms"].get<double>(), task["untuned_ms"].get<double>());
  EXPECT_EQ(all["trials"], 1 + task["offers"].get<int>());

  const Json one = json({"transfer",
                         "--op",
                         "matmul 96 80 40 +relu",
                         "--pool",
                         pool,
                         "--source",
                         "auto",
                         "--verify",
                         "1",
                         "--work-dir",
                         dir + "/tt/one"});
  ASSERT_EQ(one["sources"].size(), 1u);
  EXPECT_TRUE(one["sources"][0] == a || one["sources"][0] == b) << one["sources"][0];
  EXPECT_LE(one["trials"].get<int>(), 2);
}

// A task without a record: of --pool's schedules that of the nearest task, as the program says.
TEST_F(Transfer, CompileTakesTheNearestSchedule) {
  const std::string near = tuned("near", "matmul 64 64 64 +relu");
  const auto compile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {
        "compile", "--op", "matmul 64 72 64 +relu", "-o", dir + "/x.so"};
    command.insert(command.end(), more.begin(), more.end());
    return json(command)["taken_over"];
  };
  EXPECT_EQ(compile({"--pool", near}), (Json{{"same_task", 0}, {"near", 1}}));
  const std::string own = tuned("own", "matmul 64 72 64 +relu");
  EXPECT_EQ(compile({"--pool", near, "--pool", own}), (Json{{"same_task", 1}, {"near", 0}}));
  EXPECT_EQ(compile({"--pool", near, "--records", own}), (Json{{"same_task", 0}, {"near", 0}}));
  EXPECT_EQ(compile({"--no-shipped-records"}), (Json{{"same_task", 0}, {"near", 0}}));
  const ProgramRun run = run_program(
      {"compile", "--op", "matmul 64 72 64 +relu", "--pool", near, "-o", dir + "/x.so"});
  EXPECT_NE(run.out.find("1 kernels have schedules of --pool"), std::string::npos) << run.out;
}

// Those that come with the program serve the networks that they were made of.
TEST_F(Transfer, CompileTakesWhatComesWithTheProgram) {
  const Json made = json({"compile",
                          "--network",
                          "mobilenet_v2",
                          "--target",
                          "llvm -mcpu=haswell",
                          "-o",
                          dir + "/x.so"});
  EXPECT_GT(made["taken_over"]["same_task"].get<int>(), 20);
}

TEST_F(Transfer, WarmStartBeginsWithTheOffers) {
  const std::string a = tuned("a", "matmul 64 64 64 +relu");
  const Json cold =
      json({"transfer", "--op", "matmul 96 80 40 +relu", "--from", a, "--work-dir", dir + "/tt"});
  ASSERT_EQ(cold["tasks"][0]["offers"], 1);
  json({"tune",
        "--op",
        "matmul 96 80 40 +relu",
        "--warm-start",
        a,
        "--n-trials",
        "3",
        "--work-dir",
        dir + "/warm"});
  const auto decisions = [](const std::string& path, size_t line) {
    std::istringstream lines(*read_file(path));
    std::string text;
    for (size_t i = 0; i <= line; ++i) std::getline(lines, text);
    return (*parse_json(text))["p"]["decisions"];
  };
  // Trial 0 is the schedule that needs no search, trial 1 the one that is offered.
  EXPECT_EQ(decisions(dir + "/warm/records.json", 1), decisions(dir + "/tt/records.json", 1));
}

TEST_F(Transfer, OfANetworkKeepsTheFasterModule) {
  json({"tune",
        "--network",
        "bert_tiny",
        "--seq-len",
        "16",
        "--n-trials",
        "12",
        "--work-dir",
        dir + "/a"});
  const Json made = json({"transfer",
                          "--network",
                          "bert_tiny",
                          "--seq-len",
                          "24",
                          "--from",
                          dir + "/a/records.json",
                          "--verify",
                          "2",
                          "--work-dir",
                          dir + "/tt"});
  EXPECT_TRUE(fs::exists(dir + "/tt/bert_tiny.so"));
  EXPECT_FALSE(fs::exists(dir + "/tt/bert_tiny.so.untuned.so"));
  const bool slower = made["transferred_ms"].get<double>() > made["untuned_ms"].get<double>();
  EXPECT_EQ(made["kept"], slower ? "untuned" : "transferred");
  for (const char* part : {"search_s", "build_s", "check_s"}) EXPECT_GT(made[part], 0) << part;
}

/// Two layers of `width` on `rows` rows, as a file.
void write_network(const std::string& path, int64_t rows, int64_t width) {
  NetworkBuilder b("layers");
  ValueId x = b.input("x", {rows, width}, DType::kFloat32);
  for (const char* name : {"first", "second"})
    x = b.node("Relu", {b.node("MatMul", {x, b.weight(name, {width, width}, width, 2)})});
  ASSERT_TRUE(export_onnx(b.finish({{x, "y"}}), path).ok());
}

TEST_F(Transfer, ExperimentComparesEachWithEachOther) {
  write_network(dir + "/eight.onnx", 8, 48);
  write_network(dir + "/sixteen.onnx", 16, 32);
  const std::string set = dir + "/set.json";
  ASSERT_TRUE(write_file(set, R"({"networks": [
      {"model": ")" + dir + R"(/eight.onnx", "name": "eight"},
      {"model": ")" + dir + R"(/sixteen.onnx", "name": "sixteen"}]})")
                  .ok());
  const std::vector<std::string> experiment = {"transfer",
                                               "--experiment",
                                               set,
                                               "--n-trials",
                                               "20",
                                               "--verify",
                                               "1",
                                               "--stops",
                                               "2",
                                               "--work-dir",
                                               dir + "/tt"};
  const Json done = json(experiment);
  ASSERT_EQ(done["targets"].size(), 2u);
  for (const Json& target : done["targets"]) {
    EXPECT_EQ(target["one_to_one"].size(), 1u);
    EXPECT_EQ(target["rivals"].size(), 2u);
    EXPECT_EQ(target["tuned_trials"], 20);
    EXPECT_GT(target["untuned_ms"], 0);
    EXPECT_LE(target["warm_start"]["trials"], 20);
  }
  EXPECT_EQ(done["targets"][0]["one_to_one"][0]["source"], "sixteen");
  for (const char* file : {"experiment.txt", "experiment.tsv", "fig_5a.svg", "fig_5b.svg"})
    EXPECT_TRUE(fs::exists(dir + "/tt/" + file)) << file;
  EXPECT_EQ(json(experiment), done) << "what is done is taken up";
}

TEST_F(Transfer, SaysWhatIsWrong) {
  const auto fail = [](const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    return run.err;
  };
  const std::vector<std::string> small = {"transfer", "--op", "matmul 32 32 32"};
  EXPECT_NE(fail(small).find("give those of tuned networks with --pool"), std::string::npos);
  std::vector<std::string> none = small;
  none.insert(none.end(), {"--pool", dir + "/none.json"});
  EXPECT_NE(fail(none).find("--pool: " + dir + "/none.json"), std::string::npos);
  ASSERT_TRUE(write_file(dir + "/text.json", "no record\n").ok());
  none.back() = dir + "/text.json";
  EXPECT_NE(fail(none).find("text.json: no records"), std::string::npos);
  ASSERT_TRUE(write_file(dir + "/set.json", R"({"networks": [{"newtork": "bert_tiny"}]})").ok());
  EXPECT_NE(fail({"transfer", "--experiment", dir + "/set.json"}).find("newtork"),
            std::string::npos);
}

// A record of Ansor, with a time.
std::string ansors_line(const std::string& target) {
  return R"({"i": [["[\"matmul_layer\", 64, 64, 64]", ")" + target + R"("], [[], )" +
         ansor::cpu_matmul_steps({}) + R"(]], "r": [[0.1], 0, 1, 1], "v": "v0.6"})" + "\n";
}

TEST_F(Transfer, TakesAnsorsRecordsAndSaysWhatBecameOfThem) {
  const std::string log = dir + "/ansor.json";
  ASSERT_TRUE(write_file(log, ansors_line("llvm -keys=cpu")).ok());
  const ProgramRun run = run_program(
      {"transfer", "--op", "matmul 96 80 40", "--from", log, "--work-dir", dir + "/ansor"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("--pool: 1 records; the best of 1 tasks: "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("|    0 |      1 |"), std::string::npos) << run.out;  // an offer
}

TEST_F(Transfer, SaysThatThereIsNoOfferAndWhy) {
  const std::string log = dir + "/ansor.json";
  ASSERT_TRUE(write_file(log, ansors_line("llvm -keys=cpu")).ok());
  const ProgramRun run = run_program({"tune",
                                      "--op",
                                      "softmax 16 16",
                                      "--warm-start",
                                      log,
                                      "--dry-run",
                                      "--work-dir",
                                      dir + "/none"});
  EXPECT_NE(run.err.find("no offer to any of 1 tasks: its schedules are of 1 matmul; the tasks are "
                         "of 1 softmax"),
            std::string::npos)
      << run.err;
}

TEST_F(Transfer, RefusesALogOfAnotherDevice) {
  const std::string log = dir + "/cuda.json";
  const std::string line = ansors_line("cuda -arch=sm_80");
  ASSERT_TRUE(write_file(log, line + line).ok());
  const ProgramRun run = run_program({"transfer", "--op", "matmul 96 80 40", "--from", log});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--pool: no usable record for llvm in " + log + ": 2 records, 2 of cuda"),
            std::string::npos)
      << run.err;
}

}  // namespace
}  // namespace pruner
