// Division of whole numbers that rounds up: how many parts of one length cover another length.
#pragma once

#include <concepts>
#include <type_traits>

namespace pruner {

/// Returns a / b rounded up; a is at least 0, and b at least 1.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

}  // namespace pruner
