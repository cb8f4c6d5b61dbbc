// A server of the tests' own, on a free port of this machine.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fleet/nats_broker.h"

namespace pruner {

inline void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A port that nobody has now, nor gets from the system while a server is stopped: those begin at
/// 32768. Tests at the same time begin at others.
inline int free_port() {
  constexpr int kFirst = 10'000, kCount = 20'000, kStep = 7919;
  for (int i = 0; i < kCount; ++i) {
    const int port = kFirst + (getpid() + i * kStep) % kCount;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool is_free = bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(socket);
    if (is_free) return port;
  }
  return 0;
}

class NatsServer {
 public:
  /// Empty, or why there can be none here.
  static std::string missing() {
    if (!has_nats()) return "this build has no fleets (libnats-dev)";
    if (std::system("command -v nats-server >/dev/null") != 0) return "no nats-server here";
    return "";
  }

  /// It keeps its files in the folder.
  explicit NatsServer(std::string folder) : folder_(std::move(folder)), port_(free_port()) {}
  ~NatsServer() { stop(); }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  /// Starts the server as the file says, or open to all; `access` says how to ask for the server.
  void start(const BrokerAccess& access, const std::string& configuration = "") {
    std::vector<std::string> words = {"nats-server", "-l", folder_ + "/server.log"};
    const std::vector<std::string> open = {
        "-a", "0.0.0.0", "-p", std::to_string(port_), "-js", "-sd", folder_ + "/store"};
    const std::vector<std::string> configured = {"-c", configuration};
    const std::vector<std::string>& more = configuration.empty() ? open : configured;
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    for (int i = 0; i < 100; ++i) {
      const Result<std::unique_ptr<Broker>> there = connect_nats(access);
      // Whatever else it says, it is there.
      if (there.ok() || there.error().message().find("refused") == std::string::npos) return;
      sleep_s(0.05);
    }
    FAIL() << "the server does not answer";
  }
  void start() { start({.url = url()}); }
  void stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  std::string folder_;
  int port_;
  pid_t pid_ = -1;
};

}  // namespace pruner
