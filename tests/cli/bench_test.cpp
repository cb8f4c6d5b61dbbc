// label: codegen
// bench and run, on a module that takes microseconds: what is timed, beside whom, and what is
// shown.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "cli/run_program.h"
#include "deploy/tensor_file.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "own_path.h"
#include "report/trace_checks.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Bench : testing::Test, RunsCommands {
  Bench() : dir(own_path("bench_test")) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Bench() override { fs::remove_all(dir); }

  static std::string refused(const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
  }

  /// The module of a convolution of a batch of 2, and its network's file beside it.
  std::string module(const std::string& name, int64_t channels, int64_t size = 16) const {
    NetworkBuilder b(name);
    const ValueId x = b.conv_norm(
        "conv", b.input("x", {2, 4, size, size}, DType::kFloat32), {.channels = channels});
    EXPECT_TRUE(export_onnx(b.finish({{x, "y"}}), dir + "/" + name + ".onnx").ok());
    out({"compile", dir + "/" + name + ".onnx", "-o", dir + "/" + name + ".so"});
    return dir + "/" + name + ".so";
  }
  Json trace(const std::string& file) const {
    const Json json = *parse_json(*read_file(dir + "/" + file));
    EXPECT_EQ(trace_fault(json), "");
    return json;
  }

  std::string dir;
};

TEST_F(Bench, MeasuresSoManyRunsAndSaysHowTheySpread) {
  const std::string net = module("net", 8);
  const Json found = json({"bench", "--module", net, "--runs", "7", "--warmup", "2"});
  EXPECT_EQ(found["runs"], 7);
  EXPECT_EQ(found["warm_up"], 2);
  double before = 0;
  for (const char* key : {"min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms"}) {
    EXPECT_GE(found[key].get<double>(), before) << key;
    before = found[key];
  }
  EXPECT_NEAR(
      found["items_per_s"].get<double>(), 2 * found["inferences_per_s"].get<double>(), 1e-6);
  EXPECT_NE(out({"bench", "--module", net, "--runs", "3"}).find(" items/s (batches of 2)\n"),
            std::string::npos);
}

TEST_F(Bench, RunsAnotherModuleInTurns) {
  const std::string net = module("net", 8), wider = module("wider", 16);
  fs::copy_file(net, dir + "/same.so");
  // On one thread each: threads that still wait for work would take the other's cores.
  const Json found = json(
      {"bench", "--module", net, "--runs", "40", "--threads", "1", "--compare", dir + "/same.so"});
  ASSERT_EQ(found["others"].size(), 1u);
  const Json& other = found["others"][0];
  EXPECT_EQ(other["name"], dir + "/same.so");
  EXPECT_EQ(other["runs"], 40);
  EXPECT_EQ(found["runs"], 40);
  EXPECT_EQ(other["turns"], 10);
  const Json& share = other["time_share"];
  EXPECT_LE(share["least"], share["median"]);
  EXPECT_LE(share["median"], share["most"]);
  EXPECT_GT(share["median"], 0.2) << "they are the same module";
  EXPECT_LT(share["median"], 5);
  EXPECT_NE(
      refused({"bench", "--module", net, "--compare", wider})
          .find("wider.so: its outputs are y float32 2x16x16x16, those of the first y float32 "
                "2x8x16x16"),
      std::string::npos);
  EXPECT_NE(refused({"bench", "--module", net, "--compare", module("small", 8, 8)})
                .find("small.so: its inputs are x float32 2x4x8x8"),
            std::string::npos);
}

