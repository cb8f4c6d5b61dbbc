// The rates of tensor cores by name, with the first architecture whose instructions of warps
// multiply such numbers (space/mma.h has the instructions).
#pragma once

#include <string_view>

#include "target/target.h"

namespace pruner {

struct TensorRateRow {
  std::string_view name;
  double TensorRates::*rate;
  int oldest;            // compute capability: 75 is sm_75
  int newest = 1 << 20;  // compute capability of the last that has them

  constexpr bool is_on(int capability) const {
    return oldest <= capability && capability <= newest;
  }
};
inline constexpr TensorRateRow kTensorRates[] = {
    {"f16_f32", &TensorRates::f16_f32, 75},
    {"f16_f16", &TensorRates::f16_f16, 75},
    {"bf16", &TensorRates::bf16, 80},
    {"tf32", &TensorRates::tf32, 80},
    {"s8", &TensorRates::s8, 75},
    {"wgmma_f16_f32", &TensorRates::wgmma_f16_f32, 90, 90},
    {"wgmma_f16_f16", &TensorRates::wgmma_f16_f16, 90, 90},
    {"wgmma_bf16", &TensorRates::wgmma_bf16, 90, 90},
    {"wgmma_tf32", &TensorRates::wgmma_tf32, 90, 90},
    {"wgmma_s8", &TensorRates::wgmma_s8, 90, 90},
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
