#include "record/record_stream.h"

#include <optional>

#include "support/ceil_div.h"
#include "support/gzip.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

constexpr size_t kBatchBytes = size_t{4} << 20;
constexpr int64_t kChunk = 32;  // lines that a thread parses at once

/// Lines of one file that are parsed together.
struct Batch {
  std::string text;  // text of all lines
  struct Line {
    size_t begin = 0, size = 0;
    int64_t number = 0;
    bool cut = false;
    std::optional<Result<Record>> record = std::nullopt;
    RecordIds ids = {};
  };
  std::vector<Line> lines;

  std::string_view text_of(const Line& line) const {
    return std::string_view(text).substr(line.begin, line.size);
  }

  void parse(int jobs) {
    const auto count = static_cast<int64_t>(lines.size());
    parallel_for(ceil_div(count, kChunk), jobs, [&](int64_t chunk) {
      for (int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
        Line& line = lines[i];
        line.record =
            line.cut ? Result<Record>(Error("a line of over 16 MiB")) : parse_line(text_of(line));
        if (line.record->ok()) line.ids = ids_of(**line.record);
      }
    });
  }
};

/// The next lines; none at the end of the file.
Batch read_batch(LineReader& reader) {
  Batch batch;
  while (batch.text.size() < kBatchBytes) {
    const std::optional<LineReader::Line> line = reader.next();
    if (!line) break;
    if (line->text.find_first_not_of(" \t\r") == std::string_view::npos && !line->cut) continue;
    if (line->text.starts_with('#')) continue;
    batch.lines.push_back({batch.text.size(), line->text.size(), line->number, line->cut});
    batch.text += line->text;
  }
  return batch;
}

}  // namespace

void Damage::add_line(const std::string& path, int64_t number, std::string_view why) {
  ++lines;
  if (named.size() < kNamed)
    named.push_back(path + ":" + std::to_string(number) + ": " + std::string(why));
}

void Damage::drop_last_line() {
  if (static_cast<int64_t>(named.size()) == lines) named.pop_back();
  --lines;
}

void Damage::add_file(const std::string& path) {
  if (files++ == 0) first_file = path;
  if (named.size() < kNamed) named.push_back(path + ": " + kEndsEarly);
}

void Damage::add(const Damage& part) {
  lines += part.lines;
  if (files == 0) first_file = part.first_file;
  files += part.files;
  for (const std::string& name : part.named)
    if (named.size() < kNamed) named.push_back(name);
}

Result<StreamSummary> stream_records(std::span<const RecordPath> files,
                                     int jobs,
                                     const std::function<Result<Unit>(StreamedRecord&&)>& take) {
  StreamSummary summary;
  for (const RecordPath& file : files) {
    TRY_ASSIGN(LineReader reader, LineReader::open(file.path));
    Damage damage;
    int64_t records = 0;
    bool torn = false;  // the last line is no record
    for (Batch batch = read_batch(reader); !batch.lines.empty(); batch = read_batch(reader)) {
      batch.parse(jobs);
      for (Batch::Line& line : batch.lines) {
        Result<Record>& record = *line.record;
        torn = !record.ok();
        if (torn) {
          damage.add_line(file.path, line.number, record.error().message());
          continue;
        }
        ++records;
        TRY(take({*std::move(record),
                  std::move(line.ids),
                  batch.text_of(line),
                  file.path,
                  line.number}));
      }
      if (records == 0 && !file.named) break;  // some other file, and maybe a long one
    }
    if (reader.damaged()) {
      if (torn) damage.drop_last_line();
      damage.add_file(file.path);
    }
    if (records == 0 && !file.named && damage.files == 0) {
      ++summary.other;
      continue;
    }
    ++summary.files;
    summary.records += records;
    summary.damage.add(damage);
  }
  return summary;
}

Result<LoadedRecords> load_records(std::span<const RecordPath> files, int jobs) {
  LoadedRecords loaded;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    if (loaded.files.empty() || loaded.files.back().path != streamed.path)
      loaded.files.push_back({streamed.path, {}});
    loaded.files.back().records.push_back(std::move(streamed.record));
    return Unit{};
  };
  TRY_ASSIGN(loaded.summary, stream_records(files, jobs, take));
  return loaded;
}

}  // namespace pruner
