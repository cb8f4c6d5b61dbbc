#include "cli/denormals.h"

namespace pruner {

void add_denormals(CLI::App& app, std::string& denormals) {
  begin_group(app, OptionGroup::kTarget);
  add_option(app, "--denormals MODE", denormals)
      .help(
          "floats below 1.2e-38, which are slow on CPUs. flush: the module takes them for zeros; "
          "keep: it computes in the caller's mode",
          kDenormalsDefault);
}

Result<bool> flushes_denormals(const std::string& denormals) {
  if (denormals == kDenormalsDefault) return true;
  if (denormals == "keep") return false;
  return Error("--denormals: \"", denormals, "\" is not flush or keep");
}

}  // namespace pruner
