// pruner eval: a model and feature files -> how well it orders the programs it has not seen.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/source.h"
#include "report/evaluation_report.h"
#include "support/rng.h"

namespace pruner {

namespace {

std::vector<float> random_scores(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> scores(count);
  for (float& score : scores) score = static_cast<float>(rng.uniform());
  return scores;
}

Judged judged_of(const Options& options) {
  if (options.all) return Judged::kAll;
  return options.new_tasks ? Judged::kUnseenTasks : Judged::kUnseenPrograms;
}

}  // namespace

Result<int> run_eval(const Options& options) {
  if (options.all && options.new_tasks) return Error("--all and --new-tasks exclude each other");
  const bool random = options.load_model.empty() && options.cost_model == "random";
  if (options.load_model.empty() && !random)
    return Error("eval: no model is named; give one with --load-model FILE, or --model random");
  std::unique_ptr<LearnedModel> model;
  std::optional<TrainedOn> trained_on;
  if (!random) {
    TRY_ASSIGN(model, load_learned_model(options.load_model, thread_count(options)));
    TRY_ASSIGN(trained_on, model->trained_on());
  }
  TRY_ASSIGN(const ProgramTable table, read_datasets(options));
  const SeenCount seen = count_seen(table, trained_on);
  const std::vector<size_t> programs = select(table, trained_on, judged_of(options));
  if (programs.empty())
    return Error(options.load_model, ": ", print(seen), "; none is left to judge it by (--all?)");
  Evaluation evaluation;
  if (random) {
    evaluation = evaluate_scores(
        random_scores(programs.size(), static_cast<uint64_t>(options.seed)), table, programs);
  } else {
    TRY_ASSIGN(evaluation, evaluate(*model, table, programs));
  }
  if (options.json) {
    Json json = to_json(evaluation, table);
    json["seen"] = {{"known", seen.known},
                    {"programs", seen.seen},
                    {"others_of_their_workloads", seen.of_known_tasks},
                    {"of_other_workloads", seen.of_unseen_tasks}};
    fmt::print("{}\n", print_json(json));
    return kDone;
  }
  if (!random) fmt::print("{}: {}\n", options.load_model, print(seen));
  fmt::print("judged by: {}", print(evaluation));
  return kDone;
}

}  // namespace pruner
