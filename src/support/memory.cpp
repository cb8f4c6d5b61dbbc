#include "support/memory.h"

#include <unistd.h>

#include <algorithm>
#include <iomanip>

#include "support/cpu_budget.h"

namespace pruner {

int64_t memory_bytes() {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const double allowed = pruner_group_limits("").memory_bytes;
  return allowed < static_cast<double>(physical) ? static_cast<int64_t>(allowed) : physical;
}

Result<Unit> check_memory(std::string_view what, double bytes) {
  const auto most = static_cast<double>(memory_bytes());
  if (bytes <= most) return Unit{};
  return Error(what,
               " needs ",
               std::fixed,
               std::setprecision(1),
               bytes / 1e9,
               " GB of memory, there are ",
               most / 1e9);
}

Result<Unit> check_unpacked(double packed_bytes, double unpacked_bytes) {
  constexpr double kMostRatio = 100, kAlways = 1 << 28;
  if (unpacked_bytes <= kAlways) return Unit{};
  if (unpacked_bytes > kMostRatio * packed_bytes)
    return Error("its ",
                 packed_bytes,
                 " bytes open to ",
                 unpacked_bytes,
                 " or more, over ",
                 kMostRatio,
                 " times as many");
  return check_memory("what it opens to", unpacked_bytes);
}

}  // namespace pruner
