// label: codegen
// Checks what tune, compare and report leave behind for other programs, as a user runs them.
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
  EXPECT_TRUE(std::regex_search(run.out,
                                std::regex("\nIn turns: \\S+ ms, the untuned module \\S+ ms\n"
                                           "([^]*\n)?Result: [^\n]*untuned module")))
      << run.out;
  EXPECT_NE(run.out.find("\nEstimate: "), std::string::npos) << run.out;
  const Json more = run_json("out")["more"];
  EXPECT_LE(more["race"]["ms"].get<double>(), more["race"]["untuned_ms"].get<double>());
  EXPECT_LE(more["race"]["speedup_low"].get<double>(), more["race"]["speedup"].get<double>());
  EXPECT_NE(read_file(dir + "/out/report.html")->find("untuned module, measured"),
            std::string::npos);
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
  EXPECT_NE(svg.find(">net, 6 trials<"), std::string::npos);
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
  EXPECT_NE(text.err.find("/4] total "), std::string::npos) << text.err;
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

TEST_F(Reports, ARunHasAPage) {
  tune(network("net", 8), "draft-only");
  tune(network("other", 16), "random");
  const std::string own = *read_file(dir + "/draft-only/report.html");
  EXPECT_NE(own.find("<h1>net: tuning</h1>"), std::string::npos);
  EXPECT_NE(own.find(" x as "), std::string::npos) << "the untuned schedule is the first trial";
  EXPECT_NE(own.find("The ceilings were measured at the end of the run."), std::string::npos);
  EXPECT_EQ(own.find("There is no draft"), std::string::npos);
  const std::string page = dir + "/page.html";
  const ProgramRun run = done(
      {"report", dir + "/draft-only", "-o", page, "--peer", "a<b=0.5", "--peer", "c=1", "--watch"});
  EXPECT_NE(run.out.find("| Search time (s) "), std::string::npos);
  const std::string html = *read_file(page);
  EXPECT_NE(html.find("a&lt;b</th>"), std::string::npos);
  EXPECT_EQ(html.find("http-equiv=\"refresh\""), std::string::npos);
  EXPECT_NE(fail({"report", dir + "/draft-only", dir + "/random", "-o", page})
                .find("runs of one network are compared"),
            std::string::npos);
  EXPECT_NE(fail({"report", dir + "/draft-only", "-o", page, "--peer", "c=0"})
                .find("--peer c=0: expected NAME=MS"),
            std::string::npos);
  EXPECT_NE(fail({"report", dir + "/draft-only", "--watch"}).find("--watch: is for a page; add -o"),
            std::string::npos);
  fs::remove(dir + "/draft-only/records.json");
  EXPECT_NE(fail({"report", dir + "/draft-only", "-o", page}).find("no records.json is in it"),
            std::string::npos);
}

TEST_F(Reports, AnInterruptedRunHasAPage) {
  const ProgramRun run = run_program({"tune",
                                      network("net", 8),
                                      "--n-trials",
                                      "100000",
                                      "--cost-model",
                                      "draft-only",
                                      "--work-dir",
                                      dir + "/out"},
                                     2);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_NE(read_file(dir + "/out/report.html")->find("did not reach its end (interrupted)"),
            std::string::npos);
}

TEST_F(Reports, SayWhatIsMissing) {
  EXPECT_NE(fail({"report"}).find("no run is named; give work dirs of `pruner tune`"),
            std::string::npos);
  EXPECT_NE(fail({"report", dir + "/none"}).find("/none: no such work dir"), std::string::npos);
  EXPECT_NE(fail({"report", dir}).find("no total_latency.tsv is in it"), std::string::npos);
  EXPECT_NE(fail({"report", dir, "-o", dir + "/x.png"}).find("end it in one of .html, .svg, .tsv"),
            std::string::npos);
}

