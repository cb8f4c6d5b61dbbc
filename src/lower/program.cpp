#include "lower/program.h"

namespace pruner {

int64_t Buffer::num_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

VarId Program::add_var(std::string var_name) {
  var_names.push_back(std::move(var_name));
  return VarId{static_cast<int32_t>(var_names.size()) - 1};
}

TensorId Program::add_buffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return TensorId{static_cast<int32_t>(buffers.size()) - 1};
}

}  // namespace pruner
