// The elements of a small matrix that each lane of a warp holds, for the instructions that its 32
// lanes run together (PTX: mma, ldmatrix). One closed form serves numbers and expressions.
#pragma once

#include <type_traits>

namespace pruner {

inline constexpr int kWarpLanes = 32;
/// Lanes along the rows and along the columns of a matrix of sums.
inline constexpr int kRowLanes = 8, kColumnLanes = 4;
/// Warps of a group, which begins at a multiple of as many, and their threads.
inline constexpr int kGroupWarps = 4, kGroupThreads = kGroupWarps * kWarpLanes;

/// A matrix that the lanes of a warp hold together, each in registers of 32 bits that have `run`
/// elements of a row side by side. Four lanes share a row of 4 * run columns; the other registers
/// are 8 rows further down, then 4 * run columns further on.
struct Fragment {
  int rows, cols, run;

  /// Returns the number of elements that one lane holds.
  constexpr int elements() const { return rows * cols / kWarpLanes; }

  /// Return the row and the column of a lane's element `v`; T is int, int64_t or Expr.
  template <typename T>
  constexpr T row(T lane, T v) const {
    return quotient(lane, 4) + remainder(quotient(v, run), rows / 8) * T(8);
  }
  template <typename T>
  constexpr T col(T lane, T v) const {
    return remainder(lane, 4) * T(run) + remainder(v, run) +
           quotient(quotient(v, run), rows / 8) * T(4 * run);
  }

 private:
  template <typename T>
  static constexpr T quotient(T a, int b) {
    if constexpr (std::is_integral_v<T>)
      return a / T(b);
    else
      return floor_div(a, T(b));
  }
  template <typename T>
  static constexpr T remainder(T a, int b) {
    if constexpr (std::is_integral_v<T>)
      return a % T(b);
    else
      return floor_mod(a, T(b));
  }
};

/// Returns the fragment that ldmatrix loads: 8 rows of 16 bytes, in elements of `element_bytes`.
constexpr Fragment matrix_fragment(int element_bytes) {
  return {8, 16 / element_bytes, 4 / element_bytes};
}

}  // namespace pruner
