// The memory that one kernel is called with.
#pragma once

#include <vector>

#include "codegen/codegen.h"
#include "measure/workload.h"

namespace pruner {

/// Inputs are read-only: the workload's own, or constants packed as the artifact asks. Outputs and
/// workspace are filled with NaN, which also makes their pages be there.
struct KernelArguments {
  std::vector<const GuardedBuffer*> arguments;  // in the kernel's order
  std::vector<void*> pointers;                  // the same, as the kernel takes them
  std::vector<GuardedBuffer> owned;             // packed constants, outputs, workspace last
  const GuardedBuffer& workspace() const { return owned.back(); }
};

/// `input` packed by `spec`, read-only.
Result<GuardedBuffer> make_packed(const Tensor& input, const PackSpec& spec);

Result<KernelArguments> make_arguments(const Workload& workload, const Artifact& artifact);

/// Bytes of argument `i` as the kernel sees it; the workspace counts as the last.
int64_t argument_bytes(const Artifact& artifact, int i);
/// "output 0 (float32 1x56x56x64)", "the workspace": what messages call argument `i`.
std::string argument_name(const Artifact& artifact, int i);

}  // namespace pruner
