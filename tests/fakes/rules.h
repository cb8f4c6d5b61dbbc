// The environment tells the fakes (README.md) what the devices are, which calls fail and how, and
// where the log is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fakes {

struct Settings {
  int devices = 1;
  std::vector<int> archs = {80};  // one per device; the last one holds for all further devices
  uint64_t memory_bytes = uint64_t{8} << 30;
  int version = 12040;
  int throttled_reads = 0;
  bool busy = false;
  std::vector<std::string> lacks;
};

/// `Fate` is what becomes of a call.
struct Fate {
  enum { kRuns, kFails, kHangs, kKills } kind = kRuns;
  int status = 0;  // status of a call that fails
};

class Rules {
 public:
  /// Returns the rules of this library, which were read when it was loaded.
  static Rules& get();

  /// Reads the environment again and counts from the beginning.
  void read();
  const Settings& settings() const { return settings_; }
  int arch(int device) const;
  /// Counts a call.
  Fate next(const std::string& function);
  /// Returns how often the function was called until now.
  int64_t calls(const std::string& function) const;

  void log(const std::string& line) const;
  void violation(const std::string& what);
  int violations() const { return violations_; }

 private:
  struct Rule {
    std::string function;
    int64_t call;  // 0: each
    Fate fate;
  };

  void parse(const std::string& word);
  bool is_ours() const;

  Settings settings_;
  std::vector<Rule> rules_;
  std::map<std::string, int64_t> calls_;
  std::string log_path_, once_path_;
  int violations_ = 0;
};

/// Logs the call that hangs or kills, and does so.
[[noreturn]] void end_in(const Fate& fate, const std::string& line);

/// Makes dlsym() find these functions of this library no more, and all others again.
void hide_functions(const std::vector<std::string>& names);
/// An exported function of this library by its name, with or without "_v2" at its end.
void* find_function(const std::string& name);

}  // namespace fakes

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
