// layer: target
// The text of --target -> a target, which prints as what is read again.
#include "fuzz/fuzz_target.h"
#include "support/check.h"
#include "target/device_file.h"

namespace pruner {

std::vector<std::string> seeds() {
  std::vector<std::string> texts = {"llvm",
                                    "llvm -mcpu=haswell --threads=2",
                                    "llvm -mtriple=aarch64-linux-gnu",
                                    "cuda --arch=sm_80",
                                    "cuda --model=a100",
                                    "cuda -keys=cuda,gpu -arch=sm_70 -max_num_threads=1024",
                                    "opencl"};
  for (const DeviceFile& file : device_files()) {
    const Result<Target> target = read_device(std::string(file.name));
    CHECK(target.ok());
    texts.push_back(print(*target));
  }
  return texts;
}

bool read_input(std::string_view bytes) {
  const Result<Target> target = parse_target(bytes, 0);
  if (!target.ok()) return false;
  const std::string text = print(*target);
  const Result<Target> again = parse_target(text, 0);
  CHECK(again.ok() && print(*again) == text) << text;
  CHECK(!device_fingerprint(*target).empty());
  return true;
}

}  // namespace pruner
