#include "model/nn/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/nn/self_attention.h"
#include "support/ceil_div.h"
#include "support/check.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr int64_t kBlock = 32;     // programs whose activations stay in a core's cache
constexpr int64_t kRowBlock = 96;  // rows that a thread encodes; a multiple of the kernels' tiles
constexpr int64_t kShared = 1024;  // programs whose distinct rows are encoded once

const WeightTensor& tensor(const ModelWeights& weights, const std::string& name) {
  return weights.tensors.find(name)->second;
}

Linear linear_of(const ModelWeights& weights, const std::string& name) {
  return Linear(tensor(weights, name + ".weight"), tensor(weights, name + ".bias"));
}

/// sum += factor * row
void add(const float* row, int64_t width, float factor, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += factor * row[j];
}

Matrix concat(const Matrix& left, const Matrix& right) {
  Matrix both(left.rows, left.columns + right.columns);
  for (int64_t i = 0; i < both.rows; ++i) {
    std::copy_n(left.row(i), left.columns, both.row(i));
    std::copy_n(right.row(i), right.columns, both.row(i) + left.columns);
  }
  return both;
}

}  // namespace

/// `Rows` holds the tokens of a block of programs, and the branch prefix's output for their rows.
struct Network::Rows {
  std::vector<const float*> hidden, qkv;  // (tokens); qkv if attention follows
  std::span<const float> weight;          // (tokens)
  std::vector<size_t> ends;               // (programs)

  Rows(const Encoded& branch, int64_t first, int64_t count) {
    const Tokens& tokens = branch.tokens;
    const auto begins =
        std::span(tokens.begin).subspan(static_cast<size_t>(first), static_cast<size_t>(count) + 1);
    const auto begin = static_cast<size_t>(begins[0]);
    for (const int64_t end : begins.subspan(1)) ends.push_back(static_cast<size_t>(end) - begin);
    weight = std::span(tokens.weight).subspan(begin, ends.back());
    for (const int64_t row : std::span(tokens.row_of).subspan(begin, ends.back())) {
      const auto block = static_cast<size_t>(row / kRowBlock);
      hidden.push_back(branch.hidden[block].row(row % kRowBlock));
      qkv.push_back(branch.qkv[block].row(row % kRowBlock));
    }
  }

  /// Sums each program's rows by their weight: the rows of `x` (tokens, columns), or the hidden
  /// rows if `x` is empty.
  Matrix sums(const Matrix& x) const {
    Matrix sum(std::ssize(ends), x.columns);
    for (size_t p = 0, t = 0; p < ends.size(); ++p) {
      for (; t < ends[p]; ++t) {
        const float* row = x.rows == 0 ? hidden[t] : x.row(static_cast<int64_t>(t));
        add(row, x.columns, weight[t], sum.row(static_cast<int64_t>(p)));
      }
    }
    return sum;
  }
};

Network::Step::Step(const Layer& layer, const ModelWeights& weights, size_t head) : layer(layer) {
  const std::string name = tensors_of(layer, head_module(weights, head));
  if (layer.kind == LayerKind::kAttention) {
    CHECK(layer.out == layer.heads * SelfAttention::kHeadWidth) << name;
    linear.emplace(linear_of(weights, name + ".out_proj"));
    project_in.emplace(tensor(weights, name + ".in_proj_weight"),
                       tensor(weights, name + ".in_proj_bias"));
  } else if (layer.kind == LayerKind::kBatchNorm) {
    const std::vector<float>& mean = tensor(weights, name + ".running_mean").values;
    const std::vector<float>& variance = tensor(weights, name + ".running_var").values;
    const std::vector<float>& weight = tensor(weights, name + ".weight").values;
    const std::vector<float>& bias = tensor(weights, name + ".bias").values;
    for (size_t j = 0; j < mean.size(); ++j) {
      gain.push_back(weight[j] / std::sqrt(variance[j] + kBatchNormEpsilon));
      shift.push_back(bias[j] - mean[j] * gain[j]);
    }
  } else if (layer.out > 0) {
    linear.emplace(linear_of(weights, name));
  }
}

Matrix Network::Step::operator()(const Matrix& x) const {
  if (layer.kind == LayerKind::kBatchNorm) {
    Matrix y = x;
    for (float* row = y.row(0); row < y.row(y.rows); row += y.columns)
      for (size_t j = 0; j < gain.size(); ++j) row[j] = row[j] * gain[j] + shift[j];
    return y;
  }
  const bool plain = layer.kind == LayerKind::kLinear;
  Matrix y = (*linear)(x, plain ? OutputFunction::kNone : OutputFunction::kRelu);
  if (layer.kind == LayerKind::kResidual) add(x.values.data(), x.rows * x.columns, 1, y.row(0));
  return y;
}

Network::Network(const ModelWeights& weights, size_t head)
    : architecture_(weights.architecture), scale_(weights.scale), form_(weights.form) {
  for (const Layer& layer : architecture_->layers) steps_.emplace_back(layer, weights, head);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Layer& layer = steps_[i].layer;
    if (layer.kind == LayerKind::kInput) {
      shares_rows_ |= input_row(layer.input).repeats;
      prefixes_.push_back({i + 1, 0});
    }
    const bool together = layer.kind == LayerKind::kAttention || layer.kind == LayerKind::kSum;
    if (together && prefixes_.back().end == 0) prefixes_.back().end = i;
  }
}

