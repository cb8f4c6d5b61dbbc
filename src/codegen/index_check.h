// A GPU's kernel that looks at a tensor of indices before another kernel reads at them: the host
// does not see what lies on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/codegen.h"

namespace pruner {

/// Holds the facts about a tensor of indices that its check depends on.
struct IndexCheck {
  int64_t count = 0;             // elements
  int64_t element_bytes = 0;     // 4 or 8
  std::vector<int64_t> extents;  // in turn, each index must be a place of one of these extents
  bool from_end = false;         // an index below 0 counts from the end
  friend auto operator<=>(const IndexCheck&, const IndexCheck&) = default;
};

/// Compiles the check for a GPU's target. The kernel takes three arguments: the indices; a copy of
/// the indices to write, with the nearest place for each that is out of range; and a word of 8
/// bytes, in which an index out of range is left (1 for an index of 0) if there is one. Errors:
/// those of compile().
Result<Artifact> compile_index_check(const IndexCheck& check, const Target& target);

}  // namespace pruner
