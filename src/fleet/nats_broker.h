// The broker of a fleet: a NATS server with JetStream, whose queues outlive every process. The door
// to libnats.
#pragma once

#include <memory>
#include <string>

#include "fleet/broker.h"

namespace pruner {

/// Whether this build can talk to a server.
bool has_nats();

struct BrokerAccess {
  std::string url = {};        // "nats://host:4222", "tls://host:4222"
  std::string seed_file = {};  // of an nkey: who this is; empty: nobody in particular
  std::string ca_file = {};    // of whom the server's certificate has to be; empty: the system's
  bool insecure = false;       // takes a server with known holes off this machine, too
};

/// A connection, which comes back by itself after the server was gone. Errors: no server there, one
/// that does not know this key, whose certificate is not of the authority, or whose version has
/// known holes and which is not on this machine.
Result<std::unique_ptr<Broker>> connect_nats(const BrokerAccess& access);

}  // namespace pruner
