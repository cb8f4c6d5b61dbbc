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

/// By how much a value may differ: a share of it, and so much before it was rounded.
struct ErrorBound {
  double share = 0, before = 0;
};

/// Expected values of one output at some elements, before they are rounded to a narrow float where
/// that is the last that is done to them.
struct ExpectedOutput {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> elements;  // row-major positions
  std::vector<double> values;
  double largest = 0;    // of the absolute values
  double products = 0;   // largest sum of |a| |b| of an element of a contraction behind it
  bool rounded = false;  // bytes that are made of floats
  std::optional<ErrorBound> bound = {};  // where it is known how an error comes about
  StageId stage = {};
  bool unrounded = false;  // `values` are those before the last rounding
  double jumps = 0;        // the share of elements that rounding may carry over a step

  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * dtype_bytes(dtype); }
};

/// What each output of `dag` has to be at `count` elements or more.
std::vector<ExpectedOutput> expect_outputs(const ComputeDag& dag,
                                           std::span<const Tensor> inputs,
                                           int64_t count,
                                           Rng& rng);

/// What each output has to be on whole_numbers() of a DAG that is exact on them, bit for bit.
std::vector<ExpectedOutput> expect_exact_outputs(const ComputeDag& dag,
                                                 std::span<const Tensor> inputs,
                                                 int64_t count,
                                                 Rng& rng);

/// The same output at other elements.
ExpectedOutput expect_elsewhere(const ComputeDag& dag,
                                std::span<const Tensor> inputs,
                                ExpectedOutput output,
                                std::vector<int64_t> elements);

/// By how much a value may differ.
/// - Float32: 1e-4 of the value or 2e-5 of the output's largest, whichever is more: sums of n
///   products in another order stay well within, and a forgotten term does not. Float16: 2e-2 and
///   5e-3, other narrow floats as many units in the last place.
/// - Of a contraction of narrow numbers (sums_behind()) what float32 may, or if it is less
///   G (2 + e + 4 sqrt(K)) 2^-24 S, and u |value| (1 + 2^-6) for its type's rounding: u is 2^-8 of
///   bfloat16, 2^-11 of float16 and 2^-24 of float32, K the terms of a sum, of integers none, e the
///   stages after it, G how much larger they make its error, at least 1, and S the largest sum of
///   |a| |b| and the largest output together. Functions that bend an error (gelu) have no G.
/// - Integers: nothing; bytes that are rounded floats: one, on kMostRoundedApart of the elements,
///   since a float may be of products that were added without being rounded.
/// What a kernel of another form of the task may add to that rounding is `form_error`
/// (transform_error()) of the largest sum of products, where that is more.
double tolerance(const ExpectedOutput& output, double expected, double form_error = 0);

/// Nothing if the output in memory is right; otherwise the first element that is not, in words.
std::optional<std::string> find_wrong_element(const ExpectedOutput& expected,
                                              const void* output,
                                              double form_error = 0);

/// The same of its elements alone: what was not written elsewhere is not looked for.
std::optional<std::string> find_wrong_sample(const ExpectedOutput& expected,
                                             const void* output,
                                             double form_error = 0);

/// Where two kernels' outputs are further apart than both are allowed to be from the right one.
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
