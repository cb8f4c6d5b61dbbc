// CUDA C -> cubin or PTX by NVRTC, which is looked for when it is needed and linked to nothing; it
// needs no driver and no GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// The library that was found.
struct NvrtcVersion {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // 75 is sm_75
};

/// Looks in LD_LIBRARY_PATH, the system's folders and /usr/local/cuda*; the error says where.
Result<NvrtcVersion> find_nvrtc();
/// The first of these libraries that can be opened.
Result<NvrtcVersion> find_nvrtc(std::span<const std::string> paths);

/// The arch that code for `target` is compiled for: its own ("sm_80"), else the oldest that this
/// NVRTC knows. Errors: no NVRTC, an arch unknown to it.
Result<std::string> cuda_arch(const Target& target);

/// Returns the target with the name of its arch under which NVRTC compiles instructions that no
/// later arch has: "sm_90a" for "sm_90". Errors: cuda_arch()'s.
Result<Target> with_instructions_of_its_own(Target target);

/// Compiles for cuda_arch(). Cubins are kept in the cache folder. Errors: those, and what the
/// compiler says.
Result<std::string> compile_to_cubin(const std::string& source, const Target& target);
Result<std::string> compile_to_ptx(const std::string& source, const Target& target);

}  // namespace pruner
