#include "model/nn/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr int64_t kHidden = 256;
constexpr int64_t kAttention = 128;
constexpr int64_t kHeads = 4;
constexpr int64_t kHeadWidth = kAttention / kHeads;
constexpr int64_t kSteps = kDataflowSteps;
constexpr float kBatchNormEpsilon = 1e-5f;
constexpr int64_t kBlock = 32;  // programs whose activations stay in a core's cache

const WeightTensor& tensor(const ModelWeights& weights, std::string_view name) {
  return weights.tensors.find(name)->second;
}

Linear layer(const ModelWeights& weights, const std::string& name) {
  return Linear(tensor(weights, name + ".weight"), tensor(weights, name + ".bias"));
}

/// The output projection of attention, summed over the steps: its bias counts for each.
Linear summed_projection(const ModelWeights& weights) {
  WeightTensor bias = tensor(weights, "attention.out_proj.bias");
  for (float& b : bias.values) b *= static_cast<float>(kSteps);
  return Linear(tensor(weights, "attention.out_proj.weight"), bias);
}

bool has_dataflow(const ProgramFeatures& program) {
  return std::any_of(
      program.dataflow.begin(), program.dataflow.end(), [](float v) { return v != 0; });
}

/// Adds `row` (of `width`) to `sum`.
void add(const float* row, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

/// The context of one program's attention, summed over its queries. `qkv`: (8, 3 * 128), queries,
/// keys and values side by side.
void add_context(const float* qkv, float* context) {
  const float scale = 1 / std::sqrt(static_cast<float>(kHeadWidth));
  for (int64_t head = 0; head < kHeads; ++head) {
    const float* query = qkv + head * kHeadWidth;
    const float* key = query + kAttention;
    const float* value = key + kAttention;
    float attended[kSteps] = {};  // how much of each step's value the queries take together
    for (int64_t i = 0; i < kSteps; ++i) {
      float weight[kSteps], largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t j = 0; j < kSteps; ++j) {
        float dot = 0;
        for (int64_t c = 0; c < kHeadWidth; ++c)
          dot += query[i * 3 * kAttention + c] * key[j * 3 * kAttention + c];
        weight[j] = dot * scale;
        largest = std::max(largest, weight[j]);
      }
      for (float& w : weight) sum += w = std::exp(w - largest);
      for (int64_t j = 0; j < kSteps; ++j) attended[j] += weight[j] / sum;
    }
    for (int64_t j = 0; j < kSteps; ++j)
      for (int64_t c = 0; c < kHeadWidth; ++c)
        context[head * kHeadWidth + c] += attended[j] * value[j * 3 * kAttention + c];
  }
}

}  // namespace

Network::DataflowBranch::DataflowBranch(const ModelWeights& weights)
    : encoder0(layer(weights, "gemm_encoder.0")),
      encoder2(layer(weights, "gemm_encoder.2")),
      project_in(tensor(weights, "attention.in_proj_weight"),
                 tensor(weights, "attention.in_proj_bias")),
      project_out(summed_projection(weights)) {}

Matrix Network::DataflowBranch::operator()(const Matrix& steps) const {
  const Matrix encoded = encoder2(encoder0(steps, OutputFunction::kRelu), OutputFunction::kRelu);
  const Matrix qkv = project_in(encoded, OutputFunction::kNone);
  Matrix context(steps.rows / kSteps, kAttention);
  for (int64_t b = 0; b < context.rows; ++b) add_context(qkv.row(b * kSteps), context.row(b));
  // The sum over the steps of attention's output and of the residual.
  Matrix sum = project_out(context, OutputFunction::kNone);
  for (int64_t i = 0; i < steps.rows; ++i) add(encoded.row(i), kAttention, sum.row(i / kSteps));
  return sum;
}

Network::Fusion::Fusion(const ModelWeights& weights) : linear(layer(weights, "fuse.0")) {
  const std::vector<float>& mean = tensor(weights, "norm.running_mean").values;
  const std::vector<float>& variance = tensor(weights, "norm.running_var").values;
  const std::vector<float>& weight = tensor(weights, "norm.weight").values;
  const std::vector<float>& bias = tensor(weights, "norm.bias").values;
  for (size_t j = 0; j < mean.size(); ++j) {
    gain.push_back(weight[j] / std::sqrt(variance[j] + kBatchNormEpsilon));
    shift.push_back(bias[j] - mean[j] * gain[j]);
  }
}

Network::Network(const ModelWeights& weights)
    : row_scale_(weights.row_scale),
      dataflow_scale_(weights.dataflow_scale),
      encoder0_(layer(weights, "segment_encoder.0")),
      encoder2_(layer(weights, "segment_encoder.2")),
      block0_(layer(weights, "l0.0")),
      block1_(layer(weights, "l1.0")),
      decoder_(tensor(weights, "decoder.weight").values),
      decoder_bias_(tensor(weights, "decoder.bias").values[0]) {
  if (weights.architecture != Architecture::kPacm) return;
  branch_.emplace(weights);
  fusion_.emplace(weights);
  no_dataflow_ = (*branch_)(Matrix(kSteps, kDataflowFeatures)).values;
}

