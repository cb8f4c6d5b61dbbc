#include "codegen/cuda/nvrtc.h"

#include "golden.h"

namespace pruner {
namespace {

TEST(FindNvrtc, SaysWhatToInstallWhereThereIsNone) {
  const std::string paths[] = {"/nowhere/libnvrtc.so", "libnvrtc.so.0"};
  EXPECT_ERROR(find_nvrtc(paths),
               "no CUDA toolkit: libnvrtc.so is neither in LD_LIBRARY_PATH nor in "
               "/usr/local/cuda*/lib64; install CUDA's NVRTC (cuda-nvrtc) or set LD_LIBRARY_PATH");
}

TEST(FindNvrtc, SaysThatALibraryIsNone) {
  const std::string paths[] = {"libm.so.6"};
  EXPECT_ERROR(find_nvrtc(paths), "; CUDA 11.2 or newer is needed");
}

}  // namespace
}  // namespace pruner
