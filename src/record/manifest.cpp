#include "record/manifest.h"

#include "support/file.h"

namespace pruner {

Json to_json(const RunManifest& m) {
  return {{"command", m.command},
          {"version", m.version},
          {"seed", m.seed},
          {"device", m.device},
          {"input", m.input},
          {"status", m.status},
          {"started", m.started},
          {"updated", m.updated},
          {"trials", m.trials},
          {"spent_s", m.spent_s},
          {"more", m.more}};
}

Result<RunManifest> manifest_from_json(const Json& json) {
  RunManifest m;
  TRY_ASSIGN(m.command, json_get<std::string>(json, "command"));
  TRY_ASSIGN(m.version, json_get<std::string>(json, "version"));
  TRY_ASSIGN(m.seed, json_get<uint64_t>(json, "seed"));
  TRY_ASSIGN(m.device, json_get<std::string>(json, "device"));
  TRY_ASSIGN(m.input, json_get<std::string>(json, "input"));
  TRY_ASSIGN(m.status, json_get<std::string>(json, "status"));
  TRY_ASSIGN(m.started, json_get<int64_t>(json, "started"));
  TRY_ASSIGN(m.updated, json_get<int64_t>(json, "updated"));
  TRY_ASSIGN(m.trials, json_get<int64_t>(json, "trials"));
  TRY_ASSIGN(m.spent_s, json_get<double>(json, "spent_s"));
  TRY_ASSIGN(m.more, json_get<Json>(json, "more"));
  return m;
}

std::string manifest_path(const std::string& directory) { return directory + "/run.json"; }

Result<RunManifest> read_manifest(const std::string& directory) {
  const std::string path = manifest_path(directory);
  TRY_ASSIGN(const std::string text, read_file(path));
  const Result<Json> json = parse_json(text);
  if (!json.ok()) return Error(path, ": ", json.error().message());
  Result<RunManifest> manifest = manifest_from_json(*json);
  if (!manifest.ok()) return Error(path, ": ", manifest.error().message());
  return manifest;
}

Result<Unit> write_manifest(const std::string& directory, const RunManifest& manifest) {
  return write_file(manifest_path(directory), to_json(manifest).dump(2) + "\n");
}

}  // namespace pruner
