// The broker of those who measure in this process: its queues are memory, and end with it.
#pragma once

#include <memory>

#include "fleet/broker.h"

namespace pruner {

class LocalBroker : public Broker {
 public:
  static std::unique_ptr<LocalBroker> make();

  /// Nobody will publish any more: what is left can still be taken, then take() fails with the
  /// reason of the first call.
  virtual void close(const Error& why) = 0;
};

}  // namespace pruner
