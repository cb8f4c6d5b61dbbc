// label: codegen
// The commands as a user runs them, on problems that take a second.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "cli/run_program.h"
#include "deploy/loaded_module.h"
#include "deploy/tensor_file.h"
#include "golden.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Commands : testing::Test, RunsCommands {
  Commands() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir =
        (fs::temp_directory_path() / ("pruner_commands_" + std::to_string(getpid()) + test->name()))
            .string();
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Commands() override { fs::remove_all(dir); }

  /// The fastest record of a file of one task.
  std::string best_line(const std::string& records) const {
    out({"records", "best", records, "-o", dir + "/best.json"});
    return *read_file(dir + "/best.json");
  }

  std::string dir;
};

TEST_F(Commands, Float16WithoutAUnitIsSaidInOneLine) {
  const auto tasks = [](const char* target) {
    return run_program(
        {"tasks", "--network", "bert_tiny", "--precision", "f16", "--target", target});
  };
  const ProgramRun with = tasks("cuda --model=t4"), without = tasks("cuda --model=v100");
  EXPECT_EQ(with.err, "");
  EXPECT_EQ(with.out, without.out);
  EXPECT_NE(without.err.find("--precision f16: cuda --model=v100 has no unit"), std::string::npos);
  EXPECT_EQ(std::ranges::count(without.err, '\n'), 1) << without.err;
}

