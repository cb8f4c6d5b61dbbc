// The rules that verify() checks for statements of warps (program.h): scopes, types, alignment, and
// which values all threads of a warp share. verify.cpp itself checks where statements stand and
// that their places exist.
#pragma once

#include <span>
#include <string_view>

#include "lower/program.h"

namespace pruner {

/// How a value differs between the threads of a block: not, between its warps only, anyhow, or as
/// the number of the thread does (but for multiples of a warp).
enum class ThreadSpread : uint8_t { kSame, kByWarp, kByThread, kNumbers };

/// Returns the spread of `e`; of_vars[i] is the spread of variable i.
ThreadSpread spread_of_threads(const Program& program,
                               const Expr& e,
                               std::span<const ThreadSpread> of_vars);

/// "a mma", "a wait", ...: for messages.
std::string_view statement_name(const Mma&);
std::string_view statement_name(const LoadMatrix&);
std::string_view statement_name(const LaneFold&);
std::string_view statement_name(const AsyncCopy&);
std::string_view statement_name(const Commit&);
std::string_view statement_name(const Wait&);
std::string_view statement_name(const GroupMma&);
std::string_view statement_name(const GroupCommit&);
std::string_view statement_name(const GroupWait&);
std::string_view statement_name(const GroupFence&);
std::string_view statement_name(const SharedFence&);
std::string_view statement_name(const GridWait&);

/// Whether a program has statements for which only CUDA C has words.
bool has_warp_statements(const Program& program);
/// Whether a launch waits for the launches before it, so that it may begin before these have ended.
bool waits_for_grid(const Stmt& launch);

/// Checks the rules of a statement of warps; `lets` are as in is_multiple().
Result<Unit> check_warp_stmt(const Program& program, const Mma& n, std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program,
                             const LoadMatrix& n,
                             std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program, const LaneFold& n, std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program,
                             const AsyncCopy& n,
                             std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program, const Wait& n, std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program, const GroupMma& n, std::span<const Expr> lets);
Result<Unit> check_warp_stmt(const Program& program,
                             const GroupWait& n,
                             std::span<const Expr> lets);
/// Statements with nothing to check but where they stand.
template <typename T>
concept BareStmt = std::same_as<T, Commit> || std::same_as<T, GroupCommit> ||
    std::same_as<T, GroupFence> || std::same_as<T, SharedFence> || std::same_as<T, GridWait>;
template <BareStmt Node>
Result<Unit> check_warp_stmt(const Program&, const Node&, std::span<const Expr>) {
  return Unit{};
}

}  // namespace pruner
