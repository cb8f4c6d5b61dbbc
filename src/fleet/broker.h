// The server through which a fleet's trials travel: NATS with JetStream, whose queues keep what was
// published until it has been dealt with. The door to libnats.
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

/// Whether this build can talk to a server.
bool has_broker();

struct BrokerAccess {
  std::string url = {};        // "nats://host:4222", "tls://host:4222"
  std::string seed_file = {};  // of an nkey: who this is; empty: nobody in particular
  std::string ca_file = {};    // of whom the server's certificate has to be; empty: the system's
  bool insecure = false;       // takes a server with known holes off this machine, too
};

/// A message that was taken off a queue. It goes to another taker unless it is kept or done in
/// time.
class Lease {
 public:
  struct Message;
  explicit Lease(Message* message);
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  std::string_view bytes() const;
  int deliveries() const;  // 1: to nobody before
  /// It is dealt with, which the server knows when this returns.
  Result<Unit> done() const;
  /// It will take longer.
  void keep() const;
  /// Another may take it, after some seconds.
  void give_back(double delay_s) const;

 private:
  Message* message_;
};

/// Messages of one subject, of which several may take. It remembers what was done.
class Queue {
 public:
  struct Subscription;
  explicit Queue(Subscription* subscription);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// The next messages, at most so many; none after `timeout_s` seconds, or without a server
  /// meanwhile.
  Result<std::vector<Lease>> take(int most, double timeout_s);

 private:
  Subscription* subscription_;
};

/// A connection, which comes back by itself after the server was gone. Safe for several threads.
class Broker {
 public:
  /// Errors: no server there, one that does not know this key, whose certificate is not of the
  /// authority, or whose version has known holes and which is not on this machine.
  static Result<std::unique_ptr<Broker>> connect(const BrokerAccess& access);
  virtual ~Broker() = default;

  /// Makes the streams and tables of a fleet, where they are missing.
  virtual Result<Unit> make_streams() = 0;

  /// Bytes that a message has at most.
  virtual int64_t most_bytes() const = 0;
  /// The message is stored when this returns; one with an id that was published in the last ten
  /// minutes is not stored again. Goes on trying while the server is gone, until `stop` says so.
  virtual Result<Unit> publish(const std::string& subject,
                               const std::string& id,
                               std::string_view bytes,
                               const std::function<bool()>& stop) = 0;
  /// Forgets the messages of a subject that nobody has taken.
  virtual Result<Unit> purge(const std::string& stream, const std::string& subject) = 0;
  /// How many messages of the consumer wait, and how many are being dealt with.
  struct Backlog {
    int64_t waiting = 0, taken = 0;
  };
  virtual Result<Backlog> backlog(const std::string& stream, const std::string& consumer) = 0;

  /// A queue by a name that all its takers use. A message is delivered at most `most_deliveries`
  /// times, again when `lease_s` have passed.
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
