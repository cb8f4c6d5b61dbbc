// Checks what every broker promises: a server, if there is one, and the broker of this process.
#include "fleet/broker.h"

#include <filesystem>
#include <mutex>
#include <optional>

#include "fleet/local_broker.h"
#include "fleet/names.h"
#include "fleet/nats_server.h"
#include "golden.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

constexpr double kLongS = 60, kShortS = 0.2, kPatienceS = 20, kMomentS = 0.05;
constexpr const char* kKind = "kind";

class Brokers : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      broker = LocalBroker::make();
    } else {
      if (const std::string why = NatsServer::missing(); !why.empty()) GTEST_SKIP() << why;
      dir = fs::temp_directory_path() / ("pruner_broker_" + std::to_string(getpid()));
      fs::remove_all(dir);
      fs::create_directories(dir);
      server.emplace(dir);
      server->start();
      Result<std::unique_ptr<Broker>> connected = connect_nats({.url = server->url()});
      ASSERT_TRUE(connected.ok()) << connected.error().message();
      broker = *std::move(connected);
    }
    ASSERT_TRUE(broker->make_streams().ok());
  }
  void TearDown() override {
    broker.reset();
    server.reset();
    if (!dir.empty()) fs::remove_all(dir);
  }

  /// A message is another's after so long.
  std::unique_ptr<Queue> open_trials(double lease_s = kLongS) const {
    return *broker->open_queue(
        fleet::kTrials, fleet::trials_of_kind(kKind), fleet::kind_queue(kKind), lease_s, 2);
  }
  std::unique_ptr<Queue> open_results() const {
    return *broker->open_queue(
        fleet::kResults, fleet::result_subject("run"), fleet::run_queue("run"), kLongS, -1);
  }
  void publish(const std::string& id, const std::string& run = "run") const {
    const auto go_on = [] { return false; };
    ASSERT_TRUE(broker->publish(fleet::trial_subject(kKind, run), id, "trial " + id, go_on).ok());
  }
  void publish_result(const std::string& id) const {
    const auto go_on = [] { return false; };
    ASSERT_TRUE(broker->publish(fleet::result_subject("run"), id, "result", go_on).ok());
  }
  /// The next one, when it comes.
  static std::unique_ptr<Lease> take(Queue& queue) {
    Result<Leases> leases = queue.take(1, kPatienceS);
    EXPECT_TRUE(leases.ok());
    if (!leases.ok() || leases->empty()) return nullptr;
    return std::move(leases->front());
  }
  static size_t count(Queue& queue, int most = 16) {
    const Result<Leases> leases = queue.take(most, kMomentS);
    EXPECT_TRUE(leases.ok());
    return leases.ok() ? leases->size() : 0;
  }
  Broker::Backlog backlog() const {
    return *broker->backlog(fleet::kTrials, fleet::kind_queue(kKind));
  }

  fs::path dir;
  std::optional<NatsServer> server;
  std::unique_ptr<Broker> broker;
};

TEST_P(Brokers, AMessageIsTakenOnceAndGoneWhenItIsDone) {
  const std::unique_ptr<Queue> trials = open_trials();
  publish("1");
  const std::unique_ptr<Lease> lease = take(*trials);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->bytes(), "trial 1");
  EXPECT_EQ(lease->deliveries(), 1);
  EXPECT_EQ(count(*trials), 0u);
  EXPECT_EQ(backlog().taken, 1);
  ASSERT_TRUE(lease->done().ok());
  EXPECT_EQ(backlog().waiting + backlog().taken, 0);
  lease->give_back(0);
  EXPECT_EQ(count(*trials), 0u);
}

TEST_P(Brokers, MessagesComeInTheirOrderToWhoeverTakes) {
  const std::unique_ptr<Queue> trials = open_trials(), others = open_trials();
  for (const char* id : {"1", "2", "3"}) publish(id, std::string("run") + id);
  EXPECT_EQ(backlog().waiting, 3);
  const std::unique_ptr<Lease> first = take(*trials), second = take(*others);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(first->bytes(), "trial 1");
  EXPECT_EQ(second->bytes(), "trial 2");
  EXPECT_EQ(count(*trials), 1u);
}

TEST_P(Brokers, WhatNobodyKeepsGoesToAnother) {
  const std::unique_ptr<Queue> trials = open_trials(kShortS);
  publish("1");
  const std::unique_ptr<Lease> lost = take(*trials), again = take(*trials);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->bytes(), "trial 1");
  EXPECT_EQ(again->deliveries(), 2);
}

TEST_P(Brokers, WhatIsKeptStays) {
  constexpr double kStepS = 0.1, kHeldS = 2;  // a process may well stand still for a second
  const std::unique_ptr<Queue> trials = open_trials(kHeldS);
  publish("1");
  const std::unique_ptr<Lease> lease = take(*trials);
  ASSERT_NE(lease, nullptr);
  for (double held_s = 0; held_s < 1.5 * kHeldS; held_s += kStepS) {
    lease->keep();
    sleep_s(kStepS);
  }
  EXPECT_EQ(count(*trials), 0u);
  EXPECT_TRUE(lease->done().ok());
}

