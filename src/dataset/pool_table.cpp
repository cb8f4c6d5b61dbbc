#include "dataset/pool_table.h"

#include "dataset/extract.h"

namespace pruner {

PoolTable table_of(ProgramPool&& pool, int64_t least) {
  PoolTable made;
  for (PooledTask& pooled : pool.tasks) {
    if (static_cast<int64_t>(pooled.size()) < least) continue;
    const DatasetTask task{pooled.task.workload_key, pooled.target};
    const std::string identity = task_identity(task);
    for (size_t p = 0; p < pooled.size(); ++p) {
      if (made.table.add(task,
                         program_id(identity, pooled.programs[p]),
                         std::move(pooled.features[p]),
                         pooled.trials[p].cost_s))
        made.draft_scores.push_back(static_cast<float>(pooled.draft_scores[p]));
    }
  }
  return made;
}

}  // namespace pruner
