// label: codegen
// Modules of several phases, and what an instance keeps from run to run.
#include <gtest/gtest.h>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "deploy/verify.h"
#include "golden.h"
#include "graph/small_graph.h"
#include "shell.h"
#include "small_decoder.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Phase phase(std::string name, const Graph& graph) {
  return phase(std::move(name), graph, host_target(2));
}

class Phases : public testing::Test {
 protected:
  ModuleSummary build(const std::vector<Phase>& phases) {
    const auto built = build_module(phases, host_target(2), nullptr, {.work_dir = ""}, path_);
    EXPECT_TRUE(built.ok()) << built.error().message();
    return built.ok() ? *built : ModuleSummary();
  }

  const TemporaryFolder folder_ = *TemporaryFolder::make("");
  const std::string path_ = folder_.path("module.so");
};

// A prompt of 7 words at once, then words one by one: the logits are those of all words at once.
TEST_F(Phases, DecodeGivesWhatTheWholeSequenceDoes) {
  constexpr int64_t kBatch = 2, kPrompt = 7, kAll = 12;
  build({phase("prefill", decoder(kPrompt, kBatch)), phase("decode", decoder(1, kBatch))});
  Result<LoadedModule> module = load_module(path_);
  ASSERT_TRUE(module.ok()) << module.error().message();
  EXPECT_EQ(module->phases(), (std::vector<std::string>{"prefill", "decode"}));
  ASSERT_EQ(module->states().size(), 2u);
  EXPECT_EQ(module->states()[0].name, "past_key_values.0.key");
  EXPECT_EQ(module->inputs(1).size(), 2u);
  EXPECT_EQ(module->outputs(1).size(), 1u);

  Rng rng(3);
  std::vector<int64_t> words;
  for (int64_t i = 0; i < kBatch * kAll; ++i) words.push_back(rng.below(kWords));
  const std::vector<Tensor> whole =
      *interpret_graph(decoder(kAll, kBatch, 0), std::vector{integers({kBatch, kAll}, words)});
  const auto rows = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> part;
    for (int64_t item = 0; item < kBatch; ++item)
      for (int64_t i = begin; i < end; ++i) part.push_back(words[item * kAll + i]);
    return integers({kBatch, end - begin}, part);
  };
  const auto expect_rows = [&](const Result<std::vector<Tensor>>& found, int64_t begin) {
    ASSERT_TRUE(found.ok()) << found.error().message();
    const Tensor& logits = (*found)[0];
    const int64_t count = logits.shape()[1];
    for (int64_t i = 0; i < logits.num_elements(); ++i) {
      const int64_t word = i % kWords, row = i / kWords % count, item = i / kWords / count;
      ASSERT_NEAR(logits.get(i), whole[0].get((item * kAll + begin + row) * kWords + word), 1e-4)
          << "row " << begin + row;
    }
  };
  for (const bool again : {false, true}) {
    if (again) module->reset();
    const Tensor none = integers({kBatch}, {0, 0});
    expect_rows(module->run(std::vector{rows(0, kPrompt), none}, 0), 0);
    for (int64_t i = kPrompt; i < kAll; ++i) {
      const Tensor past = integers({kBatch}, {i, i});
      expect_rows(module->run(std::vector{rows(i, i + 1), past}, 1), i);
    }
  }
  EXPECT_ERROR(module->run(std::vector{rows(0, 1), integers({kBatch}, {0, kCache})}, 1),
               "\"past_length\" holds the index 24, expected one in [0, 23]");
}

