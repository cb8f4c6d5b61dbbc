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
  std::string seed_file = {};  // file of an nkey: who this is; empty: nobody in particular
  std::string ca_file = {};    // authority of the server's certificate; empty: the system's
  bool insecure = false;       // takes a server with known holes off this machine, too
};

/// Opens a connection, which comes back by itself after the server was gone. Errors: no server is
/// there; the server does not know this key; its certificate is not of the authority; its version
/// has known holes and the server is not on this machine.
Result<std::unique_ptr<Broker>> connect_nats(const BrokerAccess& access);

}  // namespace pruner
