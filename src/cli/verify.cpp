#include "cli/verify.h"

#include <fmt/format.h>

namespace pruner {

void add_verify(CLI::App& app, bool& verify) {
  begin_group(app, OptionGroup::kOutput);
  add_option(app, "--verify", verify)
      .help(
          "compare the outputs with the reference interpreter over the network as it was given, "
          "and with those of modules of other schedules");
}

void add_no_check(CLI::App& app, bool& no_check) {
  begin_group(app, OptionGroup::kOutput);
  add_option(app, "--no-check", no_check)
      .help(
          "do not run each kernel once beside the reference interpreter before the module is "
          "written; the module says so");
}

void show_checked(const ModuleSummary& summary, Json& json, std::string& text) {
  json["checked"] = {{"kernels", summary.checked_kernels},
                     {"replaced", summary.replaced_kernels},
                     {"how", summary.checked}};
  if (summary.checked != "checked") text += fmt::format("kernels: {}\n", summary.checked);
}

Result<Unit> show(const Agreement& agreement, Json& json, std::string& text) {
  json["verified"] = {{"error", agreement.error},
                      {"bound", agreement.bound},
                      {"output", agreement.output},
                      {"element", agreement.element},
                      {"differing", agreement.differing},
                      {"integers", agreement.integers},
                      {"modules", agreement.modules},
                      {"shapes", agreement.shapes},
                      {"interpreted", agreement.elements}};
  if (!agreement.wrong.empty()) return Error("the module is wrong: ", agreement.wrong);
  std::string found = fmt::format(
      "{:.1e} of the largest value apart from the interpreter ({} elements, {} {}) and from {} {} "
      "of other schedules",
      agreement.error,
      agreement.elements,
      agreement.shapes,
      agreement.shapes == 1 ? "shape" : "shapes",
      agreement.modules,
      agreement.modules == 1 ? "module" : "modules");
  if (!agreement.output.empty())
    found += fmt::format(" (\"{}\", element {}{})",
                         agreement.output,
                         agreement.element,
                         agreement.where.empty() ? "" : ", " + agreement.where);
  if (agreement.integers > 0)
    found += fmt::format("; {} of {} integers differ", agreement.differing, agreement.integers);
  if (!agreement.ok())
    return Error("the module is wrong: ", found, "; rounding may make it ", agreement.bound);
  text += fmt::format("verified: {}, at most {:.0e}\n", found, agreement.bound);
  return Unit{};
}

}  // namespace pruner