std::vector<Network::Encoded> Network::encode(std::span<const ProgramFeatures> programs,
                                              int jobs) const {
  std::vector<const ProgramFeatures*> pointers;
  for (const ProgramFeatures& program : programs) pointers.push_back(&program);
  std::vector<Encoded> branches;
  for (const Prefix& prefix : prefixes_) {
    const Input input = steps_[prefix.first - 1].layer.input;
    Tokens tokens = make_tokens(input, pointers, {.divisor = scale_[input], .primitives = form_});
    const int64_t rows = tokens.row_count(), width = tokens.width;
    const std::vector<Matrix> none(static_cast<size_t>(ceil_div(rows, kRowBlock)), Matrix(0, 0));
    Encoded& encoded = branches.emplace_back(Encoded{std::move(tokens), none, none});
    parallel_for(std::ssize(none), jobs, [&](int64_t b) {
      const int64_t first = b * kRowBlock;
      Matrix x(std::min(kRowBlock, rows - first), width);
      std::copy_n(encoded.tokens.rows.data() + first * width, x.values.size(), x.row(0));
      for (size_t i = prefix.first; i < prefix.end; ++i) x = steps_[i](x);
      const std::optional<Linear>& project = steps_[prefix.end].project_in;
      if (project) encoded.qkv[b] = (*project)(x, OutputFunction::kNone);
      encoded.hidden[b] = std::move(x);
    });
  }
  return branches;
}

/// Returns x + out_proj(attention) of each token or, if `summed`, its sum over each program's
/// tokens. The projection of a mean is the mean of the projections.
Matrix Network::attend(const Step& step, const Rows& rows, bool summed) const {
  const auto programs = std::ssize(rows.ends), tokens = std::ssize(rows.hidden);
  const int64_t width = step.layer.out;
  Matrix context(summed ? programs : tokens, width);
  SelfAttention attention(step.layer.heads);
  for (size_t p = 0, begin = 0; p < rows.ends.size(); begin = rows.ends[p++]) {
    const size_t length = rows.ends[p] - begin;
    attention({rows.qkv.data() + begin, length},
              rows.weight.subspan(begin, length),
              summed,
              context.row(static_cast<int64_t>(summed ? p : begin)));
  }
  Matrix z = (*step.linear)(context, OutputFunction::kNone);
  for (size_t p = 0, t = 0; p < rows.ends.size(); ++p) {
    float* row = z.row(static_cast<int64_t>(summed ? p : t));
    const auto weight = rows.weight.subspan(t, rows.ends[p] - t);
    const float all = std::accumulate(weight.begin(), weight.end(), 0.0f);
    if (summed) std::transform(row, row + width, row, [&](float v) { return all * v; });
    for (; t < rows.ends[p]; ++t, row += summed ? 0 : width)
      add(rows.hidden[t], width, summed ? rows.weight[t] : 1, row);
  }
  return z;
}

Matrix Network::finish(std::span<const Encoded> branches,
                       int64_t first,
                       int64_t count,
                       std::vector<Matrix>* activations) const {
  std::vector<Matrix> results;  // one per branch so far; an empty matrix stands for `rows`
  std::optional<Rows> rows;     // tokens of the branch under way
  size_t branch = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.layer.kind == LayerKind::kInput) {
      rows.emplace(branches[branch], first, count);
      i = prefixes_[branch++].end - 1;
      results.emplace_back(0, steps_[i].layer.out);
      continue;
    }
    Matrix& x = results.back();
    if (step.layer.kind == LayerKind::kAttention) {
      const bool summed = steps_[i + 1].layer.kind == LayerKind::kSum;
      x = attend(step, *rows, summed);
      if (summed) ++i;
    } else if (step.layer.kind == LayerKind::kSum) {
      x = rows->sums(x);
    } else if (step.layer.kind == LayerKind::kConcat) {
      const Matrix right = std::move(x);
      results.pop_back();
      results.back() = concat(results.back(), right);
    } else {
      x = step(x);
    }
    if (activations != nullptr) (*activations)[i] = results.back();
  }
  return std::move(results.back());
}

std::vector<float> Network::predict(std::span<const ProgramFeatures> programs, int jobs) const {
  std::vector<float> scores(programs.size());
  const int64_t part = shares_rows_ ? kShared : kBlock;
  const int inner = shares_rows_ ? jobs : 1, outer = shares_rows_ ? 1 : jobs;
  parallel_for(ceil_div(std::ssize(programs), part), outer, [&](int64_t p) {
    const int64_t begin = p * part, count = std::min(part, std::ssize(programs) - begin);
    const std::vector<Encoded> branches =
        encode(programs.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), inner);
    parallel_for(ceil_div(count, kBlock), inner, [&](int64_t b) {
      const int64_t first = b * kBlock;
      const Matrix found = finish(branches, first, std::min(kBlock, count - first), nullptr);
      std::ranges::copy(found.values, scores.begin() + begin + first);
    });
  });
  for (size_t i = 0; i < programs.size(); ++i)
    if (!is_readable(programs[i], *architecture_))
      scores[i] = -std::numeric_limits<float>::infinity();
  return scores;
}

std::vector<Matrix> Network::activations(std::span<const ProgramFeatures> programs) const {
  std::vector<Matrix> found(steps_.size(), Matrix(0, 0));
  finish(encode(programs, 1), 0, std::ssize(programs), &found);
  return found;
}

bool is_readable(const ProgramFeatures& program, const Architecture& architecture) {
  const InputRow& input = input_row(branches_of(architecture).front().input);
  return input.numbers == nullptr ? !program.primitives.empty() : !input.numbers(program).empty();
}

}  // namespace pruner
