#include "lower/matrix.h"

namespace pruner {

static const For* loop_of(const Stmt& s, LoopKind kind) {
  const For* loop = std::get_if<For>(&s->op);
  return loop != nullptr && loop->kind == kind ? loop : nullptr;
}

std::optional<MatrixNest> matrix_nest(const For& rows) {
  MatrixNest nest;
  if (rows.kind != LoopKind::kMatrix) return std::nullopt;
  nest.rows = &rows;
  nest.lanes = loop_of(rows.body, LoopKind::kVectorize);
  if (nest.lanes == nullptr) return std::nullopt;
  const Stmt* body = &nest.lanes->body;
  nest.steps = loop_of(*body, LoopKind::kMatrix);
  if (nest.steps != nullptr) body = &nest.steps->body;
  nest.terms = loop_of(*body, LoopKind::kDot);
  if (nest.terms == nullptr && nest.steps != nullptr) return std::nullopt;
  if (nest.terms != nullptr) body = &nest.terms->body;
  nest.store = std::get_if<Store>(&(*body)->op);
  return nest.store == nullptr ? std::nullopt : std::optional(nest);
}

TensorId tile_of(const Program& program, const MatrixNest& nest) {
  if (program[nest.store->buffer].rows > 1) return nest.store->buffer;
  const Load* value = as<Load>(nest.store->value);
  return value != nullptr && program[value->tensor].rows > 1 ? value->tensor : TensorId{};
}

}  // namespace pruner
