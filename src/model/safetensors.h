// safetensors files (named tensors and a map of strings): bytes ↔ tensors of float32.
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

/// Errors do not name the file.
Result<SafetensorsFile> parse_safetensors(std::string_view bytes);
std::string print_safetensors(const SafetensorsFile& file);

}  // namespace pruner
