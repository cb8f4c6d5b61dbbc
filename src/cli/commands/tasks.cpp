// pruner tasks: what would be tuned; pruner ops: the operators of --op.
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/source.h"
#include "graph/functions/body.h"
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

struct Ops {
  bool onnx = false;

  void add_to(CLI::App& app) {
    add_option(app, "--onnx", onnx).help("the operators of ONNX files that are read");
  }

  Result<int> run(const Invocation& call) const {
    if (!onnx) return call.show({{"help", operator_help()}}, operator_help());
    std::vector<std::string> names;
    for (const GraphOp& op : graph_ops()) names.emplace_back(op.name);
    for (const Function& function : graph_functions()) names.emplace_back(function.name);
    std::ranges::sort(names);
    return call.show(Json(names), fmt::format("{}\n", fmt::join(names, "\n")));
  }
};

}  // namespace

RunCommand make_tasks(CLI::App& app) { return make_command<Tasks>(app); }
RunCommand make_ops(CLI::App& app) { return make_command<Ops>(app); }

}  // namespace pruner
