#include "fleet/messages.h"

#include "golden.h"
#include "support/clock.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

TrialMessage trial() {
  TrialMessage message{
      .id = "run.1.2", .task = "abc", .candidates = {}, .best_s = 2e-6, .options = {}};
  message.candidates.push_back({SketchId{3}, {1, 4, 8}});
  message.candidates.push_back({SketchId{0}, {}});
  message.options.seed = 7;
  message.options.weights_from = WeightsFrom::kLastLevel;
  return message;
}

TEST(FleetMessages, ArriveAsTheyWereSent) {
  const TrialMessage sent = trial();
  const Result<TrialMessage> arrived = parse_trial(print(sent));
  ASSERT_TRUE(arrived.ok()) << arrived.error().message();
  EXPECT_EQ(arrived->id, sent.id);
  EXPECT_EQ(arrived->task, sent.task);
  EXPECT_EQ(arrived->candidates, sent.candidates);
  EXPECT_EQ(arrived->best_s, sent.best_s);
  EXPECT_EQ(arrived->options.seed, 7u);
  EXPECT_EQ(arrived->options.weights_from, WeightsFrom::kLastLevel);

  MeasureResult good, bad;
  good.costs_s = {1e-6, 2e-6};
  good.timestamp = 1790000000;
  good.running = {{steady_s() - 3, steady_s() - 1}, 2};
  bad.error = MeasureError::kRunTimeout;
  bad.error_text = "it \"hangs\"\n";
  const Result<ResultMessage> result =
      parse_result(print(ResultMessage{sent, {good, bad}, "one", 0.5, 2}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->trial.candidates, sent.candidates);
  EXPECT_EQ(result->worker, "one");
  EXPECT_EQ(result->build_s, 0.5);
  EXPECT_EQ(result->run_s, 2);
  EXPECT_EQ(result->results.at(0).costs_s, good.costs_s);
  EXPECT_EQ(result->results.at(0).timestamp, good.timestamp);
  EXPECT_EQ(result->results.at(0).running.worker, 2);
  EXPECT_NEAR(result->results.at(0).running.time.seconds(), 2, 1e-3);
  EXPECT_EQ(result->results.at(0).building.worker, -1);
  EXPECT_EQ(result->results.at(1).error, bad.error);
  EXPECT_EQ(result->results.at(1).error_text, bad.error_text);
}

TEST(FleetMessages, OfOtherVersionsOrCutAreErrors) {
  EXPECT_ERROR(parse_trial("{\"v\":2}"), "a message of version 2, expected 1");
  EXPECT_FALSE(parse_trial("").ok());
  EXPECT_FALSE(parse_trial("[]").ok());
  EXPECT_FALSE(parse_worker("{\"v\":1}").ok());
  const std::vector<MeasureResult> three(3);
  EXPECT_ERROR(parse_result(print(ResultMessage{trial(), three, "one"})),
               "has 3 results of 2 candidates");
  EXPECT_ERROR(parse_result(print(ResultMessage{trial(), {}, "one"})),
               "has 0 results of 2 candidates");
  const std::string whole =
      print(ResultMessage{trial(), {MeasureResult{}, MeasureResult{}}, "one"});
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_result(whole.substr(0, size)).ok()) << size;
  // Any byte may be another one: an error or a message, never a crash.
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string other = whole;
    other[i] = static_cast<char>(other[i] ^ 0x15);
    (void)parse_result(other);
  }
}

TEST(FleetMessages, CodeIsTakenOfThoseWhoAreTrusted) {
  const Result<NKey> builder = make_nkey(), other = make_nkey();
  if (!builder.ok()) GTEST_SKIP() << builder.error().message();
  ObjectMessage sent{trial(), {}};
  sent.trial.candidates.pop_back();
  sent.build.build_s = 0.5;
  sent.build.artifact.symbol = "kernel";
  sent.build.artifact.object = std::string(
      "\x7f"
      "ELF\n\0bytes\n",
      12);
  const std::string printed = *print(sent, *builder);
  EXPECT_EQ(trial_id(printed), sent.trial.id);
  EXPECT_EQ(trial_id(print(sent.trial)), sent.trial.id);
  EXPECT_EQ(trial_id("{}"), "");
  const std::vector<std::string> both = {other->public_key, builder->public_key};
  const Result<ObjectMessage> arrived = parse_object(printed, both);
  ASSERT_TRUE(arrived.ok()) << arrived.error().message();
  EXPECT_EQ(arrived->trial.candidates, sent.trial.candidates);
  EXPECT_EQ(arrived->build.build_s, 0.5);
  EXPECT_EQ(arrived->build.artifact.symbol, "kernel");
  EXPECT_EQ(arrived->build.artifact.object, sent.build.artifact.object);
  EXPECT_ERROR(parse_object(printed, std::span(both).first(1)),
               "code that nobody trusted has signed");
  EXPECT_ERROR(parse_object(printed, {}), "code that nobody trusted has signed");
  // No byte may be another one.
  for (size_t i = 0; i < printed.size(); ++i) {
    std::string changed = printed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_object(changed, both).ok()) << i;
    EXPECT_FALSE(parse_object(printed.substr(0, i), both).ok()) << i;
  }
  EXPECT_FALSE(parse_object(*print(ObjectMessage{trial(), {}}, *builder), both).ok()) << "two";
}

TEST(FleetMessages, ATaskIsKnownByItsHash) {
  const Result<Target> target = parse_target("llvm -mcpu=haswell", 2);
  ASSERT_TRUE(target.ok());
  const Result<ComputeDag> dag = parse_operator("matmul 8 8 8");
  ASSERT_TRUE(dag.ok());
  const Task task = make_task(*dag, *target, "matmul");
  const std::string printed = print_task(task);
  const Result<Task> arrived = parse_task(printed);
  ASSERT_TRUE(arrived.ok()) << arrived.error().message();
  EXPECT_EQ(arrived->key, task.key);
  EXPECT_EQ(print_task(*arrived), printed);
  EXPECT_EQ(task_hash(print_task(*arrived)), task_hash(printed));
}

}  // namespace
}  // namespace pruner
