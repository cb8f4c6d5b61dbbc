#include "dataset/collection.h"

#include <filesystem>

#include "support/log.h"
#include "tune/recorded.h"

namespace pruner {

namespace {

constexpr int64_t kRoundSize = 32;

/// Returns the records of earlier collections in the file.
Result<std::vector<Record>> read_collected(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::vector<Record>();
  TRY_ASSIGN(std::vector<Record> records, read_intact_records(path));
  std::erase_if(records, [](const Record& record) { return record.origin != kCollectOrigin; });
  return records;
}

}  // namespace

Result<std::unique_ptr<Collection>> Collection::open(std::span<const WeightedTask> tasks,
                                                     const CollectOptions& options,
                                                     const CollectTools& tools) {
  TRY_ASSIGN(const std::vector<Record> records, read_collected(options.file));
  TRY_ASSIGN(RecordWriter writer, RecordWriter::open(options.file));
  std::unique_ptr<Collection> made(new Collection(std::move(writer)));
  made->chance_ = make_random_model(options.seed);
  TuneOptions tune{.task_trials = options.programs_per_task,
                   .measured_at_once = options.measured_at_once,
                   .seed = options.seed,
                   .remeasure = false,
                   .policy = &kUniformPolicy,
                   .origin = kCollectOrigin};
  tune.search.eps_greedy = options.uniform_share;
  tune.search.forms = options.forms;
  tune.search.round_size = kRoundSize;
  const auto on_round = [c = made.get(), show = tools.on_round](const RoundSummary& summary) {
    show(*c->tuner_, summary);
  };
  made->tuner_.emplace(
      tasks,
      tune,
      TuneTools{tools.measurer, {*made->chance_}, made->writer_, tools.stop, on_round});
  TRY_ASSIGN(const RestoreSummary found, made->tuner_->restore(records));
  if (found.unknown_sketch > 0)
    log_warning("{}: {} records are of schedules that are not known; they are left out",
                options.file,
                found.unknown_sketch);
  return made;
}

}  // namespace pruner
