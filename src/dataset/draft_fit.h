// The draft of CPUs beside measured programs: how well it chooses among a task's, which of its
// numbers is wrong there, and numbers that choose better.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "space/loop_nest.h"
#include "target/target.h"

namespace pruner {

/// The measured programs of one task on one machine.
struct DraftedTask {
  std::string name;
  Target target;  // whose numbers the draft takes
  std::vector<LoopNest> nests;
  std::vector<double> seconds;  // measured
};

/// A number of the draft that a fit may move, by its name in device files.
struct DraftNumber {
  const char* name;
  double Target::*rate;      // null: one of ...
  double CpuModel::*number;  // ... Target::draft
  double most;
  double& of(Target& target) const { return rate ? target.*rate : target.draft.*number; }
};
std::span<const DraftNumber> draft_numbers();

/// A factor for each of draft_numbers().
using DraftFactors = std::vector<double>;
Target scaled(Target target, const DraftFactors& factors);

/// How well a draft chooses among the programs of one task; 1 is perfect, but of `random_10`.
struct DraftQuality {
  double best_1 = 1, best_10 = 1;  // the least time over the least of the 1, 10 drafted fastest
  double random_10 = 1;            // the same of 10 drawn at random, on average
  double pairwise = 1;             // share of pairs of different times that it orders rightly
};
DraftQuality draft_quality(const DraftedTask& task);

/// The one number with which, multiplied by 1/4 to 4, the draft's first choice among a task's
/// programs is the best; of numbers that choose alike, that with the least loss.
struct WrongNumber {
  std::string name;   // empty: no change of one number gains anything
  double factor = 1;  // on the number
  double best_1 = 1;  // with it
};
WrongNumber wrong_number(const DraftedTask& task);

struct DraftFit {
  DraftFactors factors;
  double loss_before = 0, loss = 0;  // of a task, on average
};
/// The factors for which the loss is least, found by steps along one number at a time: the same
/// tasks give the same factors. The loss of a task is the time that is lost, ln(time / least), by
/// who takes what is drafted fastest, softened over programs drafted within some percent of it, and
/// a share of the deviation of ln(drafted / measured), in which fast programs count more. To move a
/// number by a factor of e costs `stiffness`, so that few programs move little.
DraftFit fit_draft(std::span<const DraftedTask> tasks, double stiffness, int jobs);

}  // namespace pruner
