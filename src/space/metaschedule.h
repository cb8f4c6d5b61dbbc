// The part of a task's space that MetaSchedule's default rules make (Shao et al., NeurIPS 2022;
// TVM's for x86, Arm and CUDA), its draws and its mutations. contains() is the one place that says
// which candidates of ours belong to it: docs/search.md has the rules in our words.
#pragma once

#include <optional>
#include <vector>

#include "space/space.h"

namespace pruner {

class MetaScheduleSpace {
 public:
  /// `space` outlives it. The direct sketches, split-k where MetaSchedule adds an rfactor, and
  /// convolutions as products of matrices on tensor cores; whatever is drawn.
  explicit MetaScheduleSpace(const Space& space);

  /// Whether a candidate of the space is one of MetaSchedule's; legality is another question.
  bool contains(const Candidate& candidate) const;
  /// A sketch, tiles by sample_perfect_tile(), all else uniformly. It may be illegal.
  Candidate draw(Rng& rng) const;
  /// One change by a drawn mutator; it may be illegal, or outside. nullopt where that has no place.
  std::optional<Candidate> mutate(const Candidate& candidate, Rng& rng) const;

 private:
  /// The tiles of an axis.
  struct Split {
    std::vector<DecisionRef> levels;  // from the outermost that is decided on; the rest is outside
    int64_t extent = 1;               // of the axis, in what one of the innermost counts
    int64_t most_innermost = 1;
    int64_t unit = 1;  // what the innermost is a multiple of; the extent counts these

    /// What one iteration of a level counts for.
    int64_t unit_of(DecisionRef level) const { return level == levels.back() ? unit : 1; }
  };
  /// What it has of a sketch.
  struct Part {
    SketchId sketch;
    bool tensorized = false;                    // by an instruction of dot products or matrices
    std::vector<std::vector<int32_t>> choices;  // of each decision
    std::vector<Split> splits;
  };
  friend class PartMaker;
  const Part* part_of(SketchId sketch) const;
  static std::optional<Candidate> mutate_tiles(const Split& split, Candidate candidate, Rng& rng);

  const Space& space_;
  std::vector<Part> parts_;  // one a sketch
};

}  // namespace pruner
