#include "lower/warp_rules.h"

#include <algorithm>
#include <array>

#include "lower/rewrite.h"
#include "space/matrix_lines.h"

namespace pruner {
namespace {

ThreadSpread joined(ThreadSpread a, ThreadSpread b) {
  if (a == ThreadSpread::kSame || b == ThreadSpread::kSame) return std::max(a, b);
  return std::min(std::max(a, b), ThreadSpread::kByThread);
}

// Every warp begins at a multiple of 32: dividing the thread's number by such a one leaves no lane
// in it.
ThreadSpread spread_of_binary(const Binary& n, ThreadSpread a, ThreadSpread b) {
  const int64_t* by = as_int(n.b);
  if (a == ThreadSpread::kNumbers && by != nullptr && *by > 0 && *by % kWarpLanes == 0) {
    if (n.op == BinaryOp::kFloorDiv) return ThreadSpread::kByWarp;
    if (n.op == BinaryOp::kFloorMod) return ThreadSpread::kNumbers;
  }
  const ThreadSpread both = joined(a, b);
  return both == ThreadSpread::kNumbers ? ThreadSpread::kByThread : both;
}

// The elements that begin at a place begin at a multiple of so many.
Result<Unit> aligned(const Program& program,
                     const ElementPlace& place,
                     int64_t elements,
                     std::span<const Expr> lets) {
  const Buffer& buffer = program[place.buffer];
  Expr flat(0);
  for (size_t d = 0; d < place.indices.size(); ++d)
    flat = flat * Expr(buffer.shape[d]) + place.indices[d];
  if (is_multiple(flat, elements, lets) || is_multiple(program.simple(flat), elements, lets))
    return Unit{};
  return Error("a place of ", buffer.name, " is not seen to be a multiple of ", elements);
}

Result<Unit> in_scope(const Program& program, const ElementPlace& place, Scope scope, DType dtype) {
  const Buffer& buffer = program[place.buffer];
  const char* const names[] = {"argument", "workspace", "shared", "local", "register"};
  if (buffer.scope != scope)
    return Error(buffer.name, " is no ", names[static_cast<size_t>(scope)], " buffer");
  if (buffer.dtype == dtype) return Unit{};
  return Error(buffer.name, " is of ", dtype_name(buffer.dtype), ", not of ", dtype_name(dtype));
}

// A lane's part of a matrix: whole registers of 32 bits.
Result<Unit> in_registers(const Program& program,
                          const ElementPlace& place,
                          DType dtype,
                          int64_t elements,
                          std::span<const Expr> lets) {
  TRY(in_scope(program, place, Scope::kRegister, dtype));
  const Buffer& buffer = program[place.buffer];
  if (buffer.num_elements() < elements)
    return Error(
        buffer.name, " has ", buffer.num_elements(), " elements, a lane has ", elements, " there");
  return aligned(program, place, 4 / dtype_bytes(dtype), lets);
}

// A matrix in the lines that a group reads.
Result<Unit> in_lines(const Program& program,
                      const ElementPlace& place,
                      DType dtype,
                      bool terms_first,
                      std::span<const Expr> lets) {
  TRY(in_scope(program, place, Scope::kShared, dtype));
  const Buffer& buffer = program[place.buffer];
  const int64_t bytes = dtype_bytes(dtype), width = buffer.shape.back();
  const int64_t lines = buffer.shape.size() < 2 ? 0 : buffer.shape[buffer.shape.size() - 2];
  if (!is_group_line(width * bytes, terms_first))
    return Error(buffer.name, " has lines of ", width * bytes, " bytes");
  if (lines == 0 || lines % kSwizzleLines != 0)
    return Error(buffer.name, " has ", lines, " lines, no multiple of eight");
  if (!terms_first) return aligned(program, place, kSwizzleBytes / bytes, lets);
  if (bytes != 2) return Error("a group's mma reads rows of ", dtype_name(dtype), " in a line");
  return aligned(program, place, kSwizzleLines * width, lets);
}

}  // namespace

ThreadSpread spread_of_threads(const Program& program,
                               const Expr& e,
                               std::span<const ThreadSpread> of_vars) {
  const auto of = [&](const Expr& part) { return spread_of_threads(program, part, of_vars); };
  // A value computed from a thread's number is no thread's number.
  const auto of_all = [&](std::span<const Expr> parts) {
    ThreadSpread all = ThreadSpread::kSame;
    for (const Expr& part : parts) all = joined(all, of(part));
    return std::min(all, ThreadSpread::kByThread);
  };
  return match(
      e->op,
      [](const IntImm&) { return ThreadSpread::kSame; },
      [](const FloatImm&) { return ThreadSpread::kSame; },
      [&](const Var& n) { return of_vars[static_cast<size_t>(n.id.value)]; },
      [&](const Binary& n) { return spread_of_binary(n, of(n.a), of(n.b)); },
      [&](const Select& n) {
        return of_all(std::array{n.condition, n.a, n.b});
      },
      [&](const Cast& n) {
        return of_all({&n.value, 1});
      },
      [&](const Call& n) { return of_all(n.args); },
      [&](const Load& n) {
        const Buffer& buffer = program[n.tensor];
        const bool constant = buffer.scope == Scope::kArgument && !buffer.output;
        return constant ? of_all(n.indices) : ThreadSpread::kByThread;
      });
}

bool has_warp_statements(const Program& program) {
  bool found = false;
  walk(program.body, [&](const StmtNode& s) {
    found |= std::visit([](const auto& n) { return WarpStmt<std::decay_t<decltype(n)>>; }, s.op);
  });
  return found;
}

bool waits_for_grid(const Stmt& launch) {
  bool found = false;
  walk(launch, [&](const StmtNode& s) { found |= std::holds_alternative<GridWait>(s.op); });
  return found;
}

std::string_view statement_name(const Mma&) { return "an mma"; }
std::string_view statement_name(const LoadMatrix&) { return "a load of matrices"; }
std::string_view statement_name(const LaneFold&) { return "a fold over lanes"; }
std::string_view statement_name(const AsyncCopy&) { return "an asynchronous copy"; }
std::string_view statement_name(const Commit&) { return "a commit"; }
std::string_view statement_name(const Wait&) { return "a wait"; }
std::string_view statement_name(const GroupMma&) { return "a group's mma"; }
std::string_view statement_name(const GroupCommit&) { return "a group's commit"; }
std::string_view statement_name(const GroupWait&) { return "a group's wait"; }
std::string_view statement_name(const GroupFence&) { return "a group's fence"; }
std::string_view statement_name(const SharedFence&) { return "a fence of shared memory"; }
std::string_view statement_name(const GridWait&) { return "a wait for other launches"; }

Result<Unit> check_warp_stmt(const Program& program, const Mma& n, std::span<const Expr> lets) {
  if (n.instruction == nullptr) return Error("an mma has no instruction");
  const MmaInstruction& row = *n.instruction;
  TRY(in_registers(program, n.sum, row.sum, row.sum_fragment().elements(), lets));
  if (n.sum.buffer == n.a.buffer || n.sum.buffer == n.b.buffer)
    return Error("an mma adds to its operand ", program[n.sum.buffer].name);
  TRY(in_registers(program, n.a, row.a, row.a_fragment().elements(), lets));
  return in_registers(program, n.b, row.b, row.b_fragment().elements(), lets);
}

Result<Unit> check_warp_stmt(const Program& program,
                             const LoadMatrix& n,
                             std::span<const Expr> lets) {
  const DType dtype = program[n.from.buffer].dtype;
  const int64_t bytes = dtype_bytes(dtype);
  if (n.matrices != 1 && n.matrices != 2 && n.matrices != 4)
    return Error("a load of ", n.matrices, " matrices");
  if (bytes > 4) return Error("a load of matrices of ", dtype_name(dtype));
  if (n.transposed && bytes != 2)
    return Error("a load of transposed matrices of ", dtype_name(dtype));
  TRY(in_scope(program, n.from, Scope::kShared, dtype));
  TRY(aligned(program, n.from, 16 / bytes, lets));
  return in_registers(program, n.to, dtype, n.matrices * 4 / bytes, lets);
}

Result<Unit> check_warp_stmt(const Program& program,
                             const LaneFold& n,
                             std::span<const Expr> lets) {
  if (n.lanes != 2 && n.lanes != 4 && n.lanes != 8 && n.lanes != 16 && n.lanes != kWarpLanes)
    return Error("a fold over ", n.lanes, " lanes");
  if (n.combiner != Combiner::kSum && n.combiner != Combiner::kMax)
    return Error("a fold over lanes that neither adds nor takes the greatest");
  return in_registers(program, n.element, DType::kFloat32, 1, lets);
}

Result<Unit> check_warp_stmt(const Program& program,
                             const AsyncCopy& n,
                             std::span<const Expr> lets) {
  const Buffer& from = program[n.from.buffer];
  const int64_t bytes = n.elements * dtype_bytes(from.dtype);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return Error("an asynchronous copy of ", bytes, " bytes");
  if (from.scope != Scope::kArgument && from.scope != Scope::kWorkspace)
    return Error(from.name, " is no global memory to copy from");
  TRY(in_scope(program, n.to, Scope::kShared, from.dtype));
  TRY(aligned(program, n.from, n.elements, lets));
  return aligned(program, n.to, n.elements, lets);
}

Result<Unit> check_warp_stmt(const Program&, const Wait& n, std::span<const Expr>) {
  if (n.groups < 0) return Error("a wait for ", n.groups, " groups to be left");
  return Unit{};
}

Result<Unit> check_warp_stmt(const Program& program,
                             const GroupMma& n,
                             std::span<const Expr> lets) {
  if (n.instruction == nullptr || !n.instruction->of_group())
    return Error("a group's mma has no instruction of a group");
  const MmaInstruction& row = *n.instruction;
  if (n.columns % row.n != 0 || !row.takes(n.columns / row.n))
    return Error("a group's mma of ", row.shape, " has ", n.columns, " columns");
  const int64_t sums = row.sum_fragment().elements() * int64_t{n.columns / row.n};
  TRY(in_registers(program, n.sum, row.sum, sums, lets));
  if (program[n.a.buffer].scope != Scope::kRegister) {
    TRY(in_lines(program, n.a, row.a, n.a_terms_first, lets));
  } else if (n.a_terms_first || n.a.buffer == n.sum.buffer) {
    return Error("a group's mma has a first factor in registers that is none");
  } else {
    TRY(in_registers(program, n.a, row.a, row.a_fragment().elements(), lets));
  }
  return in_lines(program, n.b, row.b, n.b_terms_first, lets);
}

Result<Unit> check_warp_stmt(const Program&, const GroupWait& n, std::span<const Expr>) {
  constexpr int kMost = 7;  // limit of the instruction
  if (n.groups < 0 || n.groups > kMost)
    return Error("a group's wait for ", n.groups, " commits to be left");
  return Unit{};
}

}  // namespace pruner
