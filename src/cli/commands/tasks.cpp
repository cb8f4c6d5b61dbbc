// pruner tasks: what would be tuned, as a list and in a copy of the network's file; pruner ops: the
// operators of --op.
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "cli/source.h"
#include "graph/functions/body.h"
#include "record/record.h"
#include "report/kernel_notes.h"
#include "report/task_list.h"
#include "support/temporary_folder.h"
#include "tensor/operators.h"

namespace pruner {

namespace {

struct Tasks {
  SourceOptions what;
  TargetOptions on;
  std::string annotated;             // the file to write
  std::vector<std::string> records;  // record files of --annotate
  int jobs = 0;                      // threads that read the records

  void add_to(CLI::App& app) {
    what.add_to(app);
    on.add_to(app);
    add_option(app, "--annotate FILE", annotated)
        .writes()
        .replaces({FileKind::kOnnx})
        .help("write the network as FILE.onnx with each node's task in its doc_string");
    add_list(app, "--records FILES", records)
        .help("of --annotate: the times of the tasks, and their shares: files, patterns, folders");
    add_jobs(app, jobs);
  }

  /// Returns the options of the network as a file; the file of a built-in network is written into
  /// `folder`. Its nodes are numbered when the file is read.
  Result<SourceOptions> numbered_file(const TemporaryFolder& folder) const {
    SourceOptions file = what;
    if (what.model_file.empty()) {
      if (what.network.empty()) return Error("--annotate is of networks");
      if (!what.decode.empty())
        return Error("--annotate: of a built-in network it is of one phase, without --decode");
      TRY_ASSIGN(const Graph graph, read_network(what));
      file.network.clear();
      file.sizes = SourceOptions().sizes;
      file.dims.clear();
      file.model_file = folder.path("network.onnx");
      TRY(export_onnx(graph, file.model_file));
    }
    file.sizes.number_nodes = true;
    return file;
  }

  /// Returns the best seconds of each task in the records; an error if the records have none.
  Result<std::vector<std::optional<double>>> best_seconds(const Source& source,
                                                          const Target& target) const {
    std::vector<std::optional<double>> best_s(source.tasks.size());
    if (records.empty()) return best_s;
    TRY_ASSIGN(std::vector<FileRecords> files, read_record_files(records, "--records", jobs));
    std::vector<Record> all;
    for (FileRecords& file : files) std::ranges::move(file.records, std::back_inserter(all));
    const std::map<std::string, Record> best = best_records(all, device_fingerprint(target));
    bool any = false;
    for (size_t t = 0; t < best_s.size(); ++t) {
      const auto record = best.find(source.tasks[t].task.key);
      if (record == best.end()) continue;
      best_s[t] = record->second.result.cost_s();
      any = true;
    }
    if (any) return best_s;
    return Error(
        records[0], ": no time of these tasks on this device (", device_fingerprint(target), ")");
  }

  Result<Unit> annotate(const Target& target) const {
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
    TRY_ASSIGN(const SourceOptions file, numbered_file(folder));
    TRY_ASSIGN(const Source source, read_source(file, target));
    TRY_ASSIGN(const std::vector<std::optional<double>> best_s, best_seconds(source, target));
    return annotate_onnx(file.model_file, kernel_notes(source, best_s), annotated);
  }

  Result<int> run(const Invocation& call) const {
    if (annotated.empty() && !records.empty()) return Error("tasks: --records is of --annotate");
    TRY_ASSIGN(const Target target, read_target(on));
    TRY_ASSIGN(const Source source, read_source(what, target));
    if (!annotated.empty()) TRY(annotate(target));
    return call.show(task_list_json(source.tasks), print_task_list(source.tasks));
  }
};

struct Ops {
  bool onnx = false;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
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