Matrix Network::dataflow(std::span<const ProgramFeatures> programs) const {
  std::vector<int64_t> having;
  for (size_t b = 0; b < programs.size(); ++b)
    if (has_dataflow(programs[b])) having.push_back(static_cast<int64_t>(b));
  Matrix steps(static_cast<int64_t>(having.size()) * kSteps, kDataflowFeatures);
  for (size_t i = 0; i < having.size(); ++i) {
    float* to = steps.row(static_cast<int64_t>(i) * kSteps);
    const auto& from = programs[static_cast<size_t>(having[i])].dataflow;
    for (size_t j = 0; j < from.size(); ++j)
      to[j] = from[j] / dataflow_scale_[j % kDataflowFeatures];
  }
  const Matrix encoded = (*branch_)(steps);
  Matrix all(static_cast<int64_t>(programs.size()), kAttention);
  for (int64_t b = 0; b < all.rows; ++b)
    std::copy(no_dataflow_.begin(), no_dataflow_.end(), all.row(b));
  for (size_t i = 0; i < having.size(); ++i)
    std::copy_n(encoded.row(static_cast<int64_t>(i)), kAttention, all.row(having[i]));
  return all;
}

Activations Network::forward(std::span<const ProgramFeatures> programs) const {
  const int64_t count = static_cast<int64_t>(programs.size());
  int64_t row_count = 0;
  for (const ProgramFeatures& program : programs)
    row_count += static_cast<int64_t>(program.row_count());
  Matrix rows(row_count, kRowFeatures);
  float* to = rows.values.data();
  for (const ProgramFeatures& program : programs) {
    for (size_t r = 0; r < program.rows.size(); r += kRowFeatures, to += kRowFeatures)
      for (size_t j = 0; j < kRowFeatures; ++j) to[j] = program.rows[r + j] / row_scale_[j];
  }
  const Matrix encoded = encoder2_(encoder0_(rows, OutputFunction::kRelu), OutputFunction::kRelu);

  Activations a{.statements = Matrix(count, kHidden),
                .dataflow = Matrix(0, kAttention),
                .fused = Matrix(0, kHidden),
                .hidden = Matrix(0, kHidden),
                .scores = {}};
  int64_t r = 0;
  for (int64_t b = 0; b < count; ++b)
    for (size_t i = 0; i < programs[static_cast<size_t>(b)].row_count(); ++i)
      add(encoded.row(r++), kHidden, a.statements.row(b));

  a.hidden = a.statements;
  if (fusion_) {
    a.dataflow = dataflow(programs);
    Matrix both(count, kHidden + kAttention);
    for (int64_t b = 0; b < count; ++b) {
      std::copy_n(a.statements.row(b), kHidden, both.row(b));
      std::copy_n(a.dataflow.row(b), kAttention, both.row(b) + kHidden);
    }
    a.fused = fusion_->linear(both, OutputFunction::kRelu);
    a.hidden = a.fused;
    for (int64_t b = 0; b < count; ++b)
      for (int64_t j = 0; j < kHidden; ++j)
        a.hidden.row(b)[j] = a.fused.row(b)[j] * fusion_->gain[static_cast<size_t>(j)] +
                             fusion_->shift[static_cast<size_t>(j)];
  }
  Matrix last = a.hidden;
  for (const Linear* block : {&block0_, &block1_}) {
    Matrix next = (*block)(last, OutputFunction::kRelu);
    add(last.values.data(), count * kHidden, next.values.data());
    last = std::move(next);
  }
  for (int64_t b = 0; b < count; ++b) {
    float score = decoder_bias_;
    for (int64_t j = 0; j < kHidden; ++j)
      score += decoder_[static_cast<size_t>(j)] * last.row(b)[j];
    a.scores.push_back(programs[static_cast<size_t>(b)].rows.empty()
                           ? -std::numeric_limits<float>::infinity()
                           : score);
  }
  return a;
}

std::vector<float> Network::predict(std::span<const ProgramFeatures> programs, int jobs) const {
  std::vector<float> scores(programs.size());
  const int64_t count = static_cast<int64_t>(programs.size());
  parallel_for((count + kBlock - 1) / kBlock, jobs, [&](int64_t block) {
    const size_t first = static_cast<size_t>(block * kBlock);
    const std::vector<float> part =
        forward(programs.subspan(first, std::min<size_t>(kBlock, programs.size() - first))).scores;
    std::copy(part.begin(), part.end(), scores.begin() + static_cast<ptrdiff_t>(first));
  });
  return scores;
}

}  // namespace pruner
