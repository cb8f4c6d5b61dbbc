// Takes out of a sum what all its terms are multiplied by: where x[k] * (q[k, j] * s[j]) is added
// up over the innermost loops of a reduction, x[k] * q[k, j] is, and the sum is multiplied by s[j]
// once.
#include <algorithm>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// So many terms at least make up for a sum more to begin and to end.
constexpr int64_t kLeastTerms = 8;

void flatten(const Expr& e, std::vector<Expr>& factors) {
  const Binary* product = as<Binary>(e);
  if (product == nullptr || product->op != BinaryOp::kMul || e->dtype != DType::kFloat32) {
    factors.push_back(e);
    return;
  }
  flatten(product->a, factors);
  flatten(product->b, factors);
}

Expr product_of(const std::vector<Expr>& factors) {
  Expr product;
  for (const Expr& factor : factors) product = product ? product * factor : factor;
  return product;
}

bool loads(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) { found = found || as<Load>(part) != nullptr; });
  return found;
}

/// A perfect nest that ends in sum[place] = sum[place] + term, in registers.
class SumNest {
 public:
  SumNest(Program& program, const For& outermost) : program_(program) {
    for (const For* loop = &outermost; loop != nullptr; loop = std::get_if<For>(&body_->op)) {
      loops_.push_back(loop);
      body_ = loop->body;
    }
    store_ = std::get_if<Store>(&body_->op);
    if (store_ == nullptr) return;
    const Buffer& buffer = program[store_->buffer];
    const Binary* sum = as<Binary>(store_->value);
    const Load* old = sum == nullptr ? nullptr : as<Load>(sum->a);
    const bool adds = old != nullptr && sum->op == BinaryOp::kAdd &&
                      old->tensor == store_->buffer && buffer.dtype == DType::kFloat32 &&
                      buffer.scope == Scope::kRegister && buffer.rows == 1;
    if (adds) term_ = sum->b;
  }

  /// Returns the nest with the factors common to the terms outside of its reduction. Empty if there
  /// is no common factor, or if the outermost loop is no loop of the reduction.
  Stmt factored() {
    if (!term_ || in_place(*loops_.front())) return {};
    int64_t terms = 1;
    for (const For* loop : loops_) {
      if (loop->kind == LoopKind::kDot || loop->kind == LoopKind::kMatrix) return {};
      const int64_t* extent = as_int(loop->extent);
      if (extent == nullptr) return {};
      if (!in_place(*loop)) terms *= *extent;
      // A vector over the terms is folded as it is.
      if (!in_place(*loop) && loop->kind == LoopKind::kVectorize) return {};
    }
    std::vector<Expr> factors, common, rest;
    flatten(term_, factors);
    for (const Expr& factor : factors) (is_common(factor) ? common : rest).push_back(factor);
    if (terms < kLeastTerms || common.empty() || rest.empty()) return {};
    Buffer buffer = program_[store_->buffer];
    buffer.name += ".part";
    const TensorId part = program_.add_buffer(std::move(buffer));
    const Expr sum = load(part, store_->indices, DType::kFloat32);
    const Stmt begin = nest(false, Store{part, store_->indices, float_imm(0)});
    const Stmt add = nest(true, Store{part, store_->indices, sum + product_of(rest)});
    const Expr all = load(store_->buffer, store_->indices, DType::kFloat32);
    const Stmt end =
        nest(false, Store{store_->buffer, store_->indices, all + sum * product_of(common)});
    return make_stmt(Allocate{part, make_stmt(Block{{begin, add, end}})});
  }

 private:
  bool in_place(const For& loop) const {
    return std::ranges::any_of(store_->indices,
                               [&](const Expr& index) { return reads(index, loop.var); });
  }

  bool is_common(const Expr& factor) const {
    return loads(factor) && std::ranges::none_of(loops_, [&](const For* loop) {
             return !in_place(*loop) && reads(factor, loop->var);
           });
  }

  // The loops around another store: all of them, or those alone that its place moves with.
  Stmt nest(bool all, Store store) const {
    Stmt made = make_stmt(std::move(store));
    for (size_t i = loops_.size(); i-- > 0;) {
      if (!all && !in_place(*loops_[i])) continue;
      For loop = *loops_[i];
      loop.body = made;
      if (!all) {
        // Another loop, of a variable of its own.
        const auto number = static_cast<size_t>(loop.var.value);
        loop.var = program_.add_var(
            program_.var_names[number] + "_" + std::to_string(program_.var_names.size()),
            program_.ranges[number]);
        loop.body = rewrite(made, {}, [&](const Expr& e) {
          return substitute(e, loops_[i]->var, program_.var(loop.var));
        });
      }
      made = make_stmt(std::move(loop));
    }
    return made;
  }

  Program& program_;
  std::vector<const For*> loops_;
  Stmt body_;
  const Store* store_ = nullptr;
  Expr term_;
};

}  // namespace

Program factor_sums(Program program) {
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const For* loop = std::get_if<For>(&s->op);
    return loop != nullptr && loop->kind == LoopKind::kSerial ? SumNest(program, *loop).factored()
                                                              : Stmt();
  });
  return program;
}

}  // namespace pruner
