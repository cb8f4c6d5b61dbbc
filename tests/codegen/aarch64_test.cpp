// label: codegen
// Code for AArch64 on any machine: kernels of many candidates, linked with a driver of a few lines
// of assembly into one program that qemu-aarch64 runs, compute what the reference interpreter does.
// PRUNER_CANDIDATES=N draws N candidates of each operator (default 4).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "codegen/dot_tasks.h"
#include "codegen/loader.h"
#include "support/file.h"
#include "tensor/dag_builder.h"

namespace pruner {
namespace {

// Calls each kernel of `table` (kernel, its args; a zero ends it), then writes the outputs.
constexpr const char* kDriver = R"(
  .text
  .global _start
_start:
  ldr x19, =table
1:
  ldp x3, x0, [x19], #16
  cbz x3, 2f
  ldr x1, =workspace
  ldr x2, =pool
  blr x3
  b 1b
2:
  ldr x20, =outputs
  ldr x21, =outputs_end
3:
  mov x0, #1
  mov x1, x20
  sub x2, x21, x20
  mov x8, #64 // write
  svc #0
  cmp x0, #0
  b.le 4f
  add x20, x20, x0
  cmp x20, x21
  b.lo 3b
  mov x0, #0
  b 5f
4:
  mov x0, #1
5:
  mov x8, #93 // exit
  svc #0

run_serially: // (pool, body, closure, n)
  stp x29, x30, [sp, #-48]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  mov x19, x1
  mov x20, x2
  mov x21, x3
  mov x22, #0
1:
  cmp x22, x21
  b.ge 2f
  mov x0, x20
  mov x1, x22
  add x22, x22, #1
  mov x2, x22
  blr x19
  b 1b
2:
  ldp x21, x22, [sp, #32]
  ldp x19, x20, [sp, #16]
  ldp x29, x30, [sp], #48
  ret

  .data
  .balign 8
pool:
  .quad run_serially
  .long 1, 0
)";

bool can_run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Kernels, their arguments and the driver, as one program.
class NeonProgram {
 public:
  /// `cpu` is the CPU that qemu emulates; results may be off by `tolerance`.
  explicit NeonProgram(Target target, std::string cpu = "cortex-a76", double tolerance = 1e-4)
      : target_(std::move(target)), cpu_(std::move(cpu)), tolerance_(tolerance) {
    std::filesystem::create_directory(folder_);
  }
  ~NeonProgram() { std::filesystem::remove_all(folder_); }

  const Target& target() const { return target_; }

  /// Adds a candidate of a task with one output, which is to give `expected`.
  void add(const Space& space,
           const Candidate& candidate,
           std::span<const Tensor> inputs,
           const Tensor& expected) {
    const std::string symbol = "k" + std::to_string(checks_.size());
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, symbol);
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Result<Artifact> artifact = compile(*program, target_, symbol);
    ASSERT_TRUE(artifact.ok()) << artifact.error().message() << "\n" << what;
    table_ += "  .quad " + symbol + ", " + symbol + "_args\n";
    args_ += symbol + "_args:\n";
    for (size_t a = 0; a < inputs.size(); ++a) {
      const PackSpec& spec = artifact->arguments[a].pack;
      const Tensor tensor = spec.identity() ? inputs[a] : pack(inputs[a], spec);
      const std::string label = symbol + "_" + std::to_string(a);
      args_ += "  .quad " + label + "\n";
      data_ += "  .balign 64\n" + label + ":\n  .incbin \"" +
               write(label, {static_cast<const char*>(tensor.data()), size(tensor)}) + "\"\n";
    }
    args_ += "  .quad " + symbol + "_out\n";
    outputs_ += "  .balign 64\n" + symbol + "_out:\n  .fill " + std::to_string(size(expected)) +
                ", 1, 0xff\n";
    workspace_bytes_ = std::max(workspace_bytes_, artifact->workspace_bytes);
    objects_ += " " + write(symbol + ".o", artifact->object);
    checks_.push_back({expected, what});
  }

  /// Runs it and compares what all kernels give.
  void run() {
    const std::string text = kDriver + ("table:\n" + table_) + "  .quad 0, 0\n" + args_ + data_ +
                             "  .balign 64\noutputs:\n" + outputs_ +
                             "outputs_end:\n  .bss\n  .balign 64\nworkspace:\n  .skip " +
                             std::to_string(workspace_bytes_ + 64) + "\n";
    const Result<std::string> driver = assemble(text, target_);
    ASSERT_TRUE(driver.ok()) << driver.error().message();
    const std::string program = folder_ + "/program", out = folder_ + "/out";
    const std::string link = "ld.lld -o " + program + " " + write("driver.o", *driver) + objects_;
    ASSERT_EQ(std::system(link.c_str()), 0);
    const std::string command = "qemu-aarch64 -cpu " + cpu_ + " " + program + " > " + out;
    ASSERT_EQ(std::system(command.c_str()), 0);
    const Result<std::string> bytes = read_file(out);
    ASSERT_TRUE(bytes.ok());
    size_t at = 0;
    for (const Check& check : checks_) {
      at = (at + 63) / 64 * 64;
      ASSERT_LE(at + size(check.expected), bytes->size());
      compare(check, bytes->data() + at);
      at += size(check.expected);
    }
    EXPECT_EQ(at, bytes->size());
  }

 private:
  struct Check {
    Tensor expected;
    std::string what;
  };

  static size_t size(const Tensor& tensor) { return static_cast<size_t>(tensor.bytes()); }

  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file(path, bytes).ok());
    return path;
  }

