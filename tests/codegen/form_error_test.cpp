// label: codegen
// transform_error() bounds the rounding of the compiled forms: against direct convolution in double
// precision, over the largest sum of |d| |g| of any output.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

struct Convolution {
  int64_t ci, h, w, co;

  std::string op() const {
    std::string text = "conv2d 1";
    for (const int64_t extent : {co, h, w, ci, int64_t{3}, int64_t{3}})
      text += " " + std::to_string(extent);
    return text + " padding=1";
  }
};

using Draw = double (*)(Rng& rng);

double normal(Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.uniform())) * std::cos(2 * M_PI * rng.uniform());
}
double positive(Rng& rng) { return rng.uniform(); }

Tensor drawn(std::vector<int64_t> shape, Draw draw, Rng& rng) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (float& x : tensor.values<float>()) x = static_cast<float>(draw(rng));
  return tensor;
}

// One output of the direct form in double precision, and its sum of |d| |g|.
std::pair<double, double> direct(const Convolution& conv,
                                 const Tensor& data,
                                 const Tensor& weight,
                                 int64_t element) {
  const int64_t k = element % conv.co, x = element / conv.co % conv.w,
                y = element / conv.co / conv.w;
  const auto d = data.values<float>(), g = weight.values<float>();
  double sum = 0, magnitude = 0;
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t s = 0; s < 3; ++s) {
      const int64_t row = y + r - 1, column = x + s - 1;
      if (row < 0 || row >= conv.h || column < 0 || column >= conv.w) continue;
      for (int64_t c = 0; c < conv.ci; ++c) {
        const double product =
            static_cast<double>(d[static_cast<size_t>((row * conv.w + column) * conv.ci + c)]) *
            g[static_cast<size_t>(((r * 3 + s) * conv.ci + c) * conv.co + k)];
        sum += product;
        magnitude += std::abs(product);
      }
    }
  }
  return {sum, magnitude};
}

// A kernel of a form, compiled for this machine.
class FormKernel {
 public:
  FormKernel(const Convolution& conv, const std::string& form, Rng& rng) : conv_(conv) {
    const Task task = operator_task(conv.op(), host_target(1));
    const Space space = make_space(task, std::vector<std::string>{form});
    // The last one: where tiles of an instruction are, in those.
    Candidate candidate = sample(space, rng);
    while (candidate.sketch != space.drawn.back()) candidate = sample(space, rng);
    EXPECT_EQ(space[candidate.sketch].form, form);
    Result<Program> program = lower(space, candidate, "k");
    EXPECT_TRUE(program.ok()) << program.error().message();
    Result<Artifact> artifact = compile(*program, task.target, "k");
    EXPECT_TRUE(artifact.ok()) << artifact.error().message();
    artifact_ = std::move(*artifact);
    auto kernel = load_kernel(artifact_.object, "k");
    EXPECT_TRUE(kernel.ok()) << kernel.error().message();
    kernel_ = std::move(*kernel);
  }

  // The largest error of a sample of the outputs, over their largest sum of |d| |g|.
  double error(Draw draw, Rng& rng) const {
    const Tensor data = drawn({1, conv_.h, conv_.w, conv_.ci}, draw, rng);
    const Tensor weight = drawn({3, 3, conv_.ci, conv_.co}, draw, rng);
    Tensor out(DType::kFloat32, {1, conv_.h, conv_.w, conv_.co});
    Tensor args[] = {data, pack(weight, artifact_.arguments[1].pack), out};
    call_kernel(kernel_->entry(), args, artifact_.workspace_bytes);
    double worst = 0, largest = 0;
    for (const int64_t element : sample_elements(out.shape(), 1000, rng)) {
      const auto [sum, magnitude] = direct(conv_, data, weight, element);
      worst = std::max(worst, std::abs(out.get(element) - sum));
      largest = std::max(largest, magnitude);
    }
    return worst / largest;
  }

 private:
  Convolution conv_;
  Artifact artifact_;
  std::unique_ptr<LoadedKernel> kernel_;
};

void expect_bounded(Transform transform) {
  Rng rng(5);
  for (const Convolution& conv : {Convolution{64, 28, 28, 64}, Convolution{512, 7, 7, 512}}) {
    const FormKernel kernel(conv, std::string(transform_name(transform)), rng);
    for (const Draw draw : {normal, positive}) {
      const double error = kernel.error(draw, rng);
      EXPECT_LE(error, transform_error(transform)) << conv.op() << transform_name(transform);
      EXPECT_GT(error, 0);
    }
  }
}

TEST(FormError, BoundsWhatWinogradsFormsRound) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  expect_bounded(Transform::kWinograd2);
  expect_bounded(Transform::kWinograd4);
}

TEST(FormError, BoundsWhatPartsOfBfloat16LeaveOut) {
  if (host_target(1).dots.bfloat16_tile == 0) GTEST_SKIP() << "this CPU has no AMX";
  expect_bounded(Transform::kBfloat16Parts2);
  expect_bounded(Transform::kBfloat16Parts3);
}

}  // namespace
}  // namespace pruner
