#include "bundle/measure_bundle.h"

#include <set>

#include "record/record_id.h"
#include "support/clock.h"

namespace pruner {

Result<BundleProgress> measure_bundle(BundleReader& bundle,
                                      const MeasureBundleOptions& options,
                                      const MeasureBundleTools& tools) {
  const double begin_s = steady_s();
  std::set<std::string> known;
  for (const Record& record : options.known) known.insert(ids_of(record).program);
  BundleProgress progress;
  std::map<std::string, double> best_s;  // least time of each task, by task_hash()
  const auto is_over = [&] { return tools.stop || steady_s() - begin_s >= options.budget_s; };
  while (!is_over()) {
    TRY_ASSIGN(std::optional<BundledProgram> program, bundle.next());
    progress.whole = !program && !bundle.cut_short();
    progress.cut_short = !program && bundle.cut_short();
    if (!program) break;
    Record& record = program->record;
    record.device = device_fingerprint(bundle.head().target);  // a CPU's says which machine's
    if (!known.insert(ids_of(record).program).second) {
      ++progress.earlier;
      continue;
    }
    double& best = best_s.try_emplace(program->task, kFailedCost).first->second;
    TRY_ASSIGN(std::vector<MeasureResult> results,
               tools.runner.run(bundle.task(program->task), {&program->build, 1}, best));
    // Ctrl-C reaches the runner too: that is no fault of the program.
    if (results.empty() || (tools.stop && !results[0].ok())) break;
    record.result = std::move(results[0]);
    TRY(tools.records.append(record));
    if (record.result.ok()) {
      ++progress.ok;
      best = std::min(best, record.result.cost_s());
    } else {
      ++progress.failed;
      note(progress.reasons, general_reason(record.result.error_text), record.task_name);
    }
    progress.seconds = steady_s() - begin_s;
    tools.on_result(progress);
  }
  progress.seconds = steady_s() - begin_s;
  progress.ended = true;
  return progress;
}

}  // namespace pruner
