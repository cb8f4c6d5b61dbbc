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
  std::string platform = {};    // device of the programs; selects the head of a TLP with several
  int jobs = 1;                 // threads that score
  int training_threads = 1;
  double time_box_s = kNoTimeBox;  // limit of one update's training
  bool as_published = false;       // refit from scratch at every update, batches of all tasks mixed
  int momentum_period =
      4;  // rounds between trainings of -siamese-update, as released; the paper: 1
  /// Boosted trees as published score at random until they have more samples than this number
  /// (tasks of a run times trials of a round). Loaded trees never score at random.
  int64_t warm_up_samples = 0;
  uint64_t seed = 0;
};

class LearnedModel {
 public:
  virtual ~LearnedModel() = default;

  /// Returns one score a program, higher is faster. The result is empty before the model is
  /// trained, if all scores are the same (reported once), and if the model failed (fault()).
  std::vector<float> predict(std::span<const ProgramFeatures> programs);
  /// Returns why scores could not be made, or are no numbers. A model with a fault is not to be
  /// believed any more.
  const std::optional<std::string>& fault() const { return fault_; }
  /// Returns whether the model can score: it has weights, or trees, or scores at random for now.
  virtual bool ready() const = 0;
  /// Returns whether the model reads the schedule primitives of programs, and nothing else.
  virtual bool reads_primitives() const { return false; }
  /// Returns whether the model sees no row for the result of a dot-product or matrix instruction.
  virtual bool is_blind_to_units() const { return false; }
  /// Learns from a round's programs and all earlier ones; models that do not update do nothing.
  /// An error leaves the model as it was.
  virtual Result<Unit> update(std::span<const TrainingSample> samples) = 0;
  /// Writes the file that load_model reads; an error before the model is trained.
  virtual Result<Unit> save(const std::string& path) const = 0;
  /// Returns the programs that the model was trained on, as its file says; nullopt if it does not.
  virtual Result<std::optional<TrainedOn>> trained_on() const { return std::optional<TrainedOn>(); }

 protected:
  virtual Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) = 0;

 private:
  bool reported_ = false;
  std::optional<std::string> fault_;
};

/// Returns "pam, mlp, tlp or xgb": the networks' names on the command line, and boosted trees.
std::string trainable_models();

/// Makes the model of a name. A name of trainable_models(), or a network's name in files, trains
/// online; -no-update or -siamese-update (Momentum online Adaptation; pam and mlp) may follow it.
Result<std::unique_ptr<LearnedModel>> make_learned_model(std::string_view name,
                                                         const LearnedModelOptions& options);

/// Checks that the library for training and scoring is here: LibTorch's plug-in, or xgboost. The
/// error names the package to install.
Result<Unit> find_libraries_of(std::string_view name);

/// Makes the model whose weights or trees a file holds. The model scores and never learns.
Result<std::unique_ptr<LearnedModel>> load_learned_model(const std::string& path, int jobs);

/// Returns why scores cannot order the programs: a NaN, or one score for programs that differ.
std::optional<std::string> fault_of(std::span<const float> scores,
                                    std::span<const ProgramFeatures> programs);

}  // namespace pruner
