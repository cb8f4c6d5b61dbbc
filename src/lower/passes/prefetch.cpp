// Asks, before a step of a reduction, for the cache lines that a later step reads: of packed
// operands, which lie in the order of the steps, and of those whose rows the step's vectors run
// along. What does not move with the step is in a cache since the first of them.
//
// Or a round ahead (kPrefetchRound): loops that read the same again, such as those over the rows of
// a product, follow each other around what moves the operand. While they run they ask for what is
// read after them, each iteration for a part, so that memory is busy all the time and not in the
// first round alone. It goes to L2, which has to hold both.
#include <algorithm>

#include "lower/passes.h"
#include "lower/rewrite.h"
#include "support/ceil_div.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

constexpr int64_t kLineBytes = 64;                     // a cache line
constexpr int64_t kWithoutRounds = 4096;               // bytes ahead where nothing is read again
constexpr int64_t kMostIterations = int64_t{1} << 30;  // iterations of a round, and rounds

/// A loop around a step, or a Let, whose extent is 0.
struct Around {
  VarId var;
  int64_t extent = 0;
  LoopKind kind = LoopKind::kSerial;
  Expr value = {};  // value of a Let
};

/// The rounds of a read until it goes on to other bytes: `count` rounds of `steps` steps each read
/// the same bytes.
struct Rounds {
  int64_t steps = 1, count = 1;
  Expr step = Expr(0), number = Expr(0);  // the step in the round, and the round, that run
  std::vector<Expr> begin = {};           // the place where a round begins
};

class Prefetcher {
 public:
  Prefetcher(const Program& program, const For& step, std::span<const Around> around)
      : program_(program), step_(step), around_(around) {
    Stmt inner = step.body;
    while (const For* loop = std::get_if<For>(&inner->op)) {
      tile_.push_back(loop);
      inner = loop->body;
    }
    if (const Store* store = std::get_if<Store>(&inner->op)) value_ = store->value;
  }

  Stmt with_prefetches() {
    if (value_) {
      visit(value_, [&](const Expr& e) {
        const Load* read = as<Load>(e);
        if (read != nullptr && streams(*read)) prefetch(*read);
      });
    }
    For loop = step_;
    loop.prefetch_bytes = 0;
    prefetches_.push_back(step_.body);
    if (prefetches_.size() > 1) loop.body = make_stmt(Block{std::move(prefetches_)});
    return make_stmt(std::move(loop));
  }

 private:
  bool packed(const Load& read) const { return !program_[read.tensor].pack.blocks.empty(); }

  // Returns the indices that move along the axis of the vectors.
  std::vector<Expr> along_vectors(const Load& read) const {
    if (!packed(read)) return {read.indices.back()};
    const PackSpec& pack = program_[read.tensor].pack;
    std::vector<Expr> found(read.indices.begin() + std::ssize(pack.order), read.indices.end());
    for (const auto& [dim, block] : pack.blocks)
      found.push_back(read.indices[static_cast<size_t>(std::ranges::find(pack.order, dim) -
                                                       pack.order.begin())]);
    return found;
  }

  bool streams(const Load& read) const {
    const Scope scope = program_[read.tensor].scope;
    if (scope != Scope::kArgument && scope != Scope::kWorkspace) return false;
    if (packed(read)) return reads_step(read);
    const std::optional<Affine> last = to_affine(read.indices.back());
    return last && std::ranges::any_of(tile_, [&](const For* loop) {
             return loop->kind == LoopKind::kVectorize && last->coefficient(loop->var) == 1;
           });
  }

  bool reads_step(const Load& read) const {
    return std::ranges::any_of(read.indices,
                               [&](const Expr& index) { return reads(index, step_.var); });
  }

  int64_t extent_of(VarId var) const {
    return program_.ranges[static_cast<size_t>(var.value)].second + 1;
  }

  // Loops that move the read make a round longer, those around them that do not are rounds.
  Rounds rounds_of(const Load& read) const {
    Rounds rounds;
    rounds.begin = first_place(read, 0);
    const auto add_steps = [&](VarId var, int64_t extent) {
      rounds.step = program_.var(var) * Expr(rounds.steps) + rounds.step;
      rounds.steps *= extent;
      for (Expr& index : rounds.begin) index = substitute(index, var, Expr(0));
    };
    add_steps(step_.var, extent_of(step_.var));
    for (auto at = around_.rbegin(); at != around_.rend(); ++at) {
      if (at->extent == 0) {
        for (Expr& index : rounds.begin) index = substitute(index, at->var, at->value);
        continue;
      }
      const bool moves = std::ranges::any_of(
          rounds.begin, [&](const Expr& index) { return reads(index, at->var); });
      if (at->kind == LoopKind::kParallel || (moves && rounds.count > 1)) break;
      // The greatest extent of a loop whose bounds are found at run time may be any number.
      const int64_t so_far = std::max<int64_t>(1, moves ? rounds.steps : rounds.count);
      if (at->extent > kMostIterations / so_far) break;
      if (moves) {
        add_steps(at->var, at->extent);
      } else {
        rounds.number = program_.var(at->var) * Expr(rounds.count) + rounds.number;
        rounds.count *= at->extent;
      }
    }
    return rounds;
  }

