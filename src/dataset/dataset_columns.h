// The layout of a file of features, which its writer and its reader share.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/features.h"
#include "support/hash.h"

namespace pruner {

inline constexpr std::string_view kDatasetFormat = "pruner-dataset";
inline constexpr size_t kDataflowSize = size_t{kDataflowSteps} * kDataflowFeatures;

/// `DatasetColumn` is a column, in the order of the data; widths fall, so columns are aligned.
struct DatasetColumn {
  const char* name;
  const char* dtype;
  size_t element_bytes;
};

enum DatasetColumnIndex : size_t {
  kIdColumn,
  kLatencyColumn,
  kRowOffsetColumn,
  kPrimitiveOffsetColumn,
  kTaskColumn,
  kPrimitivesColumn,
  kDataflowColumn,
  kRowsColumn,
};

inline constexpr std::array<DatasetColumn, 8> kDatasetColumns = {{
    {"id", "U64", 8},                // one per program
    {"latency", "F64", 8},           // seconds, one per program
    {"row_offset", "I64", 8},        // first row of each program, and the end
    {"primitive_offset", "I64", 8},  // first primitive of each program, and the end
    {"task", "I32", 4},              // one per program
    {"primitives", "I32", 4},        // sequences, as primitives() gives them
    {"dataflow", "F32", 4},          // programs x kDataflowSteps x kDataflowFeatures
    {"rows", "F32", 4},              // rows x kRowFeatures
}};

/// Returns the shape of each column.
inline std::array<std::vector<int64_t>, 8> dataset_shapes(int64_t programs,
                                                          int64_t rows,
                                                          int64_t primitives) {
  return {{{programs},
           {programs},
           {programs + 1},
           {programs + 1},
           {programs},
           {primitives},
           {programs, kDataflowSteps, kDataflowFeatures},
           {rows, kRowFeatures}}};
}

/// Returns the checksum of the data's bytes, which are in `hasher`, and of the metadata.
inline std::string dataset_checksum(Hasher64 hasher,
                                    const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (key != "checksum") hasher.add(key + "=" + value + "\n");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[hasher.hash() >> shift & 15];
  return text;
}

}  // namespace pruner
