// Mends of faults that made modules wrong in silence. A test takes a mend out again, to see that
// the checks of a module find the fault (tests/deploy/mend_test.cpp); nothing else does.
#pragma once

#include <cstdint>

namespace pruner {

enum class Mend : uint8_t {
  kPaddedTileStart,   // lower: a region whose tile is padded past its axis begins with the axis
  kOuterGuards,       // lower: a guard around guards is looked at before it is taken away
  kKnownExtents,      // lower: formulas of a range's programs are made of its axes' extents
  kBoxesOfConstants,  // deploy: kernels of one shape read a constant as it is stored
  kCheckedExtents     // graph: the formulas of a range are compared with imports at its shapes
};

/// Whether the mend is in; false only in a test that takes it out.
bool is_in(Mend mend);

/// Takes a mend out of this process while it lives.
class WithoutMend {
 public:
  explicit WithoutMend(Mend mend);
  WithoutMend(const WithoutMend&) = delete;
  WithoutMend& operator=(const WithoutMend&) = delete;
  ~WithoutMend();

 private:
  uint32_t before_;  // those that were out
};

}  // namespace pruner
