#include "guarded_argument.h"

#include <algorithm>
#include <cstring>

namespace pruner {

static constexpr std::byte kUnwritten{0xa5};

GuardedArgument::GuardedArgument(int64_t bytes, bool at_end)
    : buffer_(*GuardedBuffer::make((bytes + 63) / 64 * 64)),
      pad_(at_end ? buffer_.bytes() - bytes : 0),
      bytes_(bytes) {
  clear();
}

void GuardedArgument::clear() { buffer_.fill(kUnwritten); }

void GuardedArgument::set(const Tensor& tensor) {
  std::memcpy(data(), tensor.data(), static_cast<size_t>(bytes_));
  buffer_.make_read_only();
}

bool GuardedArgument::intact() const {
  const auto untouched = [](std::byte b) { return b == kUnwritten; };
  return buffer_.intact() && std::all_of(buffer_.data(), data(), untouched) &&
         std::all_of(data() + bytes_, buffer_.data() + buffer_.bytes(), untouched);
}

}  // namespace pruner
