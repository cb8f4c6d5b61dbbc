// Typed indices: a StageId and a SketchId do not mix. The owner of the indexed things gives them
// out.
#pragma once

#include <compare>
#include <cstdint>

namespace pruner {

template <typename Tag>
struct Id {
  int32_t value = -1;
  friend auto operator<=>(Id, Id) = default;
  bool valid() const { return value >= 0; }
};

}  // namespace pruner
