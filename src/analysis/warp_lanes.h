// The cost of one access of a warp: where its lanes read or write -> sectors of global memory,
// cycles of shared memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "space/fragment.h"

namespace pruner {

struct WarpLanes {
  explicit WarpLanes(int lanes) : count(lanes) { std::fill_n(elements.begin(), lanes, 0); }

  std::array<int64_t, kWarpLanes> elements;  // offset of each lane's first element
  int count;                                 // number of lanes
  int width = 1;                             // neighbouring elements of a lane
};

/// Whether a GPU moves so many neighbours at once: 8 or 16 bytes, in rows that they divide.
constexpr bool is_vector(int64_t width, int element_bytes, int64_t row) {
  const int64_t bytes = width * element_bytes;
  return (bytes == 4 || bytes == 8 || bytes == 16) && row % width == 0;
}

/// 32-byte sectors that the lanes touch together.
int sectors(const WarpLanes& lanes, int element_bytes);

/// Cycles of 32 banks of 4 bytes: the most words that one bank must give; lanes that read the same
/// word share it.
int bank_cycles(const WarpLanes& lanes, int element_bytes);

}  // namespace pruner
