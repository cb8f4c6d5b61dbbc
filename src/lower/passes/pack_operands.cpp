// Lays arguments out in the order in which their loops read them (pack.h): weights, which are
// packed before the kernel runs.
#include <algorithm>
#include <utility>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// Where the element at `indices` lies: the number of its block along each dim, then where in it.
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
  std::vector<TensorId> repacked;
  for (const TensorId id : program.args) {
    Buffer& buffer = program.buffers[static_cast<size_t>(id.value)];
    if (buffer.repack.order.empty()) continue;
    buffer.shape = buffer.repack.packed_shape(buffer.shape);
    buffer.repack.transform = buffer.pack.transform;
    buffer.pack = std::exchange(buffer.repack, {});
    repacked.push_back(id);
  }
  if (repacked.empty()) return program;
  program.body = rewrite(program.body, {}, [&](const Expr& e) {
    const Expr moved = rewrite(e, [&](const Expr& part) {
      const Load* read = as<Load>(part);
      if (read == nullptr || !std::ranges::count(repacked, read->tensor)) return Expr();
      return load(read->tensor, packed(read->indices, program[read->tensor].pack), part->dtype);
    });
    return moved.same_as(e) ? e : program.simple(moved);
  });
  return program;
}

}  // namespace pruner
