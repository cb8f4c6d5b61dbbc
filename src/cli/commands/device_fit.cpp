// pruner device fit: numbers of a CPU's draft from programs measured on it, and how well the draft
// chooses among these with and without them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>

#include "cli/commands.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "dataset/draft_fit.h"
#include "report/comparison.h"
#include "support/file.h"
#include "target/device_file.h"

namespace pruner {

namespace {

/// A task, and how well the draft chooses among its programs with and without the fit.
struct JudgedTask {
  bool held_out = false;
  DraftQuality prior, fitted;
  WrongNumber wrong;
};

struct Fit {
  std::vector<std::string> records;
  std::string psa, hold_out, file;
  double stiffness = 0.01;
  bool judge = false;
  int jobs = 0;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_list(app, "--records,--logs FILES", records)
        .help("programs measured on this kind of CPU, as `pruner dataset collect` writes them");
    add_option(app, "--hold-out REGEX", hold_out)
        .help("tasks, as 'NAME on TARGET', that judge the fit and have no part in it", "none");
    add_option(app, "--judge", judge).help("judge the draft as it is: nothing is fitted");
    add_psa(app, psa);
    begin_group(app, OptionGroup::kSearch);
    add_option(app, "--stiffness X", stiffness)
        .help("how much it takes to move a number; with few programs more", "0.01");
    add_jobs(app, jobs);
    add_out_file(app, file, "the device file to write: NAME.json", {FileKind::kJson});
  }

  Result<std::vector<DraftedTask>> read_tasks(RecordedPrograms& programs) const;
  Result<int> run(const Invocation& call) const;
};

Result<std::vector<DraftedTask>> Fit::read_tasks(RecordedPrograms& programs) const {
  TRY_ASSIGN(const std::vector<RecordPath> files, read_record_paths(records, "device fit"));
  const PoolOptions options{.nests = true, .jobs = jobs};
  Result<ProgramPool> read = read_program_pool(files, programs, options);
  if (!read.ok()) return Error("device fit --records: ", read.error().message());
  ProgramPool& pool = *read;
  TRY(check_intact(pool.summary, files));
  warn_of_pool(pool);
  std::vector<DraftedTask> tasks;
  for (PooledTask& pooled : pool.tasks) {
    TRY_ASSIGN(Target target, parse_target(pooled.target, 0));
    if (target.is_gpu())
      return Error("device fit: records of ", pooled.target, "; only a CPU's draft is fitted");
    if (!psa.empty()) {
      TRY_ASSIGN(target, with_abstraction(std::move(target), psa));
    }
    DraftedTask task{pooled.name + " on " + pooled.target, std::move(target), {}, {}};
    for (size_t i = 0; i < pooled.size(); ++i) {
      if (pooled.trials[i].cost_s >= kFailedCost || pooled.draft_scores[i] == 0) continue;
      task.nests.push_back(std::move(pooled.nests[i]));
      task.seconds.push_back(pooled.trials[i].cost_s);
    }
    if (task.nests.size() > 1) tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return Error("device fit: no task of the records has two programs of ours");
  return tasks;
}

Json quality_json(const DraftQuality& q) {
  return {{"best_1", q.best_1}, {"best_10", q.best_10}, {"pairwise", q.pairwise}};
}

Json to_json(const std::vector<DraftedTask>& tasks,
             const std::vector<JudgedTask>& judged,
             const DraftFit& fit) {
  Json json{{"loss_before", fit.loss_before}, {"loss", fit.loss}};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const JudgedTask& of = judged[i];
    Json row{{"name", tasks[i].name},
             {"programs", tasks[i].nests.size()},
             {"held_out", of.held_out},
             {"best_ms", 1e3 * *std::ranges::min_element(tasks[i].seconds)},
             {"random_10", of.prior.random_10},
             {"prior", quality_json(of.prior)},
             {"fitted", quality_json(of.fitted)}};
    if (!of.wrong.name.empty())
      row["wrong"] = {
          {"name", of.wrong.name}, {"factor", of.wrong.factor}, {"best_1", of.wrong.best_1}};
    json["tasks"].push_back(std::move(row));
  }
  for (size_t i = 0; i < fit.factors.size(); ++i)
    json["factors"][draft_numbers()[i].name] = fit.factors[i];
  return json;
}

std::string print(const std::vector<DraftedTask>& tasks,
                  const std::vector<JudgedTask>& judged,
                  const DraftFit& fit) {
  std::vector<std::vector<std::string>> rows = {{"task",
                                                 "programs",
                                                 "best-1",
                                                 "best-10",
                                                 "random-10",
                                                 "pairs",
                                                 "fitted: best-1",
                                                 "best-10",
                                                 "pairs",
                                                 "wrong"}};
  const auto share = [](double value) { return fmt::format("{:.3f}", value); };
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto& [held_out, prior, fitted, wrong] = judged[i];
    rows.push_back(
        {tasks[i].name + (held_out ? " *" : ""),
         std::to_string(tasks[i].nests.size()),
         share(prior.best_1),
         share(prior.best_10),
         share(prior.random_10),
         share(prior.pairwise),
         share(fitted.best_1),
         share(fitted.best_10),
         share(fitted.pairwise),
         wrong.name.empty()
             ? ""
             : fmt::format("{} x {:.2g} -> {:.3f}", wrong.name, wrong.factor, wrong.best_1)});
  }
  std::string text = print_table(rows);
  text += fmt::format("loss {:.4f}, fitted {:.4f}\n", fit.loss_before, fit.loss);
  for (size_t i = 0; i < fit.factors.size(); ++i) {
    if (fit.factors[i] != 1)
      text += fmt::format("{} x {:.3g}\n", draft_numbers()[i].name, fit.factors[i]);
  }
  return text;
}

