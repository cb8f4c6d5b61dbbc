#include "fleet/local_broker.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr auto kDuplicates = std::chrono::minutes(10);

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

// Whether a subject is one of those that "trial.KIND.*" stands for.
bool matches(std::string_view pattern, std::string_view subject) {
  while (!pattern.empty() && !subject.empty()) {
    const std::string_view wanted = pattern.substr(0, pattern.find('.'));
    const std::string_view found = subject.substr(0, subject.find('.'));
    if (wanted != "*" && wanted != found) return false;
    pattern.remove_prefix(std::min(pattern.size(), wanted.size() + 1));
    subject.remove_prefix(std::min(subject.size(), found.size() + 1));
  }
  return pattern.empty() && subject.empty();
}

struct Message {
  std::string subject;
  std::shared_ptr<const std::string> bytes;  // its leases have them, too
  int deliveries = 0;
  Time free_at = {};  // until then somebody has it
};

struct Consumer {
  std::string subject;
  Clock::duration lease;
  int most_deliveries;
  std::function<bool(std::string_view)> lost = {};
};

class MemoryBroker : public LocalBroker {
 public:
  void close(const Error& why) override {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = why;
    came_.notify_all();
  }

  Result<Unit> make_streams() override { return Unit{}; }
  int64_t most_bytes() const override { return std::numeric_limits<int64_t>::max(); }

  Result<Unit> publish(const std::string& subject,
                       const std::string& id,
                       std::string_view bytes,
                       const std::function<bool()>&) override {
    const std::lock_guard lock(mutex_);
    const Time now = Clock::now();
    while (!lately_.empty() && lately_.front().second + kDuplicates < now) {
      ids_.erase(lately_.front().first);
      lately_.pop_front();
    }
    std::string name = subject + " " + id;
    if (!ids_.insert(name).second) return Unit{};
    lately_.emplace_back(std::move(name), now);
    messages_.emplace(++count_,
                      Message{subject, std::make_shared<const std::string>(bytes), 0, now});
    came_.notify_all();
    return Unit{};
  }

  Result<Unit> purge(const std::string&, const std::string& subject) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(messages_, [&](const auto& m) { return matches(subject, m.second.subject); });
    return Unit{};
  }

  Result<Backlog> backlog(const std::string& stream, const std::string& consumer) override {
    const std::lock_guard lock(mutex_);
    const auto it = consumers_.find({stream, consumer});
    if (it == consumers_.end()) return Backlog{};
    Backlog found;
    for (const auto& [number, message] : messages_) {
      if (!matches(it->second.subject, message.subject)) continue;
      ++(message.deliveries > 0 ? found.taken : found.waiting);
    }
    return found;
  }

  Result<std::unique_ptr<Queue>> open_queue(const std::string& stream,
                                            const std::string& subject,
                                            const std::string& name,
                                            double lease_s,
                                            int most_deliveries) override;

  Result<Unit> watch_lost(const std::string& stream,
                          const std::string& name,
                          std::function<bool(std::string_view)> lost) override {
    const std::lock_guard lock(mutex_);
    const auto it = consumers_.find({stream, name});
    if (it == consumers_.end()) return Error("there is no queue ", name);
    it->second.lost = std::move(lost);
    return Unit{};
  }

  Result<Unit> put(const std::string& table,
                   const std::string& key,
                   std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    tables_[table][key] = bytes;
    return Unit{};
  }

  Result<std::optional<std::string>> get(const std::string& table,
                                         const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto it = tables_[table].find(key);
    return it == tables_[table].end() ? std::nullopt : std::optional(it->second);
  }

  Result<std::vector<std::string>> keys(const std::string& table) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [key, bytes] : tables_[table]) names.push_back(key);
    return names;
  }

  Result<Unit> remove(const std::string& table, const std::string& key) override {
    const std::lock_guard lock(mutex_);
    tables_[table].erase(key);
    return Unit{};
  }

  Result<Leases> take(const Consumer& of, int most, double timeout_s);

  void forget(uint64_t number) {
    const std::lock_guard lock(mutex_);
    messages_.erase(number);
  }
  /// Others get it from then on, if it is not done before.
  void free_at(uint64_t number, Time time) {
    const std::lock_guard lock(mutex_);
    if (const auto it = messages_.find(number); it != messages_.end()) it->second.free_at = time;
    came_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards all members
  std::condition_variable came_;
  std::optional<Error> closed_;
  std::map<uint64_t, Message> messages_;  // in the order of their coming
  uint64_t count_ = 0;
  std::set<std::string> ids_;  // with their subjects, of what came lately
  std::deque<std::pair<std::string, Time>> lately_;
  std::map<std::pair<std::string, std::string>, Consumer> consumers_;  // keyed by stream and name
  std::map<std::string, std::map<std::string, std::string>> tables_;
};

