#include "record/merge_records.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <unordered_set>

#include "record/line_sorter.h"
#include "record/record_id.h"
#include "support/gzip.h"

namespace pruner {

namespace {

/// Bytes that are ordered as the records are to be.
std::string key_of(const Record& record, RecordOrder order) {
  if (order == RecordOrder::kTime)
    return fmt::format("{:020}", std::max<int64_t>(record.result.timestamp, 0));
  const double time_s = measured_s(record).value_or(std::numeric_limits<double>::infinity());
  std::string key = record.workload_key;
  for (const std::string& part : {record.target, record.device}) (key += '\0') += part;
  // The bits of positive numbers are ordered as these are.
  return key + '\0' + fmt::format("{:016x}", std::bit_cast<uint64_t>(time_s));
}

}  // namespace

std::optional<RecordOrder> parse_record_order(std::string_view name) {
  if (name == "time") return RecordOrder::kTime;
  if (name == "task") return RecordOrder::kTask;
  if (name == "given") return RecordOrder::kGiven;
  return std::nullopt;
}

Result<MergeSummary> merge_records(std::span<const RecordPath> files,
                                   RecordOrder order,
                                   const std::string& path,
                                   int jobs) {
  TRY(check_no_input(path, files));
  TRY_ASSIGN(PackedWriter writer, PackedWriter::open(path));
  LineSorter sorter(writer.beside("sorted"));
  MergeSummary merged;
  const auto write = [&](std::string_view line) -> Result<Unit> {
    TRY(writer.write(line));
    return writer.write("\n");
  };
  std::unordered_set<std::string> seen;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    if (!seen.insert(streamed.ids.trial).second) {
      ++merged.duplicates;
      return Unit{};
    }
    ++merged.written;
    if (order == RecordOrder::kGiven) return write(streamed.line);
    return sorter.add(key_of(streamed.record, order), streamed.line);
  };
  TRY_ASSIGN(merged.summary, stream_records(files, jobs, take));
  if (merged.written == 0) return Error("no record in ", files.size(), " files");
  TRY(sorter.finish(write));
  TRY(writer.commit());
  return merged;
}

}  // namespace pruner
