// Lays operands out in the order in which their loops read them (pack.h): weights, which are packed
// before the kernel runs, and copies that the kernel makes.
#include <algorithm>
#include <utility>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// Returns the place of the element at `indices`: the number of its block along each dim, then the
// place in the block.
std::vector<Expr> packed(const std::vector<Expr>& indices, const PackSpec& spec) {
  const auto at = [&](int dim) { return indices[static_cast<size_t>(dim)]; };
  std::vector<Expr> place;
  for (const int dim : spec.order) {
    const auto block = std::ranges::find(spec.blocks, dim, &std::pair<int, int64_t>::first);
    place.push_back(block == spec.blocks.end() ? at(dim) : floor_div(at(dim), block->second));
  }
  for (const auto& [dim, block] : spec.blocks) place.push_back(floor_mod(at(dim), block));
  return place;
}

}  // namespace

Program pack_operands(Program program) {
  std::vector<bool> repacked;
  for (Buffer& buffer : program.buffers) {
    repacked.push_back(!buffer.repack.order.empty());
    if (!repacked.back()) continue;
    buffer.shape = buffer.repack.packed_shape(buffer.shape);
    buffer.repack.transform = buffer.pack.transform;
    buffer.pack = std::exchange(buffer.repack, {});
  }
  if (std::ranges::find(repacked, true) == repacked.end()) return program;
  const auto is_repacked = [&](TensorId id) { return repacked[static_cast<size_t>(id.value)]; };
  const auto moved_loads = [&](const Expr& e) {
    const Expr moved = rewrite(e, [&](const Expr& part) {
      const Load* read = as<Load>(part);
      if (read == nullptr || !is_repacked(read->tensor)) return Expr();
      return load(read->tensor, packed(read->indices, program[read->tensor].pack), part->dtype);
    });
    return moved.same_as(e) ? e : program.simple(moved);
  };
  const auto moved_stores = [&](const Stmt& s) {
    const Store* store = std::get_if<Store>(&s->op);
    if (store == nullptr || !is_repacked(store->buffer)) return Stmt();
    std::vector<Expr> place = packed(store->indices, program[store->buffer].pack);
    for (Expr& index : place) index = program.simple(index);
    return make_stmt(Store{store->buffer, std::move(place), moved_loads(store->value)});
  };
  program.body = rewrite(program.body, moved_stores, moved_loads);
  return program;
}

}  // namespace pruner
