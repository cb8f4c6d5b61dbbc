// label: codegen
// What tune and report leave behind for other programs, as a user runs them.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "cli/run_program.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "support/json.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Reports : testing::Test {
  Reports() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir =
        (fs::temp_directory_path() / ("pruner_reports_" + std::to_string(getpid()) + test->name()))
            .string();
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Reports() override { fs::remove_all(dir); }

  static ProgramRun done(const std::vector<std::string>& arguments) {
    ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run;
  }
  static std::string fail(const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
  }

  /// A convolution of `channels`, as an ONNX file.
  std::string network(const std::string& name, int64_t channels) const {
    NetworkBuilder b(name);
    const ValueId x =
        b.conv_norm("conv", b.input("x", {2, 4, 16, 16}, DType::kFloat32), {.channels = channels});
    EXPECT_TRUE(export_onnx(b.finish({{x, "y"}}), dir + "/" + name + ".onnx").ok());
    return dir + "/" + name + ".onnx";
  }
  Json tune(const std::string& model, const std::string& mode) const {
    const ProgramRun run = done({"tune",
                                 model,
                                 "--n-trials",
                                 "6",
                                 "--cost-model",
                                 mode,
                                 "--work-dir",
                                 dir + "/" + mode,
                                 "--json"});
    return *parse_json(run.out);
  }
  Json run_json(const std::string& work_dir) const {
    return *parse_json(*read_file(dir + "/" + work_dir + "/run.json"));
  }

  std::string dir;
};

TEST_F(Reports, TuneWritesDownTheNetworksTimeAndDrawsItsCurve) {
  const std::string model = network("net", 8);
  const std::vector<std::string> command = {
      "tune", model, "--n-trials", "6", "--cost-model", "draft-only", "--work-dir", dir + "/out"};
  const ProgramRun run = done(command);
  EXPECT_NE(run.out.find("\n('net', [(2, 4, 16, 16)])\nMean inference time (std dev): "),
            std::string::npos)
      << run.out;
  const Json more = run_json("out")["more"];
  EXPECT_EQ(more["mode"], "draft-only");
  EXPECT_EQ(more["inputs"], Json({{2, 4, 16, 16}}));
  EXPECT_GT(more["end_to_end_ms"].get<double>(), 0);
  EXPECT_GE(more["end_to_end_std_ms"].get<double>(), 0);
  // The same again has nothing left to tune, and times the module again.
  done(command);
  const std::string line =
      "llvm\tcpu\tnetwork\tnet\\.B2\tours\tdraft-only\t\\{'costs': "
      "'\\d+\\.\\d{6}'\\}\t\\d+\\.\\d{6}"
      "\n";
  const std::string results = *read_file(dir + "/out/results.tsv");
  EXPECT_TRUE(std::regex_match(results, std::regex(line + line))) << results;
  const std::string svg = *read_file(dir + "/out/tuning_curve.svg");
  EXPECT_NE(svg.find(">net, 6 trials: estimated total latency (ms)<"), std::string::npos);
  EXPECT_NE(svg.find(">draft-only</text>"), std::string::npos);
}

TEST_F(Reports, ProgressGoesToStandardErrorAndResultsToStandardOutput) {
  const std::vector<std::string> tune = {"tune", "--op", "matmul 32 32 32", "--n-trials", "4"};
  const auto in = [&](const std::string& folder) {
    std::vector<std::string> command = tune;
    command.insert(command.end(), {"--work-dir", dir + "/" + folder});
    return command;
  };
  const ProgramRun text = done(in("text"));
  EXPECT_NE(text.err.find("/4] task  0: best "), std::string::npos) << text.err;
  EXPECT_TRUE(text.out.starts_with("----")) << text.out;
  std::vector<std::string> json = in("json");
  json.emplace_back("--json");
  EXPECT_TRUE(parse_json(done(json).out).ok());
}

TEST_F(Reports, RunsAreLaidOverOneAnother) {
  const std::string model = network("net", 8);
  const Json random = tune(model, "random"), draft = tune(model, "draft-only");
  const ProgramRun run =
      done({"report", dir + "/random", dir + "/draft-only", "-o", dir + "/both.svg"});
  EXPECT_NE(run.out.find("| method (('net', [(2, 4, 16, 16)]), 1 task; seeds: 1) | random "),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("| Update mode "), std::string::npos);
  EXPECT_NE(run.out.find("| End-to-end time (ms) "), std::string::npos);
  EXPECT_NE(read_file(dir + "/both.svg")->find(">draft-only</text>"), std::string::npos);
  const Json json =
      *parse_json(done({"report", dir + "/draft-only", "-o", dir + "/one.tsv", "--json"}).out);
  EXPECT_EQ(json["modes"][0]["update"], "draft only");
  EXPECT_NEAR(json["modes"][0]["end_to_end_s"]["median"].get<double>() * 1e3,
              draft["mean_ms"].get<double>(),
              1e-9);
  EXPECT_TRUE(read_file(dir + "/one.tsv")->starts_with("mode\tseed\ttrials\t"));
}

TEST_F(Reports, SayWhatIsMissing) {
  EXPECT_NE(fail({"report"}).find("no run is named; give work dirs of `pruner tune`"),
            std::string::npos);
  EXPECT_NE(fail({"report", dir + "/none"}).find("/none: no such work dir"), std::string::npos);
  EXPECT_NE(fail({"report", dir}).find("no total_latency.tsv is in it"), std::string::npos);
  EXPECT_NE(fail({"report", dir, "-o", dir + "/x.png"}).find("end it in one of .svg, .tsv, .txt"),
            std::string::npos);
}

}  // namespace
}  // namespace pruner
