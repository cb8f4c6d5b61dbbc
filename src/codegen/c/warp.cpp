// Statements of warps as calls of functions with fixed names, each of one instruction of PTX.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/mma_function.h"
#include "codegen/c/printer.h"
#include "space/matrix_lines.h"
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

// A matrix in shared memory as wgmma wants it described (PTX: matrix descriptor): where it begins,
// two distances, and how its runs of 16 bytes are exchanged, all but the last in units of 16 bytes.
constexpr const char* kDescriptor =
    R"( unsigned long long matrix_descriptor(const void* place, unsigned leading, unsigned stride) {
  const unsigned address = (shared_address(place) & 0x3ffff) >> 4;
  return (unsigned long long)stride << 32 | leading << 16 | address;
}
)";

// Sums stay where they are while products are added to them: they are not read before the wait.
constexpr const char* kKeepSums[] = {R"( void keep_sum(float* sum) {
  asm volatile("" : "+f"(*sum) :: "memory");
}
)",
                                     R"( void keep_sum(unsigned* sum) {
  asm volatile("" : "+r"(*sum) :: "memory");
}
)"};

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

// The text of a group's instruction: `a` is its first operand, of `of_a` arguments of `given_a`.
static MmaFunction group_function(const MmaInstruction& row,
                                  int columns,
                                  const std::string& suffix,
                                  const std::string& transposes,
                                  const char* type_of_a,
                                  int of_a) {
  const bool wide = row.sum == DType::kFloat32, held = of_a > 0;
  const int sums = columns / row.n * registers_of(row.sum_fragment(), row.sum);
  const int last = sums + std::max(of_a, 1);
  MmaFunction function;
  function.name = fmt::format("wgmma_m{}n{}k{}_{}_{}_{}{}",
                              row.m,
                              columns,
                              row.k,
                              ptx_type(row.sum),
                              ptx_type(row.a),
                              ptx_type(row.b),
                              suffix);
  function.sum_type = wide ? "float" : "unsigned";
  function.sum_registers = sums;
  // 1, 1: neither operand is negated.
  const std::string options = std::string(is_float(row.a) ? "p, 1, 1" : "p") + transposes;
  function.texts = {
      kSharedAddress,
      kDescriptor,
      fmt::format(" void {}({}* sum, {} a, unsigned long long b) {{\n"
                  "  asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, 1, 0; "
                  "wgmma.mma_async.sync.aligned.m{}n{}k{}.{}.{}.{} {}, {}, %{}, {}; }}\"\n"
                  "               : {}\n               : {}, \"l\"(b));\n}}\n",
                  function.name,
                  function.sum_type,
                  type_of_a,
                  row.m,
                  columns,
                  row.k,
                  ptx_type(row.sum),
                  ptx_operand_type(row.a),
                  ptx_operand_type(row.b),
                  numbered(0, sums),
                  held ? numbered(sums, of_a) : fmt::format("%{}", sums),
                  last,
                  options,
                  operands(wide ? "+f" : "+r", "sum[{}]", sums),
                  held ? operands("r", "a[{}]", of_a) : "\"l\"(a)")};
  return function;
}

MmaFunction group_mma_function(const MmaInstruction& row,
                               int columns,
                               std::array<bool, 2> transposed) {
  const std::string suffix =
      std::string(transposed[0] ? "_transposed_a" : "") + (transposed[1] ? "_transposed_b" : "");
  const bool narrow = dtype_bytes(row.a) == 2;
  const std::string transposes =
      narrow ? fmt::format(", {:d}, {:d}", transposed[0], transposed[1]) : "";
  return group_function(row, columns, suffix, transposes, "unsigned long long", 0);
}

MmaFunction held_group_mma_function(const MmaInstruction& row, int columns, bool transposed_b) {
  const std::string suffix = std::string("_held_a") + (transposed_b ? "_transposed_b" : "");
  const std::string transposes = dtype_bytes(row.a) == 2 ? fmt::format(", {:d}", transposed_b) : "";
  return group_function(
      row, columns, suffix, transposes, "const unsigned*", registers_of(row.a_fragment(), row.a));
}

