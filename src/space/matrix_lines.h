// How a matrix of a product lies in shared memory: in lines of which one closed form, for numbers
// and expressions, exchanges the runs of 16 bytes, so that those of eight lines lie in different
// banks. ldmatrix may read lines of any such form; wgmma reads lines of 16, 32, 64 or 128 bytes
// (PTX: "shared memory matrix layout", swizzling modes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tensor/expr.h"

namespace pruner {

/// Bytes that stay together: a row of a matrix of 8 rows.
inline constexpr int64_t kSwizzleBytes = 16;
/// Rows that a matrix has: as many runs at most are exchanged.
inline constexpr int64_t kSwizzleLines = 8;

/// Returns the place of element `at` of line `line` in lines of `width` elements; T is int64_t or
/// Expr. Lines of 128 bytes are exchanged by their number mod 8, those of 64 by half of it, and so
/// on.
template <typename T>
T swizzled(const T& line, const T& at, int64_t width, int64_t element_bytes) {
  const int64_t run = kSwizzleBytes / element_bytes, runs = width / run;
  const int64_t turns = std::min<int64_t>(runs & -runs, kSwizzleLines);
  if (width % run != 0 || turns < 2) return at;
  if constexpr (std::is_integral_v<T>) {
    const T turn = line / (kSwizzleLines / turns) % turns;
    return (at / run ^ turn) * run + at % run;
  } else {
    const T turn = floor_mod(floor_div(line, T(kSwizzleLines / turns)), T(turns));
    return (floor_div(at, T(run)) ^ turn) * T(run) + floor_mod(at, T(run));
  }
}

/// Whether a group's instruction reads lines of so many bytes. Lines of 16 bytes have rows of one
/// term.
constexpr bool is_group_line(int64_t bytes, bool terms_first) {
  return bytes == 32 || bytes == 64 || bytes == 128 || (bytes == 16 && terms_first);
}

/// Returns the rows of a line of a matrix whose terms go from line to line, of which a group reads
/// `rows` at once, a multiple of eight: the most that divide them.
constexpr int64_t group_line_rows(int64_t rows, int64_t element_bytes) {
  int64_t bytes = 128;
  while (rows * element_bytes % bytes != 0) bytes /= 2;
  return bytes / element_bytes;
}

/// Shared buffers that groups read begin at multiples of so many bytes, as eight lines do.
inline constexpr int64_t kGroupAlignment = 1024;

}  // namespace pruner
