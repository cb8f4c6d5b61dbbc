// pruner tasks: what would be tuned; pruner ops: the operators of --op.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/source.h"
#include "report/task_list.h"
#include "tensor/operators.h"

namespace pruner {

Result<int> run_tasks(const Options& options) {
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(const Source source, read_source(options, target));
  if (options.json) {
    fmt::print("{}\n", print_json(task_list_json(source.tasks)));
  } else {
    fmt::print("{}", print_task_list(source.tasks));
  }
  return kDone;
}

Result<int> run_ops(const Options& options) {
  if (options.json) {
    fmt::print("{}\n", print_json(Json{{"help", operator_help()}}));
  } else {
    fmt::print("{}", operator_help());
  }
  return kDone;
}

}  // namespace pruner
