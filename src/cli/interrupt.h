// Ctrl-C: the first asks the work to end in good order, the second ends the program.
#pragma once

#include <atomic>

namespace pruner {

/// Catches SIGINT and SIGTERM from now on; the flag is set by the first one.
const std::atomic<bool>& catch_interrupts();

}  // namespace pruner
