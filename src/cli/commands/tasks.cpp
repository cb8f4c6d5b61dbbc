// pruner tasks: what would be tuned; pruner ops: the operators of --op.
#include "cli/commands.h"
#include "cli/source.h"
#include "report/task_list.h"
#include "tensor/operators.h"

namespace pruner {

namespace {

struct Tasks {
  SourceOptions what;
  TargetOptions on;

  void add_to(CLI::App& app) {
    what.add_to(app);
    on.add_to(app);
  }

  Result<int> run(const Invocation& call) const {
    TRY_ASSIGN(const Target target, read_target(on));
    TRY_ASSIGN(const Source source, read_source(what, target));
    return call.show(task_list_json(source.tasks), print_task_list(source.tasks));
  }
};

Result<int> run_ops(const Invocation& call) {
  return call.show({{"help", operator_help()}}, operator_help());
}

}  // namespace

RunCommand make_tasks(CLI::App& app) { return make_command<Tasks>(app); }
RunCommand make_ops(CLI::App&) { return run_ops; }

}  // namespace pruner
