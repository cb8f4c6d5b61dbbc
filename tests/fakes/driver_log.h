// Reads the calls in the fake driver's log, for tests in which each call fails once.
#pragma once

#include <map>
#include <sstream>
#include <string>

namespace pruner {

/// How often each function of the driver was called.
inline std::map<std::string, int> driver_calls(const std::string& log) {
  std::map<std::string, int> calls;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const std::string function = line.substr(0, line.find(' '));
    if (function.rfind("cu", 0) == 0) ++calls[function];
  }
  return calls;
}

/// Whether a program goes on where that call fails: it releases, or tells what can be done without.
inline bool may_fail(const std::string& function, int call) {
  for (const char* word : {"Destroy", "Free", "Unload", "Release", "Pop", "GetError", "PCIBusId"}) {
    if (function.find(word) != std::string::npos) return true;
  }
  // After the first ones, which say the arch; after those around what is made and run.
  return call > 1 && (function == "cuDeviceGetAttribute" || function == "cuCtxPushCurrent_v2");
}

/// Whether an error names the function, or what it is known by.
inline bool names(const std::string& error, const std::string& function) {
  if (error.find("memory left") != std::string::npos) return true;
  std::string name = function.substr(0, function.find("_v"));
  name = name.substr(0, name.find("WithFlags"));
  return error.find(name) != std::string::npos;
}

}  // namespace pruner
