// Rows of a table, each with how often it is drawn on a CPU and on a GPU.
#pragma once

#include <vector>

#include "support/rng.h"

namespace pruner {

/// One of the rows, by its member `cpu` or `gpu`.
template <typename Row, size_t N>
const Row& draw_row(const Row (&rows)[N], bool on_gpu, Rng& rng) {
  std::vector<double> weights;
  for (const Row& row : rows) weights.push_back(on_gpu ? row.gpu : row.cpu);
  return rows[rng.weighted(weights)];
}

}  // namespace pruner
