// The plug-in that trains: LibTorch's autograd and optimizers behind plugin.h. The only file that
// sees LibTorch; it throws, so every call catches.
#include "model/nn/torch/plugin.h"

#include <torch/torch.h>

#include <map>
#include <sstream>
#include <string>

struct PrunerTrainer {
  PrunerTrainerOptions options;
  std::map<std::string, torch::Tensor> tensors;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::Tensor scores;  // of the last forward()

  const torch::Tensor& operator[](const std::string& name) const { return tensors.at(name); }
  torch::Tensor linear(const std::string& name, const torch::Tensor& x) const {
    return torch::linear(x, (*this)[name + ".weight"], (*this)[name + ".bias"]);
  }
  torch::Tensor relu(const std::string& name, const torch::Tensor& x) const {
    return torch::relu(linear(name, x));
  }

  /// (B, 8, 23) → (B, 128): multi-head self-attention over the steps, with its residual, summed.
  torch::Tensor dataflow_branch(const torch::Tensor& steps) const {
    constexpr int64_t kHeads = 4, kHeadWidth = 32;
    const torch::Tensor h = relu("gemm_encoder.2", relu("gemm_encoder.0", steps));
    const int64_t programs = h.size(0), length = h.size(1);
    const torch::Tensor qkv =
        torch::linear(h, (*this)["attention.in_proj_weight"], (*this)["attention.in_proj_bias"])
            .view({programs, length, 3, kHeads, kHeadWidth})
            .permute({2, 0, 3, 1, 4});  // (3, B, heads, 8, 32)
    const torch::Tensor weight =
        torch::softmax(torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(kHeadWidth), -1);
    const torch::Tensor context =
        torch::matmul(weight, qkv[2]).transpose(1, 2).reshape({programs, length, -1});
    return (linear("attention.out_proj", context) + h).sum(1);
  }

  torch::Tensor forward(const torch::Tensor& rows,
                        const torch::Tensor& program_of_row,
                        const torch::Tensor& steps) const {
    const torch::Tensor encoded = relu("segment_encoder.2", relu("segment_encoder.0", rows));
    torch::Tensor x =
        torch::zeros({steps.size(0), encoded.size(1)}).index_add(0, program_of_row, encoded);
    if (options.pacm) {
      x = relu("fuse.0", torch::cat({x, dataflow_branch(steps)}, 1));
      x = torch::batch_norm(x,
                            (*this)["norm.weight"],
                            (*this)["norm.bias"],
                            (*this)["norm.running_mean"],
                            (*this)["norm.running_var"],
                            /*training=*/true,
                            /*momentum=*/0.1,
                            /*eps=*/1e-5,
                            /*cudnn_enabled=*/false);
    }
    for (const char* block : {"l0.0", "l1.0"}) x = relu(block, x) + x;
    return linear("decoder", x).squeeze(1);
  }

  /// What a token is decoded to, (n, 256) → (n).
  torch::Tensor decode(const std::string& head, const torch::Tensor& z) const {
    torch::Tensor x = z;
    for (const char* place : {".0", ".2", ".4"}) x = relu(head + place, x);
    return linear(head + ".6", x).squeeze(1);
  }

  /// TLP: each distinct row is encoded once; a token's weight is a factor in the softmax and in the
  /// sum over the tokens.
  torch::Tensor forward_primitives(const PrunerPrimitives& in) const {
    constexpr int64_t kHeads = 8, kHeadWidth = 32, kHidden = kHeads * kHeadWidth;
    const int64_t programs = in.program_count, tokens = in.token_count;
    torch::Tensor rows =
        torch::from_blob(const_cast<float*>(in.rows), {in.row_count, in.width}).clone();
    for (const char* layer : {"encoder.0", "encoder.2", "encoder.4", "encoder.6"})
      rows = relu(layer, rows);
    const torch::Tensor projected =
        torch::linear(rows, (*this)["attention.in_proj_weight"], (*this)["attention.in_proj_bias"]);
    const torch::Tensor row_of =
        torch::from_blob(const_cast<int64_t*>(in.row_of), {programs * tokens}, torch::kInt64)
            .clone();
    const torch::Tensor weight =
        torch::from_blob(const_cast<float*>(in.weight), {programs, tokens}).clone();
    const torch::Tensor qkv = projected.index_select(0, row_of)
                                  .view({programs, tokens, 3, kHeads, kHeadWidth})
                                  .permute({2, 0, 3, 1, 4});  // (3, B, heads, T, 32)
    const torch::Tensor logits =
        torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(kHeadWidth) +
        torch::log(weight).view({programs, 1, 1, tokens});
    const torch::Tensor context = torch::matmul(torch::softmax(logits, -1), qkv[2])
                                      .transpose(1, 2)
                                      .reshape({programs * tokens, kHidden});
    std::vector<int64_t> weighty;  // tokens
    for (int64_t t = 0; t < programs * tokens; ++t)
      if (in.weight[t] > 0) weighty.push_back(t);
    const torch::Tensor ids = torch::tensor(weighty, torch::kInt64);
    torch::Tensor z = linear("attention.out_proj", context.index_select(0, ids)) +
                      rows.index_select(0, row_of.index_select(0, ids));
    for (const char* block : {"l_list.0.0", "l_list.1.0"}) z = z + relu(block, z);
    return decode_scores(in, z, weight.view({-1}).index_select(0, ids));
  }