Result<int> Fit::run(const Invocation& call) const {
  std::regex held_out;
  try {
    held_out = std::regex(hold_out);
  } catch (const std::regex_error& error) {
    return Error("--hold-out: ", error.what());
  }
  if (judge && !file.empty()) return Error("--judge fits nothing that -o could write");
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  TRY_ASSIGN(const std::vector<DraftedTask> tasks, read_tasks(programs));
  const auto of_first = [&](const DraftedTask& task) {
    return print(task.target) == print(tasks[0].target);
  };
  if (!file.empty() && !std::ranges::all_of(tasks, of_first))
    return Error("device fit: -o is of one kind of machine, and the records are of several");
  std::vector<JudgedTask> judged(tasks.size());
  std::vector<DraftedTask> fitted;
  for (size_t i = 0; i < tasks.size(); ++i) {
    judged[i].held_out = !hold_out.empty() && std::regex_search(tasks[i].name, held_out);
    if (!judged[i].held_out) fitted.push_back(tasks[i]);
  }
  DraftFit fit{DraftFactors(draft_numbers().size(), 1)};
  if (!judge) {
    if (fitted.empty()) return Error("--hold-out: no task is left to fit");
    fit = fit_draft(fitted, stiffness, jobs);
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    judged[i].prior = judged[i].fitted = draft_quality(tasks[i]);
    judged[i].wrong = wrong_number(tasks[i]);
    if (judge) continue;
    DraftedTask with_fit = tasks[i];
    with_fit.target = scaled(tasks[i].target, fit.factors);
    judged[i].fitted = draft_quality(with_fit);
  }
  if (!file.empty()) {
    Target target = scaled(tasks[0].target, fit.factors);
    target.device = std::filesystem::path(file).stem().string();
    target.source =
        fmt::format("fitted by pruner device fit to programs of {} tasks", fitted.size());
    TRY(write_file(file, target_to_json(target).dump(2) + "\n"));
  }
  return call.show(to_json(tasks, judged, fit), print(tasks, judged, fit));
}

}  // namespace

RunCommand make_device_fit(CLI::App& app) { return make_command<Fit>(app); }

}  // namespace pruner
