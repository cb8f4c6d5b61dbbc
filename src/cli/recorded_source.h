// Options that recorded programs are read with: DAGs of tasks, and the draft that scores programs.
#pragma once

#include <optional>

#include "analysis/draft_form.h"
#include "cli/source.h"
#include "dataset/program_pool.h"

namespace pruner {

/// Adds --psa-form.
void add_psa_form(CLI::App& app, std::string& form);

/// The draft that scores recorded programs.
struct PsaOptions {
  std::string device, form;  // texts of --psa and --psa-form

  void add_to(CLI::App& app);
};

/// Records of programs, and what their tasks are known by.
struct RecordedOptions {
  SourceOptions source;
  TargetOptions target;
  PsaOptions draft;
  std::vector<std::string> records, dags;  // files, patterns, folders; files
  int jobs = 0;                            // set by add_to()

  void add_to(CLI::App& app);
};

/// DAGs of --dags, and of --op, --task or a network.
Result<Unit> add_dags(const RecordedOptions& options,
                      ansor::WorkloadTable& workloads,
                      RecordedPrograms& programs);

/// Names on standard error the records that are no program.
void warn_of_pool(const ProgramPool& pool);

/// Returns the GPU of --psa, whose numbers the draft takes; nullopt without --psa.
Result<std::optional<Gpu>> read_draft_gpu(const std::string& device);
/// Returns the GPU whose numbers the draft takes for records that do not name their device.
Gpu default_draft_gpu();
/// Returns the form that --psa-form names; kOurs if the text is empty.
Result<DraftForm> read_draft_form(const std::string& form);
/// Does the same for a target. On a CPU, an error for any form but kOurs.
Result<DraftForm> read_draft_form(const std::string& form, const Target& target);

}  // namespace pruner