class MemoryLease : public Lease {
 public:
  MemoryLease(MemoryBroker& broker, uint64_t number, Message message, Clock::duration time)
      : broker_(broker), number_(number), message_(std::move(message)), time_(time) {}

  std::string_view bytes() const override { return *message_.bytes; }
  int deliveries() const override { return message_.deliveries; }
  Result<Unit> done() const override {
    broker_.forget(number_);
    return Unit{};
  }
  void keep() const override { broker_.free_at(number_, Clock::now() + time_); }
  void give_back(double delay_s) const override {
    broker_.free_at(number_, Clock::now() + seconds(delay_s));
  }

 private:
  MemoryBroker& broker_;
  uint64_t number_;
  Message message_;
  Clock::duration time_;
};

class MemoryQueue : public Queue {
 public:
  MemoryQueue(MemoryBroker& broker, const Consumer& consumer)
      : broker_(broker), consumer_(consumer) {}
  Result<Leases> take(int most, double timeout_s) override {
    return broker_.take(consumer_, most, timeout_s);
  }

 private:
  MemoryBroker& broker_;
  const Consumer& consumer_;
};

Result<std::unique_ptr<Queue>> MemoryBroker::open_queue(const std::string& stream,
                                                        const std::string& subject,
                                                        const std::string& name,
                                                        double lease_s,
                                                        int most_deliveries) {
  const std::lock_guard lock(mutex_);
  const auto [it, added] =
      consumers_.try_emplace({stream, name}, Consumer{subject, seconds(lease_s), most_deliveries});
  return std::unique_ptr<Queue>(std::make_unique<MemoryQueue>(*this, it->second));
}

Result<Leases> MemoryBroker::take(const Consumer& of, int most, double timeout_s) {
  const Time end = Clock::now() + seconds(timeout_s);
  std::unique_lock lock(mutex_);
  while (true) {
    const Time now = Clock::now();
    Time next = end;
    Leases taken;
    std::vector<std::shared_ptr<const std::string>> lost;
    for (auto it = messages_.begin(); it != messages_.end() && std::ssize(taken) < most;) {
      const auto at = it++;
      Message& message = at->second;
      if (!matches(of.subject, message.subject)) continue;
      if (message.free_at > now) {
        next = std::min(next, message.free_at);
      } else if (of.most_deliveries >= 0 && message.deliveries >= of.most_deliveries) {
        lost.push_back(message.bytes);
        messages_.erase(at);
      } else {
        ++message.deliveries;
        message.free_at = now + of.lease;
        taken.push_back(std::make_unique<MemoryLease>(*this, at->first, message, of.lease));
      }
    }
    if (const auto hear = of.lost; hear && !lost.empty()) {
      lock.unlock();
      for (const std::shared_ptr<const std::string>& bytes : lost) hear(*bytes);
      lock.lock();
    }
    if (!taken.empty()) return taken;
    if (closed_) return *closed_;
    if (now >= end) return taken;
    came_.wait_until(lock, next);
  }
}

}  // namespace

std::unique_ptr<LocalBroker> LocalBroker::make() { return std::make_unique<MemoryBroker>(); }

}  // namespace pruner
