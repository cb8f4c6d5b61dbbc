#include "record/replay_check.h"

#include <algorithm>

#include "ansor/nest.h"
#include "record/record.h"
#include "support/ceil_div.h"
#include "support/gzip.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr size_t kLinesAPart = 64;

void check_line(const std::string& path,
                const RecordLine& line,
                ansor::WorkloadTable& workloads,
                ansor::OwnPoints& points,
                ReplayCount& count) {
  const auto where = [&] { return path + ":" + std::to_string(line.number); };
  ++count.records;
  const Result<Record> record = parse_line(line.text);
  if (!record.ok()) return note(count.failed, record.error().message(), where());
  const ansor::WorkloadEntry& workload = workloads.find(record->workload_key);
  if (workload.variants.empty()) {
    ++count.no_dag;
    return note(count.unknown, workload.missing, where());
  }
  const Json& steps = record->steps;
  if (!steps.is_array() || steps.size() != 2) {
    return note(count.failed, "no list of steps", where());
  }
  const auto list = ansor::steps_from_json(steps[1]);
  if (!list.ok()) return note(count.failed, list.error().message(), where());
  const auto nest = ansor::replay(workload, *list);
  if (!nest.ok()) return note(count.failed, general_reason(nest.error().message()), where());
  ++count.replayed;
  const auto point = points.find(*nest, record->hardware);
  if (!point.ok()) return note(count.foreign, point.error().message(), where());
  if (point->same()) {
    ++count.own;
    return;
  }
  ++count.nearest;
  note(count.foreign, point->other, where());
  for (const std::string& what : point->changed) ++count.changed[what];
}

}  // namespace

double ReplayCount::share() const {
  const int64_t known = records - no_dag;
  return known == 0 ? 1 : static_cast<double>(replayed) / static_cast<double>(known);
}

double ReplayCount::candidate_share() const {
  return replayed == 0 ? 1 : static_cast<double>(own + nearest) / static_cast<double>(replayed);
}

void ReplayCount::add(const ReplayCount& part) {
  records += part.records;
  replayed += part.replayed;
  own += part.own;
  nearest += part.nearest;
  for (const auto& [what, records] : part.changed) changed[what] += records;
  no_dag += part.no_dag;
  pruner::add(failed, part.failed);
  pruner::add(unknown, part.unknown);
  pruner::add(foreign, part.foreign);
}

Result<ReplayCount> check_replay(const RecordPath& file,
                                 ansor::WorkloadTable& workloads,
                                 ansor::OwnPoints& points,
                                 int jobs) {
  TRY_ASSIGN(const UnpackedFile unpacked, read_unpacked(file.path));
  const std::vector<RecordLine> lines = record_lines(unpacked.content);
  ReplayCount total;
  total.path = file.path;
  total.damaged = unpacked.damaged;
  total.other = !file.named && !look_like_records(lines);
  if (total.other) return total;
  const size_t parts = ceil_div(lines.size(), kLinesAPart);
  std::vector<ReplayCount> counts(parts);
  parallel_for(static_cast<int64_t>(parts), jobs, [&](int64_t part) {
    const size_t begin = static_cast<size_t>(part) * kLinesAPart;
    const size_t end = std::min(begin + kLinesAPart, lines.size());
    for (size_t i = begin; i < end; ++i) {
      check_line(file.path, lines[i], workloads, points, counts[part]);
    }
  });
  for (const ReplayCount& part : counts) total.add(part);
  return total;
}

}  // namespace pruner
