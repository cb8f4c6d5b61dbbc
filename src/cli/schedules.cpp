#include "cli/schedules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cli/record_files.h"
#include "support/log.h"

namespace pruner {

Result<RecordedSchedules> read_schedules(const std::vector<std::string>& named,
                                         int jobs,
                                         const Source& source,
                                         const Target& target) {
  if (named.empty()) return RecordedSchedules({}, target);
  TRY_ASSIGN(std::vector<FileRecords> read, read_record_files(named, "--records", jobs));
  std::vector<Record> records;
  for (FileRecords& file : read) std::ranges::move(file.records, std::back_inserter(records));
  const int64_t all = static_cast<int64_t>(records.size());
  RecordedSchedules schedules(std::move(records), target);

  const std::string files = fmt::format("{}", fmt::join(named, ", "));
  const std::string instead = "tune it here, or leave --records out";
  int64_t of_tasks = 0;
  for (const WeightedTask& task : source.tasks) of_tasks += schedules.of_task(task.task);
  if (schedules.of_device() == 0) {
    return Error(files,
                 ": ",
                 all,
                 " records, none of this device (",
                 device_fingerprint(target),
                 "); ",
                 instead);
  }
  if (of_tasks == 0) {
    return Error(files,
                 ": ",
                 all,
                 " records, none of ",
                 source.name,
                 " with these shapes (batch, image or sequence); ",
                 instead);
  }
  if (of_tasks < all) {
    log_warning("{}: {} records are of another device, {} of another model; they are left out",
                files,
                all - schedules.of_device(),
                schedules.of_device() - of_tasks);
  }
  return schedules;
}

void add_forms(CLI::App& app, std::string& forms) {
  add_option(app, "--forms", forms)
      .help("forms of a task to use: direct, split-k, winograd-2x2, winograd-4x4; default: all");
}

Result<std::vector<std::string>> read_forms(const std::string& text) {
  const std::vector<std::string> known = form_names();
  std::vector<std::string> forms;
  std::istringstream in(text);
  for (std::string form; std::getline(in, form, ',');) {
    if (std::ranges::find(known, form) == known.end()) {
      return Error("--forms: \"",
                   form,
                   "\" is no form of a task; use ",
                   fmt::to_string(fmt::join(known, ", ")));
    }
    forms.push_back(form);
  }
  return forms;
}

ScheduleChoice schedule_choice(const RecordedSchedules& schedules) {
  return [&schedules](const Task& task, const Space& space) { return schedules.best(task, space); };
}

ScheduleChoice schedule_choice(const Tuner& tuner) {
  return [&tuner](const Task& task, const Space&) -> std::optional<Candidate> {
    for (const TunedTask& tuned : tuner.tasks()) {
      const std::vector<Trial> trials = tuned.history.best(1);
      if (tuned.task->task.key == task.key && !trials.empty()) return trials.front().candidate;
    }
    return std::nullopt;
  };
}

ScheduleChoice or_nearest(ScheduleChoice choice,
                          const NearestSchedules& nearest,
                          NearestCounts& counts) {
  return [choice = std::move(choice), &nearest, &counts](
             const Task& task, const Space& space) -> std::optional<Candidate> {
    if (std::optional<Candidate> chosen = choice(task, space)) return chosen;
    std::optional<NearestSchedules::Found> found = nearest.find(task, space);
    if (!found) return std::nullopt;
    ++(found->same_task ? counts.same : counts.near);
    return std::move(found->candidate);
  };
}

}  // namespace pruner
