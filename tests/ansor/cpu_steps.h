// Steps of a product as Ansor writes them for a CPU, with tiles of our choice, for tests.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace pruner::ansor {

/// SSRSRS: tiles of the rows, the columns and the reduction, without the outermost.
struct CpuTiles {
  std::vector<int64_t> m = {2, 2, 4}, n = {1, 2, 16}, k = {16};
  int64_t unroll = 16;
};

/// Returns the steps of ["matmul_layer", 64, 64, 64]; the outermost loops run in parallel.
inline std::string cpu_matmul_steps(const CpuTiles& t) {
  return fmt::format(
      R"([["SP", 2, 0, 64, [{}], 1], ["SP", 2, 4, 64, [{}], 1], ["SP", 2, 8, 64, [{}], 1], )"
      R"(["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FU", 2, [0, 1]], ["AN", 2, 0, 3], )"
      R"(["PR", 2, 0, "auto_unroll_max_step${}"], ["AN", 2, 8, 2]])",
      fmt::join(t.m, ", "),
      fmt::join(t.n, ", "),
      fmt::join(t.k, ", "),
      t.unroll);
}

}  // namespace pruner::ansor
