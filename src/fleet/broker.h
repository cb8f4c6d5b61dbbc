// Queues through which trials travel from a tuner to those that measure, and their results back. A
// message is with one taker at a time, and stays until it has been dealt with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

/// A message that was taken off a queue. It goes to another taker unless it is kept or done in
/// time.
class Lease {
 public:
  virtual ~Lease() = default;
  virtual std::string_view bytes() const = 0;
  virtual int deliveries() const = 0;  // 1: to nobody before
  /// It is dealt with, and gone when this returns.
  virtual Result<Unit> done() const = 0;
  /// It will take longer.
  virtual void keep() const = 0;
  /// Another may take it, after some seconds.
  virtual void give_back(double delay_s) const = 0;
};
using Leases = std::vector<std::unique_ptr<Lease>>;

/// Messages of one subject, of which several may take. It remembers what was done.
class Queue {
 public:
  virtual ~Queue() = default;
  /// The next messages, at most so many; none after `timeout_s` seconds, or without a server
  /// meanwhile.
  virtual Result<Leases> take(int most, double timeout_s) = 0;
};

/// A connection to the queues. Safe for several threads.
class Broker {
 public:
  virtual ~Broker() = default;

  /// Makes the streams and tables of a fleet, where they are missing.
  virtual Result<Unit> make_streams() = 0;

  /// Bytes that a message has at most.
  virtual int64_t most_bytes() const = 0;
  /// The message is stored when this returns; one with an id that its subject had in the last ten
  /// minutes is not stored again. Goes on trying while the server is gone, until `stop` says so.
  virtual Result<Unit> publish(const std::string& subject,
                               const std::string& id,
                               std::string_view bytes,
                               const std::function<bool()>& stop) = 0;
  /// Forgets the messages of a subject. Of one that somebody has taken nothing more is heard.
  virtual Result<Unit> purge(const std::string& stream, const std::string& subject) = 0;
  /// How many messages of the consumer wait, and how many are being dealt with.
  struct Backlog {
    int64_t waiting = 0, taken = 0;
  };
  virtual Result<Backlog> backlog(const std::string& stream, const std::string& consumer) = 0;

  /// A queue by a name that all its takers use. A message is delivered at most `most_deliveries`
  /// times (-1: any number), again when `lease_s` have passed.
  virtual Result<std::unique_ptr<Queue>> open_queue(const std::string& stream,
                                                    const std::string& subject,
                                                    const std::string& name,
                                                    double lease_s,
                                                    int most_deliveries) = 0;
  /// Calls `lost` from another thread with each message of the queue that nobody has dealt with in
  /// all its deliveries; true: it was the caller's, and is forgotten.
  virtual Result<Unit> watch_lost(const std::string& stream,
                                  const std::string& name,
                                  std::function<bool(std::string_view bytes)> lost) = 0;

  virtual Result<Unit> put(const std::string& table,
                           const std::string& key,
                           std::string_view bytes) = 0;
  virtual Result<std::optional<std::string>> get(const std::string& table,
                                                 const std::string& key) = 0;
  virtual Result<std::vector<std::string>> keys(const std::string& table) = 0;
  virtual Result<Unit> remove(const std::string& table, const std::string& key) = 0;
};

}  // namespace pruner
