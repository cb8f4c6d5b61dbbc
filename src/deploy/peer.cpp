#include "deploy/peer.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "deploy/peer_script.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {

namespace {

constexpr std::string_view kNoPython =
    "cannot be started; set PRUNER_PYTHON to a Python with "
    "onnxruntime and numpy";
constexpr std::string_view kLacks = "Python lacks";

std::string python() {
  const char* named = std::getenv("PRUNER_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

}  // namespace

bool lacks_peer(std::string_view message) {
  return message.find(kNoPython) != std::string_view::npos ||
         message.find(kLacks) != std::string_view::npos;
}

PeerRuntime::PeerRuntime(PeerRuntime&& other) noexcept
    : folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      fd_(std::exchange(other.fd_, -1)) {}

PeerRuntime::~PeerRuntime() {
  if (fd_ >= 0) close(fd_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Unit> PeerRuntime::spawn(const std::string& model, int threads) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error("no socket for ONNX Runtime: ", std::strerror(errno));
  fd_ = ends[0];
  std::vector<std::string> command = {python(),
                                      folder_.path("peer.py"),
                                      model,
                                      folder_.path("inputs.npz"),
                                      folder_.path("outputs.npz"),
                                      std::to_string(threads)};
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return Unit{};
  pid_ = -1;
  return Error(command[0], ": ", kNoPython, " (", std::strerror(error), ")");
}

Result<std::string> PeerRuntime::answer() {
  std::string line;
  char letter = 0;
  while (true) {
    const ssize_t n = read(fd_, &letter, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error("the process of ONNX Runtime ended without an answer");
    if (letter == '\n') return line;
    line += letter;
  }
}

Result<PeerRuntime> PeerRuntime::start(const std::string& model,
                                       std::span<const NamedTensor> inputs,
                                       int threads) {
  TRY_ASSIGN(TemporaryFolder folder, TemporaryFolder::make(""));
  PeerRuntime peer(std::move(folder));
  TRY(write_file(peer.folder_.path("peer.py"), kPeerScript));
  TRY(write_tensors(peer.folder_.path("inputs.npz"), inputs));
  TRY(peer.spawn(model, threads));
  TRY_ASSIGN(const std::string line, peer.answer());
  TRY_ASSIGN(const Json ready, parse_json(line));
  if (ready.contains("error")) return Error("onnxruntime: ", ready["error"].get<std::string>());
  TRY_ASSIGN(peer.name_, json_get<std::string>(ready, "name"));
  kill(peer.pid_, SIGSTOP);
  return peer;
}

Result<std::vector<NamedTensor>> PeerRuntime::outputs() const {
  return read_tensors(folder_.path("outputs.npz"));
}

Result<std::vector<double>> PeerRuntime::run(const BenchOptions& options) {
  const std::string request =
      fmt::format("{} {} {}\n", options.warm_up, options.min_runs, options.min_s);
  kill(pid_, SIGCONT);
  // Nothing of this length is sent in parts; a process that is gone is no SIGPIPE.
  if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return Error("the process of ONNX Runtime is gone");
  TRY_ASSIGN(const std::string line, answer());
  kill(pid_, SIGSTOP);
  TRY_ASSIGN(const Json times, parse_json(line));
  return json_value<std::vector<double>>(times, "the answer of ONNX Runtime");
}

}  // namespace pruner