  /// `z`, `weight`: of the tokens that stand for steps.
  torch::Tensor decode_scores(const PrunerPrimitives& in,
                              const torch::Tensor& z,
                              const torch::Tensor& weight) const {
    std::vector<int64_t> first = {0};  // token of each program
    for (int64_t p = 0, t = 0; p < in.program_count; ++p) {
      int64_t count = 0;
      for (const int64_t end = t + in.token_count; t < end; ++t) count += in.weight[t] > 0;
      first.push_back(first.back() + count);
    }
    torch::Tensor scores = torch::zeros({in.score_count});
    for (int64_t head = 0; head < in.head_count; ++head) {
      std::vector<int64_t> token_ids, score_ids;
      for (int64_t k = 0; k < in.score_count; ++k) {
        if (in.head_of_score[k] != head) continue;
        const auto program = static_cast<size_t>(in.program_of_score[k]);
        for (int64_t t = first[program]; t < first[program + 1]; ++t) {
          token_ids.push_back(t);
          score_ids.push_back(k);
        }
      }
      if (token_ids.empty()) continue;
      const torch::Tensor ids = torch::tensor(token_ids, torch::kInt64);
      const torch::Tensor steps =
          decode(in.heads[head], z.index_select(0, ids)) * weight.index_select(0, ids);
      scores = scores.index_add(0, torch::tensor(score_ids, torch::kInt64), steps);
    }
    return scores;
  }

  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> found;
    for (const auto& [name, tensor] : tensors)
      if (tensor.requires_grad()) found.push_back(tensor);
    return found;
  }

  void make_optimizer() {
    if (options.adam) {
      optimizer = std::make_unique<torch::optim::Adam>(
          parameters(), torch::optim::AdamOptions(1).weight_decay(options.weight_decay));
    } else {
      optimizer = std::make_unique<torch::optim::SGD>(
          parameters(), torch::optim::SGDOptions(1).weight_decay(options.weight_decay));
    }
  }
};

namespace {

thread_local std::string last_error;

/// LibTorch's threads for the calling thread. Told once: each time it makes itself a new pool,
/// whose threads spin for tens of milliseconds before they sleep.
void use_threads(int threads) {
  thread_local int used = 0;
  if (used == threads) return;
  torch::set_num_threads(threads);
  used = threads;
}

/// 0 when `call` returns, 1 when it throws.
template <typename Call>
int guarded(PrunerTrainer* trainer, const Call& call) {
  try {
    use_threads(trainer->options.threads);
    call();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    last_error.resize(std::min(last_error.find('\n'), last_error.size()));
    return 1;
  }
}

/// A view of the caller's numbers.
torch::Tensor view(const float* values, torch::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values), shape, torch::kFloat32);
}

PrunerTrainer* create(const PrunerTrainerOptions* options) {
  return new PrunerTrainer{*options, {}, nullptr, {}};
}

void destroy(PrunerTrainer* trainer) { delete trainer; }

int set_tensor(PrunerTrainer* trainer,
               const char* name,
               const float* values,
               const int64_t* shape,
               int dimensions) {
  return guarded(trainer, [&] {
    const bool statistic = std::string(name).find("running_") != std::string::npos;
    trainer->tensors[name] =
        view(values, {shape, static_cast<size_t>(dimensions)}).clone().requires_grad_(!statistic);
  });
}

int get_tensor(PrunerTrainer* trainer, const char* name, float* values, int64_t count) {
  return guarded(trainer, [&] {
    const torch::Tensor tensor = (*trainer)[name].detach().contiguous();
    TORCH_CHECK(tensor.numel() == count, name, " has ", tensor.numel(), " numbers");
    std::memcpy(values, tensor.data_ptr<float>(), static_cast<size_t>(count) * sizeof(float));
  });
}