TEST_F(Bench, RunsOnnxRuntimeInTurnsOrSaysWhatPythonLacks) {
  const std::string net = module("net", 8), model = dir + "/net.onnx";
  const std::vector<std::string> command = {
      "bench", model, "--module", net, "--runs", "20", "--peer", "onnxruntime", "--json"};
  const ProgramRun none =
      start_program(command, {.environment = {"PRUNER_PYTHON=no_python"}}).wait();
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(std::ranges::count(none.err, '\n'), 1) << none.err;
  EXPECT_NE(none.err.find("pruner: no_python: cannot be started; set PRUNER_PYTHON"),
            std::string::npos)
      << none.err;
  const ProgramRun run = run_program(command);
  if (run.exit_code == 1) {
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_NE(run.err.find("Python lacks what the peer needs: No module named"), std::string::npos)
        << run.err;
    GTEST_SKIP() << run.err;
  }
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json peer = (*parse_json(run.out))["others"][0];
  EXPECT_TRUE(peer["name"].get<std::string>().starts_with("onnxruntime ")) << peer;
  EXPECT_EQ(peer["runs"], 20);
  EXPECT_GT(peer["time_share"]["median"], 0);
  module("wider", 16);
  EXPECT_NE(refused({"bench", dir + "/wider.onnx", "--module", net, "--peer", "onnxruntime"})
                .find("wider.onnx: "),
            std::string::npos);
}

TEST_F(Bench, RefusesOptionsThatSayNothing) {
  EXPECT_NE(refused({"bench", "--module", "m.so", "--peer", "torch"})
                .find("--peer: \"torch\" is not onnxruntime"),
            std::string::npos);
  EXPECT_NE(refused({"bench", "--module", "m.so", "--peer", "onnxruntime"}).find("MODEL.onnx"),
            std::string::npos);
}

TEST_F(Bench, TracesTheKernelsOfARun) {
  const std::string net = module("net", 8);
  out({"bench", "--module", net, "--runs", "1", "--trace", dir + "/bench.json"});
  out({"run", "--module", net, "--fill", "ones", "--trace", dir + "/run.json"});
  for (const char* file : {"bench.json", "run.json"}) {
    const std::vector<Json> spans = spans_of(trace(file));
    ASSERT_GE(spans.size(), 2u) << file;
    EXPECT_EQ(spans[0]["name"], "run");
    EXPECT_TRUE(spans[1]["name"].get<std::string>().starts_with("conv2d")) << spans[1];
    double kernels_ms = spans[0]["args"]["outside_kernels_ms"];
    for (size_t i = 1; i < spans.size(); ++i) kernels_ms += spans[i]["dur"].get<double>() * 1e-3;
    EXPECT_NEAR(kernels_ms, spans[0]["dur"].get<double>() * 1e-3, 1e-4);
  }
}

TEST_F(Bench, TuneTracesWhatItDid) {
  const Json summary = json({"tune",
                             "--op",
                             "matmul 32 32 32",
                             "--n-trials",
                             "6",
                             "--model",
                             "draft-only",
                             "--work-dir",
                             dir + "/out",
                             "--trace",
                             dir + "/tune.json"});
  const Json run = *parse_json(*read_file(dir + "/out/run.json"));
  const Json found = trace("tune.json");
  std::map<std::string, double> seconds;
  std::map<std::string, int> count;
  for (const Json& span : spans_of(found)) {
    seconds[span["name"]] += span["dur"].get<double>() * 1e-6;
    ++count[span["name"]];
    EXPECT_EQ(span["args"]["task"], 0) << span;
    EXPECT_EQ(span["args"]["name"], "matmul 32 32 32") << span;
  }
  EXPECT_EQ(count["build"], count["run"]) << "each trial was valid";
  EXPECT_GT(count["build"], 6) << "the best are measured again";
  EXPECT_NEAR(seconds["explore"], run["more"]["explore_s"].get<double>(), 1e-4);
  EXPECT_NEAR(seconds["train"], run["more"]["train_s"].get<double>(), 1e-4);
  // Whoever waits for workers: what they do lies within it.
  EXPECT_LE(run["more"]["measure_s"].get<double>(), seconds["measure"] + seconds["measure again"]);
  EXPECT_LE(seconds["run"], seconds["measure"] + seconds["measure again"]);
}

