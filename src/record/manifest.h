// run.json: what a work directory's run was, is doing, or came to. Rewritten whole at each change;
// a reader never sees half of it.
#pragma once

#include <cstdint>
#include <string>

#include "support/json.h"

namespace pruner {

struct RunManifest {
  std::string command;  // command as typed
  std::string version;  // version of pruner
  uint64_t seed = 0;
  std::string device;   // device_fingerprint
  std::string input;    // tuned thing: a model's path or hash, a network, an operator
  std::string status;   // "running", "done", "interrupted", "failed: ..."
  int64_t started = 0;  // Unix seconds; of the first run of this directory
  int64_t updated = 0;
  int64_t trials = 0;          // over all runs of this directory
  double spent_s = 0;          // time of tuning, over all runs
  Json more = Json::object();  // additions of the command
};

Json to_json(const RunManifest& manifest);
Result<RunManifest> manifest_from_json(const Json& json);

/// `directory`/run.json
std::string manifest_path(const std::string& directory);
Result<RunManifest> read_manifest(const std::string& directory);
Result<Unit> write_manifest(const std::string& directory, const RunManifest& manifest);

}  // namespace pruner
