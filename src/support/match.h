// match(variant, handlers...): one handler an alternative and no default case, so that a new
// alternative breaks the build at every place that has to know of it.
#pragma once

#include <utility>
#include <variant>

namespace pruner {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

template <typename Variant, typename... Handlers>
decltype(auto) match(Variant&& variant, Handlers&&... handlers) {
  return std::visit(Overloaded<std::decay_t<Handlers>...>{std::forward<Handlers>(handlers)...},
                    std::forward<Variant>(variant));
}

}  // namespace pruner