// The examples, on a prompt that the prefill takes in two parts, beside the whole sequence.
TEST_F(Phases, AreDecodedByTheExamples) {
  if (output_of("c++ --version >/dev/null") != "status 0") GTEST_SKIP() << "no c++ here";
  build({phase("prefill", decoder(3)), phase("decode", decoder(1))});
  std::vector<int64_t> words = {7, 41, 3, 19};
  std::string prompt, expected;
  for (const int64_t word : words) prompt += " " + std::to_string(word);
  for (int i = 0; i < 6; ++i) {
    const auto count = std::ssize(words);
    const Tensor logits =
        (*interpret_graph(decoder(count, 1, 0), std::vector{integers({1, count}, words)}))[0];
    int64_t best = 0;
    const auto of = [&](int64_t word) { return logits.get((count - 1) * kWords + word); };
    for (int64_t word = 1; word < kWords; ++word) best = of(word) > of(best) ? word : best;
    words.push_back(best);
    expected += (i > 0 ? " " : "") + std::to_string(best);
  }
  const std::string root = test_path(".."), program = folder_.path("decode");
  const std::string arguments = " " + path_ + " 6" + prompt + " 2>/dev/null";
  EXPECT_EQ(output_of("c++ -std=c++17 -Wall -Wextra -I" + root + "/include " + root +
                      "/examples/decode.cpp -ldl -o " + program + " && " + program + arguments),
            expected + "\nstatus 0");
  // More tokens than the cache has room for are an error, not a run past its end.
  EXPECT_EQ(output_of(program + " " + path_ + " 1000" + prompt + " 2>&1"),
            "1004 tokens, the cache has room for " + std::to_string(kCache) + "\nstatus 256");
  if (output_of("python3 -c 'import numpy' 2>/dev/null") != "status 0")
    GTEST_SKIP() << "no numpy here";
  EXPECT_EQ(output_of("PYTHONPATH=" + root + "/python python3 " + root + "/examples/decode.py" +
                      arguments),
            expected + "\nstatus 0");
}

TEST_F(Phases, ShareTheWeights) {
  const ModuleSummary one = build({phase("prefill", decoder(16))});
  const ModuleSummary both = build({phase("prefill", decoder(16)), phase("decode", decoder(1))});
  // The masks' numbers are others; weights are 50 x 32 and more.
  EXPECT_LT(both.weight_bytes, one.weight_bytes + 1024);
  EXPECT_EQ(both.state_bytes, 2 * kCache * kWidth * 4);
}

TEST_F(Phases, AreVerified) {
  const std::vector<Phase> phases = {phase("prefill", decoder(5)), phase("decode", decoder(1))};
  build(phases);
  const Result<Agreement> found = verify_module(path_, phases, host_target(2), 2);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->ok()) << found->error;
  EXPECT_ERROR(verify_module(path_, std::span(phases).first(1), host_target(2), 2),
               "the module's phases are not those");
}

TEST_F(Phases, NameTheStateThatIsAnother) {
  const std::vector<Phase> phases = {phase("prefill", decoder(5)),
                                     phase("decode", decoder(1, 1, kCache / 2))};
  EXPECT_ERROR(build_module(phases, host_target(2), nullptr, {}, path_),
               "decode: state past_key_values.0.key float32 1x4x12x8 is past_key_values.0.key "
               "float32 1x4x24x8 before");
}

// Sums up, beside a state that is no cache and one that is handed on as it was.
TEST(States, StayFromRunToRun) {
  NetworkBuilder b("sums");
  const ValueId sum = b.state("sum", {2, 3}), last = b.state("last", {2, 3});
  const ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  const ValueId before = b.state("before", {2, 3});
  const ValueId added = b.node("Add", {sum, x});
  const ValueId difference = b.node("Sub", {x, before});
  b.next_state(sum, added, "next_sum");
  b.next_state(last, b.node("Mul", {x, b.scalar(1)}), "next_last");
  b.next_state(before, last, "next_before");
  Graph graph = b.finish({{difference, "difference"}});
  // The caller's output is neither the first nor the last.
  std::swap(graph.outputs[0], graph.outputs[2]);
  for (State& state : graph.states) state.output = state.output == 2 ? 0 : state.output;
  const Phase main = phase("main", graph);
  const TemporaryFolder folder = *TemporaryFolder::make("");
  const std::string path = folder.path("module.so");
  const auto built = build_module(main.partition, host_target(2), nullptr, {.work_dir = ""}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  double sums = 0, last_x = 0, before_x = 0;
  for (const double value : {3.0, 5.0, 11.0, 2.0}) {
    Tensor input(DType::kFloat32, {2, 3});
    for (int64_t i = 0; i < 6; ++i) input.set(i, value);
    const auto found = module->run(std::vector{input});
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ((*found)[0].get(5), value - before_x);
    before_x = std::exchange(last_x, value);
    sums += value;
    const std::vector<Tensor> states = module->read_states();
    EXPECT_EQ(states[0].get(5), sums);
    EXPECT_EQ(states[1].get(5), last_x);
    EXPECT_EQ(states[2].get(5), before_x);
  }
  module->reset();
  for (const Tensor& state : module->read_states()) EXPECT_EQ(state.get(0), 0);
  EXPECT_ERROR(build_module(main.partition, *parse_target("opencl", 0), nullptr, {}, path),
               "states are for CPUs and CUDA; the target is opencl");
}

}  // namespace
}  // namespace pruner
