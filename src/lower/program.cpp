#include "lower/program.h"

namespace pruner {

int64_t Buffer::num_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

VarId Program::add_var(std::string var_name, Range range) {
  var_names.push_back(std::move(var_name));
  ranges.push_back(range);
  return VarId{static_cast<int32_t>(var_names.size()) - 1};
}

TensorId Program::add_buffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return TensorId{static_cast<int32_t>(buffers.size()) - 1};
}

std::vector<const For*> launches(const Program& program) {
  std::vector<const For*> result;
  const auto append = [&](const Stmt& s) {
    const For* loop = s ? std::get_if<For>(&s->op) : nullptr;
    if (loop && loop->kind == LoopKind::kBlock) result.push_back(loop);
  };
  append(program.body);
  if (!program.body) return result;
  if (const Block* parts = std::get_if<Block>(&program.body->op)) {
    for (const Stmt& part : parts->statements) append(part);
  }
  return result;
}

}  // namespace pruner
