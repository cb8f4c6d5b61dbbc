#include "measure/output_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/interpreter.h"

namespace pruner {

namespace {

std::string print_position(int64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

bool is_byte(DType t) { return t == DType::kUInt8 || t == DType::kInt8; }

// Position of the first element that still has the bytes it was filled with, or -1.
int64_t first_unwritten(const ExpectedOutput& expected, const void* output) {
  const auto* bytes = static_cast<const unsigned char*>(output);
  const int64_t width = dtype_bytes(expected.dtype);
  const int64_t count = expected.num_elements();
  const auto find = [&]<typename Word>(Word unwritten) {
    const auto* words = reinterpret_cast<const Word*>(bytes);
    const auto* found = std::find(words, words + count, unwritten);
    return found == words + count ? -1 : found - words;
  };
  if (width == 8) return find(~uint64_t{0});
  return width == 4 ? find(uint32_t{0xffffffff}) : find(uint16_t{0xffff});
}

// The elements' values as a tensor of the output's dtype, which knows how to read them.
Tensor gather(const ExpectedOutput& expected, const void* output) {
  Tensor values(expected.dtype, {static_cast<int64_t>(expected.elements.size())});
  const int64_t width = dtype_bytes(expected.dtype);
  auto* to = static_cast<std::byte*>(values.data());
  for (const int64_t element : expected.elements) {
    std::memcpy(to, static_cast<const std::byte*>(output) + element * width, width);
    to += width;
  }
  return values;
}

// The largest sum of |a| |b| in a sample of each contraction's elements.
double largest_products(const ComputeDag& dag, std::span<const Tensor> inputs, Rng& rng) {
  constexpr int64_t kElements = 64;  // they hardly differ: the inputs are random
  double largest = 0;
  for (int s = 0; s < dag.size(); ++s) {
    const StageId id{s};
    const Binary* product = as<Binary>(dag[id].body);
    if (dag[id].combiner != Combiner::kSum || product == nullptr || product->op != BinaryOp::kMul ||
        !is_float(dag[id].dtype))
      continue;
    ComputeDag magnitudes = dag;
    magnitudes[id].body = call(Intrinsic::kAbs, {product->a}) * call(Intrinsic::kAbs, {product->b});
    const std::vector<int64_t> elements = sample_elements(dag[id].shape(), kElements, rng);
    for (const double sum : interpret_elements(magnitudes, inputs, id, elements))
      largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

int64_t ExpectedOutput::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::vector<ExpectedOutput> expect_outputs(const ComputeDag& dag,
                                           std::span<const Tensor> inputs,
                                           int64_t count,
                                           Rng& rng) {
  std::vector<ExpectedOutput> outputs;
  const bool has_floats = std::ranges::any_of(dag.stages, [](const Stage& stage) {
    return !stage.is_placeholder() && is_float(stage.dtype);
  });
  for (const StageId stage : dag.outputs()) {
    ExpectedOutput output{dag[stage].dtype, dag[stage].shape(), {}, {}, 0, 0, false};
    output.rounded = has_floats && is_byte(output.dtype);
    output.elements = sample_elements(output.shape, count, rng);
    output.values = interpret_elements(dag, inputs, stage, output.elements);
    for (const double value : output.values) {
      output.largest = std::max(output.largest, std::abs(value));
    }
    outputs.push_back(std::move(output));
  }
  const double products = largest_products(dag, inputs, rng);
  for (ExpectedOutput& output : outputs) output.products = products;
  return outputs;
}

double tolerance(const ExpectedOutput& output, double expected, double form_error) {
  if (!is_float(output.dtype)) return output.rounded ? 1 : 0;
  const bool narrow = is_narrow_float(output.dtype);
  // Of float64: more than sums of its roundings, less than one of float32.
  const double wide = output.dtype == DType::kFloat64 ? 1e-7 : 1;
  // A narrow float's last place, in those of float16.
  const double place = std::ldexp(1.0, 10 - row_of(output.dtype).fraction_bits);
  return std::max({(narrow ? 2e-2 * place : 1e-4 * wide) * std::abs(expected),
                   (narrow ? 5e-3 * place : 2e-5 * wide) * output.largest,
                   form_error * output.products});
}

std::optional<std::string> find_wrong_element(const ExpectedOutput& expected,
                                              const void* output,
                                              double form_error) {
  if (is_float(expected.dtype)) {
    const int64_t element = first_unwritten(expected, output);
    if (element >= 0) return print_position(element, expected.shape) + " was not written";
  }
  const Tensor got = gather(expected, output);
  const auto count = static_cast<double>(expected.elements.size());
  double apart = 0;  // elements that differ by less than what is wrong
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    const double value = got.get(static_cast<int64_t>(i));
    const double wanted = expected.values[i];
    // Both are false for any NaN; the first is for infinities.
    if (value == wanted) continue;
    const bool near = std::abs(value - wanted) <= tolerance(expected, wanted, form_error);
    apart += near ? 1 : 0;
    if (near && (!expected.rounded || apart <= std::max(1.0, kMostRoundedApart * count))) continue;
    return fmt::format("{} is {}, expected {}",
                       print_position(expected.elements[i], expected.shape),
                       value,
                       wanted);
  }
  return std::nullopt;
}

std::string print_type(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} {}", dtype_name(dtype), fmt::join(shape, "x"));
}

}  // namespace pruner