/// Copies: the graph reads the batch again in step().
int forward(PrunerTrainer* trainer, const PrunerBatch* batch, float* scores) {
  return guarded(trainer, [&] {
    const torch::Tensor program_of_row =
        torch::from_blob(
            const_cast<int64_t*>(batch->program_of_row), {batch->row_count}, torch::kInt64)
            .clone();
    trainer->scores =
        trainer->forward(view(batch->rows, {batch->row_count, 174}).clone(),
                         program_of_row,
                         view(batch->dataflow, {batch->program_count, 8, 23}).clone());
    std::memcpy(scores,
                trainer->scores.detach().contiguous().data_ptr<float>(),
                static_cast<size_t>(batch->program_count) * sizeof(float));
  });
}

int forward_primitives(PrunerTrainer* trainer, const PrunerPrimitives* batch, float* scores) {
  return guarded(trainer, [&] {
    trainer->scores = trainer->forward_primitives(*batch);
    std::memcpy(scores,
                trainer->scores.detach().contiguous().data_ptr<float>(),
                static_cast<size_t>(batch->score_count) * sizeof(float));
  });
}

int step(PrunerTrainer* trainer, const float* gradient, double learning_rate, double clip_norm) {
  return guarded(trainer, [&] {
    if (trainer->optimizer == nullptr) trainer->make_optimizer();
    trainer->optimizer->zero_grad();
    trainer->scores.backward(view(gradient, trainer->scores.sizes()));
    trainer->scores = torch::Tensor();  // frees the graph
    if (clip_norm > 0) torch::nn::utils::clip_grad_norm_(trainer->parameters(), clip_norm);
    for (torch::optim::OptimizerParamGroup& group : trainer->optimizer->param_groups())
      group.options().set_lr(learning_rate);
    trainer->optimizer->step();
  });
}

/// What LibTorch's optimizers know a parameter by: its address, before version 2 as text.
template <typename Key>
Key state_key(c10::TensorImpl* parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;  // as its c10::guts::to_string(), which later versions have not
    text << parameter;
    return text.str();
  } else {
    return parameter;
  }
}

/// Adam's memory of a parameter, made where there is none.
torch::optim::AdamParamState& adam_state(PrunerTrainer* trainer, const torch::Tensor& parameter) {
  if (trainer->optimizer == nullptr) trainer->make_optimizer();
  auto& states = trainer->optimizer->state();
  using Key = std::decay_t<decltype(states)>::key_type;
  auto& state = states[state_key<Key>(parameter.unsafeGetTensorImpl())];
  if (state == nullptr) {
    auto fresh = std::make_unique<torch::optim::AdamParamState>();
    fresh->step(0);
    fresh->exp_avg(torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
    fresh->exp_avg_sq(torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
    state = std::move(fresh);
  }
  return static_cast<torch::optim::AdamParamState&>(*state);
}

int get_moments(PrunerTrainer* trainer,
                const char* name,
                float* first,
                float* second,
                int64_t count,
                int64_t* steps) {
  return guarded(trainer, [&] {
    *steps = 0;
    const torch::Tensor& parameter = (*trainer)[name];
    if (!trainer->options.adam || !parameter.requires_grad()) return;
    torch::NoGradGuard no_gradient;
    torch::optim::AdamParamState& state = adam_state(trainer, parameter);
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    std::memcpy(first, state.exp_avg().contiguous().data_ptr<float>(), bytes);
    std::memcpy(second, state.exp_avg_sq().contiguous().data_ptr<float>(), bytes);
    *steps = state.step();
  });
}

int set_moments(PrunerTrainer* trainer,
                const char* name,
                const float* first,
                const float* second,
                int64_t steps) {
  return guarded(trainer, [&] {
    torch::NoGradGuard no_gradient;
    const torch::Tensor& parameter = (*trainer)[name];
    torch::optim::AdamParamState& state = adam_state(trainer, parameter);
    state.exp_avg().copy_(view(first, parameter.sizes()));
    state.exp_avg_sq().copy_(view(second, parameter.sizes()));
    state.step(steps);
  });
}

const char* error() { return last_error.c_str(); }

constexpr PrunerTrainerCalls kCalls = {PRUNER_TRAINER_VERSION,
                                       create,
                                       destroy,
                                       set_tensor,
                                       get_tensor,
                                       forward,
                                       step,
                                       get_moments,
                                       set_moments,
                                       error,
                                       forward_primitives};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PrunerTrainerCalls* pruner_trainer_calls() {
  return &kCalls;
}
