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

Result<std::vector<int64_t>> find_extents(const LoadedModule& module,
                                          const std::vector<std::string>& dims) {
  std::vector<int64_t> extents;
  std::vector<std::string> names;
  for (const Symbol& symbol : module.symbols()) {
    extents.push_back(dims.empty() ? symbol.max : 0);
    names.push_back(print(symbol));
  }
  for (const std::string& text : dims) {
    const Result<Symbol> dim = parse_symbol(text);
    if (!dim.ok()) return Error("--dim: ", dim.error().message());
    if (dim->min != dim->max)
      return Error("--dim ", text, ": a module runs at one extent at a time");
    const auto at = std::ranges::find(module.symbols(), dim->name, &Symbol::name);
    if (at == module.symbols().end())
      return Error(
          fmt::format("--dim names \"{}\"; the module has {}",
                      dim->name,
                      names.empty() ? "one shape" : fmt::format("{}", fmt::join(names, ", "))));
    extents[static_cast<size_t>(at - module.symbols().begin())] = dim->min;
  }
  for (size_t s = 0; s < extents.size(); ++s)
    if (extents[s] == 0) return Error("--dim says nothing of ", names[s]);
  return extents;
}

}  // namespace pruner
