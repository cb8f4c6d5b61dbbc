#include "rules.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace fakes {
namespace {

constexpr const char* kPrefix = FAKE_PREFIX;  // begins the names of this library's functions

[[noreturn]] void refuse(const std::string& word, const char* why) {
  fprintf(stderr, "FAKE_CUDA: \"%s\": %s\n", word.c_str(), why);
  abort();
}

int64_t number(const std::string& word, const std::string& text) {
  char* end = nullptr;
  const long long value = strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse(word, "a number is expected");
  return value;
}

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string without_version(const std::string& name) {
  const size_t end = name.rfind("_v");
  return end == std::string::npos ? name : name.substr(0, end);
}

}  // namespace

Rules& Rules::get() {
  static Rules* const rules = [] {
    auto* read = new Rules;  // stays: calls come until the process ends
    read->read();
    return read;
  }();
  return *rules;
}

__attribute__((constructor)) static void read_when_loaded() { Rules::get(); }

void Rules::read() {
  *this = Rules();
  log_path_ = environment("FAKE_CUDA_LOG");
  once_path_ = environment("FAKE_CUDA_ONCE");
  std::stringstream words(environment("FAKE_CUDA"));
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) parse(word);
  }
  hide_functions(settings_.lacks);
}

void Rules::parse(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  const size_t at = name.find('@');
  if (at != std::string::npos) {
    Rule rule{name.substr(0, at), 0, {}};
    if (name.substr(at + 1) != "*") rule.call = number(word, name.substr(at + 1));
    if (value == "hang") {
      rule.fate.kind = Fate::kHangs;
    } else if (value == "exit") {
      rule.fate.kind = Fate::kKills;
    } else {
      rule.fate = {Fate::kFails, static_cast<int>(number(word, value))};
    }
    // "cu" begins the functions of none but the driver.
    if (rule.function.rfind(kPrefix, 0) != 0) return;
    if (find_function(rule.function) == nullptr) refuse(word, "there is no such function");
    rules_.push_back(rule);
  } else if (name == "devices") {
    settings_.devices = static_cast<int>(number(word, value));
  } else if (name == "arch") {
    settings_.archs.clear();
    std::stringstream archs(value);
    for (std::string arch; std::getline(archs, arch, '+');) {
      settings_.archs.push_back(static_cast<int>(number(word, arch)));
    }
    if (settings_.archs.empty()) refuse(word, "a number is expected");
  } else if (name == "memory") {
    settings_.memory_bytes = static_cast<uint64_t>(number(word, value));
  } else if (name == "version") {
    settings_.version = static_cast<int>(number(word, value));
  } else if (name == "throttle") {
    settings_.throttled_reads = static_cast<int>(number(word, value));
  } else if (name == "busy") {
    settings_.busy = true;
  } else if (name == "lacks") {
    settings_.lacks.push_back(value);
  } else {
    refuse(word, "this is no setting");
  }
}

int Rules::arch(int device) const {
  const auto& archs = settings_.archs;
  const auto last = static_cast<int>(archs.size()) - 1;
  return archs[static_cast<size_t>(device < last ? device : last)];
}

Fate Rules::next(const std::string& function) {
  const int64_t count = ++calls_[without_version(function)];
  for (const Rule& rule : rules_) {
    if (without_version(rule.function) != without_version(function)) continue;
    if ((rule.call == 0 || rule.call == count) && is_ours()) return rule.fate;
  }
  return {};
}

int64_t Rules::calls(const std::string& function) const {
  const auto found = calls_.find(without_version(function));
  return found == calls_.end() ? 0 : found->second;
}

// FAKE_CUDA_ONCE names a file: it belongs to the first process that makes it, when its turn to fail
// has come.
bool Rules::is_ours() const {
  if (once_path_.empty()) return true;
  const int file = open(once_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    dprintf(file, "%d\n", getpid());
    close(file);
    return true;
  }
  int owner = 0;
  std::ifstream(once_path_) >> owner;
  return owner == getpid();
}

void Rules::log(const std::string& line) const {
  if (log_path_.empty()) return;
  const int file =
      open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const std::string text = line + "\n";
  if (write(file, text.data(), text.size()) < 0) perror("FAKE_CUDA_LOG");
  close(file);
}

void Rules::violation(const std::string& what) {
  ++violations_;
  if (log_path_.empty()) fprintf(stderr, "VIOLATION %s\n", what.c_str());
  log("VIOLATION " + what);
}

void end_in(const Fate& fate, const std::string& line) {
  Rules::get().log(line + (fate.kind == Fate::kHangs ? " -> hang" : " -> exit"));
  if (fate.kind == Fate::kKills) kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace fakes

// Reads the environment again and counts calls from the beginning; only the fakes have this call.
FAKE_EXPORT void fake_read_rules() { fakes::Rules::get().read(); }
