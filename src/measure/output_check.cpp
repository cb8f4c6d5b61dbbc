#include "measure/output_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "measure/narrow_contraction.h"
#include "tensor/interpreter.h"

namespace pruner {

namespace {

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

// Values of the output as a tensor of its dtype, which knows how to read them.
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

// The largest sum of |a| |b| in a sample of a contraction's elements; 0 of what is none.
double products_of(const ComputeDag& dag, std::span<const Tensor> inputs, StageId id, Rng& rng) {
  constexpr int64_t kElements = 64;  // they hardly differ: the inputs are random
  const Binary* product = as<Binary>(dag[id].body);
  if (dag[id].combiner != Combiner::kSum || product == nullptr || product->op != BinaryOp::kMul)
    return 0;
  ComputeDag magnitudes = dag;
  magnitudes[id].body = call(Intrinsic::kAbs, {product->a}) * call(Intrinsic::kAbs, {product->b});
  const std::vector<int64_t> elements = sample_elements(dag[id].shape(), kElements, rng);
  return std::ranges::max(interpret_elements(magnitudes, inputs, id, elements));
}

double largest_products(const ComputeDag& dag, std::span<const Tensor> inputs, Rng& rng) {
  double largest = 0;
  for (int s = 0; s < dag.size(); ++s) {
    if (is_float(dag[StageId{s}].dtype))
      largest = std::max(largest, products_of(dag, inputs, StageId{s}, rng));
  }
  return largest;
}

// The share of a value that its type rounds off at most.
double rounded_off(DType t) { return std::ldexp(1.0, -1 - row_of(t).fraction_bits); }

ErrorBound bound_of(const SumsBehind& sums,
                    const ExpectedOutput& output,
                    double products,
                    bool exact_sums) {
  const double share = rounded_off(output.dtype) * (1 + std::ldexp(1.0, -6));
  if (!sums.gain) return {share, std::numeric_limits<double>::infinity()};
  const double terms = exact_sums ? 0 : static_cast<double>(sums.terms);
  const double roundings = 2 + sums.stages + 4 * std::sqrt(terms);
  const double unit = std::max(*sums.gain, 1.0) * rounded_off(DType::kFloat32);
  return {share, unit * roundings * (products + output.largest)};
}

// The share of a DAG's elements that another order of sums may carry over a step, which is where
// computed floats choose between values: a comparison, or a cast to integers.
double jumps_of(const ComputeDag& dag) {
  constexpr double kOfFloat32 = 1e-4, kOfNarrow = kMostRoundedApart;
  bool steps = false, narrow = false;
  for (const Stage& stage : dag.stages) {
    if (stage.is_placeholder()) continue;
    narrow |= is_narrow_float(stage.dtype);
    visit(stage.body, [&](const Expr& e) {
      if (const Binary* binary = as<Binary>(e))
        steps |= e->dtype == DType::kBool && is_float(binary->a->dtype);
      if (const Cast* cast = as<Cast>(e))
        steps |= is_float(cast->value->dtype) && !is_float(e->dtype);
      if (const Call* call = as<Call>(e)) {
        steps |= call->function == Intrinsic::kFloor || call->function == Intrinsic::kCeil ||
                 call->function == Intrinsic::kRound;
      }
    });
  }
  return steps ? (narrow ? kOfNarrow : kOfFloat32) : 0;
}

ExpectedOutput expect_output(
    const ComputeDag& dag, std::span<const Tensor> inputs, StageId stage, int64_t count, Rng& rng) {
  ExpectedOutput output{dag[stage].dtype, dag[stage].shape(), {}, {}};
  output.stage = stage;
  output.elements = sample_elements(output.shape, count, rng);
  output.values = interpret_elements(dag, inputs, stage, output.elements);
  for (const double value : output.values)
    output.largest = std::max(output.largest, std::abs(value));
  return output;
}

// A value that the output's type does not hold is infinite to both.
void keep_infinities(ExpectedOutput& output) {
  for (double& value : output.values) {
    const double rounded = round_to(output.dtype, value);
    if (std::isinf(rounded)) value = rounded;
  }
}

// Calls found(i) for the elements of a block that differ by more than 2 tolerance().
template <typename Found>
void compare_block(const ExpectedOutput& expected,
                   const Tensor& a,
                   const Tensor& b,
                   double form_error,
                   const Found& found) {
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double of_a = a.get(i), of_b = b.get(i);
    if (of_a == of_b || (std::isnan(of_a) && std::isnan(of_b))) continue;
    if (!(std::abs(of_a - of_b) <= 2 * tolerance(expected, of_b, form_error))) found(i);
  }
}

// Whether all are nearer than `distance`; false where there is a NaN.
bool all_near(std::span<const float> a, std::span<const float> b, float distance) {
  int far = 0;
  for (size_t i = 0; i < a.size(); ++i) far += std::abs(a[i] - b[i]) <= distance ? 0 : 1;
  return far == 0;
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
    const std::optional<SumsBehind> sums = sums_behind(dag, stage);
    const ComputeDag unrounded = sums ? before_last_rounding(dag, stage) : dag;
    ExpectedOutput output = expect_output(unrounded, inputs, stage, count, rng);
    output.dtype = dag[stage].dtype;
    output.unrounded = sums.has_value();
    output.jumps = jumps_of(dag);
    output.rounded = has_floats && is_byte(output.dtype);
    if (sums) {
      const double products = products_of(dag, inputs, sums->contraction, rng);
      output.bound = bound_of(*sums, output, products, !is_float(dag[sums->contraction].dtype));
      keep_infinities(output);
    }
    outputs.push_back(std::move(output));
  }
  const double products = largest_products(dag, inputs, rng);
  for (ExpectedOutput& output : outputs) output.products = products;
  return outputs;
}

