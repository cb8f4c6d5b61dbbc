// label: cuda-fake
// Modules for CUDA that keep states from run to run, in several phases.
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/verify.h"
#include "fakes/driver_log.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "graph/small_graph.h"
#include "network_case.h"
#include "pruner/module.hpp"
#include "small_decoder.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

// The same words give what a module for CPUs gives, whose decoding has tests of its own.
TEST(CudaPhases, DecodeAsOnACpu) {
  constexpr int64_t kPrompt = 5, kAll = 9;
  const auto folder = TemporaryFolder::make("");
  ASSERT_TRUE(folder.ok());
  const FakeCuda cuda;
  {
    const Target targets[] = {host_target(2), *parse_target("cuda --arch=sm_80", 0)};
    std::vector<LoadedModule> modules;
    for (const Target& target : targets) {
      const std::string path = folder->path(target.is_gpu() ? "cuda.so" : "cpu.so");
      const std::vector<Phase> phases = {phase("prefill", decoder(kPrompt), target),
                                         phase("decode", decoder(1), target)};
      const auto built = build_module(phases, target, nullptr, {.work_dir = ""}, path);
      ASSERT_TRUE(built.ok()) << built.error().message();
      Result<LoadedModule> module = load_module(path);
      ASSERT_TRUE(module.ok()) << module.error().message();
      modules.push_back(*std::move(module));
    }
    const auto run = [&](std::span<const int64_t> words, int64_t past, int phase) {
      std::vector<std::vector<Tensor>> outputs;
      for (LoadedModule& module : modules) {
        const std::vector<TensorSpec>& specs = module.inputs(phase);
        std::vector<Tensor> inputs;
        for (const TensorSpec& spec : specs)
          inputs.push_back(spec.name == "input_ids"
                               ? integers(spec.shape, {words.begin(), words.end()})
                               : integers(spec.shape, {past}));
        auto found = module.run(inputs, phase);
        ASSERT_TRUE(found.ok()) << found.error().message();
        outputs.push_back(*std::move(found));
      }
      expect_close(outputs[1], outputs[0]);
    };
    const std::vector<int64_t> words = {3, 14, 15, 9, 26, 5, 35, 8, 49};
    for (int repeated = 0; repeated < 2; ++repeated) {  // the states are zeros again
      run(std::span(words).first(kPrompt), 0, 0);
      for (int64_t i = kPrompt; i < kAll; ++i) run(std::span(words).subspan(i, 1), i, 1);
      expect_close(modules[1].read_states(), modules[0].read_states());
      for (LoadedModule& module : modules) module.reset();
      for (const Tensor& state : modules[1].read_states())
        for (int64_t i = 0; i < state.num_elements(); ++i) ASSERT_EQ(state.get(i), 0);
    }
  }
  // Only the new rows of a state are written, where the state lies.
  EXPECT_EQ(driver_calls(cuda.log())["cuMemcpyDtoDAsync_v2"], 0);
  EXPECT_EQ(cuda.end(), "");
}

// Rows that the state's own rows make: a step that ran twice in one run would be seen.
Graph sums_of_itself() {
  NetworkOptions options;
  NetworkBuilder b("sums", options);
  const ValueId past = b.state("kept", {1, 1, 4, 8});
  const ValueId x = b.input("x", {1, 1, 1, 8}, DType::kFloat32);
  const ValueId at = b.input("at", {1}, DType::kInt64);
  const ValueId axes = b.integers("axes", {2});
  const ValueId sum = b.node("Add", {x, b.node("ReduceSum", {past, axes})});
  const ValueId next = b.node("TensorScatter", {past, sum, at}, {{"axis", int64_t{2}}});
  b.next_state(past, next, "kept.next");
  return b.finish({{b.node("Relu", {sum}), "y"}});
}

// Profiles run steps several times, and leave the states as one run does; times of the kernels
// leave them as they are.
TEST(CudaPhases, AreProfiledAsOneRun) {
  const auto folder = TemporaryFolder::make("");
  ASSERT_TRUE(folder.ok());
  const FakeCuda cuda;
  {
    const Target target = *parse_target("cuda --arch=sm_80", 0);
    const std::string path = folder->path("sums.so");
    const std::vector<Phase> phases = {phase("main", sums_of_itself(), target)};
    const auto built = build_module(phases, target, nullptr, {.work_dir = ""}, path);
    ASSERT_TRUE(built.ok()) << built.error().message();
    std::string error;
    std::optional<Module> module = Module::load(path, 0, &error);
    ASSERT_TRUE(module) << error;
    std::vector<float> x(8, 1), y(8), kept(32), expected(32);
    double timed = 0;
    std::vector<double> seconds(static_cast<size_t>(module->num_kernels()));
    for (int64_t at = 0; at < 4; ++at) {
      const void* in[] = {x.data(), &at};
      void* out[] = {y.data()};
      ASSERT_TRUE(module->run_phase(0, in, out, at % 2 == 0 ? seconds.data() : nullptr))
          << module->error();
      ASSERT_TRUE(module->time_kernels(&timed)) << module->error();
      for (size_t c = 0; c < 8; ++c) expected[static_cast<size_t>(at) * 8 + c] = 1 << at;
      ASSERT_TRUE(module->read_state(0, kept.data()));
      EXPECT_EQ(kept, expected) << at;
    }
  }
  EXPECT_EQ(cuda.end(), "");
}

}  // namespace
}  // namespace pruner
