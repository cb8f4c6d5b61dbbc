#include "cli/recorded_source.h"

#include "cli/source.h"
#include "support/log.h"
#include "target/device_file.h"

namespace pruner {

Result<Unit> add_dags(const Options& options,
                      ansor::WorkloadTable& workloads,
                      RecordedPrograms& programs) {
  for (const std::string& file : options.dags) TRY(workloads.add_file(file));
  const bool named = !options.op.empty() || !options.network.empty() ||
                     !options.model_file.empty() || !options.task.empty();
  if (!named) return Unit{};
  if (!options.task.empty()) {
    const Result<Unit> keyed = workloads.add_file(options.task);
    if (keyed.ok()) return Unit{};
  }
  TRY_ASSIGN(const Target target, parse_target(options.target, static_cast<int>(options.threads)));
  TRY_ASSIGN(const Source source, read_source(options, target));
  for (const WeightedTask& weighted : source.tasks) programs.add_task(weighted.task.dag);
  return Unit{};
}

void warn_of_pool(const ProgramPool& pool) {
  for (const auto& [reason, entry] : pool.left_out)
    log_warning("{} records are left out: {} (first: {})", entry.records, reason, entry.first);
  if (pool.hopeless > 0)
    log_warning("{} tasks are left out: none of their programs ran", pool.hopeless);
}

Result<std::optional<Gpu>> read_draft_gpu(const Options& options) {
  const std::string& device = options.device_abstraction;
  if (device.empty()) return std::optional<Gpu>();
  const Result<Target> target = read_device(device);
  if (!target.ok()) return Error("--psa: ", target.error().message());
  if (!target->is_gpu()) return Error("--psa: ", device, " is no GPU");
  return std::optional(target->gpu);
}

Gpu default_draft_gpu() { return read_device("a100_40")->gpu; }

Result<DraftForm> read_draft_form(const Options& options) {
  if (options.psa_form.empty()) return DraftForm::kOurs;
  const std::optional<DraftForm> form = parse_draft_form(options.psa_form);
  if (!form) return Error("--psa-form: \"", options.psa_form, "\" is not release, paper or ours");
  return *form;
}

Result<DraftForm> read_draft_form(const Options& options, const Target& target) {
  TRY_ASSIGN(const DraftForm form, read_draft_form(options));
  if (form == DraftForm::kOurs || target.is_gpu()) return form;
  return Error("--psa-form ",
               options.psa_form,
               ": a draft of GPUs; the target is a CPU (",
               target.device,
               "), which has ours");
}

}  // namespace pruner
