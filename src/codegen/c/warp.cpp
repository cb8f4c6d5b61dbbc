// Statements of warps as calls of functions with fixed names, each of one instruction of PTX.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/mma_function.h"
#include "codegen/c/printer.h"
#include "support/check.h"

namespace pruner {
namespace {

// A type as the names of instructions have it.
const char* ptx_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return "f16";
    case DType::kBFloat16: return "bf16";
    case DType::kInt8: return "s8";
    case DType::kUInt8: return "u8";
    case DType::kInt32: return "s32";
    default: return "f32";
  }
}

const char* ptx_operand_type(DType dtype) {
  return dtype == DType::kFloat32 ? "tf32" : ptx_type(dtype);
}

// "{%4, %5}" for two operands from number 4 on.
std::string numbered(int first, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}%{}", i ? ", " : "", first + i);
  return "{" + list + "}";
}

// Operands of asm: "+f"(sum[0]), "+f"(sum[1]).
std::string operands(const char* constraint, const std::string& form, int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list +=
        fmt::format("{}\"{}\"({})", i ? ", " : "", constraint, fmt::format(fmt::runtime(form), i));
  return list;
}

int registers_of(const Fragment& f, DType dtype) {
  return static_cast<int>(f.elements() * dtype_bytes(dtype) / 4);
}

constexpr const char* kToTf32 = R"( unsigned to_tf32(unsigned x) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__int_as_float((int)x)));
  return rounded;
}
)";

constexpr const char* kSharedAddress = R"( unsigned shared_address(const void* place) {
  return (unsigned)__cvta_generic_to_shared(place);
}
)";

std::string load_matrix_function(const std::string& name, const LoadMatrix& n) {
  return fmt::format(
      " void {}(unsigned* to, const void* from) {{\n"
      "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%{}];\"\n"
      "               : {}\n               : \"r\"(shared_address(from))\n"
      "               : \"memory\");\n}}\n",
      name,
      n.matrices,
      n.transposed ? ".trans" : "",
      numbered(0, n.matrices),
      n.matrices,
      operands("=r", "to[{}]", n.matrices));
}

// Lanes exchange values with those whose numbers differ in one bit. A value that is no number stays
// none, whichever lane has it.
std::string lane_fold_function(const std::string& name, const LaneFold& n) {
  std::string text = fmt::format(" void {}(float* value) {{\n  float other;\n", name);
  for (int distance = 1; distance < n.lanes; distance *= 2) {
    text += fmt::format(
        "  asm volatile(\"shfl.sync.bfly.b32 %0, %1, {}, 31, -1;\" : \"=f\"(other) : "
        "\"f\"(*value));\n",
        distance);
    text += n.combiner == Combiner::kMax
                ? "  *value = other > *value || other != other ? other : *value;\n"
                : "  *value += other;\n";
  }
  return text + "}\n";
}

// A copy of 16 bytes bypasses the L1 cache (cg), which has no other use for data that is read once.
std::string async_copy_function(const std::string& name, int64_t bytes) {
  return fmt::format(
      " void {0}(void* to, const void* from, int valid) {{\n"
      "  asm volatile(\"cp.async.{1}.shared.global [%0], [%1], {2}, %2;\"\n"
      "               :\n               : \"r\"(shared_address(to)), \"l\"(from), \"r\"(valid)\n   "
      "            : \"memory\");\n}}\n",
      name,
      bytes == 16 ? "cg" : "ca",
      bytes);
}

}  // namespace