TEST_F(Reports, CompareTakesSeveralNetworks) {
  const std::string a = network("a", 8), b = network("b", 16), set = dir + "/set.json";
  const Json entries = {{{"model", a}}, {{"model", b}, {"name", "second"}}};
  ASSERT_TRUE(write_file(set, print_json({{"networks", entries}})).ok());
  const auto compare = [&](const std::vector<std::string>& networks) {
    std::vector<std::string> command = {"compare",
                                        "--modes",
                                        "random,draft-only",
                                        "--n-trials",
                                        "4",
                                        "--seeds",
                                        "1",
                                        "--work-dir",
                                        dir + "/cmp",
                                        "--json"};
    command.insert(command.end(), networks.begin(), networks.end());
    return *parse_json(done(command).out);
  };
  const Json made = compare({"--set", set});
  EXPECT_EQ(made["end_to_end"], true);
  ASSERT_EQ(made["networks"].size(), 2u);
  EXPECT_EQ(made["networks"][1]["network"], "second");
  for (const Json& network : made["networks"]) {
    const Json &first = network["modes"][0], &second = network["modes"][1];
    EXPECT_EQ(std::max(first["performance"].get<double>(), second["performance"].get<double>()), 1);
    EXPECT_EQ(second["to"][0]["mode"], "random");
  }
  for (const char* file : {"comparison.txt",
                           "comparison.json",
                           "performance.tsv",
                           "performance.svg",
                           "search_time.tsv",
                           "search_time.svg",
                           "a/comparison.json",
                           "a/curves.svg",
                           "second/records-random-0.json"})
    EXPECT_TRUE(fs::exists(dir + "/cmp/" + file)) << file;
  const std::string results = *read_file(dir + "/cmp/second/results.tsv");
  EXPECT_EQ(std::ranges::count(results, '\n'), 2) << results;
  EXPECT_NE(results.find("second.B2\tours\tdraft-only\t"), std::string::npos) << results;
  EXPECT_FALSE(fs::exists(dir + "/cmp/second/random-0.so")) << "the records make it again";

  EXPECT_EQ(compare({"--set", set}), made) << "what is done is taken up";
  const Json other = compare({a, network("c", 8)});
  EXPECT_EQ(other["networks"][0], made["networks"][0]);
  EXPECT_EQ(other["networks"][1]["network"], "c");
}

// ... as where it was interrupted between the two.
TEST_F(Reports, CompareTimesTheModulesThatASeedLacks) {
  const std::vector<std::string> command = {"compare",
                                            network("a", 8),
                                            "--modes",
                                            "random,draft-only",
                                            "--n-trials",
                                            "2",
                                            "--seeds",
                                            "1",
                                            "--work-dir",
                                            dir + "/cmp"};
  EXPECT_NE(done(command).out.find("| End-to-end time (ms)"), std::string::npos);
  const std::string path = dir + "/cmp/comparison.json";
  Json saved = *parse_json(*read_file(path));
  for (Json& curve : saved["curves"]) curve["end_to_end_s"] = nullptr;
  ASSERT_TRUE(write_file(path, print_json(saved)).ok());
  EXPECT_NE(done(command).out.find("| End-to-end time (ms)"), std::string::npos);
  EXPECT_EQ(std::ranges::count(*read_file(dir + "/cmp/results.tsv"), '\n'), 4);
}

TEST_F(Reports, CompareKeepsWhatItHasWhenItIsInterrupted) {
  const std::vector<std::string> command = {"compare",
                                            network("a", 8),
                                            network("b", 16),
                                            "--modes",
                                            "random,draft-only",
                                            "--n-trials",
                                            "100000",
                                            "--seeds",
                                            "1",
                                            "--work-dir",
                                            dir + "/cmp"};
  const ProgramRun run = run_program(command, 3);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_EQ(run.out, "") << "no network has a seed that was not cut short";
  EXPECT_NE(run.err.find("a, seed 0 random: ["), std::string::npos) << run.err;
  EXPECT_TRUE(fs::exists(dir + "/cmp/a/records-random-0.json"));
  EXPECT_FALSE(fs::exists(dir + "/cmp/b"));
}

TEST_F(Reports, CompareSaysWhatIsWrongWithItsNetworksBeforeItMeasures) {
  const std::string a = network("a", 8);
  const auto compare = [&](const std::vector<std::string>& networks) {
    std::vector<std::string> command = {
        "compare", "--modes", "random,draft-only", "--work-dir", dir + "/cmp"};
    command.insert(command.end(), networks.begin(), networks.end());
    return fail(command);
  };
  EXPECT_NE(compare({a, a}).find("a: is there twice"), std::string::npos);
  EXPECT_NE(compare({a, dir + "/none.onnx"}).find("none.onnx: no such file"), std::string::npos);
  EXPECT_NE(compare({"--network", "bert_tiny,resnet_51"}).find("resnet_51"), std::string::npos);
  EXPECT_NE(compare({a, "--op", "relu 4"}).find("several things to work on"), std::string::npos);
  EXPECT_NE(compare({}).find("nothing to work on"), std::string::npos);
  const std::string set = dir + "/set.json";
  ASSERT_TRUE(write_file(set, R"({"networks": []})").ok());
  EXPECT_NE(compare({"--set", set}).find("set.json: no network is in it"), std::string::npos);
  EXPECT_NE(compare({"--set", set, a}).find("set.json: names the networks; others are given"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(dir + "/cmp"));
}

}  // namespace
}  // namespace pruner
