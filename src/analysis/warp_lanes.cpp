#include "analysis/warp_lanes.h"

#include <algorithm>

#include "support/ceil_div.h"
#include "target/machine_model.h"

namespace pruner {

// The lanes' elements ascending, and none before 0.
static std::array<int64_t, kWarpLanes> ordered(const WarpLanes& lanes) {
  std::array<int64_t, kWarpLanes> starts = lanes.elements;
  const auto end = starts.begin() + lanes.count;
  if (!std::is_sorted(starts.begin(), end)) std::sort(starts.begin(), end);
  if (starts[0] >= 0) return starts;
  const int64_t lines = ceil_div(-starts[0], kWarpLanes);
  for (int64_t& start : starts) start += lines * kWarpLanes;
  return starts;
}

int sectors(const WarpLanes& lanes, int element_bytes) {
  const std::array<int64_t, kWarpLanes> starts = ordered(lanes);
  int64_t last = -1;  // sector that is counted already
  int count = 0;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const int64_t begin = starts[lane] * element_bytes;
    const int64_t first = std::max(last + 1, begin / kGpuModel.sector_bytes);
    const int64_t end = (begin + int64_t{lanes.width} * element_bytes - 1) / kGpuModel.sector_bytes;
    if (end < first) continue;
    count += static_cast<int>(end - first + 1);
    last = end;
  }
  return std::max(1, count);
}

int bank_cycles(const WarpLanes& lanes, int element_bytes) {
  const std::array<int64_t, kWarpLanes> starts = ordered(lanes);
  std::array<int, kGpuModel.banks> words{};
  int64_t last = -1;
  for (int lane = 0; lane < lanes.count; ++lane) {
    const int64_t begin = starts[lane] * element_bytes;
    const int64_t end = (begin + int64_t{lanes.width} * element_bytes - 1) / kGpuModel.bank_bytes;
    for (int64_t word = std::max(last + 1, begin / kGpuModel.bank_bytes); word <= end; ++word)
      ++words[word % kGpuModel.banks];
    last = std::max(last, end);
  }
  return std::max(1, *std::max_element(words.begin(), words.end()));
}

}  // namespace pruner