MmaFunction mma_function(const MmaInstruction& row, bool rounds_operands) {
  const int sums = registers_of(row.sum_fragment(), row.sum);
  const int of_a = registers_of(row.a_fragment(), row.a);
  const int of_b = registers_of(row.b_fragment(), row.b);
  const bool rounds = rounds_operands && row.a == DType::kFloat32;
  const bool wide = row.sum == DType::kFloat32;
  const auto given = [&](const char* from) {
    const std::string element = std::string(from) + "[{}]";
    return rounds ? "to_tf32(" + element + ")" : element;
  };
  MmaFunction function;
  function.name = fmt::format(
      "mma_{}_{}_{}_{}", row.shape, ptx_type(row.sum), ptx_type(row.a), ptx_type(row.b));
  function.sum_type = wide ? "float" : "unsigned";
  function.a_registers = of_a;
  function.b_registers = of_b;
  function.sum_registers = sums;
  if (rounds) function.texts.push_back(kToTf32);
  function.texts.push_back(
      fmt::format(" void {}({}* sum, const unsigned* a, const unsigned* b) {{\n"
                  "  asm(\"mma.sync.aligned.{}.row.col.{}.{}.{}.{} {}, {}, {}, {};\"\n"
                  "      : {}\n      : {}, {});\n}}\n",
                  function.name,
                  function.sum_type,
                  row.shape,
                  ptx_type(row.sum),
                  ptx_operand_type(row.a),
                  ptx_operand_type(row.b),
                  ptx_type(row.sum),
                  numbered(0, sums),
                  numbered(sums, of_a),
                  numbered(sums + of_a, of_b),
                  numbered(0, sums),
                  operands(wide ? "+f" : "+r", "sum[{}]", sums),
                  operands("r", given("a"), of_a),
                  operands("r", given("b"), of_b)));
  return function;
}

void CPrinter::use_warp_function(const std::string& text) {
  if (std::ranges::count(warp_functions_, text) == 0) warp_functions_.push_back(text);
}

std::string CPrinter::address(const ElementPlace& place, const char* type) {
  const std::string first = "&" + element(place.buffer, place.indices);
  return *type == '\0' ? first : fmt::format("({}*){}", type, first);
}

void CPrinter::warp(const Mma& n) {
  const bool wide = n.instruction->sum == DType::kFloat32;
  const MmaFunction function = mma_function(*n.instruction);
  for (const std::string& text : function.texts) use_warp_function(text);
  line() << function.name << "(" << address(n.sum, wide ? "" : "unsigned") << ", "
         << address(n.a, "const unsigned") << ", " << address(n.b, "const unsigned") << ");\n";
}

void CPrinter::warp(const LoadMatrix& n) {
  const std::string name =
      fmt::format("load_matrix_x{}{}", n.matrices, n.transposed ? "_transposed" : "");
  use_warp_function(kSharedAddress);
  use_warp_function(load_matrix_function(name, n));
  line() << name << "(" << address(n.to, "unsigned") << ", " << address(n.from, "") << ");\n";
}

void CPrinter::warp(const LaneFold& n) {
  const std::string name =
      fmt::format("{}_of_{}_lanes", n.combiner == Combiner::kMax ? "greatest" : "sum", n.lanes);
  use_warp_function(lane_fold_function(name, n));
  line() << name << "(" << address(n.element, "") << ");\n";
}

void CPrinter::warp(const AsyncCopy& n) {
  const int64_t each = dtype_bytes(program_[n.from.buffer].dtype), bytes = n.elements * each;
  const std::string name = fmt::format("async_copy_{}", bytes);
  use_warp_function(kSharedAddress);
  use_warp_function(async_copy_function(name, bytes));
  line() << name << "(" << address(n.to, "") << ", " << address(n.from, "") << ", "
         << text(simplify(n.valid * Expr(each), ranges_)) << ");\n";
}

void CPrinter::warp(const Commit&) {
  use_warp_function(
      " void commit_copies() {\n  asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n}\n");
  line() << "commit_copies();\n";
}

void CPrinter::warp(const Wait& n) {
  use_warp_function(
      fmt::format(" void wait_for_copies_{0}() {{\n"
                  "  asm volatile(\"cp.async.wait_group {0};\" ::: \"memory\");\n}}\n",
                  n.groups));
  line() << "wait_for_copies_" << n.groups << "();\n";
}

}  // namespace pruner
