// Typed indices: a StageId and a SketchId do not mix. The owner of the indexed things gives them
// out, and what is known of each thing is a map from its id.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace pruner {

template <typename Tag>
struct Id {
  int32_t value = -1;
  friend auto operator<=>(Id, Id) = default;
  bool valid() const { return value >= 0; }
};

/// A vector with one value for each id of its owner, in their order.
template <typename Id, typename T>
class IdMap : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  decltype(auto) operator[](Id id) { return std::vector<T>::operator[](index(id)); }
  decltype(auto) operator[](Id id) const { return std::vector<T>::operator[](index(id)); }

 private:
  static size_t index(Id id) { return static_cast<size_t>(id.value); }
};

}  // namespace pruner
