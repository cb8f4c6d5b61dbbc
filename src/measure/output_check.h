// Whether a kernel computed the right numbers: a sample of each output's elements, with every
// corner, against the reference interpreter's values, and the whole of it against another kernel's.
// The one place of the tolerances.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/rng.h"
#include "tensor/compute_dag.h"
#include "tensor/tensor.h"

namespace pruner {

/// Outputs are filled with this before a kernel runs; it makes a NaN in every float format.
inline constexpr std::byte kUnwritten{0xff};

/// The share of bytes that may be rounded another way.
inline constexpr double kMostRoundedApart = 0.01;

/// ErrorBound says how much a value may differ: by a share of the value, and by `before` as an
/// absolute error before the value was rounded.
struct ErrorBound {
  double share = 0, before = 0;
};

/// ExpectedOutput holds the values of one output at some elements. If rounding to a narrow float is
/// the last step, the values are those before this rounding.
struct ExpectedOutput {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> elements;  // row-major positions
  std::vector<double> values;
  double largest = 0;    // largest absolute value
  double products = 0;   // largest sum of |a| |b| of an element of a contraction behind it
  bool rounded = false;  // bytes that are made of floats
  std::optional<ErrorBound> bound = {};  // set if it is known how an error comes about
  StageId stage = {};
  bool unrounded = false;  // `values` are those before the last rounding
  double jumps = 0;        // the share of elements that rounding may carry over a step

  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * dtype_bytes(dtype); }
};

/// Returns what each output of `dag` has to be at `count` elements or more.
std::vector<ExpectedOutput> expect_outputs(const ComputeDag& dag,
                                           std::span<const Tensor> inputs,
                                           int64_t count,
                                           Rng& rng);

/// Returns what each output has to be, bit for bit, on whole_numbers() of a DAG that is exact on
/// them.
std::vector<ExpectedOutput> expect_exact_outputs(const ComputeDag& dag,
                                                 std::span<const Tensor> inputs,
                                                 int64_t count,
                                                 Rng& rng);

/// The same output at other elements.
ExpectedOutput expect_elsewhere(const ComputeDag& dag,
                                std::span<const Tensor> inputs,
                                ExpectedOutput output,
                                std::vector<int64_t> elements);

/// Returns how much a value may differ.
/// - Float32: 1e-4 of the value or 2e-5 of the output's largest, whichever is more: sums of n
///   products in another order stay well within, and a forgotten term does not. Float16: 2e-2 and
///   5e-3, other narrow floats as many units in the last place.
/// - A contraction of narrow numbers (sums_behind()): what float32 may, or G (2 + e + 4 sqrt(K))
///   2^-24 S if it is less; rounding to the type adds u |value| (1 + 2^-6). u is 2^-8 for bfloat16,
///   2^-11 for float16 and 2^-24 for float32. K is the number of terms of a sum, 0 for integers; e
///   is the number of stages after the contraction. G is how much larger these stages make the
///   error, at least 1; functions that bend an error (gelu) have no G. S is the largest sum of |a|
///   |b| and the largest output together.
/// - Integers: nothing; bytes that are rounded floats: one, on kMostRoundedApart of the elements,
///   since a float may be of products that were added without being rounded.
/// If `form_error` (transform_error()) of the largest sum of products is more, a kernel of another
/// form of the task may differ by that.
double tolerance(const ExpectedOutput& output, double expected, double form_error = 0);

/// Nothing if the output in memory is right; otherwise the first element that is not, in words.
std::optional<std::string> find_wrong_element(const ExpectedOutput& expected,
                                              const void* output,
                                              double form_error = 0);

/// Checks the expected elements alone: what was not written elsewhere is not looked for.
std::optional<std::string> find_wrong_sample(const ExpectedOutput& expected,
                                             const void* output,
                                             double form_error = 0);

/// Differences are elements where two kernels' outputs are further apart than both are allowed to
/// be from the right output.
struct Differences {
  static constexpr int kMost = 16;
  int64_t count = 0;
  std::vector<int64_t> some;  // kMost of them, drawn, or all
};

/// Looks at every element; `form_error` is the larger one of both kernels'.
Differences find_differences(
    const ExpectedOutput& expected, const void* a, const void* b, double form_error, Rng& rng);

/// "[4, 36]": where a row-major element of a tensor lies.
std::string print_position(int64_t element, std::span<const int64_t> shape);
/// "float32 1x56x56x64".
std::string print_type(DType dtype, std::span<const int64_t> shape);

}  // namespace pruner
