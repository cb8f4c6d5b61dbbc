// A loop over chunks that fetches | meets | adds | meets, with two buffers of what it fetches:
// while a chunk is added, the next is fetched into the other buffer, so that one barrier is enough.
#include <algorithm>

#include "lower/passes.h"
#include "lower/rewrite.h"
#include "support/check.h"

namespace pruner {
namespace {

class ChunkLoop {
 public:
  ChunkLoop(Program& program, const For& loop) : program_(program), loop_(loop), steps_(loop.body) {
    while (const Let* let = std::get_if<Let>(&steps_->op)) {
      lets_.push_back(let);
      steps_ = let->body;
    }
    walk(fetch(), [&](const StmtNode& s) {
      CHECK(!std::holds_alternative<AsyncCopy>(s.op)) << "copies have stages, not two buffers";
      const Store* store = std::get_if<Store>(&s.op);
      if (store == nullptr || is_doubled(store->buffer)) return;
      doubled_.push_back(store->buffer);
      std::vector<int64_t>& shape = buffer(store->buffer).shape;
      shape.insert(shape.begin(), 2);
    });
  }

  Stmt doubled() {
    const int64_t last = *as_int(loop_.extent) - 1;
    const Expr number = program_.var(loop_.var);
    const VarId next =
        program_.add_var("next" + std::to_string(program_.var_names.size()), {0, last});
    const Stmt ahead =
        make_stmt(Let{next, number + Expr(1), at_chunk(program_.var(next), fetch())});
    For loop = loop_;
    loop.double_buffer = false;
    // The barrier ends two things: the fetch of this chunk, and the reads of the other buffer,
    // which the fetch ahead overwrites.
    loop.body = make_stmt(Block{{make_stmt(Barrier{}),
                                 make_stmt(If{number < Expr(last), ahead}),
                                 at_chunk(number, add())}});
    return make_stmt(Block{{at_chunk(Expr(0), fetch()), make_stmt(std::move(loop))}});
  }

 private:
  const Stmt& fetch() const { return std::get<Block>(steps_->op).statements[0]; }
  const Stmt& add() const { return std::get<Block>(steps_->op).statements[2]; }
  Buffer& buffer(TensorId id) { return program_.buffers[static_cast<size_t>(id.value)]; }
  bool is_doubled(TensorId id) const { return std::ranges::count(doubled_, id) > 0; }

  // A step of the chunk of that number, in its buffers.
  Stmt at_chunk(const Expr& number, const Stmt& step) const {
    const Expr which = program_.simple(floor_mod(number, Expr(2)));
    const auto in_buffer = [&](std::vector<Expr> indices) {
      indices.insert(indices.begin(), which);
      return indices;
    };
    const auto expr = [&](const Expr& e) {
      return rewrite(e, [&](const Expr& node) {
        const Load* read = as<Load>(node);
        const bool moves = read != nullptr && is_doubled(read->tensor);
        return moves ? load(read->tensor, in_buffer(read->indices), node->dtype) : Expr();
      });
    };
    const auto stmt = [&](const Stmt& s) {
      if (const LoadMatrix* load = std::get_if<LoadMatrix>(&s->op)) {
        if (!is_doubled(load->from.buffer)) return Stmt();
        LoadMatrix made = *load;
        made.from.indices = in_buffer(made.from.indices);
        return make_stmt(std::move(made));
      }
      const Store* store = std::get_if<Store>(&s->op);
      if (store == nullptr || !is_doubled(store->buffer)) return Stmt();
      return make_stmt(Store{store->buffer, in_buffer(store->indices), expr(store->value)});
    };
    Stmt result = rewrite(step, stmt, expr);
    for (size_t i = lets_.size(); i-- > 0;) {
      const Expr value = program_.simple(substitute(lets_[i]->value, loop_.var, number));
      result = make_stmt(Let{lets_[i]->var, value, result});
    }
    return result;
  }

  Program& program_;
  const For& loop_;
  Stmt steps_;                     // fetch | barrier | add | barrier
  std::vector<const Let*> lets_;   // lets of the chunk's place, around the steps
  std::vector<TensorId> doubled_;  // buffers
};

}  // namespace

Program double_buffer(Program program) {
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const For* loop = std::get_if<For>(&s->op);
    return loop != nullptr && loop->double_buffer ? ChunkLoop(program, *loop).doubled() : Stmt();
  });
  return program;
}

}  // namespace pruner
