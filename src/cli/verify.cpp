#include "cli/verify.h"

#include <fmt/format.h>

namespace pruner {

void add_verify(CLI::App& app, bool& verify) {
  begin_group(app, OptionGroup::kOutput);
  add_option(app, "--verify", verify)
      .help("compare the outputs with those of a module of the same network, of other schedules");
}

Result<Unit> show(const Agreement& agreement, Json& json, std::string& text) {
  json["verified"] = {{"error", agreement.error},
                      {"bound", agreement.bound},
                      {"output", agreement.output},
                      {"element", agreement.element},
                      {"differing", agreement.differing},
                      {"integers", agreement.integers}};
  std::string found = fmt::format("{:.1e} of the largest value apart from other schedules' outputs",
                                  agreement.error);
  if (!agreement.output.empty())
    found += fmt::format(" ({}, element {})", agreement.output, agreement.element);
  if (agreement.integers > 0)
    found += fmt::format("; {} of {} integers differ", agreement.differing, agreement.integers);
  if (!agreement.ok())
    return Error("the module is wrong: ", found, "; rounding may make it ", agreement.bound);
  text += fmt::format("verified: {}, at most {:.0e}\n", found, agreement.bound);
  return Unit{};
}

}  // namespace pruner