TEST_F(Commands, AnOperatorHasItsOwnPrecision) {
  const ProgramRun run = run_program({"tasks", "--op", "matmul 8 8 8", "--precision", "f16"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--precision is of networks; an operator says it, e.g. bits=16"),
            std::string::npos)
      << run.err;
}

TEST_F(Commands, TasksOfResNet50AreTheReferences) {
  const Json tasks = json({"tasks", "--network", "resnet_50"});
  EXPECT_EQ(tasks.size(), 27u);
  int weight = 0;
  for (const Json& task : tasks) weight += task["weight"].get<int>();
  EXPECT_EQ(weight, 56);
  EXPECT_NE(out({"tasks", "--network", "resnet_50"}).find("27 tasks, sum of weights 56"),
            std::string::npos);
}

TEST_F(Commands, TuneAnOperatorThenCompileAndTimeIt) {
  const std::vector<std::string> op = {"--op", "matmul 32 48 64 +relu"};
  const std::string work_dir = dir + "/out";
  const Json summary = json({"tune", op[0], op[1], "--n-trials", "6", "--work-dir", work_dir});
  EXPECT_EQ(summary["trials"], 6);
  EXPECT_EQ(summary["end"], "trials");
  EXPECT_GT(summary["estimated_total_latency_ms"].get<double>(), 0);
  EXPECT_EQ(summary["tasks"][0]["trials"], 6);

  // The same again has nothing left to do.
  const std::string again = out({"tune", op[0], op[1], "--n-trials", "6", "--work-dir", work_dir});
  EXPECT_NE(again.find("|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |"), std::string::npos);
  EXPECT_NE(again.find("Trials: 6\t"), std::string::npos);

  const std::string module = dir + "/m.so", records = work_dir + "/records.json";
  out({"compile", op[0], op[1], "--records", records, "-o", module});
  const Json bench = json({"bench", "--module", module, "--min-time", "0.05", "--profile"});
  for (const char* key : {"median_ms", "mean_ms", "std_ms", "runs", "threads"})
    EXPECT_TRUE(bench.contains(key)) << key;
  ASSERT_EQ(bench["kernels"].size(), 1u);
  const Json& kernel = bench["kernels"][0];
  EXPECT_EQ(kernel["flops"], 32 * 48 * (2 * 64 + 1));
  EXPECT_EQ(kernel["bytes"], 4 * (32 * 64 + 64 * 48 + 32 * 48));
  EXPECT_FALSE(kernel["sketch"].get<std::string>().empty());
  EXPECT_EQ(kernel["precision"], "float32");
  EXPECT_GT(kernel["peak_percent"].get<double>(), 0);
  EXPECT_GT(kernel["bandwidth_percent"].get<double>(), 0);
  const Json verified =
      json({"bench", "--module", module, "--min-time", "0", "--verify", op[0], op[1]});
  EXPECT_LT(verified["verified"]["error"].get<double>(), verified["verified"]["bound"]);
  EXPECT_TRUE(json({"compile", op[0], op[1], "-o", module, "--verify"}).contains("verified"));

  EXPECT_EQ(json({"records", "stat", records})["tasks"][0]["task"], "matmul 32 48 64 +relu");
  EXPECT_EQ(json({"records", "best", records})["tasks"], 1);
}

TEST_F(Commands, CompareModesWithAndWithoutAnIngredient) {
  const std::vector<std::string> compare = {"compare",
                                            "--op",
                                            "relu 4 8",
                                            "--op",
                                            "matmul 16 16 16",
                                            "--ablate",
                                            "draft-only",
                                            "--parts",
                                            "default-schedule",
                                            "--n-trials",
                                            "4",
                                            "--population",
                                            "64",
                                            "--work-dir",
                                            dir + "/ablation"};
  const Json made = json(compare);
  EXPECT_EQ(made["modes"],
            Json({"draft-only-as-published", "draft-only", "draft-only-without-default-schedule"}));
  ASSERT_EQ(made["networks"].size(), 2u);
  EXPECT_EQ(made["networks"][0]["modes"][0]["ingredients"], "none");
  ASSERT_EQ(made["ablation"].size(), 1u);
  const Json& worth = made["ablation"][0];
  EXPECT_EQ(worth["part"], "default-schedule");
  EXPECT_EQ(worth["runs"], 10) << "two operators, and five seeds unless told otherwise";
  EXPECT_GT(worth["latency"]["median"].get<double>(), 0);
  const std::string table = out(compare);  // The finished runs are taken up.
  EXPECT_EQ(table, *read_file(dir + "/ablation/ablation.txt"));
  EXPECT_NE(table.find("| default-schedule "), std::string::npos) << table;
  EXPECT_TRUE(fs::exists(dir + "/ablation/ablation.tsv"));
  EXPECT_TRUE(fs::exists(dir + "/ablation/relu_4_8/curves.svg"));
}

TEST_F(Commands, CompareModesAndKeepTheCurves) {
  const std::vector<std::string> compare = {"compare",
                                            "--op",
                                            "matmul 32 48 64",
                                            "--n-trials",
                                            "6",
                                            "--modes",
                                            "random,draft-only,draft-only-without-memory-l0",
                                            "--seeds",
                                            "2",
                                            "--work-dir",
                                            dir + "/cmp"};
  const Json summary = json(compare);
  ASSERT_EQ(summary["modes"].size(), 3u);
  EXPECT_EQ(summary["modes"][0]["reached"], 2) << "its own latency";
  EXPECT_EQ(summary["modes"][1]["seeds"], 2);
  EXPECT_EQ(summary["curves"].size(), 6u);
  for (const Json& curve : summary["curves"]) EXPECT_EQ(curve["trials"], 6);
  for (const char* file : {"comparison.txt",
                           "comparison.json",
                           "curves.tsv",
                           "curves.svg",
                           "records-random-0.json",
                           "records-draft-only-1.json"})
    EXPECT_TRUE(fs::exists(dir + "/cmp/" + file)) << file;

  // The same again has nothing left to do; other modes want a folder of their own.
  EXPECT_EQ(json(compare), summary);
  std::vector<std::string> other = compare;
  other[6] = "draft-only,random";
  const ProgramRun refused = run_program(other);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(
      refused.err.find(
          "of the modes random,draft-only,draft-only-without-memory-l0; choose another folder"),
      std::string::npos)
      << refused.err;
}

TEST_F(Commands, ADryRunDoesNothing) {
  const std::string text = out({"tune",
                                "--op",
                                "matmul 32 32 32",
                                "--dry-run",
                                "--work-dir",
                                dir + "/out",
                                "--model",
                                "draft-only"});
  EXPECT_NE(text.find("Would tune in mode draft-only on "), std::string::npos) << text;
  EXPECT_NE(text.find("nothing was done"), std::string::npos);
  EXPECT_FALSE(fs::exists(dir + "/out"));
}

// Each event of a run stands for itself; the last one is what --json says.
TEST_F(Commands, EventsTellARun) {
  const std::vector<std::string> tune = {"tune",
                                         "--op",
                                         "matmul 32 32 32",
                                         "--op",
                                         "relu 64 64",
                                         "--n-trials",
                                         "12",
                                         "--cost-model",
                                         "draft-only",
                                         "--work-dir",
                                         dir + "/out"};
  std::vector<std::string> streamed = tune;
  streamed.insert(streamed.end(), {"--events", "-"});
  std::map<std::string, int> count;
  Json started, last;
  std::istringstream lines(out(streamed));
  for (std::string line; std::getline(lines, line);) {
    const Result<Json> event = parse_json(line);
    ASSERT_TRUE(event.ok()) << line;
    EXPECT_EQ((*event)["n"], count["all"]++);
    ++count[(*event)["event"].get<std::string>()];
    if ((*event)["event"] == "started") started = *event;
    last = *event;
  }
  EXPECT_EQ(started["tasks"].size(), 2u);
  EXPECT_EQ(started["tasks"][1]["name"], "relu 64 64");
  EXPECT_EQ(started["trials"], 12);
  EXPECT_EQ(last["event"], "done");
  EXPECT_EQ(last["result"]["trials"], 12);
  EXPECT_GE(count["measured"] + count["failed"], 12);
  EXPECT_GE(count["best"], 2);
  EXPECT_EQ(count["started"], 1);
  // In a file they leave standard output as it is.
  std::vector<std::string> filed = tune;
  filed.insert(filed.end(), {"--fresh", "--events", dir + "/events"});
  EXPECT_EQ(json(filed)["trials"], 12);
  EXPECT_NE(read_file(dir + "/events")->find("\"phase\""), std::string::npos);
  EXPECT_EQ(run_program({"tune", "--op", "relu 8 8", "--events", dir + "/none/x"}).exit_code, 2);
}

TEST_F(Commands, TuneSaysWhatCameOfItAndWhatIsNext) {
  const std::string records = dir + "/out/records.json", op = "matmul 64 64 64";
  const std::vector<std::string> tune = {"tune",
                                         "--op",
                                         op,
                                         "--n-trials",
                                         "20",
                                         "--cost-model",
                                         "draft-only",
                                         "--work-dir",
                                         dir + "/out"};
  const std::string first = out(tune);
  EXPECT_TRUE(std::regex_search(first, std::regex("\nResult: [0-9.]+ [mun]s, [0-9.]+ GFLOPS")))
      << first;
  EXPECT_NE(first.find("\nWritten: " + records + ", " + dir + "/out/tuning_curve.svg, " + dir +
                       "/out/report.html\n"),
            std::string::npos)
      << first;
  EXPECT_NE(first.find("\nNext: pruner compile --op '" + op + "' --records " + records + " -o "),
            std::string::npos);
  EXPECT_EQ(first.find("nothing left"), std::string::npos);
  EXPECT_NE(
      out(tune).find("\nnothing left of 20 trials, 20 were measured before: raise --n-trials"),
      std::string::npos);
  std::vector<std::string> timed = tune;
  timed[3] = "--budget", timed[4] = "0.001s";
  EXPECT_NE(out(timed).find("\nnothing left of 0.001 s, earlier runs took "), std::string::npos);
  std::vector<std::string> module = tune;
  module.insert(module.end(), {"-o", dir + "/m.so"});
  EXPECT_NE(out(module).find("\nNext: pruner bench --module " + dir + "/m.so"), std::string::npos);
}

TEST_F(Commands, SeveralOperatorsAreTasksOfOneRun) {
  const Json tasks =
      json({"tasks", "--op", "matmul 8 8 8", "--op", "relu 8 8", "--op", "matmul 8 8 8"});
  ASSERT_EQ(tasks.size(), 2u) << tasks;
  EXPECT_EQ(tasks[0]["weight"], 2);
  for (const char* command : {"compile", "tune"}) {
    const ProgramRun run =
        run_program({command, "--op", "relu 8 8", "--op", "matmul 8 8 8", "-o", dir + "/x.so"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_NE(run.err.find("2 operators are given; a module is of one"), std::string::npos);
  }
}

// A name that a table prints can be given to --op.
TEST_F(Commands, OpTakesTheNameOfATask) {
  const Json tasks = json({"tasks", "--network", "resnet_18"});
  const Json same = json({"tasks", "--op", tasks[2]["name"].get<std::string>()});
  EXPECT_EQ(same[0]["key"], tasks[2]["key"]) << tasks[2];
  EXPECT_EQ(same[0]["name"], tasks[2]["name"]);
}

TEST_F(Commands, CompileSaysWhatRecordsAreOf) {
  const std::string work_dir = dir + "/out", records = work_dir + "/records.json";
  out({"tune",
       "--op",
       "matmul 24 24 24",
       "--n-trials",
       "2",
       "--cost-model",
       "draft-only",
       "--work-dir",
       work_dir});
  const auto error = [&] {
    return run_program({"compile", "--op", "matmul 32 24 24", "--records", records}).err;
  };
  EXPECT_NE(error().find(" records of ('matmul_24_24_24', [(24, 24), (24, 24)]), none of "),
            std::string::npos)
      << error();
  fs::remove(work_dir + "/run.json");
  EXPECT_NE(error().find(" records of tasks such as matmul 24 24 24, none of "), std::string::npos)
      << error();
}

TEST_F(Commands, QuietSaysErrorsOnly) {
  const ProgramRun run = run_program({"tune",
                                      "--quiet",
                                      "--op",
                                      "relu 64 64",
                                      "--n-trials",
                                      "4",
                                      "--cost-model",
                                      "draft-only",
                                      "--load-model",
                                      "unused.pkl",
                                      "--work-dir",
                                      dir + "/out"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
}

TEST_F(Commands, CtrlCKeepsTheBestAndPrintsTheTable) {
  const std::string work_dir = dir + "/out";
  const ProgramRun run = run_program(
      {"tune", "--op", "matmul 64 64 64", "--n-trials", "100000", "--work-dir", work_dir}, 2);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_NE(run.out.find("[ Task Scheduler ]"), std::string::npos);
  EXPECT_NE(run.out.find("Estimated total latency: "), std::string::npos);
  EXPECT_NE(read_file(work_dir + "/run.json")->find("\"interrupted\""), std::string::npos);
}

TEST_F(Commands, CollectMeasuresProgramsAndGoesOn) {
  const std::string file = dir + "/set.json";
  const auto collect = [&](const char* programs) {
    return json({"dataset",
                 "collect",
                 "--op",
                 "matmul 32 32 32",
                 "--programs-per-task",
                 programs,
                 "-o",
                 file});
  };
  const auto lines = [&] { return std::ranges::count(*read_file(file), '\n'); };
  EXPECT_EQ(collect("5")["trials"], 5);
  EXPECT_EQ(lines(), 5);
  EXPECT_EQ(collect("8")["tasks"][0]["trials"], 8);
  EXPECT_EQ(lines(), 8);
  EXPECT_NE(out({"records", "stat", file}).find("|       8 |"), std::string::npos);
}

TEST_F(Commands, CtrlCKeepsWhatWasCollected) {
  const std::string file = dir + "/set.json";
  const ProgramRun run = run_program({"dataset",
                                      "collect",
                                      "--op",
                                      "matmul 64 64 64",
                                      "--programs-per-task",
                                      "100000",
                                      "-o",
                                      file},
                                     2);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_NE(run.err.find("/100000] total "), std::string::npos) << run.err;
  EXPECT_NE(read_file(file)->find("\"collect\""), std::string::npos);
  EXPECT_TRUE(read_file(file)->ends_with('\n'));
}

TEST_F(Commands, PrintShowsEveryStage) {
  for (const char* stage :
       {"dag", "sketches", "candidate", "nest", "draft", "program", "emitted", "llvm", "asm"}) {
    EXPECT_FALSE(
        out({"compile", "--op", "matmul 16 16 16", std::string("--print=") + stage}).empty())
        << stage;
  }
  EXPECT_EQ(run_program({"compile", "--op", "matmul 16 16 16", "--print=ast"}).exit_code, 2);
  const std::string draft = out({"compile", "--op", "matmul 16 16 16", "--print=draft"});
  EXPECT_TRUE(draft.starts_with("latency ")) << draft;
  EXPECT_NE(draft.find("\nT_matmul_NN: visits "), std::string::npos) << draft;
  const std::vector<std::string> task = {"compile", "--network", "resnet_50", "--task", "3"};
  const auto stage_of_task = [&](const std::string& stage) {
    std::vector<std::string> arguments = task;
    arguments.insert(arguments.end(), {"--print", stage});
    return out(arguments);
  };
  EXPECT_NE(stage_of_task("program").find("parallel for"), std::string::npos);
  EXPECT_NE(stage_of_task("asm").find(".globl\tkernel"), std::string::npos);
  EXPECT_NE(stage_of_task("dag").find("[1, 7, 7, 512]"), std::string::npos);
}

TEST_F(Commands, FormsSayWhichSchedulesAreTaken) {
  const std::string op = "conv2d 1 16 8 8 16 3 3 padding=1";
  const auto schedule = [&](const std::string& forms) {
    return out({"compile", "--op", op, "--print=candidate", "--forms", forms});
  };
  EXPECT_TRUE(schedule("winograd-4x4").starts_with("winograd-4x4+"));
  EXPECT_TRUE(schedule("winograd-2x2,winograd-4x4").starts_with("winograd-"));
  EXPECT_FALSE(schedule("direct").starts_with("winograd-"));
  // A task without the form is as ever.
  const std::vector<std::string> matmul = {
      "compile", "--op", "matmul 16 16 16", "--print=candidate"};
  std::vector<std::string> winograd = matmul;
  winograd.insert(winograd.end(), {"--forms", "winograd-4x4"});
  EXPECT_EQ(out(winograd), out(matmul));
  const Json tuned = json({"tune",
                           "--op",
                           op,
                           "--n-trials",
                           "3",
                           "--forms",
                           "winograd-2x2",
                           "--work-dir",
                           dir + "/out"});
  EXPECT_EQ(tuned["trials"], 3);
  EXPECT_NE(best_line(dir + "/out/records.json").find("winograd-2x2+"), std::string::npos);
}

TEST_F(Commands, PrintShowsTheRecordedSchedule) {
  const std::string op = "matmul 24 24 24", records = dir + "/out/records.json";
  out({"tune", "--op", op, "--n-trials", "4", "--work-dir", dir + "/out"});
  const std::string best = best_line(records);
  const std::string printed =
      out({"compile", "--op", op, "--records", records, "--print=candidate"});
  EXPECT_NE(best.find(printed.substr(0, printed.find(':'))), std::string::npos) << best;
  EXPECT_NE(out({"compile", "--op", op, "--records", records, "--print=program"}).find("kernel"),
            std::string::npos);
}

TEST_F(Commands, TuneOfAnOperatorWritesTheModuleThatIsAskedFor) {
  const std::string module = dir + "/product.so";
  out({"tune",
       "--op",
       "matmul 24 24 24",
       "--n-trials",
       "2",
       "--work-dir",
       dir + "/out",
       "--out-file",
       module});
  EXPECT_GT(json({"bench", "--module", module, "--min-time", "0.01"})["median_ms"], 0);
}

TEST_F(Commands, RecordsCheckCountsWhatReplays) {
  const std::string record =
      R"({"i": [["[\"matmul_layer\", 8, 8, 8]", "cuda"], [[], [["SP", 2, 0, 8, [2], 1]]]], )"
      R"("r": [[0.1], 0, 1, 1], "v": "v0.6"})";
  const std::string path = dir + "/logs.json";
  ASSERT_TRUE(write_file(path, record + "\n" + record + "\n{\"i\": [").ok());
  const Json check = json({"records", "check", path});
  EXPECT_EQ(check["total"]["records"], 3);
  EXPECT_EQ(check["total"]["replayed"], 2);
  EXPECT_EQ(check["total"]["failed"], 1);
  EXPECT_EQ(check["files"][0]["file"], path);
  EXPECT_NE(out({"records", "check", dir}).find("66.7%"), std::string::npos);
}

TEST_F(Commands, PrintMakesCodeForAnotherCpu) {
  const std::string target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76 --threads=2";
  EXPECT_NE(out({"compile", "--op", "matmul 16 16 16", "--target", target, "--print=asm"})
                .find("fmla\tv"),
            std::string::npos);
}

TEST_F(Commands, PrintMakesCodeForAGpu) {
  const auto print = [&](const std::string& stage) {
    return out({"compile", "--op", "matmul 16 16 16", "--target", "opencl", "--print", stage});
  };
  EXPECT_NE(print("opencl").find("__kernel "), std::string::npos);
  EXPECT_NE(print("cuda").find("__global__ "), std::string::npos);
  EXPECT_NE(print("program").find("thread for"), std::string::npos);
}

// A QDQ file of the ranges of two samples, which runs as any other.
TEST_F(Commands, QuantizeWritesAFileThatRuns) {
  const std::string q = dir + "/q.onnx", npz = dir + "/x.npz", module = dir + "/q.so";
  Tensor x(DType::kFloat32, {2, 3, 32, 32});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, std::sin(0.7 * static_cast<double>(i)));
  ASSERT_TRUE(write_tensors(npz, std::vector<NamedTensor>{{"input", x}}).ok());
  const Json made = json(
      {"quantize", "--network", "resnet_18", "--image-size", "32", "--calibration", npz, "-o", q});
  EXPECT_EQ(made["samples"], 2);
  EXPECT_GT(made["values"].get<int>(), 20);
  EXPECT_EQ(json({"compile", q, "-o", module, "--force"})["numerics"], "onnx");
  EXPECT_EQ(load_module(module, 1)->numerics(), "onnx");
  EXPECT_EQ(json({"compile", q, "-o", module, "--force", "--numerics", "ort"})["numerics"], "ort");
  EXPECT_EQ(load_module(module, 1)->numerics(), "ort");
  EXPECT_NE(out({"compile", q, "-o", module, "--force", "--numerics", "ort"})
                .find("quantized operators round as ONNX Runtime's do\n"),
            std::string::npos);
  EXPECT_NE(out({"bench", "--module", module, "--min-time", "0"}).find("Median"),
            std::string::npos);
}

TEST_F(Commands, CheckCountsTheNodesThatCanBeCompiled) {
  const std::string model = dir + "/model.onnx";
  out({"networks", "export", "bert_tiny", "-o", model});
  EXPECT_NE(out({"check", model}).find(" nodes can be compiled\n"), std::string::npos);
  const Json found = json({"check", model});
  EXPECT_GT(found["nodes"], 50);
  EXPECT_TRUE(found["unsupported"].empty());
  EXPECT_EQ(run_program({"check"}).err, "pruner: check: give MODEL.onnx\n");
}

TEST_F(Commands, ListsAndDevicesAreReadable) {
  EXPECT_NE(out({"ops"}).find("matmul M N K"), std::string::npos);
  const std::string onnx = out({"ops", "--onnx"});
  for (const char* name : {"Conv\n", "Celu\n"}) EXPECT_NE(onnx.find(name), std::string::npos);
  EXPECT_NE(out({"networks"}).find("resnet_50\n"), std::string::npos);
  EXPECT_TRUE(json({"device", "host"}).contains("fingerprint"));
  const Json devices = json({"devices"});
  EXPECT_TRUE(devices["here"][0]["target"].get<std::string>().starts_with("llvm -mcpu="));
  EXPECT_GE(devices["known"].size(), 14u);
  EXPECT_NE(out({"devices"}).find("  cuda --model=a100_40"), std::string::npos);
  EXPECT_EQ(json({"device", "show", "a100_40"})["psa"]["glbmem_bandwidth"], 1555);
  EXPECT_NE(out({"device", "show", "k80"}).find("psa.sm_nums                 26\n"),
            std::string::npos);
}

TEST_F(Commands, ProbeWritesADeviceFileThatTargetsName) {
  const std::string file = dir + "/mine.json";
  const std::string text =
      out({"device", "probe", "--min-time", "0.02", "--threads", "2", "-o", file});
  EXPECT_NE(text.find("--target 'llvm --device=" + file + "'"), std::string::npos);
  const Json probed = *parse_json(*read_file(file));
  EXPECT_EQ(probed["name"], "mine");
  EXPECT_EQ(probed["threads"], 2);
  EXPECT_EQ(json({"device", "show", file})["peak_flops"], probed["peak_flops"]);
  const std::vector<std::string> draft = {
      "compile", "--op", "matmul 64 64 64", "--threads", "2", "--print=draft"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), draft.begin(), draft.end());
    return out(more);
  };
  EXPECT_EQ(with({"--psa", file}), with({"--target", "llvm --device=" + file}));
  EXPECT_NE(with({"--psa", file}), with({"--psa", "epyc_9004"}));
}

}  // namespace
}  // namespace pruner
