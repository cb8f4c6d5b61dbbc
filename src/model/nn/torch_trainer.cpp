// Trainer on the plug-in's calls (nn/torch/plugin.h). The plug-in stays loaded: LibTorch has
// threads, and state that does not survive being unloaded.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "model/nn/torch/plugin.h"
#include "model/nn/trainer.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugin = "libpruner_torch.so";

// Names of an optimizer's state, before the parameter's.
const std::string kFirst = "first_moment.", kSecond = "second_moment.", kSteps = "steps";

std::vector<fs::path> plugin_paths() {
  if (const char* path = std::getenv("PRUNER_TORCH_PLUGIN")) return {path};
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {folder / kPlugin, folder.parent_path() / "lib" / "pruner" / kPlugin};
}

Result<const PrunerTrainerCalls*> load_plugin() {
  // Threads of OpenMP that wait by spinning made an epoch 6 times as long beside other work.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  for (const fs::path& path : plugin_paths()) {
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Error(path.string(), ": cannot be loaded: ", dlerror());
    const auto calls =
        reinterpret_cast<decltype(&pruner_trainer_calls)>(dlsym(handle, "pruner_trainer_calls"));
    if (calls == nullptr || calls()->version != PRUNER_TRAINER_VERSION)
      return Error(path.string(), ": not the plug-in of this version of pruner");
    return calls();
  }
  return Error("training needs the plug-in ",
               kPlugin,
               ", expected beside the program: install ",
               "libtorch-dev, then configure and build again");
}

class TorchTrainer : public Trainer {
 public:
  TorchTrainer(const PrunerTrainerCalls* calls,
               const ModelWeights& start,
               const TrainerOptions& options)
      : calls_(calls), specs_(tensor_specs(start)) {
    std::vector<std::string> heads;
    for (size_t head = 0; head < std::max<size_t>(start.heads.size(), 1); ++head)
      heads.push_back(head_module(start, head));
    std::vector<const char*> names;
    for (const std::string& head : heads) names.push_back(head.c_str());
    const PrunerTrainerOptions plain = {.layers = start.architecture->layers.data(),
                                        .layer_count = std::ssize(start.architecture->layers),
                                        .heads = names.data(),
                                        .head_count = std::ssize(names),
                                        .adam = options.optimizer == Optimizer::kAdam,
                                        .weight_decay = options.weight_decay,
                                        .threads = options.threads};
    trainer_ = calls->create(&plain);
  }
  ~TorchTrainer() override { calls_->destroy(trainer_); }
  TorchTrainer(const TorchTrainer&) = delete;
  TorchTrainer& operator=(const TorchTrainer&) = delete;

  Result<Unit> set(const Tensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      TRY(done(calls_->set_tensor(trainer_,
                                  name.c_str(),
                                  tensor.values.data(),
                                  tensor.shape.data(),
                                  static_cast<int>(tensor.shape.size()))));
    }
    return Unit{};
  }

  Result<std::vector<float>> forward(const TrainingBatch& batch) override {
    std::vector<PrunerTokens> branches;
    for (const Tokens& tokens : batch.branches)
      branches.push_back({.rows = tokens.rows.data(),
                          .row_count = tokens.row_count(),
                          .width = tokens.width,
                          .row_of = tokens.row_of.data(),
                          .weight = tokens.weight.data(),
                          .token_count = std::ssize(tokens.row_of),
                          .begin = tokens.begin.data()});
    std::vector<int64_t> programs, heads;
    for (const ScoreRequest& request : batch.requests) {
      programs.push_back(request.program);
      heads.push_back(request.head);
    }
    const PrunerBatch view = {.branches = branches.data(),
                              .program_count = std::ssize(batch.branches[0].begin) - 1,
                              .program_of_score = programs.data(),
                              .head_of_score = heads.data(),
                              .score_count = std::ssize(programs)};
    std::vector<float> scores(programs.size());
    TRY(done(calls_->forward(trainer_, &view, scores.data())));
    return scores;
  }

  Result<Unit> step(std::span<const float> gradient,
                    double learning_rate,
                    double clip_norm) override {
    return done(calls_->step(trainer_, gradient.data(), learning_rate, clip_norm));
  }

  Result<Tensors> tensors() override {
    Tensors tensors;
    for (const WeightSpec& spec : specs_) {
      std::vector<float>& values = (tensors[spec.name] = empty_tensor(spec)).values;
      TRY(done(calls_->get_tensor(trainer_, spec.name.c_str(), values.data(), std::ssize(values))));
    }
    return tensors;
  }

  Result<Tensors> optimizer_state() override {
    Tensors state;
    for (const WeightSpec& spec : specs_) {
      WeightTensor first = empty_tensor(spec), second = first;
      PrunerMoments moments = {
          first.values.data(), second.values.data(), std::ssize(first.values), 0};
      TRY(done(calls_->get_moments(trainer_, spec.name.c_str(), &moments)));
      if (moments.steps == 0) continue;
      state[kFirst + spec.name] = std::move(first);
      state[kSecond + spec.name] = std::move(second);
      state[kSteps] = {{1}, {static_cast<float>(moments.steps)}};
    }
    return state;
  }

  Result<Unit> set_optimizer_state(const Tensors& state) override {
    Tensors all = state;
    for (const WeightSpec& spec : specs_) {
      std::vector<float>&first = all[kFirst + spec.name].values,
      &second = all[kSecond + spec.name].values;
      if (first.empty() || second.empty() || all[kSteps].values.empty()) continue;
      const auto steps = static_cast<int64_t>(all[kSteps].values[0]);
      const PrunerMoments moments = {first.data(), second.data(), std::ssize(first), steps};
      TRY(done(calls_->set_moments(trainer_, spec.name.c_str(), &moments)));
    }
    return Unit{};
  }

 private:
  static WeightTensor empty_tensor(const WeightSpec& spec) {
    return {spec.shape, std::vector<float>(spec.element_count())};
  }
  Result<Unit> done(int status) const {
    if (status != 0) return Error("LibTorch: ", calls_->error());
    return Unit{};
  }

  const PrunerTrainerCalls* calls_;
  PrunerTrainer* trainer_;
  std::vector<WeightSpec> specs_;
};

}  // namespace

static const Result<const PrunerTrainerCalls*>& loaded_plugin() {
  static const Result<const PrunerTrainerCalls*> plugin = load_plugin();
  return plugin;
}

Result<Unit> find_torch() {
  const Result<const PrunerTrainerCalls*>& plugin = loaded_plugin();
  return plugin.ok() ? Result<Unit>(Unit{}) : plugin.error();
}

Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelWeights& start,
                                                    const TrainerOptions& options) {
  const Result<const PrunerTrainerCalls*>& plugin = loaded_plugin();
  if (!plugin.ok()) return plugin.error();
  auto trainer = std::make_unique<TorchTrainer>(*plugin, start, options);
  TRY(trainer->set(start.tensors));
  return std::unique_ptr<Trainer>(std::move(trainer));
}

}  // namespace pruner
