// The part of a task's space that MetaSchedule's default rules make (Shao et al., NeurIPS 2022;
// TVM's for x86, Arm and CUDA), its draws and its mutations. contains() alone says whether a
// candidate of ours belongs to it: docs/inside/search.md has the rules in our words.
#pragma once

#include <optional>
#include <vector>

#include "space/space.h"

namespace pruner {

class MetaScheduleSpace {
 public:
  /// `space` must outlive the object. The part has the direct sketches, split-k if MetaSchedule
  /// adds an rfactor, and convolutions as matrix products on tensor cores. Space::drawn has no
  /// effect.
  explicit MetaScheduleSpace(const Space& space);

  /// Whether a candidate of the space is one of MetaSchedule's; legality is another question.
  bool contains(const Candidate& candidate) const;
  /// Draws a sketch, tiles by sample_perfect_tile(), and all else uniformly. The candidate may be
  /// illegal.
  Candidate draw(Rng& rng) const;
  /// Changes a candidate by a drawn mutator; the result may be illegal or outside the part. nullopt
  /// if the mutator has no place.
  std::optional<Candidate> mutate(const Candidate& candidate, Rng& rng) const;

 private:
  /// The tiles of an axis.
  struct Split {
    std::vector<DecisionRef> levels;  // decided levels, outermost first; the rest is outside
    int64_t extent = 1;               // length of the axis in units of the innermost level
    int64_t most_innermost = 1;
    int64_t unit = 1;  // divisor of the innermost tile, and unit of `extent`

    /// Returns the unit that a level's decision is counted in.
    int64_t unit_of(DecisionRef level) const { return level == levels.back() ? unit : 1; }
  };
  /// The part of one sketch's candidates that belongs to MetaSchedule's space.
  struct Part {
    SketchId sketch;
    bool tensorized = false;                    // uses an instruction of dot products or matrices
    std::vector<std::vector<int32_t>> choices;  // one list per decision
    std::vector<Split> splits;
  };
  friend class PartMaker;
  const Part* part_of(SketchId sketch) const;
  static std::optional<Candidate> mutate_tiles(const Split& split, Candidate candidate, Rng& rng);

  const Space& space_;
  std::vector<Part> parts_;  // one a sketch
};

}  // namespace pruner
