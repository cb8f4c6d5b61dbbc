// Asks, before a step of a reduction, for the cache lines that a later step reads: of packed
// operands, which lie in the order of the steps, and of those whose rows the step's vectors run
// along.
#include <algorithm>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

constexpr int64_t kLineBytes = 64;  // of a cache line

class Prefetcher {
 public:
  Prefetcher(const Program& program, const For& step) : program_(program), step_(step) {
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

  // What moves along the axis of the vectors.
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
    if (packed(read)) return true;
    const std::optional<Affine> last = to_affine(read.indices.back());
    return last && std::ranges::any_of(tile_, [&](const For* loop) {
             return loop->kind == LoopKind::kVectorize && last->coefficient(loop->var) == 1;
           });
  }

  void prefetch(const Load& read) {
    const bool in_order = packed(read);
    const int64_t element = dtype_bytes(program_[read.tensor].dtype);
    const std::vector<Expr> along = along_vectors(read);
    int64_t bytes = element;  // that a step reads side by side
    for (const For* loop : tile_) {
      if (std::ranges::any_of(along, [&](const Expr& index) { return reads(index, loop->var); }))
        bytes *= program_.ranges[static_cast<size_t>(loop->var.value)].second + 1;
    }
    // Packed operands lie in the order of the steps: so many bytes on is what a later step reads.
    // Of others the place is that of the step that is so many bytes later.
    const int64_t steps = in_order ? 0 : std::max<int64_t>(1, step_.prefetch_bytes / bytes);
    std::vector<Expr> place;
    for (Expr index : read.indices) {
      for (const For* loop : tile_) index = substitute(index, loop->var, Expr(0));
      place.push_back(substitute(index, step_.var, program_.var(step_.var) + Expr(steps)));
    }
    for (int64_t line = 0; line < bytes; line += kLineBytes) {
      const int64_t ahead = line + (in_order ? step_.prefetch_bytes : 0);
      std::vector<Expr> indices = place;
      indices.back() = indices.back() + Expr(ahead / element);
      for (Expr& index : indices) index = program_.simple(index);
      prefetches_.push_back(make_stmt(Prefetch{read.tensor, std::move(indices)}));
    }
  }

  const Program& program_;
  const For& step_;
  std::vector<const For*> tile_;  // loops of a step
  Expr value_;                    // what it adds up
  std::vector<Stmt> prefetches_;
};

}  // namespace

Program prefetch(Program program) {
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const For* loop = std::get_if<For>(&s->op);
    const bool noted = loop != nullptr && loop->prefetch_bytes > 0;
    return noted ? Prefetcher(program, *loop).with_prefetches() : Stmt();
  });
  return program;
}

}  // namespace pruner
