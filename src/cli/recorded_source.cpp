#include "cli/recorded_source.h"

#include "support/log.h"
#include "target/device_file.h"

namespace pruner {

void add_psa_form(CLI::App& app, std::string& form) {
  begin_group(app, OptionGroup::kTarget);
  add_option(app, "--psa-form FORM", form)
      .help("of the draft score on a GPU: ours, release (as published with Pruner) or paper",
            "ours");
}

void PsaOptions::add_to(CLI::App& app) {
  add_psa(app, device);
  add_psa_form(app, form);
}

void RecordedOptions::add_to(CLI::App& app) {
  source.add_to(app);
  target.add_to(app);
  draft.add_to(app);
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "--records,--logs,--log-file FILES", records)
      .help("records: files, packed or not, patterns, folders");
  add_option(app, "--dags FILES", dags).help("files of compute DAGs, for keys that are a hash");
  add_jobs(app, jobs);
}

Result<Unit> add_dags(const RecordedOptions& options,
                      ansor::WorkloadTable& workloads,
                      RecordedPrograms& programs) {
  for (const std::string& file : options.dags) TRY(workloads.add_file(file));
  TRY(check_options(options.source));
  if (!options.source.named()) return Unit{};
  if (!options.source.task.empty()) {
    // It may be a file of DAGs by their keys; otherwise it is read as a single DAG below.
    const Result<Unit> keyed = workloads.add_file(options.source.task);
    if (keyed.ok()) return Unit{};
  }
  TRY_ASSIGN(const Target target, parse_target(options.target.name, options.target.threads));
  TRY_ASSIGN(const Source source, read_source(options.source, target));
  for (const WeightedTask& weighted : source.tasks) programs.add_task(weighted.task.dag);
  return Unit{};
}

void warn_of_pool(const ProgramPool& pool) {
  for (const auto& [reason, entry] : pool.left_out)
    log_warning("{} records are left out: {} (first: {})", entry.records, reason, entry.first);
  if (pool.hopeless > 0)
    log_warning("{} tasks are left out: none of their programs ran", pool.hopeless);
}

Result<std::optional<Gpu>> read_draft_gpu(const std::string& device) {
  if (device.empty()) return std::optional<Gpu>();
  const Result<Target> target = read_device(device);
  if (!target.ok()) return Error("--psa: ", target.error().message());
  if (!target->is_gpu()) return Error("--psa: ", device, " is no GPU");
  return std::optional(target->gpu);
}

// A device file that comes with the program, so that reading it cannot fail.
Gpu default_draft_gpu() { return read_device("a100_40")->gpu; }

Result<DraftForm> read_draft_form(const std::string& text) {
  if (text.empty()) return DraftForm::kOurs;
  const std::optional<DraftForm> form = parse_draft_form(text);
  if (!form) return Error("--psa-form: \"", text, "\" is not release, paper or ours");
  return *form;
}

Result<DraftForm> read_draft_form(const std::string& text, const Target& target) {
  TRY_ASSIGN(const DraftForm form, read_draft_form(text));
  if (form == DraftForm::kOurs || target.is_gpu()) return form;
  return Error("--psa-form ",
               text,
               ": a draft of GPUs; the target is a CPU (",
               target.device,
               "), which has ours");
}

}  // namespace pruner
