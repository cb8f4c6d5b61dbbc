// safetensors files (named tensors and a map of strings): bytes ↔ tensors of float32, or ↔ where
// tensors of any type lie.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/weights.h"

namespace pruner {

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  Tensors tensors;
};

/// A tensor of a file: bytes [begin, end) of the data, which starts behind the header.
struct SafetensorsEntry {
  std::string dtype;  // "F32", "F64", "I32", "I64" or "U64"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::map<std::string, SafetensorsEntry> entries;
  size_t data = 0;  // offset of the data in the file, in bytes
};

/// Every entry lies within the bytes and has the size of its shape. Errors do not name the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes);
/// Returns the bytes before the data; their number is a multiple of 8.
std::string print_safetensors_header(const SafetensorsHeader& header);

/// Errors do not name the file.
Result<SafetensorsFile> parse_safetensors(std::string_view bytes);
std::string print_safetensors(const SafetensorsFile& file);

}  // namespace pruner
