// What recorded programs are read with: DAGs of their tasks, and the draft that scores them.
#pragma once

#include <optional>

#include "analysis/draft_form.h"
#include "cli/options.h"
#include "dataset/program_pool.h"

namespace pruner {

/// DAGs of --dags, and of --op, --task or a network.
Result<Unit> add_dags(const Options& options,
                      ansor::WorkloadTable& workloads,
                      RecordedPrograms& programs);

/// Names on standard error what of the records is no program.
void warn_of_pool(const ProgramPool& pool);

/// The GPU of --psa, whose numbers the draft takes; nullopt without it.
Result<std::optional<Gpu>> read_draft_gpu(const Options& options);
/// That of records that do not name theirs.
Gpu default_draft_gpu();
/// --psa-form, or ours.
Result<DraftForm> read_draft_form(const Options& options);
/// ... which on a CPU is the only one.
Result<DraftForm> read_draft_form(const Options& options, const Target& target);

}  // namespace pruner
