// label: codegen
// Everything a user can get wrong: one line on standard error that names the thing and says what to
// do, exit code 2, and nothing is overwritten.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/run_program.h"
#include "deploy/tensor_file.h"
#include "golden.h"
#include "graph/onnx/onnx_model.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct BadInput : testing::Test {
  BadInput() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() /
           ("pruner_bad_input_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~BadInput() override { fs::remove_all(dir); }

  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file(dir + "/" + name, text).ok());
    return dir + "/" + name;
  }

  /// The line that was printed, without "pruner: ".
  static std::string fail(const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_TRUE(run.err.starts_with("pruner: ")) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err.substr(std::min<size_t>(8, run.err.size()));
  }

  std::string dir;
};

void expect_words(const std::string& line, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(line.find(word), std::string::npos) << "\"" << word << "\" is not in: " << line;
  }
}

const std::vector<std::string> kSmall = {"--op", "matmul 32 32 32"};

std::vector<std::string> small(std::vector<std::string> arguments,
                               const std::vector<std::string>& more = {}) {
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(BadInput, UnknownCommandOrFlag) {
  expect_words(fail({"tume"}), {"tume: unknown command", "tune", "pruner --help"});
  expect_words(fail({"tune", "--trials", "9"}), {"--trials: unknown option", "pruner tune --help"});
}

TEST_F(BadInput, NothingOrTooMuchToWorkOn) {
  expect_words(fail({"tune"}), {"nothing to work on", "MODEL.onnx", "--network"});
  expect_words(fail({"tune", "--network", "resnet_50", "--op", "relu 4"}),
               {"several things to work on"});
  expect_words(fail({"compile", "--network", "resnet_50", "--task", "3"}),
               {"with --print, --task is the number of a task"});
  expect_words(fail({"compile", "--network", "resnet_18", "--task", "99", "--print", "asm"}),
               {"--task: \"99\" is no task number", "from 0"});
  expect_words(fail({"compile", "--print", "asm"}), {"nothing to work on"});
}

TEST_F(BadInput, MoreThanThereIsMemoryFor) {
  const std::vector<std::string> huge = {"--op", "matmul 100000 100000 100000"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), huge.begin(), huge.end());
    return arguments;
  };
  const ProgramRun listed = run_program(with({"tasks"}));
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(run_program(with({"tune", "--dry-run"})).exit_code, 0);
  expect_words(fail(with({"tune", "--n-trials", "1", "--work-dir", dir + "/w"})),
               {"matmul 100000 100000 100000 needs 200.0 GB of memory, there are"});
  expect_words(fail(with({"compile", "-o", dir + "/m.so"})), {"needs 80.0 GB of memory"});
}

