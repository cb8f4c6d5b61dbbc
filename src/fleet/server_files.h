// The files of a fleet's server: its configuration, a key for each role, and a unit that starts
// workers.
#pragma once

#include <string>

#include "support/result.h"

namespace pruner {

/// Writes into a folder, which is made: server.conf; admin.key, tuner.key and worker.key, which
/// only their owner can read; pruner-worker.service. Workers may take trials and give results,
/// tuners may publish trials and read results, and neither can change or delete a stream. Errors:
/// the folder has such files.
Result<Unit> write_server_files(const std::string& folder);

}  // namespace pruner
