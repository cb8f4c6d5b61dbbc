// Models that learn: features of programs in, scores out; measured programs in, a better model.
// A CostModel over candidates is one of these behind the extraction of features.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/train.h"

namespace pruner {

struct LearnedModelOptions {
  std::string load_model = {};  // file of weights; empty: untrained
  std::string platform = {};    // what the programs run on: which head of a TLP with several scores
  int jobs = 1;                 // threads that score
  int training_threads = 1;
  double time_box_s = kNoTimeBox;  // of one update's training
  bool as_published = false;       // refit from scratch at every update, batches of all tasks mixed
  int momentum_period =
      4;  // rounds between trainings of -siamese-update, as released; the paper: 1
  /// Boosted trees as published score at random until they have more samples than this, the tasks
  /// of a run times what a round measures; loaded ones never do.
  int64_t warm_up_samples = 0;
  uint64_t seed = 0;
};

class LearnedModel {
 public:
  virtual ~LearnedModel() = default;

  /// One score a program, higher is faster. Empty where the model has nothing to say: before it is
  /// trained, when its scores are all the same (reported once), and where it failed (fault()).
  std::vector<float> predict(std::span<const ProgramFeatures> programs);
  /// Why scores could not be made, or are no numbers; a model of which one was so is not to be
  /// believed any more.
  const std::optional<std::string>& fault() const { return fault_; }
  /// Whether there is anything to score with: weights, or enough to have been trained on.
  virtual bool ready() const = 0;
  /// Whether it reads the schedule primitives of programs, and nothing else.
  virtual bool reads_primitives() const { return false; }
  /// Whether what an instruction for dot products or matrices computes is no row to it.
  virtual bool is_blind_to_units() const { return false; }
  /// Learns from a round's programs, along with all before; models that do not update do nothing.
  /// An error leaves the model as it was.
  virtual Result<Unit> update(std::span<const TrainingSample> samples) = 0;
  /// Writes what load_model reads; an error before the model is trained.
  virtual Result<Unit> save(const std::string& path) const = 0;
  /// What its file says that it was trained on; none where it does not say.
  virtual Result<std::optional<TrainedOn>> trained_on() const { return std::optional<TrainedOn>(); }

 protected:
  virtual Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) = 0;

 private:
  bool reported_ = false;
  std::optional<std::string> fault_;
};

/// "pam, mlp, tlp or xgb": the networks' names on the command line, and boosted trees.
std::string trainable_models();

/// The model of a name: one of these (networks by their name in files, too), which trains online,
/// or one of these with -no-update or -siamese-update (Momentum online Adaptation; pam and mlp).
Result<std::unique_ptr<LearnedModel>> make_learned_model(std::string_view name,
                                                         const LearnedModelOptions& options);

/// Whether what the model of a name trains and scores with is here: LibTorch's plug-in, xgboost.
/// The error names the package to install.
Result<Unit> find_libraries_of(std::string_view name);

/// The model whose weights or trees a file holds, whichever it is: it scores and never learns.
Result<std::unique_ptr<LearnedModel>> load_learned_model(const std::string& path, int jobs);

/// Why scores cannot order the programs: a NaN, or one score for programs that differ.
std::optional<std::string> fault_of(std::span<const float> scores,
                                    std::span<const ProgramFeatures> programs);

}  // namespace pruner
