// Compares the draft of CPUs with measured programs: how well the draft chooses among a task's
// programs, which of its numbers is wrong, and which numbers choose better.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "space/loop_nest.h"
#include "target/target.h"

namespace pruner {

/// `DraftedTask` holds the measured programs of one task on one machine.
struct DraftedTask {
  std::string name;
  Target target;  // target whose numbers the draft takes
  std::vector<LoopNest> nests;
  std::vector<double> seconds;  // measured
};

/// `DraftNumber` is a number of the draft that a fit may move, by its name in device files.
struct DraftNumber {
  const char* name;
  double Target::*rate;      // null: one of ...
  double CpuModel::*number;  // ... Target::draft
  double most;
  double& of(Target& target) const { return rate ? target.*rate : target.draft.*number; }
};
std::span<const DraftNumber> draft_numbers();

/// `DraftFactors` holds a factor for each of draft_numbers().
using DraftFactors = std::vector<double>;
Target scaled(Target target, const DraftFactors& factors);

/// `DraftQuality` says how well a draft chooses among the programs of one task. 1 is perfect,
/// except for `random_10`.
struct DraftQuality {
  double best_1 = 1, best_10 = 1;  // the least time over the least of the 1, 10 drafted fastest
  double random_10 = 1;            // the same ratio for 10 random programs, on average
  double pairwise = 1;  // share of pairs of different times that the draft orders rightly
};
DraftQuality draft_quality(const DraftedTask& task);

/// `WrongNumber` is the number whose change by a factor of 1/4 to 4 makes the draft's first choice
/// among a task's programs best. If several numbers choose alike, the least loss decides.
struct WrongNumber {
  std::string name;   // empty: no change of one number gains anything
  double factor = 1;  // factor on the number
  double best_1 = 1;  // best_1 with the factor
};
WrongNumber wrong_number(const DraftedTask& task);

struct DraftFit {
  DraftFactors factors;
  double loss_before = 0, loss = 0;  // mean loss of a task
};
/// Returns the factors with the least loss, found by steps along one number at a time: the same
/// tasks give the same factors. The loss of a task is the lost time ln(time / least) of the program
/// drafted fastest, softened over programs whose drafts are some percent slower. A share of the
/// deviation of ln(drafted / measured) is added, in which fast programs count more. To move a
/// number by a factor of e costs `stiffness`, so that few programs move the numbers little.
DraftFit fit_draft(std::span<const DraftedTask> tasks, double stiffness, int jobs);

}  // namespace pruner
