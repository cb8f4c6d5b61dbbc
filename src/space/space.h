// A task's schedule space: its sketches (the loop structures worth trying, made by kSketchRules)
// and what may be chosen in each. A sketch's structure is made once a task; candidates are flat
// vectors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "space/candidate.h"
#include "space/loop_nest.h"
#include "space/plan.h"
#include "support/result.h"
#include "support/rng.h"
#include "tensor/task.h"

namespace pruner {

/// The meaning of one entry of a decision vector.
enum class DecisionKind : uint8_t {
  kTile,       // a factor: elements, vectors or inner tiles of an axis at one level
  kOrder,      // one of a few loop orders
  kLocation,   // one of a few places where a stage is computed
  kChunk,      // elements of a reduce axis worked on at a time
  kUnroll,     // statements in the unrolled reduction body
  kPrefetch,   // bytes ahead that streamed operands are prefetched; 0: none; kPrefetchRound
  kStreaming,  // 1: the output is stored past the caches
  kThreads,    // threads of a GPU block or row, elements or rows of one
  kVector,     // elements in a row that a GPU thread fetches, at once where they are a vector
  kBuffers,    // 2: operands of the next chunk are fetched beside the sums of this one
  kEpilogue,   // 1: a block's sums go through shared memory, from where it writes whole rows
};

/// One decision: its value is one of `choices`, ascending.
struct Decision {
  DecisionKind kind;
  std::string name;  // "h.tile0": for prints and records
  std::vector<int32_t> choices;
  int group = -1;  // kTile: decisions of one axis share a group, outermost level first
  std::vector<int32_t> worth_drawing = {};  // choices to draw from; empty: all

  /// Returns the choices that draws and mutations take; the others must be asked for.
  const std::vector<int32_t>& drawn() const {
    return worth_drawing.empty() ? choices : worth_drawing;
  }
};

/// One loop structure of a task.
struct Sketch {
  std::string name;  // "register-tile", "winograd-4x4+cache-tile": form and structure
  std::string form;  // "direct", "winograd-4x4"
  std::string hash;  // hash of name, DAG and decision names; records have name and hash
  ComputeDag dag;    // with cache-write, cache-read and rfactor stages; inlined stages gone
  std::vector<StageId> args;  // sketch stages of the task's inputs and outputs, in the task's order
  std::vector<Decision> decisions;
  std::vector<StagePlan> plans;  // one a compute stage, producers first
  std::shared_ptr<const SketchTables> tables;

  /// Returns the plan of a compute stage.
  const StagePlan& plan(StageId id) const { return plans[tables->plan_of[id]]; }
};

/// All of a task's sketches. Holds no reference to the task's DAG; the target's numbers are copied.
struct Space {
  Target target;
  std::vector<Sketch> sketches;
  std::vector<SketchId> drawn;  // those that sample() draws from: all, or some forms'
  bool any_tiles = false;       // on a CPU tiles may be of any extent, however much they overlap

  const Sketch& operator[](SketchId id) const { return sketches[id.value]; }
};

/// Returns the task's space. sample() draws only from sketches of `forms` (form_names()), or, if
/// `forms` is empty, of those that Form::drawn accepts. A task without any of these forms keeps its
/// direct form. Contractions have the structures that `rules` list.
Space make_space(const Task& task,
                 std::span<const std::string> forms = {},
                 std::span<const StructureRule> rules = kStructureRules);

/// Names of all forms: "direct", "winograd-2x2", ...
std::vector<std::string> form_names();

/// A drawn candidate: a sketch, then each decision; tiles of an axis so that they fit it, those of
/// a GPU so that most limits are kept. Every legal candidate of drawn() choices can be drawn; some
/// drawn are not legal.
Candidate draw(const Space& space, Rng& rng);
/// A drawn candidate that is legal.
Candidate sample(const Space& space, Rng& rng);

/// The loop nest of a legal candidate, in less than a microsecond: whoever reads it makes it, a
/// search that carries it along with thousands of candidates is slower (docs/inside/space.md).
LoopNest make_loop_nest(const Space& space, const Candidate& candidate);

/// Whether a decision may have the value.
bool allows(const Space& space, const Decision& decision, int32_t value);

/// Whether the candidate's decisions are in range and fit, and its nest keeps the target's limits
/// (registers, stack, unrolled body); checked first, before anything else. `why`, when given, gets
/// the reason. The sketch is one of the space's.
bool is_legal(const Space& space, const Candidate& candidate, std::string* why = nullptr);
/// The loop nest of any candidate, if it is legal; the error says why it is not.
Result<LoopNest> legal_nest(const Space& space, const Candidate& candidate);

/// One small legal change (kMutations); nullopt when the drawn mutation has no place.
std::optional<Candidate> mutate(const Space& space, const Candidate& candidate, Rng& rng);
/// One change by the rules of the published search, with its weights; it may be illegal. nullopt
/// when the drawn rule has no place.
std::optional<Candidate> mutate_as_published(const Space& space,
                                             const Candidate& candidate,
                                             Rng& rng);
/// A legal mix of two parents of one sketch (an axis' tiles come from one of them).
std::optional<Candidate> cross_over(const Space& space,
                                    const Candidate& a,
                                    const Candidate& b,
                                    Rng& rng);

/// Each sketch with its decisions and their choices.
std::string print(const Space& space);
/// "tile+epilogue: h.tile0=7 w.tile0=14 ...", and back; the error names the decision.
std::string print(const Space& space, const Candidate& candidate);
Result<Candidate> parse_candidate(const Space& space, std::string_view text);

}  // namespace pruner
