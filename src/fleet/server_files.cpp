#include "fleet/server_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "fleet/names.h"
#include "fleet/nkey.h"
#include "support/file.h"

namespace pruner {

namespace fs = std::filesystem;

// Requests of JetStream's clients are subjects, too, so that permissions are lists of subjects.
static constexpr const char* kServer = R"(# A fleet's server: nats-server -c server.conf
listen: "0.0.0.0:4222"
jetstream {{ store_dir: "{store}" }}

# Off this machine every connection should be encrypted; clients then say tls://HOST:4222 --ca ca.pem
# tls {{ cert_file: "server.pem", key_file: "server-key.pem" }}

# Workers take trials, or objects, and give results and signs of life.
WORKER = {{
  publish = [{take_trials},
             {take_objects},
             {tables}, "result.*"]
  subscribe = ["_INBOX.>"]
}}
# What builds for workers without a compiler gives objects; who trusts it has builder.pub (--trust).
BUILDER = {{
  publish = [{take_trials},
             {tables}, "result.*", "object.>"]
  subscribe = ["_INBOX.>"]
}}
# Tuners publish trials and tasks, and read results and who is there.
TUNER = {{
  publish = {{
    allow = ["trial.>", "$KV.pruner_tasks.>", "$KV.pruner_control.>", "$JS.ACK.>", "$JS.API.INFO",
             "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.>", "$JS.API.DIRECT.GET.>",
             "$JS.API.STREAM.MSG.DELETE.TRIALS", "$JS.API.STREAM.MSG.DELETE.OBJECTS", "$JS.API.CONSUMER.>"]
    deny = ["$JS.API.CONSUMER.DELETE.TRIALS.>", "$JS.API.CONSUMER.DELETE.OBJECTS.>"]
  }}
  subscribe = ["_INBOX.>", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>"]
}}
authorization {{
  users = [
    {{ nkey: {admin} }}
    {{ nkey: {tuner}, permissions: $TUNER }}
    {{ nkey: {worker}, permissions: $WORKER }}
    {{ nkey: {builder}, permissions: $BUILDER }}
  ]
}}
)";

// PrivateTmp, ProtectSystem=strict and NoNewPrivileges come with DynamicUser.
static constexpr const char* kUnit =
    R"(# /etc/systemd/system/pruner-worker.service: with the server's address in place of SERVER, and
# ca.pem and worker.key in /etc/pruner, which root alone has to read:
#   systemctl enable --now pruner-worker
[Unit]
Description=Measures for a fleet of Pruner
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/pruner worker --server tls://SERVER:4222 --ca ${CREDENTIALS_DIRECTORY}/ca.pem --key ${CREDENTIALS_DIRECTORY}/worker.key
LoadCredential=ca.pem:/etc/pruner/ca.pem
LoadCredential=worker.key:/etc/pruner/worker.key
DynamicUser=true
KillMode=mixed
# SIGTERM ends it in good order.
SuccessExitStatus=143
Restart=on-failure
RestartSec=30

[Install]
WantedBy=multi-user.target
)";

// Workers read tasks and what they are told, and say that they are here.
static constexpr const char* kTables = R"("$KV.pruner_workers.>",
             "$JS.API.STREAM.INFO.KV_pruner_tasks", "$JS.API.STREAM.INFO.KV_pruner_workers",
             "$JS.API.STREAM.INFO.KV_pruner_control", "$JS.API.STREAM.MSG.GET.KV_pruner_tasks",
             "$JS.API.STREAM.MSG.GET.KV_pruner_control", "$JS.API.DIRECT.GET.KV_pruner_tasks.>",
             "$JS.API.DIRECT.GET.KV_pruner_control.>")";

// Returns the subjects that a client asks the server for to take messages of a stream.
static std::string takes(const char* stream) {
  return fmt::format(R"("$JS.API.CONSUMER.INFO.{0}.>", "$JS.API.CONSUMER.CREATE.{0}.>",
             "$JS.API.CONSUMER.DURABLE.CREATE.{0}.>", "$JS.API.CONSUMER.MSG.NEXT.{0}.>", "$JS.ACK.{0}.>")",
                     stream);
}

static Result<std::string> write_key(const fs::path& path) {
  TRY_ASSIGN(const NKey key, make_nkey());
  const mode_t before = umask(S_IRWXG | S_IRWXO);
  const Result<Unit> written = write_file(path.string(), key.seed + "\n");
  umask(before);
  if (!written.ok()) return written.error();
  return key.public_key;
}

Result<Unit> write_server_files(const std::string& folder) {
  const fs::path dir(folder);
  std::error_code code;
  fs::create_directories(dir, code);
  if (code) return Error(folder, ": cannot be made: ", code.message());
  for (const char* name :
       {"server.conf", "admin.key", "tuner.key", "worker.key", "builder.key", "builder.pub"})
    if (fs::exists(dir / name)) return Error((dir / name).string(), " is there already");
  TRY_ASSIGN(const std::string admin, write_key(dir / "admin.key"));
  TRY_ASSIGN(const std::string tuner, write_key(dir / "tuner.key"));
  TRY_ASSIGN(const std::string worker, write_key(dir / "worker.key"));
  TRY_ASSIGN(const std::string builder, write_key(dir / "builder.key"));
  TRY(write_file((dir / "builder.pub").string(), builder + "\n"));
  TRY(write_file((dir / "pruner-worker.service").string(), kUnit));
  return write_file((dir / "server.conf").string(),
                    fmt::format(kServer,
                                fmt::arg("store", fs::absolute(dir / "store").string()),
                                fmt::arg("take_trials", takes(fleet::kTrials)),
                                fmt::arg("take_objects", takes(fleet::kObjects)),
                                fmt::arg("tables", kTables),
                                fmt::arg("admin", admin),
                                fmt::arg("tuner", tuner),
                                fmt::arg("worker", worker),
                                fmt::arg("builder", builder)));
}

}  // namespace pruner
