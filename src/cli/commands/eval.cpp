// pruner eval: a model or the draft, and measured programs -> how well it orders those that it has
// not seen.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "dataset/pool_table.h"
#include "dataset/record_device.h"
#include "report/evaluation_report.h"
#include "support/file.h"
#include "support/log.h"
#include "support/rng.h"

namespace pruner {

namespace {

struct Eval {
  std::vector<std::string> datasets, records, dags;
  std::string model_name = "pam", load_model, network;
  PsaOptions draft;
  int64_t kept = 256;            // programs of a task, as published (reference.md, best-k)
  int64_t min_sample_size = -1;  // < 0: not given
  bool all = false, new_tasks = false;
  int threads = 0;
  uint64_t seed = 0;
  std::string out_file;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_list(app, "--dataset FILES", datasets).help("feature files");
    add_list(app, "--records,--logs FILES", records)
        .help(
            "in place of --dataset: record files, patterns or folders; a draft is judged by these "
            "only");
    add_list(app, "--dags FILES", dags)
        .help("files of compute DAGs, for keys that are a hash, and of networks' tasks");
    add_option(app, "--min-sample-size N", min_sample_size)
        .help("of --records: leave out tasks with fewer programs", "0");
    begin_group(app, OptionGroup::kModel);
    add_option(app, "--model,--models NAME", model_name)
        .help("without --load-model: draft, draft-without-PENALTY (as compute-l0), or random");
    add_option(app, "--load-model,--model-file FILE", load_model)
        .help("a trained model: safetensors, .pkl, .pth, or xgboost's JSON");
    draft.add_to(app);
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--network,--networks NAMES", network)
        .help(
            "networks to score by how often they call each task: all_five, or names with commas "
            "between them");
    add_option(app, "--draft-size N", kept, 1)
        .help("programs of each task that Best-k keeps", "256");
    add_option(app, "--all", all).help("judge by all programs, those seen in training too");
    add_option(app, "--new-tasks", new_tasks)
        .help("judge by workloads only that are in no training set of the model");
    add_cores(app, "--threads N", threads).help("threads that train and score", "all cores");
    add_seed(app, seed);
    add_option(app, "-o,--out-file FILE", out_file)
        .writes()
        .replaces({FileKind::kSvg})
        .help("writes a plot of predicted against measured speeds: FILE.svg");
  }
  Result<int> run(const Invocation& call) const;
};

/// Holds the subject that is judged: a draft, chance or a model.
struct Subject {
  std::string name;  // "draft", "random", or the model's file
  bool draft = false;
  Penalties penalties = {};             // penalties that the draft counts
  std::unique_ptr<LearnedModel> model;  // null for a draft and for chance
  std::optional<TrainedOn> trained_on = {};
};

/// "draft", or "draft-without-compute-l0".
Result<Subject> read_draft(const std::string& name) {
  constexpr std::string_view kWithout = "draft-without-";
  Subject subject{.name = name, .draft = true, .model = nullptr};
  if (name == "draft") return subject;
  const std::optional<Penalty> penalty = parse_penalty(name.substr(kWithout.size()));
  if (!penalty)
    return Error(fmt::format(
        "--model {}: no such penalty; there are {}", name, fmt::join(kPenaltyNames, ", ")));
  subject.penalties = subject.penalties.without(*penalty);
  return subject;
}

// With --load-model the name of --model has no effect, but the name of a draft is refused.
Result<Subject> read_subject(const Eval& options) {
  const std::string& name = options.model_name;
  const bool draft = name == "draft" || name.starts_with("draft-without-");
  if (draft && !options.load_model.empty())
    return Error("eval: --model ", name, " and --load-model exclude each other");
  if (draft) return read_draft(name);
  if (options.load_model.empty()) {
    if (name == "random") return Subject{.name = name, .model = nullptr};
    return Error(
        "eval: no model is named; give one with --load-model FILE, or --model draft or random");
  }
  Subject subject{.name = options.load_model, .model = nullptr};
  TRY_ASSIGN(subject.model, load_learned_model(options.load_model, options.threads));
  TRY_ASSIGN(subject.trained_on, subject.model->trained_on());
  return subject;
}

/// The networks of --network, with the tasks of --dags.
Result<std::unique_ptr<NetworkTasks>> read_networks(const Eval& options) {
  if (options.network.empty()) return std::make_unique<NetworkTasks>();
  Result<std::vector<NetworkInput>> named = network_set(options.network);
  if (!named.ok()) return Error("--network: ", named.error().message());
  auto networks = std::make_unique<NetworkTasks>(*std::move(named));
  for (const std::string& file : options.dags) TRY(networks->add_file(file));
  return networks;
}

/// Options that would have no effect are refused.
Result<Unit> check_options(const Eval& options, const Subject& subject) {
  if (options.all && options.new_tasks) return Error("--all and --new-tasks exclude each other");
  for (const auto& [flag, value] :
       {std::pair("--psa-form", options.draft.form), {"--psa", options.draft.device}}) {
    if (!value.empty() && !subject.draft) return Error(flag, " is of --model draft");
  }
  if (options.min_sample_size >= 0 && options.records.empty())
    return Error("--min-sample-size is of --records; a feature file is made with its own");
  return Unit{};
}

/// The programs to judge by; `scores` are the draft's.
struct Programs {
  ProgramTable table;
  std::vector<float> scores;
};

/// Checks a CPU's draft: it has one form, with the record's target; TVM's records have no draft.
Result<Unit> check_cpu_draft(const Eval& options, const Programs& programs) {
  if (options.draft.form != "" && options.draft.form != "ours")
    return Error("--psa-form ", options.draft.form, " is of GPUs, and the records are of a CPU");
  if (!options.draft.device.empty()) return Error("--psa is of GPUs, and the records are of a CPU");
  const auto without = std::ranges::count(programs.scores, 0.0f);
  if (without > 0)
    return Error(
        fmt::format("eval: {} of {} programs have no draft: there is none of TVM's records of CPUs",
                    without,
                    programs.scores.size()));
  return Unit{};
}

Result<Programs> read_records(const Eval& options,
                              const Subject& subject,
                              const NetworkTasks& networks) {
  TRY_ASSIGN(const std::vector<RecordPath> files,
             read_record_paths(options.records, "eval --records"));
  PoolOptions pool_options{.form = std::nullopt, .jobs = options.threads};
  if (subject.draft) {
    TRY_ASSIGN(pool_options.gpu, read_draft_gpu(options.draft.device));
    TRY_ASSIGN(pool_options.form, read_draft_form(options.draft.form));
    pool_options.penalties = subject.penalties;
  }
  ansor::WorkloadTable workloads;
  RecordedPrograms recorded(workloads,
                            subject.draft ? std::optional(subject.penalties) : std::nullopt);
  for (const std::string& file : options.dags) TRY(workloads.add_file(file));
  // Records may be of either kind, and networks are cut differently for each.
  for (const char* kind : {"llvm", "cuda"}) {
    TRY_ASSIGN(const Target target, parse_target(kind, 0));
    for (const ComputeDag& dag : networks.built_in_dags(target)) recorded.add_task(dag);
  }
  TRY_ASSIGN(ProgramPool pool, read_program_pool(files, recorded, pool_options));
  TRY(check_intact(pool.summary, files));
  warn_of_pool(pool);
  PoolTable made = table_of(std::move(pool), options.min_sample_size);
  if (made.table.size() == 0)
    return Error("eval: no task of the records has ", options.min_sample_size, " programs");
  Programs programs{std::move(made.table), std::move(made.draft_scores)};
  TRY(check_one_kind(programs.table.targets()));
  if (subject.draft && is_cpu(programs.table.targets()[0])) TRY(check_cpu_draft(options, programs));
  return programs;
}

Result<Programs> read_programs(const Eval& options,
                               const Subject& subject,
                               const NetworkTasks& networks) {
  const bool recorded = !options.records.empty();
  if (recorded && !options.datasets.empty())
    return Error("eval: --dataset and --records exclude each other");
  if (recorded) return read_records(options, subject, networks);
  if (subject.draft)
    return Error(
        "eval: a draft reads loop nests, which a feature file has not; give the records: "
        "--records FILE");
  TRY_ASSIGN(ProgramTable table, read_datasets(options.datasets));
  return Programs{std::move(table), {}};
}

/// "draft, form ours, numbers of k80".
std::string print_draft(const Eval& options, const ProgramTable& table) {
  if (is_cpu(table.targets()[0])) return options.model_name + " of the CPU";
  const std::string& device = options.draft.device;
  return fmt::format("{}, form {}, numbers of {}",
                     options.model_name,
                     options.draft.form.empty() ? "ours" : options.draft.form,
                     device.empty() ? "each record's device" : device);
}

Judged judged_of(const Eval& options) {
  if (options.all) return Judged::kAll;
  return options.new_tasks ? Judged::kUnseenTasks : Judged::kUnseenPrograms;
}

/// A model's scores, draft scores as shares of each task's best, or chance.
Result<std::vector<float>> scores_of(const Subject& subject,
                                     const Programs& programs,
                                     std::span<const size_t> chosen,
                                     uint64_t seed) {
  if (subject.model != nullptr) return predict_scores(*subject.model, programs.table, chosen);
  std::vector<float> scores;
  Rng rng(seed);
  for (const size_t p : chosen)
    scores.push_back(subject.draft ? programs.scores[p] : static_cast<float>(rng.uniform()));
  return subject.draft ? relative_scores(scores, programs.table, chosen) : scores;
}

Result<int> Eval::run(const Invocation& call) const {
  TRY_ASSIGN(const Subject subject, read_subject(*this));
  TRY(check_options(*this, subject));
  TRY_ASSIGN(const std::unique_ptr<NetworkTasks> networks, read_networks(*this));
  TRY_ASSIGN(const Programs programs, read_programs(*this, subject, *networks));
  const ProgramTable& table = programs.table;
  const SeenCount seen = count_seen(table, subject.trained_on);
  const std::vector<size_t> chosen = select(table, subject.trained_on, judged_of(*this));
  if (chosen.empty())
    return Error(subject.name, ": ", print(seen), "; none is left to judge it by (--all?)");
  TRY_ASSIGN(const std::vector<float> scores, scores_of(subject, programs, chosen, seed));
  const Evaluation evaluation =
      evaluate_scores(scores, table, chosen, EvaluateOptions{networks.get(), kept});
  if (!network.empty() && evaluation.networks.empty())
    return Error(
        "--network ", network, ": its tasks are not known; give a file that has them with --dags");
  if (!out_file.empty())
    TRY(write_file(out_file, evaluation_svg(scores, table, chosen, subject.name)));
  if (call.json) {
    Json json = to_json(evaluation, table);
    json["model"] = subject.name;
    if (subject.draft) json["draft"] = print_draft(*this, table);
    json["seen"] = {{"known", seen.known},
                    {"programs", seen.seen},
                    {"others_of_their_workloads", seen.of_known_tasks},
                    {"of_other_workloads", seen.of_unseen_tasks}};
    fmt::print("{}\n", print_json(json));
    return kDone;
  }
  if (subject.model != nullptr) fmt::print("{}: {}\n", subject.name, print(seen));
  if (subject.draft) fmt::print("{}\n", print_draft(*this, table));
  fmt::print("judged by: {}", print(evaluation));
  return kDone;
}

}  // namespace

RunCommand make_eval(CLI::App& app) { return make_command<Eval>(app); }

}  // namespace pruner
