#include "target/dot_rates.h"

#include <sstream>
#include <string>

#include "target/cpu_table.h"

namespace pruner {

bool has_dots(const Target& target, const DotRateRow& row) {
  const std::string needed = row.features(target.isa);
  if (target.is_gpu() || needed.empty()) return false;
  const CpuRow* cpu = find_cpu(target.mcpu);
  const bool by_model = cpu != nullptr && cpu->dots.*row.rate > 0;
  const std::string known = "," + target.features + ",";
  std::istringstream words{needed};
  for (std::string word; words >> word;) {
    const bool there = known.find(",+" + word + ",") != std::string::npos;
    if (!there && (!by_model || known.find(",-" + word + ",") != std::string::npos)) return false;
  }
  return true;
}

void drop_missing_dots(Target& target) {
  for (const DotRateRow& row : kDotRates) {
    if (!has_dots(target, row)) target.dots.*row.rate = 0;
  }
}

}  // namespace pruner