// Distances between boxes and between eight lines; of lines of 16 bytes the other way round. Of
// terms in a line, the first is not looked at.
std::string matrix_descriptor(const std::string& place,
                              int64_t line_bytes,
                              int64_t lines,
                              bool transposed) {
  int64_t leading = (transposed ? lines * line_bytes : kSwizzleBytes) / kSwizzleBytes;
  int64_t stride = kSwizzleLines * line_bytes / kSwizzleBytes;
  if (line_bytes == kSwizzleBytes) std::swap(leading, stride);
  const unsigned mode = line_bytes == 128 ? 1 : line_bytes == 64 ? 2 : line_bytes == 32 ? 3 : 0;
  return fmt::format("matrix_descriptor({}, {}, {:#x}u)",
                     place,
                     leading,
                     mode << 30 | static_cast<unsigned>(stride));
}

std::string order_function(const std::string& name, const std::string& instruction) {
  return fmt::format(
      " void {}() {{\n  asm volatile(\"{};\" ::: \"memory\");\n}}\n", name, instruction);
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
  use_warp_function(order_function("commit_copies", "cp.async.commit_group"));
  line() << "commit_copies();\n";
}

void CPrinter::warp(const Wait& n) {
  const std::string name = fmt::format("wait_for_copies_{}", n.groups);
  use_warp_function(order_function(name, fmt::format("cp.async.wait_group {}", n.groups)));
  line() << name << "();\n";
}

void CPrinter::warp(const GroupMma& n) {
  const bool held = program_[n.a.buffer].scope == Scope::kRegister;
  const MmaFunction function =
      held ? held_group_mma_function(*n.instruction, n.columns, n.b_terms_first)
           : group_mma_function(*n.instruction, n.columns, {n.a_terms_first, n.b_terms_first});
  for (const std::string& text : function.texts) use_warp_function(text);
  group_sums_.insert(n.sum.buffer.value);
  const auto matrix = [&](const ElementPlace& place, bool terms_first) {
    const Buffer& buffer = program_[place.buffer];
    return matrix_descriptor(address(place, ""),
                             buffer.shape.back() * dtype_bytes(buffer.dtype),
                             buffer.shape[buffer.shape.size() - 2],
                             terms_first);
  };
  const bool wide = n.instruction->sum == DType::kFloat32;
  line() << function.name << "(" << address(n.sum, wide ? "" : "unsigned") << ", "
         << (held ? address(n.a, "const unsigned") : matrix(n.a, n.a_terms_first)) << ", "
         << matrix(n.b, n.b_terms_first) << ");\n";
}

void CPrinter::warp(const GroupCommit&) {
  use_warp_function(order_function("commit_products", kCommitProducts));
  line() << "commit_products();\n";
}

void CPrinter::warp(const GroupWait& n) {
  const std::string name = fmt::format("wait_for_products_{}", n.groups);
  use_warp_function(order_function(name, fmt::format(kWaitForProducts, n.groups)));
  line() << name << "();\n";
  if (n.groups == 0) keep_sums();
}

void CPrinter::keep_sums() {
  for (const int number : group_sums_) {
    const TensorId id{number};
    const Buffer& buffer = program_[id];
    const bool wide = buffer.dtype == DType::kFloat32;
    use_warp_function(kKeepSums[wide ? 0 : 1]);
    line() << "#pragma unroll\n";
    guarded(fmt::format("for (int i = 0; i < {}; ++i)",
                        buffer.num_elements() * dtype_bytes(buffer.dtype) / 4),
            [&] {
              line() << fmt::format("keep_sum({}{} + i);\n", wide ? "" : "(unsigned*)", name(id));
            });
  }
  group_sums_.clear();
}

void CPrinter::warp(const GroupFence&) {
  use_warp_function(order_function("fence_sums", kFenceSums));
  line() << "fence_sums();\n";
}

void CPrinter::warp(const SharedFence&) {
  use_warp_function(order_function("fence_shared_memory", kFenceShared));
  line() << "fence_shared_memory();\n";
}

// The launch after this one may begin as soon as all blocks of this one have: it waits, too.
void CPrinter::warp(const GridWait&) {
  use_warp_function(order_function("wait_for_launches", "griddepcontrol.wait"));
  use_warp_function(order_function("let_next_launch_begin", "griddepcontrol.launch_dependents"));
  line() << "wait_for_launches();\n";
  line() << "let_next_launch_begin();\n";
}

}  // namespace pruner
