// Measures what one server carries. Simulated workers answer after a recorded trial's time, and two
// runs ask for as many trials as they can. fleet_scale URL WORKERS SECONDS TRIAL_SECONDS
// [CANDIDATES] prints trials a second, each run's share, and the time from a message to its result.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "fleet/messages.h"
#include "fleet/names.h"
#include "fleet/nats_broker.h"

namespace pruner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kConnections = 16;  // connections that the workers share
constexpr const char* kKind = "simulated";

struct Settings {
  std::string url;
  int workers;
  double seconds, trial_s;
  size_t candidates;
};

Result<std::unique_ptr<Queue>> trials(Broker& broker) {
  return broker.open_queue(
      fleet::kTrials, fleet::trials_of_kind(kKind), fleet::kind_queue(kKind), 30, 2);
}

// Takes a message, sleeps as long as its trials take, and answers.
void work(Broker& broker, const Settings& settings, const std::atomic<bool>& stop) {
  const Result<std::unique_ptr<Queue>> queue = trials(broker);
  while (queue.ok() && !stop) {
    const Result<Leases> taken = (*queue)->take(1, 1);
    if (!taken.ok()) return;
    for (const std::unique_ptr<Lease>& lease : *taken) {
      Result<TrialMessage> trial = parse_trial(lease->bytes());
      if (!trial.ok()) continue;
      const auto count = static_cast<double>(trial->candidates.size());
      std::this_thread::sleep_for(std::chrono::duration<double>(count * settings.trial_s));
      MeasureResult result;
      result.costs_s.assign(5, 1e-4);
      const std::string id = trial->id;
      ResultMessage message{*std::move(trial), {}, "simulated"};
      message.results.assign(message.trial.candidates.size(), result);
      (void)broker.publish(
          fleet::result_subject(id.substr(0, id.find('.'))), id, print(message), [&] {
            return stop.load();
          });
      (void)lease->done();
    }
  }
}

struct Run {
  std::atomic<int64_t> trials{0};
  std::vector<double> waits_s;
};

// Keeps as many messages on their way as its half of the workers have in two turns.
void ask(const Settings& settings,
         const std::string& name,
         Run& run,
         const std::atomic<bool>& stop) {
  Result<std::unique_ptr<Broker>> broker = connect_nats({.url = settings.url});
  if (!broker.ok()) return;
  const Result<std::unique_ptr<Queue>> results = (*broker)->open_queue(
      fleet::kResults, fleet::result_subject(name), fleet::run_queue(name), 30, -1);
  if (!results.ok()) return;
  TrialMessage message{.id = {}, .task = std::string(32, 'a'), .candidates = {}, .options = {}};
  message.candidates.assign(settings.candidates,
                            Candidate{SketchId{1}, std::vector<int32_t>(24, 16)});
  std::map<std::string, Clock::time_point> open;
  int64_t count = 0;
  while (!stop) {
    while (std::ssize(open) < settings.workers && !stop) {
      message.id = name + "." + std::to_string(++count);
      if (!(*broker)
               ->publish(fleet::trial_subject(kKind, name),
                         message.id,
                         print(message),
                         [&] { return stop.load(); })
               .ok())
        return;
      open[message.id] = Clock::now();
    }
    const Result<Leases> taken = (*results)->take(64, 0.2);
    if (!taken.ok()) return;
    for (const std::unique_ptr<Lease>& lease : *taken) {
      const Result<ResultMessage> result = parse_result(lease->bytes());
      (void)lease->done();
      const auto it = result.ok() ? open.find(result->trial.id) : open.end();
      if (it == open.end()) continue;
      run.waits_s.push_back(std::chrono::duration<double>(Clock::now() - it->second).count());
      run.trials += std::ssize(result->results);
      open.erase(it);
    }
  }
}

int simulate(const Settings& settings) {
  std::vector<std::unique_ptr<Broker>> brokers;
  for (int i = 0; i < std::min(kConnections, settings.workers); ++i) {
    Result<std::unique_ptr<Broker>> broker = connect_nats({.url = settings.url});
    if (!broker.ok() || !(*broker)->make_streams().ok()) {
      fmt::print(stderr, "{}\n", broker.ok() ? "no streams" : broker.error().message());
      return 2;
    }
    brokers.push_back(*std::move(broker));
  }
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < settings.workers; ++i)
    threads.emplace_back(
        [&, i] { work(*brokers[static_cast<size_t>(i) % brokers.size()], settings, stop); });
  Run runs[2];
  threads.emplace_back([&] { ask(settings, "aaaa", runs[0], stop); });
  threads.emplace_back([&] { ask(settings, "bbbb", runs[1], stop); });
  const auto wait = [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); };
  wait(settings.seconds / 4);  // until all are busy
  const int64_t before[2] = {runs[0].trials, runs[1].trials};
  const Clock::time_point start = Clock::now();
  wait(settings.seconds);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto a = static_cast<double>(runs[0].trials - before[0]);
  const auto b = static_cast<double>(runs[1].trials - before[1]);
  stop = true;
  threads.clear();
  std::ranges::sort(runs[0].waits_s);
  const double median = runs[0].waits_s.empty() ? 0 : runs[0].waits_s[runs[0].waits_s.size() / 2];
  const double ideal = settings.workers / settings.trial_s;
  fmt::print(
      "{} workers: {:.0f} trials/s ({:.0f} % of what they could), shares {:.2f} and {:.2f}, {:.2f} "
      "s "
      "from a message to its result\n",
      settings.workers,
      (a + b) / seconds,
      100 * (a + b) / seconds / ideal,
      a / (a + b),
      b / (a + b),
      median);
  return 0;
}

}  // namespace
}  // namespace pruner

int main(int count, char** args) {
  if (count < 5) {
    fmt::print(stderr, "fleet_scale URL WORKERS SECONDS TRIAL_SECONDS [CANDIDATES]\n");
    return 2;
  }
  return pruner::simulate({.url = args[1],
                           .workers = std::atoi(args[2]),
                           .seconds = std::atof(args[3]),
                           .trial_s = std::atof(args[4]),
                           .candidates = count > 5 ? static_cast<size_t>(std::atoi(args[5])) : 16});
}