TEST_P(Brokers, WhatIsGivenBackIsThereAgain) {
  const std::unique_ptr<Queue> trials = open_trials();
  publish("1");
  take(*trials)->give_back(0);
  const std::unique_ptr<Lease> again = take(*trials);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->deliveries(), 2);
}

TEST_P(Brokers, WhatWasDeliveredTooOftenIsLostAndSaidSo) {
  const std::unique_ptr<Queue> trials = open_trials(kShortS);
  std::mutex mutex;
  std::vector<std::string> lost;
  ASSERT_TRUE(broker
                  ->watch_lost(fleet::kTrials,
                               fleet::kind_queue(kKind),
                               [&](std::string_view bytes) {
                                 const std::lock_guard lock(mutex);
                                 lost.emplace_back(bytes);
                                 return true;
                               })
                  .ok());
  publish("1");
  const std::unique_ptr<Lease> first = take(*trials), second = take(*trials);
  ASSERT_NE(second, nullptr);
  for (double waited_s = 0; waited_s < kPatienceS; waited_s += kMomentS) {
    EXPECT_EQ(count(*trials), 0u);
    const std::lock_guard lock(mutex);
    if (!lost.empty()) break;
  }
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lost, std::vector<std::string>{"trial 1"});
}

TEST_P(Brokers, OfAnyNumberOfDeliveriesNoneIsTheLast) {
  const std::unique_ptr<Queue> results = open_results();
  publish_result("1");
  for (int i = 1; i <= 4; ++i) {
    const std::unique_ptr<Lease> lease = take(*results);
    ASSERT_NE(lease, nullptr);
    EXPECT_EQ(lease->deliveries(), i);
    lease->give_back(0);
  }
}

TEST_P(Brokers, AnIdIsPublishedOnce) {
  const std::unique_ptr<Queue> trials = open_trials(), results = open_results();
  publish("1");
  publish("1");
  const std::unique_ptr<Lease> lease = take(*trials);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(count(*trials), 0u);
  ASSERT_TRUE(lease->done().ok());
  publish("1");
  EXPECT_EQ(count(*trials), 0u) << "not when it is done, either";
  publish_result("1");
  EXPECT_EQ(count(*results), 1u) << "a result has its trial's";
}

TEST_P(Brokers, APurgeForgetsTheMessagesOfItsSubjectAlone) {
  const std::unique_ptr<Queue> trials = open_trials();
  for (const char* id : {"1", "2", "3"}) publish(id, "mine");
  publish("4", "yours");
  const std::unique_ptr<Lease> taken = take(*trials);
  ASSERT_NE(taken, nullptr);
  ASSERT_TRUE(broker->purge(fleet::kTrials, fleet::trial_subject(kKind, "mine")).ok());
  const std::unique_ptr<Lease> left = take(*trials);
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->bytes(), "trial 4");
  EXPECT_EQ(taken->bytes(), "trial 1");
  taken->give_back(0);
  EXPECT_EQ(count(*trials), 0u);
  EXPECT_TRUE(taken->done().ok());
  EXPECT_TRUE(left->done().ok());
}

TEST_P(Brokers, ATableHasWhatWasPutLast) {
  const std::string odd("a\0b\xff", 4);
  EXPECT_FALSE(broker->get(fleet::kTasks, "one")->has_value());
  ASSERT_TRUE(broker->put(fleet::kTasks, "one", "before").ok());
  ASSERT_TRUE(broker->put(fleet::kTasks, "one", odd).ok());
  EXPECT_EQ(*broker->get(fleet::kTasks, "one"), odd);
  EXPECT_EQ(*broker->keys(fleet::kTasks), std::vector<std::string>{"one"});
  EXPECT_TRUE(broker->keys(fleet::kWorkers)->empty());
  ASSERT_TRUE(broker->remove(fleet::kTasks, "one").ok());
  EXPECT_FALSE(broker->get(fleet::kTasks, "one")->has_value());
}

INSTANTIATE_TEST_SUITE_P(Fleet, Brokers, testing::Bool(), [](const auto& server) {
  return server.param ? "Nats" : "Local";
});

TEST(LocalBroker, EndsWithAReasonWhenAllIsTaken) {
  const std::unique_ptr<LocalBroker> broker = LocalBroker::make();
  const std::unique_ptr<Queue> queue =
      *broker->open_queue(fleet::kTrials, fleet::trials_of_kind(kKind), "queue", kLongS, 2);
  ASSERT_TRUE(
      broker->publish(fleet::trial_subject(kKind, "run"), "1", "trial", [] { return false; }).ok());
  std::jthread closes([&] {
    sleep_s(kMomentS);
    broker->close(Error("no device is left"));
    broker->close(Error("nor here"));
  });
  EXPECT_EQ(queue->take(2, kPatienceS)->size(), 1u);
  EXPECT_ERROR(queue->take(1, 1e9), "no device is left");
}

}  // namespace
}  // namespace pruner
