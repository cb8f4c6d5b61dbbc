// Gives tests with the label cuda-fake the fakes as a program finds them, by LD_LIBRARY_PATH.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fakes/cuda/driver_api.h"

namespace pruner {

/// A function of a library; null: there is none.
template <typename Function>
Function* fake_function(const char* library, const char* name) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return opened == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(opened, name));
}

/// A function of the driver: CU(cuInit)(0).
#define CU(name) (*pruner::fake_function<decltype(name)>("libcuda.so.1", #name))

/// The fake driver, as if this process had just begun with these settings, and its log. Cubins are
/// kept apart from those of a real compiler.
class FakeCuda {
 public:
  explicit FakeCuda(const std::string& settings = "") {
    auto* const restart = fake_function<decltype(fake_cuda_restart)>("libcuda.so.1", kRestart);
    if (restart == nullptr) {
      ADD_FAILURE() << "libcuda.so.1 is not the fake one: run this with LD_LIBRARY_PATH=" FAKES;
      std::abort();
    }
    std::string name = (std::filesystem::path(testing::TempDir()) / "fake-cuda-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    setenv("FAKE_CUDA_CACHE", FAKES "/objects", 1);
    setenv("FAKE_CUDA", settings.c_str(), 1);
    setenv("FAKE_CUDA_LOG", (folder_ / "log").c_str(), 1);
    (*restart)();
    for (const char* library : {"libnvrtc.so", "libnvidia-ml.so.1"}) {
      auto* const read = fake_function<void()>(library, "fake_read_rules");
      if (read != nullptr) (*read)();
    }
  }
  FakeCuda(const FakeCuda&) = delete;
  ~FakeCuda() {
    unsetenv("FAKE_CUDA");
    CU(fake_cuda_restart)();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Returns the log: the calls, and what was wrong.
  std::string log() const {
    std::ifstream file(folder_ / "log");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  /// The lines of the log with `words` in them.
  std::string lines(const std::string& words) const {
    std::ifstream file(folder_ / "log");
    std::string found;
    for (std::string line; std::getline(file, line);) {
      if (line.find(words) != std::string::npos) found += line + "\n";
    }
    return found;
  }
  /// Ends what the fake calls a process; the violations in it, also of leaks.
  std::string end() const {
    CU(fake_cuda_restart)();
    return lines("VIOLATION");
  }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  static constexpr const char* kRestart = "fake_cuda_restart";
  std::filesystem::path folder_;
};

}  // namespace pruner
