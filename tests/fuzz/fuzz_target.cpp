#include "fuzz/fuzz_target.h"

#include <filesystem>

#include "support/check.h"
#include "support/file.h"
#include "support/log.h"

using pruner::read_input;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_input({reinterpret_cast<const char*>(data), size});
  return 0;
}

// The seeds become files of the first folder that is named, as libFuzzer reads them.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  spdlog::set_level(spdlog::level::off);
  const std::vector<std::string> seeds = pruner::seeds();
  for (size_t i = 0; i < seeds.size(); ++i)
    CHECK(read_input(seeds[i])) << "seed " << i << " is not read: " << seeds[i];
  for (int a = 1; a < *argc; ++a) {
    const std::filesystem::path folder = (*argv)[a];
    if (!is_directory(folder)) continue;
    for (size_t i = 0; i < seeds.size(); ++i)
      CHECK(pruner::write_file(folder / ("seed_" + std::to_string(i)), seeds[i]).ok());
    break;
  }
  return 0;
}
