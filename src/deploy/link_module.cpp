#include "deploy/link_module.h"

#include "codegen/loader.h"
#include "support/file.h"

// The relocatable object of src/runtime/module/ (cmake/module_runtime.cmake), for this machine and
// for the other instruction set; that one is empty without a compiler for it.
extern "C" const char pruner_module_runtime_start[], pruner_module_runtime_end[],
    pruner_module_other_runtime_start[], pruner_module_other_runtime_end[];

namespace pruner {

static std::string_view module_runtime(Isa isa) {
  if (isa == kHostIsa) return {pruner_module_runtime_start, pruner_module_runtime_end};
  return {pruner_module_other_runtime_start, pruner_module_other_runtime_end};
}

Result<Unit> check_linkable(Isa isa) {
  if (!module_runtime(isa).empty()) return Unit{};
  return Error("no modules for ",
               isa_name(isa),
               " in this build: ",
               triple_of(isa),
               "-gcc was not there when it was configured");
}

// The functions of pruner/module.h; all else is hidden.
static const std::vector<std::string> kExported = {
    "pruner_module_abi",
    "pruner_module_create",
    "pruner_module_destroy",
    "pruner_module_error",
    "pruner_module_threads",
    "pruner_module_num_inputs",
    "pruner_module_num_outputs",
    "pruner_module_input",
    "pruner_module_output",
    "pruner_module_run",
    "pruner_module_num_kernels",
    "pruner_module_kernel",
    "pruner_module_run_profiled",
};

Result<Unit> link_module(const ModulePlan& plan,
                         const std::vector<std::string_view>& kernels,
                         const TemporaryFolder& folder,
                         const std::string& path) {
  std::vector<std::string> files;
  const auto add_object = [&](std::string_view bytes) {
    files.push_back(folder.path(std::to_string(files.size()) + ".o"));
    return write_file(files.back(), bytes);
  };
  {
    Target target;
    target.isa = plan.isa;
    target.mcpu = "generic";  // the text has no instructions
    TRY_ASSIGN(const std::string object,
               assemble(plan_text(plan), target));  // as the weights' size
    TRY(add_object(object));
  }
  TRY(add_object(module_runtime(plan.isa)));
  for (const std::string_view kernel : kernels) TRY(add_object(kernel));
  return link_shared_library(files, path, kExported);
}

}  // namespace pruner
