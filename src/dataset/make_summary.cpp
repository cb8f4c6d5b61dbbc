#include "dataset/make_summary.h"

namespace pruner {

namespace {

Json reasons_to_json(const Reasons& reasons) {
  Json json = Json::array();
  for (const auto& [reason, entry] : reasons)
    json.push_back({{"reason", reason}, {"count", entry.count}, {"first", entry.first}});
  return json;
}

}  // namespace

Json to_json(const DeviceCount& count) {
  return {{"target", count.target},
          {"records", count.records},
          {"valid", count.valid},
          {"failed", count.failed},
          {"bad_label", count.bad_label},
          {"held_out", count.held_out},
          {"failed_dropped", count.failed_dropped},
          {"no_dag", count.no_dag},
          {"not_rebuilt", count.not_rebuilt},
          {"duplicates", count.duplicates},
          {"too_few", count.too_few},
          {"beyond_n_task", count.beyond},
          {"kept", count.kept},
          {"tasks", count.tasks}};
}

Json to_json(const MakeSummary& summary) {
  Json devices = Json::array();
  for (const DeviceCount& device : summary.devices) devices.push_back(to_json(device));
  return {{"devices", devices},
          {"total", to_json(summary.total())},
          {"files", summary.files},
          {"other_files", summary.other_files},
          {"lines", summary.lines},
          {"other_targets", summary.other_targets},
          {"unreadable_files", reasons_to_json(summary.unreadable_files)},
          {"unreadable", reasons_to_json(summary.unreadable)},
          {"bad_labels", reasons_to_json(summary.bad_label)},
          {"no_dag", reasons_to_json(summary.no_dag)},
          {"not_rebuilt", reasons_to_json(summary.not_rebuilt)},
          {"rows", summary.rows}};
}

std::string MakeSummary::nothing_kept(int64_t min_sample_size, int64_t most) const {
  std::string why;
  for (const Reasons* reasons :
       {&unreadable_files, &unreadable, &bad_label, &no_dag, &not_rebuilt}) {
    for (const auto& [reason, entry] : *reasons)
      why += "; " + std::to_string(entry.count) + " " + reason + " (first: " + entry.first + ")";
  }
  const DeviceCount all = total();
  const auto say = [&](int64_t count, const std::string& what) {
    if (count > 0) why += "; " + std::to_string(count) + " " + what;
  };
  say(other_targets, "of another target than --target");
  say(all.held_out, "of tasks that are held out or not asked for");
  say(all.failed_dropped, "failed");
  say(all.too_few,
      "of tasks with fewer than " + std::to_string(min_sample_size) +
          " programs (--min-sample-size) or no valid one");
  if (most > 0 && most < min_sample_size)
    why += "; the largest task has " + std::to_string(most) + ": pass --min-sample-size " +
           std::to_string(most) + " or less";
  return "none of " + std::to_string(lines) + " lines in " + std::to_string(files) +
         " files is a record to keep" + why;
}

void DeviceCount::add(const DeviceCount& part) {
  records += part.records;
  valid += part.valid;
  failed += part.failed;
  bad_label += part.bad_label;
  held_out += part.held_out;
  failed_dropped += part.failed_dropped;
  no_dag += part.no_dag;
  not_rebuilt += part.not_rebuilt;
  duplicates += part.duplicates;
  too_few += part.too_few;
  beyond += part.beyond;
  kept += part.kept;
  tasks += part.tasks;
}

DeviceCount MakeSummary::total() const {
  DeviceCount total;
  total.target = "total";
  for (const DeviceCount& device : devices) total.add(device);
  return total;
}

}  // namespace pruner
