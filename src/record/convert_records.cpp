#include "record/convert_records.h"

#include <limits>

#include "ansor/steps.h"
#include "support/gzip.h"

namespace pruner {

namespace {

constexpr size_t kHardwareNumbers = 8;

/// Returns what TVM takes if a record does not say: a GPU's usual limits, this host's cores.
std::vector<int64_t> usual_hardware(const std::string& target) {
  if (target.starts_with("llvm")) {
    const Result<Target> host = parse_target("llvm", 0);
    return {host.ok() ? host->threads : 1, 64, 64, 0, 0, 0, 0, 0};
  }
  const Gpu gpu;
  return {-1,
          16,
          64,
          gpu.shared_bytes_per_block,
          std::numeric_limits<int32_t>::max(),
          gpu.max_threads_per_block,
          8,
          32};
}

/// The record's steps, read and printed: what no version of the format knows is an error.
Result<Unit> check_steps(const Record& record) {
  const Json& steps = record.steps;
  if (!steps.is_array() || steps.size() != 2) return Error("no list of steps");
  TRY(ansor::steps_from_json(steps[1]));
  return Unit{};
}

void set_foreign(Record& record) {
  record.sketch_name.clear();
  record.sketch_hash.clear();
  record.decisions.clear();
  record.device.clear();
  record.origin = "foreign";
}

}  // namespace

Result<Record> as_v06(Record record, const ConvertOptions& options) {
  TRY(check_steps(record));
  const bool own = !record.sketch_name.empty();
  if (own && options.strict) {
    if (record.steps[1].empty()) return Error("a candidate of ours without transform steps");
    set_foreign(record);
  }
  if (record.hardware.size() != kHardwareNumbers) record.hardware = usual_hardware(record.target);
  record.version = "v0.6";
  return record;
}

Result<ConvertSummary> convert_records(std::span<const RecordPath> files,
                                       const ConvertOptions& options,
                                       const std::string& path,
                                       int jobs) {
  TRY(check_no_input(path, files));
  TRY_ASSIGN(PackedWriter writer, PackedWriter::open(path));
  ConvertSummary converted;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    const std::string version = streamed.record.version;
    const bool assumed = streamed.record.hardware.size() != kHardwareNumbers;
    const Result<Record> record = as_v06(std::move(streamed.record), options);
    if (!record.ok()) {
      NoForm& reason = converted.left_out[record.error().message()];
      if (reason.records++ == 0)
        reason.first = streamed.path + ":" + std::to_string(streamed.number);
      return Unit{};
    }
    ++converted.written;
    ++converted.versions[version];
    converted.assumed_hardware += assumed;
    return writer.write(print_line(*record) + "\n");
  };
  TRY_ASSIGN(converted.summary, stream_records(files, jobs, take));
  if (converted.written == 0)
    return Error("none of ", converted.summary.records, " records has the form that is asked for");
  TRY(writer.commit());
  return converted;
}

}  // namespace pruner
