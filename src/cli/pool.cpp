#include "cli/pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "cli/record_files.h"
#include "support/log.h"
#include "transfer/kernel_class.h"
#include "transfer/step_records.h"

namespace pruner {

namespace {

/// The schedules of a file's records: ours as they are, Ansor's as the nearest candidates.
TransferSource source_of(std::string name,
                         std::vector<Record> records,
                         StepRecords& steps,
                         const Target& target,
                         SourceCounts& counts) {
  // Ansor's records name no sketch.
  const auto foreign = std::ranges::stable_partition(
      records, [](const Record& record) { return !record.sketch_name.empty(); });
  const std::vector<Record> ansors(std::move_iterator(foreign.begin()),
                                   std::move_iterator(foreign.end()));
  records.erase(foreign.begin(), records.end());
  counts.records += static_cast<int64_t>(records.size());
  std::erase_if(records, [&](const Record& record) {
    if (same_kind(record, target)) return false;
    ++counts.elsewhere[backend_of(record.target)];
    return true;
  });
  for (const Record& record : records) counts.failed += !record.result.ok();
  TransferSource source = make_source(std::move(name), records, "");
  counts.tasks += static_cast<int64_t>(source.best.size());
  counts.same += static_cast<int64_t>(source.best.size());
  std::ranges::move(steps.read(ansors, counts), std::back_inserter(source.best));
  return source;
}

}  // namespace

void OfferOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "--pool,--from,--warm-start FILES", pool)
      .help(
          "records of tuned networks, ours or Ansor's, to begin with their schedules: files, "
          "patterns or folders");
  add_option(app, "--dags FILES", dags)
      .help("files of compute DAGs, for Ansor's records whose keys are a hash");
}

Result<Unit> check_offers(const OfferOptions& options) {
  if (!options.pool.empty()) return Unit{};
  for (const auto& [flag, given] :
       {std::pair("--dags", !options.dags.empty()), {"--source", !options.source.empty()}})
    if (given) return Error(flag, " is for the records of --pool; name them with --pool FILES");
  return Unit{};
}

Result<std::vector<TransferSource>> read_pool(const OfferOptions& options,
                                              std::span<const WeightedTask> tasks,
                                              int jobs,
                                              bool quiet) {
  TRY_ASSIGN(std::vector<FileRecords> files, read_record_files(options.pool, "--pool", jobs));
  if (tasks.empty()) return std::vector<TransferSource>{};
  const Target& target = tasks.front().task.target;
  ansor::WorkloadTable workloads;
  for (const std::string& file : options.dags) TRY(workloads.add_file(file));
  StepRecords steps(workloads, target);
  SourceCounts counts;
  std::vector<TransferSource> sources;
  for (FileRecords& file : files) {
    TransferSource source = source_of(file.path, std::move(file.records), steps, target, counts);
    if (!source.best.empty()) sources.push_back(std::move(source));
  }
  if (sources.empty())
    return Error(fmt::format("--pool: no usable record for {} in {}: {}",
                             backend_name(target.backend),
                             fmt::join(options.pool, ", "),
                             counts.print()));
  if (!quiet) fmt::print("--pool: {}\n", counts.print());
  if (options.source.empty()) return sources;
  size_t chosen = 0;
  if (options.source == "auto" || options.source == "as-published") {
    const bool published = options.source == "as-published";
    chosen =
        best_source(sources, tasks, published ? SourceRule::kPublished : SourceRule::kLikeness);
  } else {
    const auto found = std::ranges::find(sources, options.source, &TransferSource::name);
    if (found == sources.end())
      return Error(
          "--source: ", options.source, " is not auto or as-published, nor a file of --pool");
    chosen = static_cast<size_t>(found - sources.begin());
  }
  return std::vector<TransferSource>{sources[chosen]};
}

// "3 conv2d, 1 dense".
static std::string classes_of(const std::map<std::string, int64_t>& classes) {
  std::vector<std::string> list;
  for (const auto& [name, count] : classes) list.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}", fmt::join(list, ", "));
}

void say_offers(std::span<const TransferSource> sources, std::span<const WeightedTask> tasks) {
  std::map<std::string, int64_t> given, asked, not_adaptable;
  size_t offers = 0, served = 0;
  for (const TransferSource& source : sources)
    for (const Record& record : source.best) ++given[kernel_class(record.task_name)];
  for (const auto& [task, weight] : tasks) {
    const Offers found = offers_for(sources, task, make_space(task));
    offers += found.offers.size();
    served += !found.offers.empty();
    ++asked[kernel_class(task.name)];
    for (const auto& [why, count] : found.not_adaptable) not_adaptable[why] += count;
  }
  if (offers > 0) {
    log_detail("--pool: {} offers to {} of {} tasks", offers, served, tasks.size());
    return;
  }
  log_warning(
      "--pool: no offer to any of {} tasks: its schedules are of {}; the tasks are of {}{}{}",
      tasks.size(),
      classes_of(given),
      classes_of(asked),
      not_adaptable.empty() ? "" : "; could not be adapted: ",
      classes_of(not_adaptable));
}

}  // namespace pruner
