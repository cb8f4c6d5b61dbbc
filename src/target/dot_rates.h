// The fields of DotRates by name, as device files and modules have them, with what the CPU needs to
// have for each.
#pragma once

#include <string_view>

#include "target/target.h"

namespace pruner {

struct DotRateRow {
  std::string_view name;
  double DotRates::*rate;
  // LLVM's names of what the instructions need; "": an instruction set has none.
  const char *x86_features, *arm_features;

  const char* features(Isa isa) const { return isa == Isa::kArm ? arm_features : x86_features; }
};

inline constexpr DotRateRow kDotRates[] = {
    {"bfloat16", &DotRates::bfloat16, "avx512bf16", "bf16"},
    {"int8", &DotRates::int8, "avx512vnni", "i8mm"},
    {"bfloat16_tile", &DotRates::bfloat16_tile, "amx-tile amx-bf16", "bf16"},
    {"int8_tile", &DotRates::int8_tile, "amx-tile amx-int8", "i8mm"},
    {"int8_alike", &DotRates::int8_alike, "", "dotprod"},
    {"float16_tile", &DotRates::float16_tile, "amx-tile amx-fp16", ""},
};

/// More than any unit of a core has of one FMA's products.
inline constexpr double kMostDotRate = 1024;

constexpr const DotRateRow* find_dot_rate(std::string_view name) {
  for (const DotRateRow& row : kDotRates) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

constexpr const DotRateRow* find_dot_rate(double DotRates::*rate) {
  for (const DotRateRow& row : kDotRates) {
    if (row.rate == rate) return &row;
  }
  return nullptr;
}

/// Whether a CPU has the instructions of a row: by its features, and by its mcpu where they do not
/// say.
bool has_dots(const Target& target, const DotRateRow& row);

/// Sets to 0 the rates of what the CPU has no instructions for.
void drop_missing_dots(Target& target);

}  // namespace pruner
