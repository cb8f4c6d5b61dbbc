#include "space/mma.h"

#include <fmt/format.h>

namespace pruner {
namespace {

constexpr DType kF16 = DType::kFloat16, kBf16 = DType::kBFloat16, kF32 = DType::kFloat32;
constexpr DType kS8 = DType::kInt8, kU8 = DType::kUInt8, kS32 = DType::kInt32;

// Hopper alone has instructions of four warps.
constexpr MmaInstruction of_group(MmaInstruction row) {
  row.warps = kGroupWarps;
  row.newest = row.oldest;
  return row;
}

constexpr MmaInstruction kMmaInstructions[] = {
    {"m16n8k16", 16, 8, 16, kF16, kF16, kF32, 80, &TensorRates::f16_f32},
    {"m16n8k16", 16, 8, 16, kF16, kF16, kF16, 80, &TensorRates::f16_f16},
    {"m16n8k16", 16, 8, 16, kBf16, kBf16, kF32, 80, &TensorRates::bf16},
    {"m16n8k8", 16, 8, 8, kF16, kF16, kF32, 75, &TensorRates::f16_f32},
    {"m16n8k8", 16, 8, 8, kF16, kF16, kF16, 75, &TensorRates::f16_f16},
    {"m16n8k8", 16, 8, 8, kBf16, kBf16, kF32, 80, &TensorRates::bf16},
    {"m16n8k8", 16, 8, 8, kF32, kF32, kF32, 80, &TensorRates::tf32},
    {"m16n8k32", 16, 8, 32, kS8, kS8, kS32, 80, &TensorRates::s8},
    {"m16n8k32", 16, 8, 32, kS8, kU8, kS32, 80, &TensorRates::s8},
    {"m16n8k32", 16, 8, 32, kU8, kS8, kS32, 80, &TensorRates::s8},
    {"m16n8k32", 16, 8, 32, kU8, kU8, kS32, 80, &TensorRates::s8},
    {"m8n8k16", 8, 8, 16, kS8, kS8, kS32, 75, &TensorRates::s8},
    {"m8n8k16", 8, 8, 16, kS8, kU8, kS32, 75, &TensorRates::s8},
    {"m8n8k16", 8, 8, 16, kU8, kS8, kS32, 75, &TensorRates::s8},
    {"m8n8k16", 8, 8, 16, kU8, kU8, kS32, 75, &TensorRates::s8},
    of_group({"m64n8k16", 64, 8, 16, kF16, kF16, kF32, 90, &TensorRates::wgmma_f16_f32}),
    of_group({"m64n8k16", 64, 8, 16, kF16, kF16, kF16, 90, &TensorRates::wgmma_f16_f16}),
    of_group({"m64n8k16", 64, 8, 16, kBf16, kBf16, kF32, 90, &TensorRates::wgmma_bf16}),
    of_group({"m64n8k8", 64, 8, 8, kF32, kF32, kF32, 90, &TensorRates::wgmma_tf32}),
    of_group({"m64n8k32", 64, 8, 32, kS8, kS8, kS32, 90, &TensorRates::wgmma_s8}),
    of_group({"m64n8k32", 64, 8, 32, kS8, kU8, kS32, 90, &TensorRates::wgmma_s8}),
    of_group({"m64n8k32", 64, 8, 32, kU8, kS8, kS32, 90, &TensorRates::wgmma_s8}),
    of_group({"m64n8k32", 64, 8, 32, kU8, kU8, kS32, 90, &TensorRates::wgmma_s8}),
};

}  // namespace

std::span<const MmaInstruction> mma_instructions() { return kMmaInstructions; }

std::string mma_shape(std::span<const int64_t> shape) {
  return fmt::format("m{}n{}k{}", shape[0], shape[1], shape[2]);
}

const MmaInstruction* find_mma_instruction(std::string_view shape, DType a, DType b, DType sum) {
  for (const MmaInstruction& row : kMmaInstructions)
    if (row.shape == shape && row.a == a && row.b == b && row.sum == sum) return &row;
  return nullptr;
}

int shape_number(const MmaInstruction& row) {
  int number = -1;
  std::string_view last;
  for (const MmaInstruction& other : kMmaInstructions) {
    if (other.shape != last) ++number;
    if (other.shape == row.shape) break;
    last = other.shape;
  }
  return number;
}

}  // namespace pruner