  // The bytes that come after a round, in parts that follow each other in memory: one in each step.
  bool prefetch_round(const Load& read, int64_t step_bytes) {
    const Rounds rounds = rounds_of(read);
    const int64_t element = dtype_bytes(program_[read.tensor].dtype);
    const int64_t bytes = step_bytes * rounds.steps;
    if (rounds.count == 1 || bytes > kMostRoundBytes) return false;
    const int64_t lines = ceil_div(step_bytes, kLineBytes);
    const int64_t part = ceil_div(lines, rounds.count);  // lines of a round's step
    const int64_t parts = ceil_div(lines, part);
    const int64_t part_elements = part * kLineBytes / element;
    Expr ahead = rounds.number * Expr(rounds.steps * part_elements) + Expr(bytes / element);
    // Rounds after the last part ask for lines of their own, which are there: a branch in each step
    // would cut the products of the steps that are unrolled into blocks of code.
    if (parts < rounds.count) ahead = select(rounds.number < Expr(parts), ahead, Expr(0));
    const Expr offset = ahead + rounds.step * Expr(part_elements);
    std::vector<Stmt> asked = lines_of(read, rounds.begin, part * kLineBytes, offset, 2);
    std::ranges::move(asked, std::back_inserter(prefetches_));
    return true;
  }

  void prefetch(const Load& read) {
    const bool in_order = packed(read);
    const int64_t element = dtype_bytes(program_[read.tensor].dtype);
    const std::vector<Expr> along = along_vectors(read);
    int64_t bytes = element;  // bytes that a step reads side by side
    for (const For* loop : tile_) {
      if (std::ranges::any_of(along, [&](const Expr& index) { return reads(index, loop->var); }))
        bytes *= extent_of(loop->var);
    }
    if (bytes == 0) return;  // a loop of the tile has no iterations
    const bool by_rounds = in_order && step_.prefetch_bytes == kPrefetchRound;
    if (by_rounds && prefetch_round(read, bytes)) return;
    const int64_t ahead = by_rounds ? kWithoutRounds : step_.prefetch_bytes;
    // Packed operands lie in the order of the steps: a later step reads so many bytes further on.
    // The place in another operand is the place of the step that reads so many bytes later.
    const int64_t steps = in_order ? 0 : std::max<int64_t>(1, ahead / bytes);
    const Expr offset(in_order ? ahead / element : 0);
    std::ranges::move(lines_of(read, first_place(read, steps), bytes, offset, 1),
                      std::back_inserter(prefetches_));
  }

  // Returns the place where a later step begins to read.
  std::vector<Expr> first_place(const Load& read, int64_t steps) const {
    std::vector<Expr> place;
    for (Expr index : read.indices) {
      for (const For* loop : tile_) index = substitute(index, loop->var, Expr(0));
      place.push_back(substitute(index, step_.var, program_.var(step_.var) + Expr(steps)));
    }
    return place;
  }

  // Returns prefetches of `bytes` bytes from `place` on, `offset` elements further.
  std::vector<Stmt> lines_of(const Load& read,
                             const std::vector<Expr>& place,
                             int64_t bytes,
                             const Expr& offset,
                             int level) const {
    const int64_t element = dtype_bytes(program_[read.tensor].dtype);
    std::vector<Stmt> asked;
    for (int64_t line = 0; line < bytes; line += kLineBytes) {
      std::vector<Expr> indices = place;
      indices.back() = indices.back() + offset + Expr(line / element);
      for (Expr& index : indices) index = program_.simple(index);
      asked.push_back(make_stmt(Prefetch{read.tensor, std::move(indices), level}));
    }
    return asked;
  }

  const Program& program_;
  const For& step_;
  std::span<const Around> around_;  // the step, outermost first
  std::vector<const For*> tile_;    // loops of a step
  Expr value_;                      // value that a step adds up
  std::vector<Stmt> prefetches_;
};

}  // namespace

Program prefetch(Program program) {
  std::vector<Around> around;
  StmtRewrite at;
  // Rebuilds what lies inside a loop or a Let, which is known meanwhile. A statement that stays is
  // returned as well: for none, rewrite() would go into the statement again, and so twice as often
  // with each loop around it.
  const auto inside = [&](const Stmt& s, const auto& node, const Around& outer) {
    around.push_back(outer);
    Stmt body = rewrite(node.body, at);
    around.pop_back();
    if (body == node.body) return s;
    auto made = node;
    made.body = std::move(body);
    return make_stmt(std::move(made));
  };
  at = [&](const Stmt& s) {
    if (const Let* let = std::get_if<Let>(&s->op))
      return inside(s, *let, {.var = let->var, .value = let->value});
    const For* loop = std::get_if<For>(&s->op);
    if (loop == nullptr) return Stmt();
    if (loop->prefetch_bytes > 0) return Prefetcher(program, *loop, around).with_prefetches();
    const int64_t extent = program.ranges[static_cast<size_t>(loop->var.value)].second + 1;
    return inside(s, *loop, {.var = loop->var, .extent = extent, .kind = loop->kind});
  };
  program.body = rewrite(program.body, at);
  return program;
}

}  // namespace pruner