TEST_F(Bench, TasksAreWrittenIntoACopyOfTheNetwork) {
  const std::string copy = dir + "/copy.onnx";
  module("net", 8);
  const Json tasks = json({"tasks", dir + "/net.onnx", "--annotate", copy});
  EXPECT_EQ(json({"tasks", copy}), tasks);
  const std::string bytes = *read_file(copy), name = tasks[0]["name"];
  EXPECT_NE(bytes.find("pruner: task 0: " + name + ", called 1 x"), std::string::npos) << name;
  out({"tune",
       dir + "/net.onnx",
       "--n-trials",
       "2",
       "--model",
       "draft-only",
       "--work-dir",
       dir + "/o"});
  out({"tasks", dir + "/net.onnx", "--annotate", copy, "--records", dir + "/o/records.json"});
  EXPECT_NE(read_file(copy)->find(" ms a call, 100.0 % of the time of all tasks"),
            std::string::npos);
  EXPECT_NE(refused({"tasks", "--op", "matmul 8 8 8", "--annotate", copy}).find("is of networks"),
            std::string::npos);
  EXPECT_NE(refused({"tasks", "--network", "resnet_18", "--records", dir + "/o/records.json"})
                .find("--records is of --annotate"),
            std::string::npos);
  // If Python has the package onnx, the package's checker accepts the copy.
  const std::string python = "\"${PRUNER_PYTHON:-python3}\" -c ";
  const int status =
      std::system((python + "'import onnx' 2>/dev/null || exit 77; " + python +
                   "'import onnx, sys; onnx.checker.check_model(sys.argv[1])' " + copy)
                      .c_str());
  EXPECT_TRUE(status == 0 || WEXITSTATUS(status) == 77);
}

TEST_F(Bench, TasksOfABuiltInNetworkAreWrittenWithIt) {
  const std::vector<std::string> network = {"--network", "mobilenet_v2", "--image-size", "32"};
  std::vector<std::string> command = {"tasks"}, annotate = {"tasks", "--annotate", dir + "/n.onnx"};
  command.insert(command.end(), network.begin(), network.end());
  annotate.insert(annotate.end(), network.begin(), network.end());
  const Json tasks = json(command);
  EXPECT_EQ(json(annotate), tasks);
  EXPECT_EQ(json({"tasks", dir + "/n.onnx"}), tasks);
  const std::string bytes = *read_file(dir + "/n.onnx");
  for (size_t i = 0; i < tasks.size(); ++i)
    EXPECT_NE(bytes.find("pruner: task " + std::to_string(i) + ": "), std::string::npos) << i;
}

TEST_F(Bench, RunFillsInputsAndShowsTheLargestOutputs) {
  const std::string net = module("net", 8);
  const Json ones = json({"run", "--module", net, "--fill", "ones", "--top", "2"});
  const Json& rows = ones["top"]["y"];
  ASSERT_EQ(rows.size(), 2u * 8 * 16);
  EXPECT_EQ(rows[0]["indices"].size(), 2u);
  EXPECT_GE(rows[0]["values"][0], rows[0]["values"][1]);
  EXPECT_EQ(ones["outputs"]["y"], (Json{2, 8, 16, 16}));
  const auto random = [&](const char* seed) {
    return out({"run", "--module", net, "--fill", "random", "--seed", seed, "--top", "1"});
  };
  EXPECT_EQ(random("1"), random("1"));
  EXPECT_NE(random("1"), random("2"));
  EXPECT_NE(random("1").find("y float32 2x8x16x16\n  [0,0,0]: "), std::string::npos);
  out({"run", "--module", net, "--fill", "zeros", "--outputs", dir + "/y.npz"});
  EXPECT_EQ(read_tensors(dir + "/y.npz")->size(), 1u);
  EXPECT_NE(refused({"run", "--module", net, "--fill", "twos", "--top", "1"})
                .find("--fill: \"twos\" is not random, ones or zeros"),
            std::string::npos);
  EXPECT_NE(refused({"run", "--module", net, "--fill", "ones"}).find("or use --top 5"),
            std::string::npos);
}

}  // namespace
}  // namespace pruner
