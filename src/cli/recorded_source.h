// What recorded programs are read with: DAGs of their tasks, and the draft that scores them.
#pragma once

#include "analysis/draft_form.h"
#include "cli/options.h"
#include "dataset/recorded_program.h"

namespace pruner {

/// DAGs of --dags, and of --op, --task or a network.
Result<Unit> add_dags(const Options& options,
                      ansor::WorkloadTable& workloads,
                      RecordedPrograms& programs);

/// The GPU of --psa, whose numbers the draft takes; a100_40 unless told.
Result<Gpu> read_draft_gpu(const Options& options);
/// --psa-form, or ours.
Result<DraftForm> read_draft_form(const Options& options);
/// ... which on a CPU is the only one.
Result<DraftForm> read_draft_form(const Options& options, const Target& target);

}  // namespace pruner
