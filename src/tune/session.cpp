#include "tune/session.h"

#include <ctime>
#include <filesystem>

#include "support/log.h"
#include "tune/task_file.h"

namespace pruner {

namespace {

/// The run.json of the earlier runs, or a new one.
Result<RunManifest> start_manifest(const WorkDir& dir) {
  std::error_code code;
  if (std::filesystem::exists(manifest_path(dir.path()), code)) return read_manifest(dir.path());
  RunManifest manifest;
  manifest.started = std::time(nullptr);
  return manifest;
}

double number_or_zero(const Json& object, const char* key) {
  const Result<double> value = json_get<double>(object, key);
  return value.ok() ? *value : 0;
}

Error all_foreign(const std::string& file, const RestoreSummary& found) {
  return Error(file,
               ": ",
               found.skipped(),
               " records, ",
               found.other_task,
               " of another model and ",
               found.other_device,
               " of another device; choose another --work-dir, set them aside with --fresh, ",
               "or add to them with --continue-tuning");
}

std::string status_of(TuneEnd end) { return end == TuneEnd::kInterrupted ? "interrupted" : "done"; }

}  // namespace

Result<std::unique_ptr<Session>> Session::open(std::span<const WeightedTask> tasks,
                                               const SessionOptions& options,
                                               const SessionTools& tools) {
  TRY_ASSIGN(WorkDir dir, WorkDir::open(options.work_dir));
  if (options.fresh) TRY(dir.set_aside());
  TRY_ASSIGN(const std::vector<Record> records, dir.read_records());
  TRY_ASSIGN(RunManifest manifest, start_manifest(dir));
  manifest.command = options.command;
  manifest.version = options.version;
  manifest.seed = options.tune.seed;
  manifest.device = tasks.empty() ? "" : device_fingerprint(tasks[0].task.target);
  manifest.input = options.input;
  TRY_ASSIGN(RecordWriter writer, RecordWriter::open(dir.records()));

  std::unique_ptr<Session> session(
      new Session(std::move(dir), std::move(manifest), std::move(writer), tools));
  session->facts_ = options.facts;
  TuneOptions& tune = session->options_;
  tune = options.tune;
  tune.earlier_s = session->manifest_.spent_s;
  const auto on_round = [s = session.get()](const RoundSummary& summary) {
    s->finish_round(summary);
  };
  session->tuner_.emplace(
      tasks, tune, TuneTools{tools.measurer, tools.models, session->writer_, tools.stop, on_round});
  TRY(session->restore(records, options.accept_foreign));
  TRY(write_task_file(session->dir_.file(kWorkDirTasks), tasks));
  const Json& more = session->manifest_.more;
  session->spent_.explore_s = number_or_zero(more, "explore_s");
  session->spent_.train_s = number_or_zero(more, "train_s");
  session->spent_.build_s = number_or_zero(more, "build_s");
  session->spent_.measure_s = number_or_zero(more, "measure_s");
  const Result<Json> pairs = json_get<Json>(more, "model_pairs");
  if (pairs.ok()) {
    session->spent_.foretold = {static_cast<int64_t>(number_or_zero(*pairs, "right")),
                                static_cast<int64_t>(number_or_zero(*pairs, "all"))};
  }
  return session;
}

Result<Unit> Session::restore(std::span<const Record> records, bool accept_foreign) {
  TRY_ASSIGN(const RestoreSummary found, tuner_->restore(records));
  if (found.used == 0 && found.skipped() > 0 && !accept_foreign)
    return all_foreign(dir_.records(), found);
  if (found.skipped() > 0) {
    log_warning(
        "{}: skipped {} records of another model, {} of another device, {} of schedules that are "
        "not known",
        dir_.records(),
        found.other_task,
        found.other_device,
        found.unknown_sketch);
  }
  return Unit{};
}

Result<Unit> Session::save(const std::string& status) {
  manifest_.status = status;
  manifest_.updated = std::time(nullptr);
  manifest_.trials = tuner_->trials();
  manifest_.spent_s = tuner_->elapsed_s();
  const std::optional<double> latency_s = tuner_->total_latency_s();
  manifest_.more = {
      {"explore_s", spent_.explore_s},
      {"train_s", spent_.train_s},
      {"build_s", spent_.build_s},
      {"measure_s", spent_.measure_s},
      {"model_pairs", {{"right", spent_.foretold.right}, {"all", spent_.foretold.all}}},
      {"estimated_total_latency_ms", latency_s ? Json(*latency_s * 1e3) : Json()}};
  manifest_.more.update(facts_);
  return write_manifest(dir_.path(), manifest_);
}

Result<Unit> Session::note(const Json& facts) {
  facts_.update(facts);
  return save(manifest_.status);
}

void Session::finish_round(const RoundSummary& summary) {
  spent_.explore_s += summary.explore_s;
  spent_.train_s += summary.train_s;
  spent_.build_s += summary.build_s;
  spent_.measure_s += summary.measure_s;
  spent_.foretold.add(summary.foretold);
  for (const Result<Unit>& written :
       {dir_.append_latency(tuner_->elapsed_s(), tuner_->total_latency_s(), tuner_->trials()),
        save("running")}) {
    if (!written.ok() && !write_error_) write_error_ = written.error();
  }
  tools_.on_round(*tuner_, summary);
}

Result<TuneEnd> Session::run() {
  TRY(save("running"));
  const Result<TuneEnd> end = tuner_->run();
  TRY(save(end.ok() ? status_of(*end) : "failed: " + end.error().message()));
  // Curve and run.json only report: what they could not hold is no reason to lose a run.
  if (write_error_) log_warning("{}", write_error_->message());
  return end;
}

Result<Unit> Session::measure_shapes(std::span<const ShapeTrials> trials) {
  TRY(tuner_->measure_shapes(trials));
  return save(manifest_.status);
}

}  // namespace pruner
