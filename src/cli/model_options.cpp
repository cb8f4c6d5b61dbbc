#include "cli/model_options.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/interrupt.h"
#include "report/evaluation_report.h"
#include "report/live_view.h"
#include "report/training_curve.h"
#include "support/file.h"
#include "support/log.h"

namespace pruner {

namespace {

namespace fs = std::filesystem;

/// FILE.ext -> FILE.foldN.ext
std::string fold_file(const fs::path& path, int64_t fold, int64_t folds) {
  if (folds == 1) return path.string();
  fs::path named = path;
  named.replace_filename(
      fmt::format("{}.fold{}{}", path.stem().string(), fold, path.extension().string()));
  return named.string();
}

/// Returns what Pruner's scripts take for the dataset's device: the last word but one between "_".
std::string device_part(const std::string& dataset) {
  const std::string stem = fs::path(dataset).stem().string();
  const size_t end = stem.rfind('_');
  if (end == std::string::npos) return stem;
  const size_t begin = stem.rfind('_', end - 1);
  return begin < end ? stem.substr(begin + 1, end - begin - 1) : stem.substr(0, end);
}

/// fine_tune_pam_k80_313_313.pkl: the model, the dataset's device, its tasks, and of these
/// --ratio's share.
std::string published_name(const TrainingOptions& options,
                           size_t tasks,
                           const PretrainOptions& pretrain) {
  const Architecture* network = find_architecture(pretrain.model);  // null: boosted trees
  const int64_t count = options.file_count > 0 ? options.file_count : static_cast<int64_t>(tasks);
  const auto used = static_cast<int64_t>(static_cast<double>(count) * pretrain.share);
  return fmt::format("{}{}_{}_{}_{}{}",
                     pretrain.load_model.empty() ? "" : "fine_tune_",
                     network == nullptr ? pretrain.model : network->command,
                     device_part(options.datasets[0]),
                     count,
                     used,
                     network == nullptr       ? ".json"
                     : network->pickled_class ? ".pkl"
                                              : ".safetensors");
}

// MODEL_DATASET, or fine_tune_WEIGHTS: pam_k80.safetensors, fine_tune_pam_k80.safetensors.
std::string plain_name(const TrainingOptions& options, const PretrainOptions& pretrain) {
  const bool tunes = !pretrain.load_model.empty();
  return fmt::format("{}_{}{}",
                     tunes ? "fine_tune" : pretrain.model,
                     fs::path(tunes ? pretrain.load_model : options.datasets[0]).stem().string(),
                     pretrain.model == "xgb" ? ".json" : ".safetensors");
}

constexpr double kShownEvery = 1;  // seconds, on a terminal; elsewhere a line when it was judged

// The line of a training on standard error.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : live_(stderr, quiet) {}

  void show(const PretrainProgress& progress) {
    const bool due = live_.terminal() && progress.seconds - shown_s_ >= kShownEvery;
    if (!progress.judged && !due) return;
    shown_s_ = progress.seconds;
    live_.say(print(progress));
  }
  void finish() { live_.finish(); }

 private:
  LiveView live_;
  double shown_s_ = 0;
};

// Writes the curve beside the model, after each epoch that was judged.
Result<Unit> write_curve(const std::string& model, std::span<const TrainingPoint> curve) {
  TRY(write_file(training_file(model, "tsv"), training_tsv(curve)));
  return write_file(training_file(model, "svg"), training_svg(curve, model));
}

/// A value of each epoch; none where there are none.
template <typename T>
Json column(const std::vector<TrainingPoint>& curve, T TrainingPoint::*member) {
  Json values = Json::array();
  for (const TrainingPoint& point : curve) {
    const std::optional<double> value = point.*member;
    if (value) values.push_back(*value);
  }
  return values;
}

Json to_json(const Pretrained& trained, const ProgramTable& table, const std::string& file) {
  const auto of_curve = [&](auto member) { return column(trained.curve, member); };
  Json json = {{"file", file},
               {"trained_on", trained.trained_on},
               {"held_out", trained.held_out},
               {"tasks", trained.tasks},
               {"epochs", trained.report.epochs},
               {"best_epoch", trained.report.best_epoch},
               {"losses", of_curve(&TrainingPoint::loss)},
               {"learning_rates", of_curve(&TrainingPoint::learning_rate)},
               {"validation_losses", of_curve(&TrainingPoint::validation_loss)},
               {"validation_accuracy", of_curve(&TrainingPoint::validation_accuracy)},
               {"seconds", trained.report.seconds},
               {"samples_per_s", trained.report.samples_per_s},
               {"stopped", trained.report.stopped},
               {"resumed", trained.resumed}};
  if (trained.held_out_evaluation) json["metrics"] = to_json(*trained.held_out_evaluation, table);
  return json;
}

void print_summary(const Pretrained& trained, const std::string& file) {
  fmt::print("{}: trained on {} programs of {} tasks{}",
             file,
             trained.trained_on,
             trained.tasks,
             trained.resumed ? ", resumed" : "");
  const TrainReport& report = trained.report;
  if (report.epochs > 0)
    fmt::print("; {} epochs, the best is {}; {:.0f} s, {:.0f} programs/s",
               report.epochs,
               report.best_epoch,
               report.seconds,
               report.samples_per_s);
  fmt::print("\n");
  if (trained.held_out_evaluation) {
    fmt::print("held out: {}", print(*trained.held_out_evaluation));
  } else {
    fmt::print("held out: nothing\n");
  }
}

}  // namespace

void TrainingOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kInput);
  add_list(app, "--dataset FILES", datasets).help("feature files (`pruner dataset make`)");
  begin_group(app, OptionGroup::kModel);
  add_option(app, "--model,--models NAME", pretrain.model)
      .help("pam, mlp, tlp or xgb; where weights are loaded their file says it", "pam");
  add_option(app, "--split,--split-scheme NAME", split_scheme)
      .help("what is held out: programs of each task (within_task), by_task or by_target",
            "within_task");
  add_option(app, "--train-ratio SHARE", pretrain.split.train_ratio)
      .help("share that is not held out", "0.9");
  add_option(app, "--ratio SHARE", pretrain.share)
      .help("share of each task's training programs that is used; 10 at least", "1");
  add_option(app, "--epochs N", pretrain.epochs, 1).help("passes over the programs; of xgb: trees");
  add_option(app, "--lr RATE", pretrain.learning_rate).help("the largest learning rate");
  add_option(app, "--fold N", folds, 1)
      .help("trainings, each of the next seed, with a split and a file of its own", "1");
  add_option(app, "--train NAME", training)
      .help("as-published: by the procedure of Pruner's scripts");
  add_option(app, "--resume", pretrain.resume).help("go on from where a run was cut");
  begin_group(app, OptionGroup::kMeasuring);
  add_cores(app, "--threads N", pretrain.threads).help("threads that train and score", "all cores");
  add_seed(app, pretrain.split.seed);
  add_out_file(app,
               pretrain.out_file,
               "the file to write: weights as safetensors, of xgb JSON",
               {FileKind::kOther, FileKind::kZip, FileKind::kPacked, FileKind::kJson});
  add_option(app, "--save-path DIR", save_path)
      .help(
          "folder for what Pruner's scripts leave: FOLDER/1/*.pkl, five epochs' weights among "
          "them");
  add_option(app, "--file-cnt N", file_count)
      .help("the number in the name of a file of --save-path", "the dataset's tasks");
}

Result<Unit> name_model_files(const TrainingOptions& options,
                              int64_t fold,
                              size_t tasks,
                              PretrainOptions& pretrain) {
  if (!options.save_path.empty()) {
    const fs::path folder = fs::path(options.save_path) / std::to_string(fold);
    std::error_code code;
    fs::create_directories(folder, code);
    if (code) return Error("--save-path ", options.save_path, ": ", code.message());
    pretrain.checkpoint_dir = folder.string();
    pretrain.out_file = (folder / published_name(options, tasks, pretrain)).string();
    if (options.pretrain.out_file.empty()) return Unit{};
  }
  const std::string file =
      options.pretrain.out_file.empty() ? plain_name(options, pretrain) : options.pretrain.out_file;
  pretrain.out_file = fold_file(file, fold, options.folds);
  return Unit{};
}

std::string training_file(const std::string& model, std::string_view extension) {
  return fs::path(model).replace_extension(fmt::format(".training.{}", extension)).string();
}

Result<ProgramTable> read_datasets(const std::vector<std::string>& datasets) {
  if (datasets.empty())
    return Error("no dataset is named; give one with --dataset FILE (`pruner dataset make`)");
  TRY_ASSIGN(ProgramTable table, ProgramTable::open(datasets));
  if (const std::string left_out = print(table.left_out()); !left_out.empty())
    log_warning("{}: left out {}", fmt::join(datasets, " "), left_out);
  if (table.targets().size() > 1)
    log_warning("the programs are of {} targets, and compared within each: {}",
                table.targets().size(),
                fmt::join(table.targets(), "; "));
  return table;
}

/// Returns the options that train the first fold, except for the file to write.
static Result<PretrainOptions> pretrain_options(const TrainingOptions& options) {
  const auto share = [](const char* flag, double value) -> Result<Unit> {
    if (value > 0 && value <= 1) return Unit{};
    return Error(flag, " is ", value, ", expected a share above 0 and at most 1");
  };
  PretrainOptions pretrain = options.pretrain;
  TRY(share("--train-ratio", pretrain.split.train_ratio));
  TRY(share("--ratio", pretrain.share));
  if (options.file_count > 0 && options.save_path.empty())
    return Error("--file-cnt is for the names of files in --save-path DIR");
  if (!options.training.empty() && options.training != "as-published")
    return Error("--train: \"", options.training, "\" is not as-published");
  pretrain.as_published = !options.training.empty();
  TRY_ASSIGN(pretrain.split.scheme, parse_split_scheme(options.split_scheme));
  return pretrain;
}

Result<int> train_folds(const TrainingOptions& options, const Invocation& call) {
  TRY_ASSIGN(PretrainOptions pretrain, pretrain_options(options));
  const std::atomic<bool>& interrupted = catch_interrupts();
  Json folds = Json::array();
  for (int64_t fold = 1; fold <= options.folds; ++fold, ++pretrain.split.seed) {
    TRY_ASSIGN(ProgramTable table, read_datasets(options.datasets));
    TRY(name_model_files(options, fold, table.tasks().size(), pretrain));
    ProgressLine line(call.quiet);
    const PretrainWatch watch{.on_progress = [&](const PretrainProgress& p) { line.show(p); },
                              .stop = interrupted,
                              .on_judged =
                                  [&](std::span<const TrainingPoint> curve) {
                                    return write_curve(pretrain.out_file, curve);
                                  }};
    TRY_ASSIGN(const Pretrained trained, pruner::pretrain(table, pretrain, watch));
    line.finish();
    if (trained.interrupted) {
      fmt::print(stderr, "interrupted; the same command with --resume goes on\n");
      return kInterrupted;
    }
    folds.push_back(to_json(trained, table, pretrain.out_file));
    if (!call.json) print_summary(trained, pretrain.out_file);
  }
  if (call.json) fmt::print("{}\n", print_json(options.folds == 1 ? folds[0] : folds));
  return kDone;
}

}  // namespace pruner
