// Unrolls from the innermost loop out, as far as the notes go. Of the first loop that is too long a
// part is unrolled on a CPU; a GPU's compiler does that itself.
#include <algorithm>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// Returns the largest factor up to `limit`, or one that divides the extent if that costs at most
// half. Iterations left over run one by one, so there are to be several trips before them.
int64_t unroll_factor(int64_t extent, int64_t limit) {
  constexpr int64_t kLeastTrips = 3;
  const int64_t most = std::min(extent, limit);
  for (int64_t f = most; f > most / 2; --f) {
    if (extent % f == 0) return f;
  }
  return std::min(most, extent / kLeastTrips);
}

// Statements of a perfect nest once it is unrolled, vectors and tiles counted as one; too many for
// any budget when a loop in it stays one.
int64_t copies(const Stmt& s) {
  constexpr int64_t kMany = int64_t{1} << 30;  // statements: above any budget
  if (const If* guard = std::get_if<If>(&s->op)) return copies(guard->then);
  if (std::holds_alternative<Store>(s->op)) return 1;
  if (std::holds_alternative<LaneFold>(s->op) || std::holds_alternative<Mma>(s->op) ||
      std::holds_alternative<LoadMatrix>(s->op) || std::holds_alternative<GroupMma>(s->op))
    return 1;
  const For* loop = std::get_if<For>(&s->op);
  const auto is = [&](LoopKind kind) { return loop != nullptr && loop->kind == kind; };
  if (is(LoopKind::kVectorize) || is(LoopKind::kDot) || is(LoopKind::kMatrix))
    return copies(loop->body);
  if (loop == nullptr || loop->kind != LoopKind::kUnroll) return kMany;
  return std::min(kMany, *as_int(loop->extent) * copies(loop->body));
}

class Unroller {
 public:
  explicit Unroller(Program& program) : program_(program), partly_(launches(program).empty()) {}

  Stmt run(const Stmt& body) {
    return rewrite(body, [&](const Stmt& s) {
      const For* loop = std::get_if<For>(&s->op);
      return loop != nullptr && loop->unroll > 0 ? unrolled(*loop) : Stmt();
    });
  }

 private:
  Stmt unrolled(const For& noted) {
    For loop = noted;
    loop.unroll = 0;
    loop.body = run(noted.body);
    const int64_t inside = copies(loop.body);
    const int64_t* extent = as_int(loop.extent);
    loop.open = false;
    if (extent != nullptr && !noted.open && *extent * inside <= noted.unroll) {
      loop.kind = LoopKind::kUnroll;
      return make_stmt(std::move(loop));
    }
    const int64_t most = program_.ranges[static_cast<size_t>(loop.var.value)].second + 1;
    const int64_t limit = noted.unroll / inside;
    const int64_t factor = noted.open ? limit : unroll_factor(most, limit);
    return partly_ && factor > 1 ? in_parts(loop, factor, most, noted.open)
                                 : make_stmt(std::move(loop));
  }

  // k = outer * factor + inner, then what is left; of an open loop also where that is nothing.
  Stmt in_parts(const For& loop, int64_t factor, int64_t most, bool open) {
    const Expr trips = program_.simple(floor_div(loop.extent, Expr(factor)));
    const VarId outer = part(loop, "outer", std::max<int64_t>(most / factor, 1));
    const VarId inner = part(loop, "inner", factor);
    const Expr k = program_.var(outer) * Expr(factor) + program_.var(inner);
    For steps = loop;
    steps.var = inner;
    steps.extent = Expr(factor);
    steps.kind = LoopKind::kUnroll;
    steps.body = at(loop, k);
    const Stmt whole =
        make_stmt(For{outer, trips, LoopKind::kSerial, 1, make_stmt(std::move(steps))});
    For left = loop;
    left.extent = program_.simple(loop.extent - trips * Expr(factor));
    const int64_t* none = as_int(left.extent);
    if (!open && none != nullptr && *none <= 0) return whole;
    left.var = part(loop, "rest", factor - 1);
    left.body = at(loop, trips * Expr(factor) + program_.var(left.var));
    return make_stmt(Block{{whole, make_stmt(std::move(left))}});
  }

  VarId part(const For& loop, const char* name, int64_t extent) {
    const std::string& whole = program_.var_names[static_cast<size_t>(loop.var.value)];
    const std::string number = std::to_string(program_.var_names.size());
    return program_.add_var(whole + "_" + name + number, {0, extent - 1});
  }

  Stmt at(const For& loop, const Expr& value) const {
    return rewrite(loop.body, {}, [&](const Expr& e) {
      const Expr moved = substitute(e, loop.var, value);
      return moved.same_as(e) ? e : program_.simple(moved);
    });
  }

  Program& program_;
  const bool partly_;
};

}  // namespace

Program unroll(Program program) {
  program.body = Unroller(program).run(program.body);
  return program;
}

}  // namespace pruner
