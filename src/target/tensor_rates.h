// The rates of tensor cores by name, with the first architecture whose instructions of warps
// multiply such numbers (space/mma.h has the instructions).
#pragma once

#include <string_view>

#include "target/target.h"

namespace pruner {

struct TensorRateRow {
  std::string_view name;
  double TensorRates::*rate;
  int oldest;  // compute capability: 75 is sm_75
};
inline constexpr TensorRateRow kTensorRates[] = {
    {"f16_f32", &TensorRates::f16_f32, 75},
    {"f16_f16", &TensorRates::f16_f16, 75},
    {"bf16", &TensorRates::bf16, 80},
    {"tf32", &TensorRates::tf32, 80},
    {"s8", &TensorRates::s8, 75},
};
inline constexpr double kMostTensorRate = 1 << 20;  // a file's that is more is a mistake

constexpr const TensorRateRow* find_tensor_rate(std::string_view name) {
  for (const TensorRateRow& row : kTensorRates) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

constexpr const TensorRateRow* find_tensor_rate(double TensorRates::*rate) {
  for (const TensorRateRow& row : kTensorRates) {
    if (row.rate == rate) return &row;
  }
  return nullptr;
}

}  // namespace pruner
