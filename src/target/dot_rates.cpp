#include "target/dot_rates.h"

#include <sstream>
#include <string>

#include "target/cpu_table.h"

namespace pruner {

bool has_dots(const Target& target, const DotRateRow& row) {
  if (target.is_gpu()) return false;
  if (target.features.empty()) {
    const CpuRow* cpu = find_cpu(target.mcpu);
    return cpu != nullptr && cpu->dots.*row.rate > 0;
  }
  const std::string needed = row.features(target.isa);
  if (needed.empty()) return false;
  std::istringstream words{needed};
  for (std::string word; words >> word;) {
    if (("," + target.features + ",").find(",+" + word + ",") == std::string::npos) return false;
  }
  return true;
}

void drop_missing_dots(Target& target) {
  for (const DotRateRow& row : kDotRates) {
    if (!has_dots(target, row)) target.dots.*row.rate = 0;
  }
}

}  // namespace pruner
