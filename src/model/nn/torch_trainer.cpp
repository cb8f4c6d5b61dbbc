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

size_t element_count(const WeightSpec& spec) {
  int64_t count = 1;
  for (const int64_t extent : spec.shape) count *= extent;
  return static_cast<size_t>(count);
}

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
               const PrunerTrainerOptions& options)
      : calls_(calls), trainer_(calls->create(&options)), specs_(tensor_specs(start)) {
    for (size_t head = 0; head < start.heads.size(); ++head)
      heads_.push_back(decoder_name(start.heads, head));
    if (heads_.empty()) heads_.push_back(decoder_name(start.heads, 0));
    for (const std::string& head : heads_) head_names_.push_back(head.c_str());
    is_tlp_ = start.architecture == Architecture::kTlp;
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
    return is_tlp_ ? forward_primitives(batch) : forward_rows(batch);
  }

  Result<Unit> step(std::span<const float> gradient,
                    double learning_rate,
                    double clip_norm) override {
    return done(calls_->step(trainer_, gradient.data(), learning_rate, clip_norm));
  }

  Result<Tensors> tensors() override {
    Tensors tensors;
    for (const WeightSpec& spec : specs_) {
      std::vector<float> values(element_count(spec));
      const auto count = static_cast<int64_t>(values.size());
      TRY(done(calls_->get_tensor(trainer_, spec.name.c_str(), values.data(), count)));
      tensors[spec.name] = {spec.shape, std::move(values)};
    }
    return tensors;
  }

  Result<Tensors> optimizer_state() override {
    Tensors state;
    for (const WeightSpec& spec : specs_) {
      const std::string& name = spec.name;
      const size_t count = element_count(spec);
      std::vector<float> first(count), second(count);
      int64_t steps = 0;
      TRY(done(calls_->get_moments(trainer_,
                                   name.c_str(),
                                   first.data(),
                                   second.data(),
                                   static_cast<int64_t>(count),
                                   &steps)));
      if (steps == 0) continue;
      state[kFirst + name] = {spec.shape, std::move(first)};
      state[kSecond + name] = {spec.shape, std::move(second)};
      state[kSteps] = {{1}, {static_cast<float>(steps)}};
    }
    return state;
  }

  Result<Unit> set_optimizer_state(const Tensors& state) override {
    const auto steps = state.find(kSteps);
    if (steps == state.end()) return Unit{};
    for (const WeightSpec& spec : specs_) {
      const std::string& name = spec.name;
      const auto first = state.find(kFirst + name), second = state.find(kSecond + name);
      if (first == state.end() || second == state.end()) continue;
      TRY(done(calls_->set_moments(trainer_,
                                   name.c_str(),
                                   first->second.values.data(),
                                   second->second.values.data(),
                                   static_cast<int64_t>(steps->second.values.at(0)))));
    }
    return Unit{};
  }

 private:
  Result<std::vector<float>> forward_rows(const TrainingBatch& batch) {
    const PrunerBatch view = {batch.rows.data(),
                              batch.program_of_row.data(),
                              static_cast<int64_t>(batch.program_of_row.size()),
                              batch.dataflow.data(),
                              batch.programs};
    std::vector<float> scores(static_cast<size_t>(batch.programs));
    TRY(done(calls_->forward(trainer_, &view, scores.data())));
    return scores;
  }

  Result<std::vector<float>> forward_primitives(const TrainingBatch& batch) {
    std::vector<int64_t> programs, heads;
    for (const ScoreRequest& request : batch.requests) {
      programs.push_back(request.program);
      heads.push_back(request.head);
    }
    const PrimitiveBatch& steps = batch.primitives;
    const int64_t width = specs_.front().shape[1];
    const PrunerPrimitives view = {steps.rows.data(),
                                   static_cast<int64_t>(steps.rows.size()) / width,
                                   width,
                                   steps.row_of.data(),
                                   steps.weight.data(),
                                   steps.programs,
                                   steps.tokens,
                                   head_names_.data(),
                                   static_cast<int64_t>(head_names_.size()),
                                   programs.data(),
                                   heads.data(),
                                   static_cast<int64_t>(programs.size())};
    std::vector<float> scores(programs.size());
    TRY(done(calls_->forward_primitives(trainer_, &view, scores.data())));
    return scores;
  }

  Result<Unit> done(int status) const {
    if (status != 0) return Error("LibTorch: ", calls_->error());
    return Unit{};
  }

  const PrunerTrainerCalls* calls_;
  PrunerTrainer* trainer_;
  std::vector<WeightSpec> specs_;
  std::vector<std::string> heads_;
  std::vector<const char*> head_names_;  // of heads_
  bool is_tlp_ = false;
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
  const PrunerTrainerOptions plain = {start.architecture == Architecture::kPacm,
                                      options.optimizer == Optimizer::kAdam,
                                      options.weight_decay,
                                      options.threads};
  auto trainer = std::make_unique<TorchTrainer>(*plugin, start, plain);
  TRY(trainer->set(start.tensors));
  return std::unique_ptr<Trainer>(std::move(trainer));
}

}  // namespace pruner
