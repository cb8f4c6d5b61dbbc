// Records that come with the program: the best schedules of networks that we tuned, for each
// instruction set.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "target/target.h"

namespace pruner {

/// A file of records/ as cmake/shipped_records.cmake found it: "avx512" and its lines.
struct ShippedFile {
  std::string_view name, text;
};
std::span<const ShippedFile> shipped_files();

/// Returns the records for the target's vectors: records/avx512.json, records/avx2.json, or none.
std::vector<Record> shipped_records(const Target& target);

}  // namespace pruner
