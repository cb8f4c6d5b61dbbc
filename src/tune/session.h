// One run of `pruner tune` in its work dir: earlier records are taken up, new ones appended, the
// curve and run.json kept up to date.
#pragma once

#include <memory>
#include <string>

#include "record/manifest.h"
#include "tune/tune.h"
#include "tune/work_dir.h"

namespace pruner {

struct SessionOptions {
  TuneOptions tune;
  std::string work_dir;
  bool fresh = false;           // earlier records are set aside
  bool accept_foreign = false;  // go on in a folder of which no record can be used
  // Facts of the run for run.json.
  std::string command, version, input;
  Json facts = Json::object();  // facts under "more": the mode, the inputs' shapes
};

/// Holds the tools of a session; all tools outlive the session.
struct SessionTools {
  Measurer& measurer;
  SearchModels models;
  const std::atomic<bool>& stop;
  std::function<void(const Tuner& tuner, const RoundSummary& summary)> on_round;
};

class Session {
 public:
  /// Opens the work dir and takes up what is there. Errors: it cannot be written, a line of its
  /// records is damaged, or all of them are of another model or device; nothing is changed then.
  static Result<std::unique_ptr<Session>> open(std::span<const WeightedTask> tasks,
                                               const SessionOptions& options,
                                               const SessionTools& tools);

  Result<TuneEnd> run();
  /// Calls Tuner::measure_shapes(), after run().
  Result<Unit> measure_shapes(std::span<const ShapeTrials> trials);
  /// Adds to run.json what is found after the run.
  Result<Unit> note(const Json& facts);
  const Tuner& tuner() const { return *tuner_; }
  const TuneOptions& options() const { return options_; }
  const WorkDir& dir() const { return dir_; }

 private:
  Session(WorkDir dir, RunManifest manifest, RecordWriter writer, const SessionTools& tools)
      : dir_(std::move(dir)),
        manifest_(std::move(manifest)),
        writer_(std::move(writer)),
        tools_(tools) {}

  Result<Unit> restore(std::span<const Record> records, bool accept_foreign);
  void finish_round(const RoundSummary& summary);
  Result<Unit> save(const std::string& status);

  WorkDir dir_;
  RunManifest manifest_;
  RecordWriter writer_;
  SessionTools tools_;
  Json facts_;
  TuneOptions options_;
  std::optional<Tuner> tuner_;
  RoundSummary spent_;  // over all rounds of all runs
  std::optional<Error> write_error_;
};

}  // namespace pruner
