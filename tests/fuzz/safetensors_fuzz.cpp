// layer: model
// A safetensors file -> its tensors.
#include "fuzz/fuzz_target.h"
#include "model/safetensors.h"
#include "support/check.h"

namespace pruner {

std::vector<std::string> seeds() {
  const SafetensorsFile file{.metadata = {{"mode", "base_only"}},
                             .tensors = {{"a", {{2, 1}, {1, -2}}}, {"b", {{}, {0.5f}}}}};
  return {print_safetensors({}), print_safetensors(file)};
}

bool read_input(std::string_view bytes) {
  const Result<SafetensorsFile> file = parse_safetensors(bytes);
  if (!file.ok()) return false;
  const std::string printed = print_safetensors(*file);
  const Result<SafetensorsFile> again = parse_safetensors(printed);
  CHECK(again.ok() && print_safetensors(*again) == printed) << printed;
  return true;
}

}  // namespace pruner