TEST_F(BadInput, WhatIsNestedOrLongBeyondReason) {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string deep = write("deep.json", repeated("[", 100'000) + repeated("]", 100'000));
  expect_words(fail({"tasks", "--task", deep}), {"more than 500 brackets in one another"});
  expect_words(fail(small({"tune", "--dry-run", "--tasks", repeated("(", 40'000)})),
               {"--tasks: 40000 characters, expected at most 1000"});
}

TEST_F(BadInput, DagsThatReadOutside) {
  const std::string path = write("outside.json", R"json([
    {"op": "x", "kind": "placeholder", "shape": [16], "dtype": "float32"},
    {"op": "y", "kind": "compute", "tag": "", "axis": [["i", 16]], "reduce_axis": [],
     "body": ["x[(i + 1000000)]"], "attrs": {}, "output": true}])json");
  expect_words(fail({"compile", "--task", path, "-o", dir + "/m.so"}),
               {"outside.json: stage y: reads x at (i + 1000000)", "expected 0 to 15"});
}

TEST_F(BadInput, CalibrationThatDoesNotFit) {
  const std::vector<std::string> quantize = {"quantize",
                                             "--network",
                                             "resnet_18",
                                             "--image-size",
                                             "32",
                                             "-o",
                                             dir + "/q.onnx",
                                             "--calibration"};
  const auto with = [&](const std::string& file) {
    std::vector<std::string> arguments = quantize;
    arguments.push_back(file);
    return fail(arguments);
  };
  const auto arrays = [&](const std::string& name, std::vector<int64_t> shape) {
    const std::string path = dir + "/x.npz";
    const std::vector<NamedTensor> named = {{name, Tensor(DType::kFloat32, std::move(shape))}};
    EXPECT_TRUE(write_tensors(path, named).ok());
    return path;
  };
  expect_words(with(arrays("input", {4, 3, 32, 33})),
               {"x.npz: \"input\" is float32 4x3x32x33, expected float32 1x3x32x32"});
  expect_words(with(arrays("picture", {1, 3, 32, 32})),
               {"x.npz: ", "input input float32 1x3x32x32 is missing", "picture"});
  expect_words(with(dir + "/none.npz"), {"none.npz", "no such file"});
  expect_words(fail({"quantize", "--network", "resnet_18"}), {"--calibration is missing"});
  expect_words(fail({"quantize", "--calibration", "x.npz"}), {"MODEL.onnx", "--network"});
  EXPECT_FALSE(fs::exists(dir + "/q.onnx"));
}

TEST_F(BadInput, ModesThatCannotBeCompared) {
  const auto compare = [&](const std::string& modes, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"compare", "--work-dir", dir + "/cmp", "--modes", modes};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fail(small(arguments));
  };
  expect_words(compare("ansor,prunner"),
               {"--modes: cost model \"prunner\" is unknown", "moa-pruner"});
  expect_words(compare("ansor"), {"--modes: 1 given, two or more are compared"});
  expect_words(fail(small({"compare", "--ablate", "prunner"})),
               {"--ablate: cost model \"prunner\" is unknown"});
  expect_words(fail(small({"compare", "--ablate", "ansor", "--parts", "islands,weights"})),
               {"--parts: ansor has or takes default-schedule, offers, ", ", not \"weights\""});
  expect_words(fail(small({"compare", "--parts", "islands"})),
               {"--parts islands: belongs to --ablate MODE"});
  expect_words(compare("ansor,pruner-without-luck"),
               {"--modes: pruner-without-luck: it has nothing named \"luck\"; leave out "
                "default-schedule, ",
                ", or of the published search compute-l0, "});
  expect_words(compare("ansor,ansor+luck"),
               {"--modes: ansor+luck: no ingredient is named \"luck\"; it can take "
                "default-schedule, offers, "});
  expect_words(compare("ansor,ansor+weights"), {"--modes: ansor+weights: it cannot take weights"});
  expect_words(compare("pruner,pruner"), {"--modes: pruner is there twice"});
  expect_words(compare("ansor,moa-pruner"), {"--modes: moa-pruner", "--load-model"});
  expect_words(compare("ansor,draft-only", {"--load-model", "pruner=a.pkl"}),
               {"--load-model pruner=a.pkl: no mode of --modes takes it"});
  expect_words(compare("ansor,moa-pruner", {"--load-model", dir + "/none.pkl"}),
               {"none.pkl", "no such file"});
  expect_words(compare("ansor,draft-only", {"--seeds", "0"}), {"--seeds: 0 is less than 1"});
  EXPECT_FALSE(fs::exists(dir + "/cmp"));
}

TEST_F(BadInput, CollectNeedsTasksAndAFile) {
  const std::vector<std::string> collect = {"dataset", "collect"};
  expect_words(fail(small(collect)), {"no file to write is named", "-o FILE"});
  expect_words(fail({"dataset", "collect", "-o", dir + "/set.json"}), {"nothing to work on"});
  expect_words(fail(small(collect, {"-o", dir + "/none/set.json"})), {"/none/set.json"});
  expect_words(fail(small(collect, {"-o", dir + "/set.json", "--programs-per-task", "0"})),
               {"--programs-per-task: 0 is less than 1"});
  expect_words(fail(small(collect, {"-o", dir + "/set.json", "--eps-greedy", "2"})),
               {"--eps-greedy is 2, at most 1"});
  const std::string other = write("other.json", "hello\n");
  expect_words(fail(small(collect, {"-o", other})), {"other.json:1", "delete that line"});
  EXPECT_EQ(*read_file(other), "hello\n");
  EXPECT_FALSE(fs::exists(dir + "/set.json"));
}

TEST_F(BadInput, UnknownWayWithSubnormalNumbers) {
  for (const char* command : {"compile", "tune"})
    expect_words(fail(small({command}, {"--denormals", "off"})),
                 {"--denormals: \"off\" is not flush or keep"});
}

TEST_F(BadInput, UnknownNumerics) {
  for (const char* command : {"compile", "tune"})
    expect_words(fail({command, "--network", "bert_tiny", "--numerics", "torch"}),
                 {"--numerics: \"torch\" is not onnx or ort"});
  expect_words(fail(small({"compile"}, {"--numerics", "ort"})), {"--numerics is of networks"});
}

TEST_F(BadInput, UnknownForm) {
  for (const char* command : {"compile", "tune"}) {
    expect_words(fail(small({command}, {"--forms", "direct,winograd-3x3"})),
                 {"--forms: \"winograd-3x3\" is no form of a task",
                  "use direct, split-k, winograd-2x2, winograd-4x4, bf16-2-parts, "
                  "bf16-3-parts"});
  }
  expect_words(fail(small({"compile"}, {"--forms", ","})), {"--forms: \"\" is no form"});
}

TEST_F(BadInput, CodeForAnotherMachine) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the other machine is AArch64";
#endif
  expect_words(fail(small({"tune", "--target", "llvm -mcpu=cortex-a76", "--work-dir", dir})),
               {"code for AArch64 cannot be measured on this x86-64 machine", "compile"});
  if (!__builtin_cpu_supports("avx512fp16")) {
    expect_words(fail(small({"tune", "--target", "llvm -mcpu=sapphirerapids", "--work-dir", dir})),
                 {"this CPU lacks a", "which sapphirerapids has"});
  }
  expect_words(fail(small({"compile", "--target", "llvm -mtriple=riscv64-linux-gnu"})),
               {"--mtriple is \"riscv64-linux-gnu\"", "aarch64-linux-gnu"});
}

TEST_F(BadInput, MissingFile) {
  expect_words(fail({"tune", dir + "/none.onnx"}), {"none.onnx", "no such file"});
}

TEST_F(BadInput, NotOnnxOrCutShort) {
  expect_words(fail({"compile", write("text.onnx", "hello")}), {"text.onnx"});
  expect_words(fail({"compile", write("empty.onnx", "")}), {"empty.onnx"});
  const std::string whole = dir + "/r18.onnx";
  ASSERT_EQ(run_program({"networks", "export", "resnet_18", "-o", whole}).exit_code, 0);
  const std::string text = *read_file(whole);
  expect_words(fail({"compile", write("cut.onnx", text.substr(0, text.size() / 2))}), {"cut.onnx"});
}

TEST_F(BadInput, UnknownNetwork) {
  expect_words(fail({"tune", "--network", "resnet_51"}),
               {"resnet_51", "resnet_50", "mobilenet_v2"});
  expect_words(fail({"networks", "export", "resnet_51"}), {"resnet_51", "resnet_50"});
}

TEST_F(BadInput, UnknownTarget) {
  expect_words(fail(small({"compile"}, {"--target", "llvm -mcpu=z80"})), {"--target", "z80"});
  expect_words(fail(small({"compile"}, {"--target", "abacus"})), {"--target", "abacus", "llvm"});
  expect_words(fail(small({"compile"}, {"--target", "cuda --model=a1000"})),
               {"--target", "unknown device \"a1000\"", "a100, a100_40"});
  expect_words(fail(small({"compile"}, {"--target", "cuda --arch=sm_1"})),
               {"--target", "unknown arch \"sm_1\"", "sm_80"});
}

TEST_F(BadInput, OperatorWithMissingOrZeroExtent) {
  expect_words(fail({"tune", "--op", "matmul 512 512"}),
               {"--op: matmul", "K is missing", "matmul M N K"});
  expect_words(fail({"tune", "--op", "matmul 512 0 512"}), {"--op: matmul", "N is 0"});
  expect_words(fail({"tune", "--op", "matnul 512 512 512"}), {"--op", "matnul", "matmul"});
}

TEST_F(BadInput, TaskFileThatIsNone) {
  expect_words(fail({"tune", "--task", write("dag.json", "{]")}),
               {"dag.json", "not JSON", "--task"});
  expect_words(fail({"tune", "--task", write("list.json", "[1]")}), {"list.json"});
}

TEST_F(BadInput, InputShapesThatAreNone) {
  expect_words(fail({"tune", "m.onnx", "--input-shapes", "x:1xAx3"}),
               {"--input-shapes", "x:1xAx3"});
  expect_words(fail({"compile", "m.onnx", "--input-shapes", "x:1x3,y:2,x:4x3"}),
               {"--input-shapes names \"x\" twice"});
}

TEST_F(BadInput, ConstantsThatAreNone) {
  for (const std::string text : {"x", "=1", "x=", "x=1,", "x=1;2", "x=1,a"}) {
    expect_words(fail({"compile", "m.onnx", "--constant", text}),
                 {"--constant: \"" + text + "\" is not NAME=FILE.npy or NAME=1,3,224"});
  }
  expect_words(fail({"compile", "m.onnx", "--constant", "x=1", "--constant", "x=2"}),
               {"--constant names \"x\" twice"});
  expect_words(fail({"compile", "m.onnx", "--constant", "x=" + dir + "/none.npy"}),
               {"--constant: ", "none.npy", "no such file"});
  expect_words(fail({"compile", "m.onnx", "--constant", "x=" + write("text.npy", "hello")}),
               {"text.npy", "no .npy array"});
}

TEST_F(BadInput, OnnxFilesWithWhatCannotBeRead) {
  const auto refused = [&](const OnnxModel& model) {
    return fail({"compile", write("m.onnx", model.bytes()), "-o", dir + "/m.so"});
  };
  const auto relu = [](int64_t opset) {
    OnnxModel model(opset);
    model.input("x", {1, 4}).output("y").node("Relu", {"x"}, {"y"});
    return model;
  };
  expect_words(refused(relu(99)), {"m.onnx: ", "opset 99", "export the model"});

  OnnxModel empty;
  empty.input("x", {0, 4}).output("y").node("Relu", {"x"}, {"y"});
  expect_words(refused(empty), {"input \"x\"", "0x4", "no elements", "--input-shapes x:1x4"});

  OnnxModel unknown = relu(13);
  unknown.node("Fused", {"x"}, {"z"}).set_domain("com.acme");
  unknown.node("StringSplit", {"x"}, {"w"});
  expect_words(
      refused(unknown),
      {"2 operators are not supported", "StringSplit", "com.acme::Fused (node \"Fused_2\")"});

  OnnxModel external = relu(13);
  auto& weight = external.initializer("w", onnx::TensorProto::FLOAT, {4});
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *weight.add_external_data();
  entry.set_key("location");
  entry.set_value("../w.bin");
  expect_words(refused(external), {"tensor \"w\"", "../w.bin", "outside the model's folder"});
  entry.set_value("w.bin");
  write("w.bin", "short");
  expect_words(refused(external), {"tensor \"w\"", "16 bytes", "w.bin", "which has 5"});

  OnnxModel circle = relu(13);
  auto& function = *circle.model.add_functions();
  function.set_domain("own");
  function.set_name("F");
  auto& node = *function.add_node();
  node.set_domain("own");
  node.set_op_type("F");
  expect_words(refused(circle), {"function own::F calls itself"});

  OnnxModel choice;
  choice.input("flag", {}, onnx::TensorProto::BOOL).output("y");
  set_graph(choice.node("If", {"flag"}, {"y"}), "then_branch", relu(13));
  expect_words(refused(choice), {"node \"If_1\"", "run time", "\"flag\"", "--constant flag=VALUE"});
}

TEST_F(BadInput, GpuCodeThatCannotBeRunOrMade) {
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  expect_words(fail(small({"tune"}, {"--target", "opencl"})), {"--target", "no OpenCL", "install"});
  unsetenv("OCL_ICD_VENDORS");
  expect_words(fail(small({"tune"}, {"--devices", "cuda:0"})),
               {"--devices", "the target is this CPU"});
  expect_words(fail(small({"tune"}, {"--target", "opencl", "--devices", "opencl:x"})),
               {"--devices", "\"opencl:x\" is no device of the target", "opencl:0"});
  expect_words(fail(small({"tune"}, {"--target", "cuda", "--devices", "cuda:0,cuda:0"})),
               {"--devices", "twice"});
  expect_words(fail(small({"compile"}, {"--print", "cuda"})), {"target cuda or opencl"});
  expect_words(fail(small({"compile"}, {"--n-trials", "9"})),
               {"--n-trials", "takes 0", "pruner tune --n-trials 9"});
  expect_words(fail(small({"compile"}, {"--target", "opencl", "--print", "asm"})),
               {"target llvm", "opencl"});
}

TEST_F(BadInput, ModuleForAGpuWithoutADriver) {
  const std::string module = dir + "/gpu.so";
  ASSERT_EQ(run_program(small({"compile"}, {"--target", "opencl", "-o", module})).exit_code, 0);
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  expect_words(fail({"bench", "--module", module}), {"gpu.so", "OpenCL", "install"});
  unsetenv("OCL_ICD_VENDORS");
}

TEST_F(BadInput, CostModelThatCannotBe) {
  const auto tune = [&](const std::vector<std::string>& more) {
    return fail(small({"tune"}, more));
  };
  expect_words(tune({"--cost-model", "oracle"}),
               {"cost model \"oracle\" is unknown", "pam (pruner)"});
  expect_words(tune({"--cost-model", "pam-no-update"}),
               {"cost model pam-no-update needs weights", "--load-model FILE"});
  expect_words(tune({"--load-model", write("weights.pkl", "hello\n")}), {"weights.pkl"});
  expect_words(tune({"--policy", "halide"}), {"--policy: policy halide is unknown", "ansor"});
  expect_words(tune({"--policy", "ansor", "--cost-model", "draft-only"}),
               {"--policy ansor asks a learned model", "draft-only has none"});
  expect_words(tune({"--train", "hard"}), {"--train: \"hard\" is not as-published"});
  expect_words(tune({"--eps-greedy", "2"}), {"--eps-greedy is 2, at most 1"});
}

TEST_F(BadInput, BudgetThatIsNoTime) {
  expect_words(fail(small({"tune"}, {"--budget", "soon"})), {"--budget", "soon", "10m"});
  expect_words(fail(small({"tune"}, {"--budget", "3"})),
               {"--budget: \"3\" has no unit; write 3s, 3m or 3h"});
}

TEST_F(BadInput, PrecisionThatTheTargetHasNoUnitFor) {
  const auto compile = [&](const std::string& precision, const std::string& target) {
    return fail({"compile",
                 "--network",
                 "mobilenet_v2",
                 "--precision",
                 precision,
                 "--target",
                 target,
                 "-o",
                 dir + "/x.so"});
  };
  expect_words(compile("bf16", "llvm -mcpu=haswell"), {"--precision bf16", "haswell", "auto"});
  expect_words(compile("bf16", "cuda --model=t4"), {"--precision bf16", "model=t4", "auto"});
  expect_words(compile("tf32", "cuda --arch=sm_75"), {"--precision tf32", "arch=sm_75", "auto"});
  expect_words(compile("int8", "cuda --model=v100"), {"--precision int8", "model=v100", "auto"});
  expect_words(compile("int8", "cuda --model=t4"),
               {"--precision int8", "mobilenet_v2 is not quantized", "pruner quantize"});
  expect_words(compile("tf32", "llvm -mcpu=haswell"), {"--precision tf32", "haswell", "auto"});
  expect_words(compile("f16", "opencl"), {"--precision f16", "opencl", "auto"});
  expect_words(compile("f16", "llvm -mcpu=haswell"), {"--precision f16", "haswell", "auto"});
  expect_words(compile("int3", "llvm"),
               {"--precision", "int3", "f32, tf32, bf16, f16, int8 or auto"});
}

TEST_F(BadInput, UnwritableWorkDir) {
  expect_words(fail(small({"tune"}, {"--work-dir", write("file", "precious") + "/out"})),
               {"file/out", "--work-dir"});
  EXPECT_EQ(*read_file(dir + "/file"), "precious");
}

TEST_F(BadInput, UnwritableOutput) {
  expect_words(fail(small({"compile"}, {"-o", dir + "/none/x.so"})), {"none/x.so"});
}

TEST_F(BadInput, ModuleThatIsNone) {
  expect_words(fail({"bench", "--module", dir + "/none.so"}), {"none.so"});
  expect_words(fail({"bench", "--module", write("text.so", "hello")}), {"text.so"});
  expect_words(fail({"bench"}), {"--module is missing"});
  expect_words(fail({"bench", "--module", "m.so", "--network", "resnet_18"}), {"--verify"});
  expect_words(fail({"bench", "--module", "m.so", "--verify"}), {"--verify", "MODEL.onnx"});
  expect_words(fail({"run", "--module", write("text.so", "hello"), "--outputs", dir + "/y.npz"}),
               {"text.so"});
  EXPECT_FALSE(fs::exists(dir + "/y.npz"));
}

TEST_F(BadInput, NothingToCheck) {
  expect_words(fail({"records", "check"}), {"records check: no file is named"});
  expect_words(fail({"records", "check", dir + "/none"}), {dir + "/none", "no such file"});
  const std::string bad = write("dags.json", "{\"dag\": []}");
  expect_words(fail({"records", "check", dir, "--dags", bad}), {bad, "workload_key"});
}

TEST_F(BadInput, RecordsThatDoNotFit) {
  const std::string work_dir = dir + "/out";
  ASSERT_EQ(run_program(small({"tune"}, {"--n-trials", "2", "--work-dir", work_dir})).exit_code, 0);
  const std::string records = work_dir + "/records.json", text = *read_file(records);

  // The records are of another model.
  expect_words(
      fail({"compile", "--op", "matmul 48 48 48", "--records", records, "-o", dir + "/x.so"}),
      {"records.json", "none of matmul_48_48_48"});
  expect_words(fail({"tune", "--op", "matmul 48 48 48", "--work-dir", work_dir}),
               {"records.json", "of another model", "--work-dir", "--fresh"});
  // The records are of another device.
  expect_words(
      fail(small({"compile"}, {"--threads", "1", "--records", records, "-o", dir + "/x.so"})),
      {"records.json", "none of this device"});
  expect_words(fail(small({"tune"}, {"--threads", "1", "--work-dir", work_dir})),
               {"of another device"});
  EXPECT_FALSE(fs::exists(dir + "/x.so"));
  EXPECT_EQ(*read_file(records), text);

  // A damaged line in the middle.
  const std::string damaged = text.substr(0, text.find('\n') + 1) + "{?\n" + text;
  write("out/records.json", damaged);
  const ProgramRun compiled =
      run_program(small({"compile"}, {"--records", records, "-o", dir + "/x.so"}));
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  expect_words(compiled.err, {"warning", "records.json:2"});
  expect_words(fail(small({"tune"}, {"--work-dir", work_dir})), {"records.json:2"});
  EXPECT_EQ(*read_file(records), damaged);
  expect_words(fail(small({"compile"}, {"--records", dir + "/none.json"})),
               {"none.json", "no such file"});
}

TEST_F(BadInput, Devices) {
  expect_words(fail({"device", "show"}), {"a device is missing", "pruner device list"});
  expect_words(fail({"device", "show", "a1000"}), {"unknown device \"a1000\"", "a100, a100_40"});
  const std::string bad = write("bad.json", R"({"name": "a", "backend": "cuda", "sms": "many"})");
  expect_words(fail({"device", "show", bad}),
               {bad, "sms is \"many\"", "expected a whole number from 1 to 65536"});
  expect_words(fail({"device", "show", dir + "/none.json"}), {dir + "/none.json"});
  expect_words(fail(small({"compile"}, {"--psa", "a100"})),
               {"--psa", "\"a100\" is a GPU", "expected a file of a CPU or one of: epyc_9004"});
  expect_words(fail(small({"compile"}, {"--psa", bad})), {"--psa", bad, "sms"});
  expect_words(fail({"device", "fit"}), {"device fit: no file is named"});
  const std::string none = write("none.json", "{}\n");
  expect_words(fail({"device", "fit", "--records", none}), {"--records", "no program"});
  expect_words(fail({"device", "fit", "--records", none, "--hold-out", "("}), {"--hold-out", "("});
  expect_words(fail({"device", "fit", "--records", none, "--judge", "-o", dir + "/fit.json"}),
               {"--judge", "-o"});
  setenv("OCL_ICD_VENDORS", dir.c_str(), 1);  // no driver is registered in this folder
  expect_words(fail({"device", "probe", "--target", "opencl"}), {"--target: no OpenCL", "install"});
  unsetenv("OCL_ICD_VENDORS");
}

}  // namespace
}  // namespace pruner
