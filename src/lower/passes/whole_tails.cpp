// Lets all lanes of a vector compute in the tail of a tile that sums in registers, where what they
// read beyond the end is padding: packed operands have room for whole vectors, and local buffers
// where their shape says so.
#include <algorithm>
#include <map>
#include <set>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// Whether all that is read lies in the buffer.
bool is_inside(const Buffer& buffer, const Load& read, std::span<const Range> ranges) {
  for (size_t d = 0; d < read.indices.size(); ++d)
    if (bounds(read.indices[d], ranges).second >= buffer.shape[d]) return false;
  return true;
}

// Whether there is something to be read in all lanes.
bool is_padded(const Buffer& buffer, const Load& read, std::span<const Range> ranges) {
  if (!buffer.pack.order.empty() || buffer.scope == Scope::kRegister) return true;
  return buffer.scope == Scope::kLocal && is_inside(buffer, read, ranges);
}

// Variables that are computed of others, but for those that say how far each of the loops is that
// one parallel loop stands for: they are as if these loops were there.
using Lets = std::map<VarId, Expr>;

Lets lets_of(const Stmt& body) {
  Lets lets;
  std::set<VarId> parallel;
  walk(body, [&](const StmtNode& s) {
    if (const For* loop = std::get_if<For>(&s.op); loop && loop->kind == LoopKind::kParallel)
      parallel.insert(loop->var);
    const Let* let = std::get_if<Let>(&s.op);
    if (let == nullptr) return;
    bool is_of_parallel = true;
    visit(let->value, [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) is_of_parallel &= parallel.contains(var->id);
    });
    if (!is_of_parallel) lets.emplace(let->var, let->value);
  });
  return lets;
}

// The variables of loops that an expression is computed of.
std::set<VarId> origins(const Expr& of, const Lets& lets) {
  std::set<VarId> all;
  visit(of, [&](const Expr& e) {
    const Var* var = as<Var>(e);
    if (var == nullptr) return;
    const auto let = lets.find(var->id);
    all.merge(let == lets.end() ? std::set{var->id} : origins(let->second, lets));
  });
  return all;
}

bool reads_the_same(const Select& choice) {
  std::vector<Expr> read[2];
  for (const bool first : {true, false}) {
    visit(first ? choice.a : choice.b, [&](const Expr& e) {
      if (as<Load>(e) != nullptr) read[first].push_back(e);
    });
  }
  return std::ranges::equal(read[0], read[1], structural_equal);
}

// Whether `sum` adds to the lanes of `lane`, and all that they read by it is padded. A guard may
// hold loads, so that its lanes stay as they are; a choice between what is read anyway is none.
bool may_be_whole(const Program& program, const Store& sum, const For& loop, const Lets& lets) {
  const VarId lane = loop.var;
  std::vector<Range> ranges = program.ranges;
  ranges[static_cast<size_t>(lane.value)] = {0, loop.lanes - 1};
  const auto moves = [&](const Expr& index) { return reads(index, lane); };
  // A vector may lie beyond the end as a whole. What its place decides, such as the group of a
  // convolution's channels, does so, too, though it is one element for all lanes.
  const std::set<VarId> placed = origins(loop.extent, lets);
  const auto is_placed = [&](const Expr& index) {
    return std::ranges::any_of(origins(index, lets), [&](VarId v) { return placed.contains(v); });
  };
  if (program[sum.buffer].scope != Scope::kRegister || std::ranges::none_of(sum.indices, moves))
    return false;
  bool adds = false, whole = true;
  visit(sum.value, [&](const Expr& e) {
    const Select* choice = as<Select>(e);
    whole = whole && (choice == nullptr || reads_the_same(*choice));
    const Load* read = as<Load>(e);
    if (read == nullptr) return;
    adds = adds || read->tensor == sum.buffer;
    const Buffer& buffer = program[read->tensor];
    const bool one_place =
        std::ranges::none_of(read->indices, moves) &&
        (std::ranges::none_of(read->indices, is_placed) || is_inside(buffer, *read, ranges));
    whole = whole && (is_padded(buffer, *read, ranges) || one_place);
  });
  return adds && whole;
}

}  // namespace

Program whole_tails(Program program) {
  const Lets lets = lets_of(program.body);
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const For* loop = std::get_if<For>(&s->op);
    if (loop == nullptr || loop->kind != LoopKind::kVectorize) return Stmt();
    const int64_t* active = as_int(loop->extent);
    if (active != nullptr && *active == loop->lanes) return Stmt();
    const Stmt* body = &loop->body;
    while (const For* terms = std::get_if<For>(&(*body)->op)) {
      if (terms->kind != LoopKind::kDot && terms->kind != LoopKind::kMatrix) break;
      body = &terms->body;
    }
    const Store* sum = std::get_if<Store>(&(*body)->op);
    if (sum == nullptr || !may_be_whole(program, *sum, *loop, lets)) return Stmt();
    For whole = *loop;
    whole.extent = Expr(loop->lanes);
    return make_stmt(std::move(whole));
  });
  return program;
}

}  // namespace pruner
