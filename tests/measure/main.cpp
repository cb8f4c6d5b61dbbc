// The test program is its own worker, with test_kernels in place of a CPU's compiler and loader.
#include <gtest/gtest.h>

#include <string_view>

#include "measure/build_worker.h"
#include "measure/runner.h"
#include "test_kernels.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "worker") {
    if (std::string_view(argv[2]) == "run") return pruner::serve_runs(pruner::load_test_kernel);
    if (std::string_view(argv[2]) == "device") return pruner::run_device_worker();
    return pruner::serve_builds(pruner::test_build, int64_t{1} << 30);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#ifdef __SANITIZE_ADDRESS__
// Crashes are what is tested here: they have to end a child as they do without the sanitizer.
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_abort=0:detect_leaks=0";
}
#endif
