// label: slow
// A fleet on this machine: a real server, workers and tuners as processes, each of them killed.
// PRUNER_FLEET_MOMENTS=200 in the environment makes the random kills as many.
#include <ifaddrs.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "cli/run_program.h"
#include "fleet/fleet_measurer.h"
#include "fleet/names.h"
#include "fleet/nats_server.h"
#include "golden.h"
#include "record/record.h"
#include "support/file.h"
#include "support/json.h"
#include "support/rng.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// An address of this machine that is not the loopback's; empty: it has none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  std::string found;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(
        AF_INET, &reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr, text, sizeof text);
    if (!std::string(text).starts_with("127.")) found = text;
  }
  freeifaddrs(all);
  return found;
}

struct Fleet : testing::Test {
  void SetUp() override {
    if (const std::string why = NatsServer::missing(); !why.empty()) GTEST_SKIP() << why;
    dir = (fs::temp_directory_path() / ("pruner_fleet_" + std::to_string(getpid()))).string();
    fs::remove_all(dir);
    fs::create_directories(dir);
    server.emplace(dir);
    url = server->url();
    start_server();
    const ProgramRun made = run_program({"fleet", "init", "--server", url});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  void TearDown() override {
    for (StartedProgram& worker : workers) {
      kill(worker.pid, SIGKILL);
      worker.wait();
    }
    server.reset();
    if (!dir.empty()) fs::remove_all(dir);
  }

  void start_server(const std::string& configuration = "") {
    server->start(access(), configuration);
  }

  /// The command of a worker that measures on the first core.
  Strings worker(const std::string& name) const {
    return {"worker", "--server", url, "--device", "cpu:0", "--name", name, "--most-drift", "100"};
  }
  /// ... that takes code.
  Strings runs_code(const std::string& name) const { return with(worker(name), {"--role", "run"}); }
  StartedProgram& start_worker(const std::string& name) {
    workers.push_back(start_program(worker(name)));
    return workers.back();
  }
  void wait_for_workers(size_t count) {
    for (int i = 0; i < 400; ++i) {
      Result<std::unique_ptr<Broker>> broker = connect_nats(access());
      if (broker.ok()) {
        const Result<std::vector<WorkerState>> all = list_workers(**broker);
        if (all.ok() && all->size() >= count) return;
      }
      sleep_s(0.05);
    }
    FAIL() << "the workers do not come";
  }

  BrokerAccess access() const { return {.url = url, .ca_file = ca_file}; }

  static Strings search(const std::string& op, const std::string& folder, int trials) {
    return {"tune",
            "--op",
            op,
            "--model",
            "draft-only",
            "--work-dir",
            folder,
            "--n-trials",
            std::to_string(trials)};
  }
  static Strings with(Strings arguments, const Strings& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Strings tune(int trials) const {
    return with(search("matmul 64 64 64", dir + "/out", trials),
                {"--threads", "1", "--fleet", url});
  }

  // The records of the search: none twice, none torn.
  std::vector<Record> records() const {
    const Result<RecordFile> file = read_records(dir + "/out/records.json");
    EXPECT_TRUE(file.ok());
    if (!file.ok()) return {};
    EXPECT_EQ(file->skipped, 0) << file->first_skipped;
    std::vector<Record> searched;
    std::set<std::string> lines;
    for (const Record& record : file->records) {
      EXPECT_TRUE(lines.insert(print_line(record)).second) << print_line(record);
      if (record.origin == "search") searched.push_back(record);
    }
    return searched;
  }

  std::string dir, url, ca_file;
  std::optional<NatsServer> server;
  std::vector<StartedProgram> workers;
};

TEST_F(Fleet, MeasuresWhatIsMeasuredHere) {
  start_worker("one");
  start_worker("two");
  wait_for_workers(2);
  const ProgramRun run = run_program(tune(24));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Record> found = records();
  EXPECT_EQ(found.size(), 24u);
  for (const Record& record : found) EXPECT_TRUE(record.result.ok()) << record.result.error_text;
  // The first round of the same seed is the same.
  const ProgramRun local =
      run_program(with(search("matmul 64 64 64", dir + "/local", 24), {"--threads", "1"}));
  ASSERT_EQ(local.exit_code, 0) << local.err;
  const Result<RecordFile> here = read_records(dir + "/local/records.json");
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(here->records.at(0).decisions, found.at(0).decisions);
  const ProgramRun status = run_program({"fleet", "status", "--server", url});
  EXPECT_NE(status.out.find("one"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("0 messages wait, 0 are measured"), std::string::npos) << status.out;
  const ProgramRun drained = run_program({"fleet", "drain", "--server", url});
  EXPECT_EQ(drained.out, "2 workers end when they have measured what they have\n");
  int64_t trials = 0;
  for (StartedProgram& worker : workers) {
    const ProgramRun end = worker.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    trials += std::atoi(end.out.substr(std::string("measured ").size()).c_str());
  }
  workers.clear();
  EXPECT_GE(trials, 24);
}

// A worker of another kind takes none of the trials.
TEST_F(Fleet, TrialsGoToTheirKind) {
  if (run_program({"devices", "list"}).out.find("\n  opencl  ") == std::string::npos)
    GTEST_SKIP() << "no OpenCL device here";
  workers.push_back(
      start_program({"worker", "--server", url, "--device", "opencl:0", "--name", "gpu"}));
  start_worker("cpu");
  wait_for_workers(2);
  const ProgramRun run = run_program(
      with(search("matmul 32 32 32", dir + "/out", 4), {"--target", "opencl", "--fleet", url}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Record> found = records();
  EXPECT_EQ(found.size(), 4u);
  for (const Record& record : found) EXPECT_TRUE(record.result.ok()) << record.result.error_text;
  const Json status = Json::parse(run_program({"fleet", "status", "--server", url, "--json"}).out);
  for (const Json& worker : status["workers"])
    EXPECT_TRUE(worker["name"] == "gpu" || worker["trials"] == 0) << worker;
}

// Each of the three dies at random moments; in the end every trial is there once.
TEST_F(Fleet, LosesNothingWhoeverIsKilled) {
  const char* text = std::getenv("PRUNER_FLEET_MOMENTS");
  const int moments = text == nullptr ? 6 : std::atoi(text);
  constexpr int kTrials = 48;
  Rng rng(7);
  for (int done = 0, round = 0; done < moments; ++round) {
    fs::remove_all(dir + "/out");
    start_worker("a" + std::to_string(round));
    start_worker("b" + std::to_string(round));
    wait_for_workers(2);
    StartedProgram tuner = start_program(tune(kTrials));
    for (int i = 0; i < 3; ++i, ++done) {
      sleep_s(0.3 + rng.uniform() * 0.7);
      if (i == 0) {
        const size_t which = workers.size() - 1 - rng.below(2);
        kill(workers[which].pid, SIGKILL);
        workers[which].wait();
        workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(which));
        start_worker("c" + std::to_string(round));
      } else if (i == 1) {
        server->stop();
        sleep_s(rng.uniform());
        start_server();
      } else {
        kill(tuner.pid, SIGKILL);
        tuner.wait();
      }
    }
    const ProgramRun end = run_program(tune(kTrials));
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(records().size(), static_cast<size_t>(kTrials));
    for (StartedProgram& worker : workers) {
      kill(worker.pid, SIGKILL);
      worker.wait();
    }
    workers.clear();
  }
}

TEST_F(Fleet, LeavesOutWhatIsForged) {
  start_worker("one");
  wait_for_workers(1);
  Result<std::unique_ptr<Broker>> broker = connect_nats({.url = url});
  ASSERT_TRUE(broker.ok()) << broker.error().message();
  const Result<std::vector<WorkerState>> all = list_workers(**broker);
  ASSERT_TRUE(all.ok());
  const std::string kind = all->at(0).kind;
  const auto go_on = [] { return false; };
  for (const std::string bad :
       {"",
        "{}",
        "{\"v\":1}",
        "{\"v\":9}",
        "\xff\xfe",
        "{\"v\":1,\"id\":\"x.1\",\"task\":\"none\",\"candidates\":[{\"sketch\":99,"
        "\"decisions\":[1]}],\"best_s\":1,\"options\":{}}"})
    ASSERT_TRUE(
        (*broker)->publish(fleet::trial_subject(kind, "forged"), "f" + bad, bad, go_on).ok());
  StartedProgram tuner = start_program(tune(16));
  std::string run;
  for (int i = 0; i < 200 && run.empty(); ++i, sleep_s(0.02))
    if (const Result<std::string> name = read_file(dir + "/out/fleet_run"); name.ok()) run = *name;
  for (const std::string bad : {"", "{}", "{\"v\":1,\"id\":\"x\"}"})
    ASSERT_TRUE((*broker)->publish(fleet::result_subject(run), "r" + bad, bad, go_on).ok());
  const ProgramRun end = tuner.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(records().size(), 16u);
}

// A result that somebody sends again under another name is of no trial.
TEST_F(Fleet, TakesNoResultTwice) {
  start_worker("one");
  wait_for_workers(1);
  Result<std::unique_ptr<Broker>> broker = connect_nats({.url = url});
  ASSERT_TRUE(broker.ok()) << broker.error().message();
  StartedProgram tuner = start_program(tune(40));
  std::string run;
  for (int i = 0; i < 200 && run.empty(); ++i, sleep_s(0.02))
    if (const Result<std::string> name = read_file(dir + "/out/fleet_run"); name.ok()) run = *name;
  Result<std::unique_ptr<Queue>> results =
      (*broker)->open_queue(fleet::kResults, fleet::result_subject(run), "spy", 30, -1);
  ASSERT_TRUE(results.ok()) << results.error().message();
  int again = 0;
  for (int i = 0; i < 50 && again < 6; ++i) {
    Result<Leases> taken = (*results)->take(1, 0.2);
    ASSERT_TRUE(taken.ok());
    for (const std::unique_ptr<Lease>& lease : *taken) {
      const std::string name = "again" + std::to_string(++again);
      ASSERT_TRUE(
          (*broker)
              ->publish(fleet::result_subject(run), name, lease->bytes(), [] { return false; })
              .ok());
      ASSERT_TRUE(lease->done().ok());
    }
  }
  EXPECT_GT(again, 0);
  const ProgramRun end = tuner.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(records().size(), 40u);
}

// One worker makes the code and signs it, another runs it, as on a board without a compiler.
TEST_F(Fleet, OneBuildsWhatAnotherRuns) {
  const std::string files = dir + "/files";
  ASSERT_EQ(run_program({"fleet", "init", "--files", files}).exit_code, 0);
  const Strings board = runs_code("board");
  EXPECT_EQ(run_program(board).err,
            "pruner: --role run: give --trust FILE, the public keys of those whose code is run "
            "here\n");
  workers.push_back(start_program(with(board, {"--trust", files + "/builder.pub"})));
  wait_for_workers(1);
  EXPECT_NE(run_program(tune(16)).err.find("take code, and none makes it"), std::string::npos);
  const Json status = Json::parse(run_program({"fleet", "status", "--server", url, "--json"}).out);
  const std::string kind = status["workers"][0]["kind"];
  const Strings builder = {
      "worker", "--server", url, "--name", "builder", "--role", "build", "--kind", kind};
  EXPECT_NE(run_program(builder).err.find("give --kind, whose workers run the code, and --key"),
            std::string::npos);
  // Whom the board does not trust builds for nothing.
  StartedProgram stranger =
      start_program(with(builder, {"--key", files + "/worker.key", "--name", "stranger"}));
  wait_for_workers(2);
  StartedProgram tuner = start_program(tune(16));
  sleep_s(2);
  EXPECT_EQ(records().size(), 0u);
  kill(tuner.pid, SIGKILL);
  tuner.wait();
  kill(stranger.pid, SIGKILL);
  stranger.wait();

  workers.push_back(start_program(with(builder, {"--key", files + "/builder.key"})));
  wait_for_workers(3);
  fs::remove_all(dir + "/out");
  const ProgramRun run = run_program(tune(24));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Record> found = records();
  EXPECT_EQ(found.size(), 24u);
  for (const Record& record : found) EXPECT_TRUE(record.result.ok()) << record.result.error_text;
}

// Over an encrypted connection, of which the server's certificate is looked at.
TEST_F(Fleet, CertificatesAreLookedAt) {
  if (std::system("command -v openssl >/dev/null") != 0) GTEST_SKIP() << "no openssl here";
  const std::string files = dir + "/tls", conf = dir + "/tls.conf";
  fs::create_directories(files);
  const auto make = [&](const std::string& command) {
    const std::string all = "cd " + files + " && " + command + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(all.c_str()), 0) << command;
  };
  const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
  for (const std::string ca : {"ca", "other"})
    make("openssl req -x509 " + key + " -keyout " + ca + ".key -out " + ca +
         ".pem -subj /CN=" + ca + " -days 2");
  make("openssl req " + key + " -keyout server.key -out server.csr -subj /CN=fleet");
  make("echo subjectAltName=DNS:localhost > names; echo subjectAltName=DNS:elsewhere > others");
  const std::string sign =
      "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial ";
  make(sign + "-days 1 -extfile names -out good.pem");
  make(sign + "-days -1 -extfile names -out old.pem");
  make(sign + "-days 1 -extfile others -out named.pem");
  const auto serve = [&](const std::string& certificate) {
    server->stop();
    ASSERT_TRUE(write_file(conf,
                           "listen: \"127.0.0.1:" + std::to_string(server->port()) +
                               "\"\njetstream { store_dir: \"" + dir + "/store\" }\n" +
                               "tls { cert_file: \"" + files + "/" + certificate +
                               "\", key_file: \"" + files + "/server.key\" }\n")
                    .ok());
    start_server(conf);
  };
  url = "tls://localhost:" + std::to_string(server->port());
  const auto status = [&](const std::string& ca) {
    return run_program({"fleet", "status", "--server", url, "--ca", files + "/" + ca});
  };
  ca_file = files + "/ca.pem";
  serve("good.pem");
  EXPECT_EQ(status("ca.pem").out, "no worker is here\n") << status("ca.pem").err;
  workers.push_back(start_program(with(worker("one"), {"--ca", ca_file})));
  wait_for_workers(1);
  const ProgramRun run = run_program(with(tune(8), {"--ca", ca_file}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(records().size(), 8u);

  const auto refused = [&](const std::string& ca, const std::string& why) {
    const ProgramRun end = status(ca);
    EXPECT_EQ(end.exit_code, 2) << end.out;
    EXPECT_NE(end.err.find(why), std::string::npos) << end.err;
    EXPECT_EQ(std::ranges::count(end.err, '\n'), 1) << end.err;
  };
  refused("other.pem", "certificate");
  refused("none.pem", "none.pem");
  serve("old.pem");
  refused("ca.pem", "expired");
  serve("named.pem");
  refused("ca.pem", "ame");  // hostname mismatch
}

TEST_F(Fleet, KeysSayWhoMayDoWhat) {
  server->stop();
  const std::string files = dir + "/files", conf = files + "/server.conf";
  ASSERT_EQ(run_program({"fleet", "init", "--files", files}).exit_code, 0);
  for (const char* key : {"admin.key", "tuner.key", "worker.key", "builder.key"})
    EXPECT_EQ(fs::status(files + "/" + key).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
  const ProgramRun again = run_program({"fleet", "init", "--files", files});
  EXPECT_EQ(again.err, "pruner: " + conf + " is there already\n");
  std::string text = *read_file(conf);
  const std::string listen = "0.0.0.0:4222";
  text.replace(text.find(listen), listen.size(), "127.0.0.1:" + std::to_string(server->port()));
  ASSERT_TRUE(write_file(conf, text).ok());
  start_server(conf);

  const auto with_key = [&](const Strings& arguments, const std::string& key) {
    return with(arguments, {"--key", files + "/" + key});
  };
  const Strings status = {"fleet", "status", "--server", url},
                init = {"fleet", "init", "--server", url};
  EXPECT_NE(run_program(status).err.find("Authorization Violation"), std::string::npos);
  EXPECT_NE(run_program(with_key(init, "server.conf")).err.find("no seed of a user's nkey"),
            std::string::npos);
  EXPECT_EQ(run_program(with_key(init, "worker.key")).exit_code, 2);
  ASSERT_EQ(run_program(with_key(init, "admin.key")).exit_code, 0);
  workers.push_back(start_program(with_key(worker("one"), "worker.key")));
  for (int i = 0; i < 200; ++i, sleep_s(0.05))
    if (run_program(with_key(status, "tuner.key")).out.starts_with("one")) break;
  const ProgramRun run = run_program(with_key(tune(16), "tuner.key"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(records().size(), 16u);
  // With the two halves of a worker.
  kill(workers.back().pid, SIGKILL);
  workers.back().wait();
  workers.pop_back();
  workers.push_back(start_program(
      with_key(with(runs_code("board"), {"--trust", files + "/builder.pub"}), "worker.key")));
  const auto wait_for = [&](const std::string& name) {
    Json found;
    for (int i = 0; i < 200 && found.is_null(); ++i, sleep_s(0.05)) {
      const Json all =
          Json::parse(run_program(with_key(with(status, {"--json"}), "tuner.key")).out);
      for (const Json& worker : all["workers"])
        if (worker["name"] == name) found = worker;
    }
    return found;
  };
  const Json board = wait_for("board");
  ASSERT_FALSE(board.is_null());
  workers.push_back(start_program(with_key(
      {"worker", "--server", url, "--name", "builder", "--role", "build", "--kind", board["kind"]},
      "builder.key")));
  ASSERT_FALSE(wait_for("builder").is_null());
  fs::remove_all(dir + "/out");
  const ProgramRun both = run_program(with_key(tune(16), "tuner.key"));
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(records().size(), 16u);
}

TEST_F(Fleet, SaysWhatIsWrong) {
  const auto error = [&](const Strings& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    return run.err;
  };
  const std::string nobody = "nats://127.0.0.1:" + std::to_string(free_port());
  EXPECT_EQ(error({"fleet", "status", "--server", nobody}),
            "pruner: " + nobody + ": Connection refused\n");
  EXPECT_EQ(error({"fleet", "status"}), "pruner: give --server nats://HOST:4222\n");
  EXPECT_EQ(error({"fleet", "status", "--server", "http://x"}),
            "pruner: \"http://x\" is no server's address, expected nats://HOST:4222 or "
            "tls://HOST:4222\n");
  EXPECT_NE(error(tune(8)).find("no worker of kind "), std::string::npos);
  start_worker("one");
  wait_for_workers(1);
  const Json status = Json::parse(run_program({"fleet", "status", "--server", url, "--json"}).out);
  const std::string kind = status["workers"][0]["kind"];
  const Strings other = with(search("matmul 64 64 64", dir + "/out", 8),
                             {"--threads", "2", "--fleet", url, "--kind", kind});
  EXPECT_NE(error(other).find("with --threads 1, this run is for"), std::string::npos);
  // A worker of another build of the program.
  Result<std::unique_ptr<Broker>> broker = connect_nats({.url = url});
  ASSERT_TRUE(broker.ok());
  WorkerState state = *parse_worker(**(*broker)->get(fleet::kWorkers, "one"));
  state.name = "old";
  state.kind = "of-old";
  state.program = "another";
  ASSERT_TRUE((*broker)->put(fleet::kWorkers, state.name, print(state)).ok());
  EXPECT_NE(error(with(tune(8), {"--kind", "of-old"})).find("is another build of pruner than this"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(dir + "/out/records.json") &&
               fs::file_size(dir + "/out/records.json") > 0);
  EXPECT_EQ(
      error({"worker", "--server", url, "--device", "gpu:x"}),
      "pruner: --device: \"gpu:x\" is no device of this machine, expected cpu:0-7,... or cuda:0\n");
  EXPECT_EQ(error({"fleet", "drain", "--server", url, "nobody"}),
            "pruner: no worker \"nobody\" is here\n");
  if (const std::string outer = outer_address(); !outer.empty()) {
    const std::string elsewhere = "nats://" + outer + ":" + std::to_string(server->port());
    const ProgramRun run = run_program({"fleet", "status", "--server", elsewhere});
    // A server of 2.11.16 or newer is taken.
    if (run.exit_code != 0) {
      EXPECT_NE(run.err.find("has known holes: take 2.11.16 or newer"), std::string::npos)
          << run.err;
    }
    EXPECT_EQ(
        run_program({"fleet", "status", "--server", elsewhere, "--insecure-server"}).exit_code, 0);
  }
}

}  // namespace
}  // namespace pruner
