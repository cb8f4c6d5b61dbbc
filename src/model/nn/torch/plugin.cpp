// The plug-in that trains: LibTorch's autograd and optimizers behind plugin.h. The only file that
// sees LibTorch; it throws, so every call catches.
#include "model/nn/torch/plugin.h"

#include <torch/torch.h>

#include <map>
#include <numeric>
#include <sstream>
#include <string>

using pruner::Layer;
using pruner::LayerKind;
using torch::Tensor;

/// A view of the caller's numbers.
static Tensor view(const float* values, torch::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values), shape, torch::kFloat32);
}

using Ids = std::vector<int64_t>;

static Ids first_ids(size_t count) {
  Ids ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

static Tensor rows_of(const Tensor& x, const Ids& ids) {
  return ids == first_ids(x.size(0)) ? x : x.index_select(0, torch::tensor(ids, torch::kInt64));
}

/// `Value` is a branch on its way: `x` has a row for each distinct row, then for each token. Its
/// tensors are copies, since the graph reads the batch again in step().
struct Value {
  Tensor x;
  Ids row_of;     // (tokens)
  Tensor weight;  // (tokens); undefined if all are 1
  Ids begin;      // (programs + 1): start of each program's tokens

  Value(const PrunerTokens& in, int64_t programs)
      : x(view(in.rows, {in.row_count, in.width}).clone()),
        row_of(in.row_of, in.row_of + in.token_count),
        begin(in.begin, in.begin + programs + 1) {
    const bool ones = std::all_of(
        in.weight, in.weight + in.token_count, [](float weight) { return weight == 1; });
    if (!ones) weight = view(in.weight, {in.token_count}).clone();
  }

  int64_t programs() const { return static_cast<int64_t>(begin.size()) - 1; }
  void set(const Tensor& tokens) {
    x = tokens;
    row_of = first_ids(x.size(0));
  }
  /// Sums each program's tokens up to one token.
  void sum() {
    x = rows_of(x, row_of);
    if (weight.defined()) x = x * weight.unsqueeze(1);
    Ids program_of;
    bool even = true;  // all programs have as many tokens; adding by index costs 1 us a row
    for (int64_t p = 0; p < programs(); ++p) {
      program_of.resize(begin[p + 1], p);
      even &= begin[p + 1] == (p + 1) * begin[1];
    }
    set(even ? x.view({programs(), begin[1], -1}).sum(1)
             : torch::zeros({programs(), x.size(1)}).index_add(0, torch::tensor(program_of), x));
    weight = Tensor();
    begin = first_ids(begin.size());
  }
  /// Keeps the tokens of the chosen programs, which may recur.
  void select(const Ids& chosen) {
    Ids tokens, begins = {0};
    for (const int64_t p : chosen) {
      for (int64_t t = begin[p]; t < begin[p + 1]; ++t) tokens.push_back(t);
      begins.push_back(static_cast<int64_t>(tokens.size()));
    }
    set(rows_of(rows_of(x, row_of), tokens));
    if (weight.defined()) weight = rows_of(weight, tokens);
    begin = begins;
  }
};

struct PrunerTrainer {
  PrunerTrainerOptions options;
  std::vector<std::string> heads;
  std::map<std::string, Tensor> tensors;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  Tensor scores;  // result of the last forward()

  const Tensor& operator[](const std::string& name) const { return tensors.at(name); }
  Tensor linear(const std::string& name, const Tensor& x) const {
    return torch::linear(x, (*this)[name + ".weight"], (*this)[name + ".bias"]);
  }

  /// x + out_proj(multi-head self-attention over each program's tokens); a token's weight is a
  /// factor in the softmax.
  void attend(const std::string& name, int64_t heads, Value& value) const {
    const int64_t programs = value.programs();
    int64_t longest = 0;
    for (int64_t p = 0; p < programs; ++p)
      longest = std::max(longest, value.begin[p + 1] - value.begin[p]);
    Ids row_at(programs * longest), place_of;  // row at a place (0: no token); place of a token
    for (int64_t p = 0; p < programs; ++p) {
      for (int64_t t = value.begin[p]; t < value.begin[p + 1]; ++t) {
        place_of.push_back(p * longest + t - value.begin[p]);
        row_at[place_of.back()] = value.row_of[t];
      }
    }
    const Tensor places = torch::tensor(place_of);
    const Tensor weight = value.weight.defined() ? value.weight : torch::ones(places.sizes());
    const Tensor log_weight =
        torch::full({programs * longest}, -INFINITY).index_put({places}, weight.log());
    const Tensor qkv =
        rows_of(torch::linear(
                    value.x, (*this)[name + ".in_proj_weight"], (*this)[name + ".in_proj_bias"]),
                row_at)
            .view({programs, longest, 3, heads, -1})
            .permute({2, 0, 3, 1, 4});  // (3, programs, heads, tokens, 32)
    const Tensor logits = torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(qkv.size(4)) +
                          log_weight.view({programs, 1, 1, longest});
    const Tensor context = torch::matmul(torch::softmax(logits, -1), qkv[2])
                               .transpose(1, 2)
                               .reshape({programs * longest, -1});
    value.set(linear(name + ".out_proj", rows_of(context, place_of)) +
              rows_of(value.x, value.row_of));
  }

  void apply(const Layer& layer, const std::string& name, std::vector<Value>& values) const {
    Value& value = values.back();
    const auto of = [&](const char* part) { return (*this)[name + part]; };
    switch (layer.kind) {
      case LayerKind::kInput: break;
      case LayerKind::kLinear: value.x = linear(name, value.x); break;
      case LayerKind::kRelu: value.x = torch::relu(linear(name, value.x)); break;
      case LayerKind::kResidual: value.x = value.x + torch::relu(linear(name, value.x)); break;
      case LayerKind::kAttention: attend(name, layer.heads, value); break;
      case LayerKind::kBatchNorm:
        value.x = torch::batch_norm(value.x,
                                    of(".weight"),
                                    of(".bias"),
                                    of(".running_mean"),
                                    of(".running_var"),
                                    /*training=*/true,
                                    /*momentum=*/0.1,
                                    pruner::kBatchNormEpsilon,
                                    /*cudnn_enabled=*/false);
        break;
      case LayerKind::kSum: value.sum(); break;
      case LayerKind::kConcat: {
        const Tensor right = value.x;
        values.pop_back();
        values.back().x = torch::cat({values.back().x, right}, 1);
      }
    }
  }

  /// Layers before a head's first layer see each program once; later layers see it for each score.
  Tensor forward(const PrunerBatch& in) const {
    std::vector<Value> values;
    const Layer *layer = options.layers, *end = layer + options.layer_count;
    const PrunerTokens* branch = in.branches;
    for (; layer < end && !is_of_head(*layer, heads[0]); ++layer) {
      if (layer->kind == LayerKind::kInput) values.emplace_back(*branch++, in.program_count);
      apply(*layer, layer->name, values);
    }
    Tensor found = torch::zeros({in.score_count});
    for (size_t head = 0; head < heads.size(); ++head) {
      Ids places, programs;
      for (int64_t k = 0; k < in.score_count; ++k) {
        if (in.head_of_score[k] != static_cast<int64_t>(head)) continue;
        places.push_back(k);
        programs.push_back(in.program_of_score[k]);
      }
      if (places.empty()) continue;
      std::vector<Value> asked = values;
      asked.back().select(programs);
      for (const Layer* own = layer; own < end; ++own)
        apply(*own, tensors_of(*own, heads[head]), asked);
      found = found.index_add(0, torch::tensor(places), asked.back().x.squeeze(1));
    }
    return found;
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> found;
    for (const auto& [name, tensor] : tensors)
      if (tensor.requires_grad()) found.push_back(tensor);
    return found;
  }

  void make_optimizer() {
    using namespace torch::optim;
    const double decay = options.weight_decay;
    if (options.adam)
      optimizer = std::make_unique<Adam>(parameters(), AdamOptions(1).weight_decay(decay));
    else
      optimizer = std::make_unique<SGD>(parameters(), SGDOptions(1).weight_decay(decay));
  }
};

namespace {

thread_local std::string last_error;

/// Sets LibTorch's number of threads for the calling thread, only if it changes. Each call makes a
/// new pool, whose threads spin for tens of milliseconds before they sleep.
void use_threads(int threads) {
  thread_local int used = 0;
  if (used == threads) return;
  torch::set_num_threads(threads);
  used = threads;
}

/// Returns 0 if `call` returns, 1 if it throws.
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

PrunerTrainer* create(const PrunerTrainerOptions* options) {
  return new PrunerTrainer{
      *options, {options->heads, options->heads + options->head_count}, {}, nullptr, {}};
}

void destroy(PrunerTrainer* trainer) { delete trainer; }

int set_tensor(PrunerTrainer* trainer,
               const char* name,
               const float* values,
               const int64_t* shape,
               int dimensions) {
  return guarded(trainer, [&] {
    trainer->tensors[name] = view(values, {shape, static_cast<size_t>(dimensions)})
                                 .clone()
                                 .requires_grad_(!pruner::is_statistic(name));
  });
}

int get_tensor(PrunerTrainer* trainer, const char* name, float* values, int64_t count) {
  return guarded(trainer, [&] {
    const Tensor tensor = (*trainer)[name].detach().contiguous();
    TORCH_CHECK(tensor.numel() == count, name, " has ", tensor.numel(), " numbers");
    std::memcpy(values, tensor.data_ptr<float>(), static_cast<size_t>(count) * sizeof(float));
  });
}

int forward(PrunerTrainer* trainer, const PrunerBatch* batch, float* scores) {
  return guarded(trainer, [&] {
    trainer->scores = trainer->forward(*batch);
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
    trainer->scores = Tensor();  // frees the graph
    if (clip_norm > 0) torch::nn::utils::clip_grad_norm_(trainer->parameters(), clip_norm);
    for (torch::optim::OptimizerParamGroup& group : trainer->optimizer->param_groups())
      group.options().set_lr(learning_rate);
    trainer->optimizer->step();
  });
}

/// Returns the key of a parameter in LibTorch's optimizers: its address, as text before version 2.
template <typename Key>
Key state_key(c10::TensorImpl* parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;  // same as c10::guts::to_string(), which later versions lack
    text << parameter;
    return text.str();
  } else {
    return parameter;
  }
}

/// Returns Adam's state of a parameter, which is made if there is none.
torch::optim::AdamParamState& adam_state(PrunerTrainer* trainer, const Tensor& parameter) {
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

int get_moments(PrunerTrainer* trainer, const char* name, PrunerMoments* moments) {
  return guarded(trainer, [&] {
    moments->steps = 0;
    const Tensor& parameter = (*trainer)[name];
    if (!trainer->options.adam || !parameter.requires_grad()) return;
    torch::NoGradGuard no_gradient;
    torch::optim::AdamParamState& state = adam_state(trainer, parameter);
    const auto bytes = static_cast<size_t>(moments->count) * sizeof(float);
    std::memcpy(moments->first, state.exp_avg().contiguous().data_ptr<float>(), bytes);
    std::memcpy(moments->second, state.exp_avg_sq().contiguous().data_ptr<float>(), bytes);
    moments->steps = state.step();
  });
}

int set_moments(PrunerTrainer* trainer, const char* name, const PrunerMoments* moments) {
  return guarded(trainer, [&] {
    torch::NoGradGuard no_gradient;
    const Tensor& parameter = (*trainer)[name];
    torch::optim::AdamParamState& state = adam_state(trainer, parameter);
    state.exp_avg().copy_(view(moments->first, parameter.sizes()));
    state.exp_avg_sq().copy_(view(moments->second, parameter.sizes()));
    state.step(moments->steps);
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
                                       error};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PrunerTrainerCalls* pruner_trainer_calls() {
  return &kCalls;
}
