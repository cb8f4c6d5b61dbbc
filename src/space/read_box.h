// The box of a stage that some reads touch while their iterators run over given spans.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "space/access.h"

namespace pruner {

/// Places from the first to the last that an index reaches while its iterators run over `spans`.
inline int64_t index_span(const Affine& index, std::span<const int64_t> spans) {
  int64_t span = 1;
  for (const auto& [var, coefficient] : index.terms)
    span += (coefficient < 0 ? -coefficient : coefficient) * (spans[var.value] - 1);
  return span;
}

class ReadBox {
 public:
  /// The box along one axis of the producer: from `low` to `high` beyond the terms of `index`.
  struct Dim {
    int64_t low = 0, high = 0;
    const Affine* index = nullptr;  // index of the last read; all have its terms
    int reader = 0;                 // number of the reader with the lowest read
    bool whole = false, leaves = false;
  };

  /// `moved`: a box of guarded reads is moved to lie inside the producer, not made the whole.
  explicit ReadBox(const Stage& producer, bool moved = false)
      : producer_(producer), moved_(moved), dims_(producer.axes.size()) {}

  /// A read of the producer by a stage whose iterators run over `spans`, one of several readers.
  void add(const Access& access, std::span<const int64_t> spans, int reader = 0) {
    for (size_t d = 0; d < dims_.size(); ++d) {
      Dim& dim = dims_[d];
      const std::optional<Affine>& index = access.indices[d];
      // Two reads share a box when only their constants differ.
      const bool boxed = !access.whole[d] || (moved_ && access.leaves[d]);
      dim.whole = dim.whole || !boxed || (dim.index != nullptr && dim.index->terms != index->terms);
      if (dim.whole) continue;
      int64_t low = index->constant, high = index->constant;
      for (const auto& [var, coefficient] : index->terms) {
        const int64_t reach = coefficient * (spans[var.value] - 1);
        (reach < 0 ? low : high) += reach;
      }
      if (dim.index == nullptr || low < dim.low) dim.reader = reader;
      dim.low = dim.index == nullptr ? low : std::min(dim.low, low);
      dim.high = dim.index == nullptr ? high : std::max(dim.high, high);
      dim.index = &*index;
      dim.leaves = dim.leaves || access.leaves[d];
    }
  }

  std::vector<int64_t> extents() const {
    std::vector<int64_t> extents;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t all = producer_.axes[d].extent, box = dims_[d].high - dims_[d].low + 1;
      extents.push_back(dims_[d].whole ? all : dims_[d].leaves ? std::min(box, all) : box);
    }
    return extents;
  }

  const Dim& operator[](size_t d) const { return dims_[d]; }

 private:
  const Stage& producer_;
  bool moved_;
  std::vector<Dim> dims_;
};

}  // namespace pruner