std::vector<ExpectedOutput> expect_exact_outputs(const ComputeDag& dag,
                                                 std::span<const Tensor> inputs,
                                                 int64_t count,
                                                 Rng& rng) {
  std::vector<ExpectedOutput> outputs;
  for (const StageId stage : dag.outputs()) {
    outputs.push_back(expect_output(dag, inputs, stage, count, rng));
    outputs.back().bound = ErrorBound{};
  }
  return outputs;
}

ExpectedOutput expect_elsewhere(const ComputeDag& dag,
                                std::span<const Tensor> inputs,
                                ExpectedOutput output,
                                std::vector<int64_t> elements) {
  output.elements = std::move(elements);
  output.values =
      interpret_elements(output.unrounded ? before_last_rounding(dag, output.stage) : dag,
                         inputs,
                         output.stage,
                         output.elements);
  if (output.unrounded) keep_infinities(output);
  return output;
}

// Values that are computed in float32 are computed without float32's subnormal numbers.
static double least_normal(DType t) { return t == DType::kFloat64 ? 0x1p-1022 : 0x1p-126; }

double tolerance(const ExpectedOutput& output, double expected, double form_error) {
  const double magnitude = std::abs(expected);
  const double least = std::max(form_error * output.products, least_normal(output.dtype));
  const double float32 = std::max(1e-4 * magnitude, 2e-5 * output.largest);
  if (output.bound) {
    const ErrorBound& bound = *output.bound;
    return std::max(bound.share * magnitude + std::min(bound.before, float32), least);
  }
  if (!is_float(output.dtype)) return output.rounded ? 1 : 0;
  // The tolerance of float64 is more than sums of its roundings, less than one of float32's.
  if (!is_narrow_float(output.dtype))
    return std::max(output.dtype == DType::kFloat64 ? 1e-7 * float32 : float32, least);
  // A narrow float's last place, in those of float16.
  const double place = std::ldexp(1.0, 10 - row_of(output.dtype).fraction_bits);
  return std::max({2e-2 * place * magnitude, 5e-3 * place * output.largest, least});
}

std::optional<std::string> find_wrong_element(const ExpectedOutput& expected,
                                              const void* output,
                                              double form_error) {
  if (is_float(expected.dtype)) {
    const int64_t element = first_unwritten(expected, output);
    if (element >= 0) return print_position(element, expected.shape) + " was not written";
  }
  return find_wrong_sample(expected, output, form_error);
}

std::optional<std::string> find_wrong_sample(const ExpectedOutput& expected,
                                             const void* output,
                                             double form_error) {
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

Differences find_differences(
    const ExpectedOutput& expected, const void* a, const void* b, double form_error, Rng& rng) {
  constexpr int64_t kBlock = 4096;  // elements
  const int64_t width = dtype_bytes(expected.dtype), count = expected.num_elements();
  // tolerance() grows with the value.
  const auto least = static_cast<float>(2 * tolerance(expected, 0, form_error));
  Differences differences;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    const auto* of_a = static_cast<const std::byte*>(a) + begin * width;
    const auto* of_b = static_cast<const std::byte*>(b) + begin * width;
    if (std::memcmp(of_a, of_b, static_cast<size_t>(block * width)) == 0) continue;
    const auto view = [&](const std::byte* data) {
      return Tensor::view(expected.dtype, {block}, nullptr, data);
    };
    const Tensor tensor_a = view(of_a), tensor_b = view(of_b);
    if (expected.dtype == DType::kFloat32 &&
        all_near(tensor_a.values<float>(), tensor_b.values<float>(), least)) {
      continue;
    }
    compare_block(expected, tensor_a, tensor_b, form_error, [&](int64_t i) {
      // Each of those found so far is kept with the same chance.
      const int64_t place = differences.count < Differences::kMost
                                ? differences.count
                                : rng.below(differences.count + 1);
      ++differences.count;
      if (place >= Differences::kMost) return;
      differences.some.resize(
          static_cast<size_t>(std::min<int64_t>(differences.count, Differences::kMost)));
      differences.some[static_cast<size_t>(place)] = begin + i;
    });
  }
  return differences;
}

std::string print_position(int64_t element, std::span<const int64_t> shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

std::string print_type(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} {}", dtype_name(dtype), fmt::join(shape, "x"));
}

}  // namespace pruner
