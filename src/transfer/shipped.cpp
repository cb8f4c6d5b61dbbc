#include "transfer/shipped.h"

#include <algorithm>

#include "support/check.h"

namespace pruner {

/// The file of records/ for a target; empty: there is none.
static std::string_view name_for(const Target& target) {
  if (target.is_gpu() || target.isa != Isa::kX86) return "";
  if (target.vector_bytes == 64) return "avx512";
  return target.vector_bytes == 32 ? "avx2" : "";
}

std::vector<Record> shipped_records(const Target& target) {
  std::vector<Record> records;
  const auto file = std::ranges::find(shipped_files(), name_for(target), &ShippedFile::name);
  if (file == shipped_files().end()) return records;
  for (const RecordLine& line : record_lines(file->text)) {
    Result<Record> record = parse_line(line.text);
    CHECK(record.ok()) << "records/" << file->name << ".json:" << line.number << ": "
                       << record.error().message();
    records.push_back(*std::move(record));
  }
  return records;
}

}  // namespace pruner
