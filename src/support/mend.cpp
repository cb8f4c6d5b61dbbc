#include "support/mend.h"

#include <atomic>

namespace pruner {

static std::atomic<uint32_t> out{0};  // bit i: the mend of number i

bool is_in(Mend mend) {
  return (out.load(std::memory_order_relaxed) >> static_cast<uint32_t>(mend) & 1) == 0;
}

WithoutMend::WithoutMend(Mend mend) : before_(out.load()) {
  out = before_ | 1u << static_cast<uint32_t>(mend);
}

WithoutMend::~WithoutMend() { out = before_; }

}  // namespace pruner
