#include "cli/phase.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace pruner {

void add_phase(CLI::App& app, std::string& phase) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "--phase NAME", phase)
      .help("of a module of several: prefill or decode", "the first");
}

Result<int> find_phase(const LoadedModule& module, const std::string& phase) {
  if (phase.empty()) return 0;
  const std::vector<std::string> names = module.phases();
  const auto found = std::ranges::find(names, phase);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  return Error(
      fmt::format("--phase: the module has {}, not \"{}\"", fmt::join(names, ", "), phase));
}

}  // namespace pruner
