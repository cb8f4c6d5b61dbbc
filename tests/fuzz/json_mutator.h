// Mutates JSON for fuzz targets: most mutations change a value, and the text stays JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "support/json.h"
#include "support/rng.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace pruner {

inline void add_values(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& value : json) add_values(value, values);
}

/// One value becomes another one's copy, goes, comes twice, or is another number or text.
inline void mutate(Json& json, Rng& rng) {
  static const std::array<Json, 12> kNumbers = {
      0, 1, -1, 2, 255, 1 << 30, int64_t{1} << 32, INT64_MAX, INT64_MIN, 0.5, 1e300, -1e-300};
  std::vector<Json*> values;
  add_values(json, values);
  const auto any = [&] { return values[static_cast<size_t>(rng.below(std::ssize(values)))]; };
  Json& value = *any();
  switch (rng.below(4)) {
    case 0: {
      Json copy = *any();
      value = std::move(copy);
      return;
    }
    case 1: {
      if (!value.is_structured() || value.empty()) break;
      const auto at = std::next(value.begin(), rng.below(std::ssize(value)));
      value.erase(at);
      return;
    }
    case 2: {
      if (!value.is_array() || value.empty()) break;
      Json copy = value[static_cast<size_t>(rng.below(std::ssize(value)))];
      value.push_back(std::move(copy));
      return;
    }
    default: break;
  }
  if (value.is_string()) {
    std::string text = value;
    const size_t size = text.size();
    text.resize(size + 8);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    value = text;
  } else if (value.is_number_integer() && rng.below(2) == 0) {
    value = static_cast<int64_t>(value.get<uint64_t>() + static_cast<uint64_t>(rng.below(17)) - 8);
  } else {
    value = kNumbers[static_cast<size_t>(rng.below(std::ssize(kNumbers)))];
  }
}

}  // namespace pruner

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  pruner::Rng rng(seed);
  auto json = pruner::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok() || rng.below(4) == 0) return LLVMFuzzerMutate(data, size, most);
  pruner::mutate(*json, rng);
  const std::string text = json->dump(-1, ' ', false, pruner::Json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