  void compare(const Check& check, const char* bytes) const {
    Tensor found(check.expected.dtype(), check.expected.shape());
    std::memcpy(found.data(), bytes, size(found));
    for (int64_t e = 0; e < found.num_elements(); ++e) {
      const double expected = check.expected.get(e);
      ASSERT_NEAR(found.get(e), expected, tolerance_ * (1 + std::abs(expected)))
          << "element " << e << "\n"
          << check.what;
    }
  }

  const Target target_;
  const std::string cpu_;
  const double tolerance_;
  const std::string folder_ = testing::TempDir() + "pruner_aarch64_" + std::to_string(getpid());
  std::string table_, args_, data_, outputs_, objects_;
  int64_t workspace_bytes_ = 0;
  std::vector<Check> checks_;
};

class AArch64 : public testing::Test {
 protected:
  /// Whether what is compiled can be run here.
  static bool runs() { return can_run("qemu-aarch64 --version") && can_run("ld.lld --version"); }

  const Target target_ = arm_target("cortex-a76");
};

#define SKIP_WITHOUT_QEMU \
  if (!runs()) GTEST_SKIP() << "qemu-aarch64 (Debian: qemu-user) or ld.lld is missing"

TEST_F(AArch64, CandidatesOfEveryOperatorComputeWhatTheInterpreterDoes) {
  SKIP_WITHOUT_QEMU;
  const char* each = std::getenv("PRUNER_CANDIDATES");
  NeonProgram program(target_);
  Rng rng(23);
  for (const char* op : kSmallOperators) {
    const Task task = operator_task(op, target_);
    const Space space = make_space(task);
    const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
    const std::vector<Tensor> expected = interpret(task.dag, inputs);
    for (int i = 0; i < (each == nullptr ? 4 : std::atoi(each)); ++i)
      program.add(space, sample(space, rng), inputs, expected[0]);
  }
  program.run();
}

TEST_F(AArch64, EveryFunctionComputesWhatTheInterpreterDoes) {
  SKIP_WITHOUT_QEMU;
  NeonProgram program(target_);
  Rng rng(29);
  for (int f = 0; f < static_cast<int>(Intrinsic::kNot); ++f) {
    const auto function = static_cast<Intrinsic>(f);
    const bool positive = function == Intrinsic::kLog || function == Intrinsic::kSqrt ||
                          function == Intrinsic::kRsqrt || function == Intrinsic::kPow;
    DagBuilder b;
    const StageId x = b.placeholder("x", {83});
    const StageId y = b.compute("y", {83}, [&](auto i) {
      const Expr value = b.at(x, {i[0]}) * float_imm(9);
      std::vector<Expr> args = {positive ? call(Intrinsic::kAbs, {value}) + float_imm(0.125)
                                         : value};
      if (function == Intrinsic::kPow) args.push_back(b.at(x, {i[0]}));
      return call(function, args);
    });
    const Task task = make_task(b.finish({y}), target_, "function " + std::to_string(f));
    const Space space = make_space(task);
    const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
    for (int i = 0; i < 2; ++i)
      program.add(space, sample(space, rng), inputs, interpret(task.dag, inputs)[0]);
  }
  program.run();
}

// Each task's code has the instruction and gives the bits that the interpreter gives, of small
// whole numbers, whose sums are exact in any order.
void expect_bits(std::span<const std::pair<Task, std::string>> tasks,
                 bool (*wanted)(const Sketch&)) {
  NeonProgram program(tasks[0].first.target, "max", 0);
  Rng rng(31);
  for (const auto& [task, instruction] : tasks) {
    const Space space = make_space(task);
    ASSERT_TRUE(std::ranges::any_of(space.sketches, wanted)) << task.name;
    const std::vector<Tensor> inputs = small_inputs(task.dag, rng);
    const std::vector<Tensor> expected = interpret(task.dag, inputs);
    for (int i = 0; i < candidates_each(4); ++i) {
      const Candidate candidate = sample_dot(space, rng, wanted);
      const Result<Program> lowered = lower(space, candidate, "k");
      ASSERT_TRUE(lowered.ok()) << lowered.error().message();
      const Result<std::string> text = compile_to_text(*lowered, task.target, CodeText::kAssembly);
      ASSERT_TRUE(text.ok()) << text.error().message();
      EXPECT_NE(text->find("\t" + instruction + "\t"), std::string::npos)
          << task.name << "\n"
          << print(space, candidate);
      program.add(space, candidate, inputs, expected[0]);
    }
  }
  program.run();
}

TEST_F(AArch64, DotInstructionsGiveTheBitsOfTheInterpreter) {
  SKIP_WITHOUT_QEMU;
  const Target arm = arm_target("neoverse-v1");
  std::vector<std::pair<Task, std::string>> tasks = {{quantized_task(arm), "usdot"}};
  for (const char* op : kDotOperators) {
    tasks.push_back({operator_task(typed(op, kOfBfloat16), arm), "bfdot"});
    tasks.push_back({operator_task(typed(op, kOfBytes), arm), "usdot"});
  }
  expect_bits(tasks, is_dot);
}

TEST_F(AArch64, DotInstructionsOfOneSignGiveTheBitsOfTheInterpreter) {
  SKIP_WITHOUT_QEMU;
  std::vector<std::pair<Task, std::string>> tasks;
  for (const auto& [type, name] : {std::pair(DType::kInt8, "sdot"), {DType::kUInt8, "udot"}}) {
    tasks.push_back({quantized_task(target_, type, type), name});
    tasks.push_back({byte_product_task(target_, 33, 50, 68, type, type), name});
    tasks.push_back({byte_product_task(target_, 1, 7, 4104, type, type), name});
  }
  expect_bits(tasks, is_dot);
}

TEST_F(AArch64, MatrixInstructionsGiveTheBitsOfTheInterpreter) {
  SKIP_WITHOUT_QEMU;
  const Target arm = arm_target("neoverse-v2");
  std::vector<std::pair<Task, std::string>> tasks = {{quantized_task(arm), "usmmla"}};
  for (const auto& [type, name] : {std::pair(DType::kInt8, "smmla"), {DType::kUInt8, "ummla"}}) {
    tasks.push_back({quantized_task(arm, type, type), name});
    tasks.push_back({byte_product_task(arm, 33, 50, 72, type, type), name});
    tasks.push_back({byte_product_task(arm, 2, 3, 8, type, type), name});
  }
  for (const char* op : kTileOperators) {
    tasks.push_back({operator_task(typed(op, kOfBfloat16), arm), "bfmmla"});
    tasks.push_back({operator_task(typed(op, kOfBytes), arm), "usmmla"});
  }
  expect_bits(tasks, is_matrix);
}

TEST_F(AArch64, AccumulatesInVectorRegisters) {
  const Task task = operator_task("matmul 64 64 64", target_);
  const Space space = make_space(task);
  Rng rng(3);
  const Result<Program> program = lower(space, sample(space, rng), "k");
  ASSERT_TRUE(program.ok());
  const Result<std::string> text = compile_to_text(*program, target_, CodeText::kAssembly);
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_NE(text->find("fmla\tv"), std::string::npos) << *text;
}

TEST_F(AArch64, CodeIsNotLoadedOnAnotherMachine) {
  if (kHostIsa == Isa::kArm) GTEST_SKIP() << "an AArch64 machine";
  const Task task = operator_task("relu 1000", target_);
  const Space space = make_space(task);
  Rng rng(3);
  const Result<Program> program = lower(space, sample(space, rng), "k");
  ASSERT_TRUE(program.ok());
  const Result<Artifact> artifact = compile(*program, target_, "k");
  ASSERT_TRUE(artifact.ok());
  const auto kernel = load_kernel(artifact->object, "k");
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().message().find("cannot link \"k\": made for AArch64"), std::string::npos)
      << kernel.error().message();
}

}  // namespace
}  // namespace pruner
