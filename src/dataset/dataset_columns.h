// How a file of features is laid out: what its writer and its reader agree on.
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

/// A column, in the order of the data; widths fall, so that each is aligned.
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
    {"id", "U64", 8},                // by program
    {"latency", "F64", 8},           // seconds, by program
    {"row_offset", "I64", 8},        // by program, and the end: its first row
    {"primitive_offset", "I64", 8},  // likewise
    {"task", "I32", 4},              // by program
    {"primitives", "I32", 4},        // sequences, as primitives() gives them
    {"dataflow", "F32", 4},          // programs x kDataflowSteps x kDataflowFeatures
    {"rows", "F32", 4},              // rows x kRowFeatures
}};

/// The shape of each column.
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

/// The checksum: of the data's bytes, which `hasher` has, and of the metadata.
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
