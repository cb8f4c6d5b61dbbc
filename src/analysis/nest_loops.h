// The loops around each stage of a candidate's nest, and how far they drive its iterators: what its
// accesses touch is arithmetic on these spans. A stage that hangs in another's loops is moved by
// them as the other reads it.
//
// On a GPU the loops over blocks, virtual threads and threads of a kernel are one binding each and
// come first, in this order; what block threads fetch together is theirs as a whole, so it does not
// move with one of them.
#pragma once

#include <span>
#include <vector>

#include "analysis/statements.h"
#include "space/access.h"
#include "space/gpu/mma_contraction.h"
#include "space/loop_nest.h"

namespace pruner {

/// One loop around a stage; bindings and parallel loops stand for several of the nest's.
struct LoopGroup {
  StatementLoop loop;
  uint32_t moved = 0;    // bit i: the loop drives iterator i of the stage
  bool reduces = false;  // the loop runs over a reduce axis
  int parts = 0;         // loops of the nest in it
};

class NestLoops {
 public:
  explicit NestLoops(const LoopNest& nest);

  /// Returns the loops around the nest's stage `p`, outer to inner.
  std::span<const LoopGroup> groups(int p) const {
    return {groups_.data() + of(p).first, static_cast<size_t>(of(p).count)};
  }
  /// Returns how many of these loops belong to the stages that stage `p` hangs in. The buffer of
  /// `p` is held inside them.
  int inherited(int p) const { return of(p).inherited; }
  /// Returns the number of values that each iterator runs over while group `g` and the groups
  /// inside it run. `g` may be the number of groups.
  std::span<const int64_t> spans(int p, int g) const {
    return {spans_.data() + of(p).first_span + g * of(p).iterators, iterators(p)};
  }
  /// Returns how far one iteration of the group's innermost loop moves each iterator.
  std::span<const int64_t> moves(int p, int g) const {
    return {moves_.data() + of(p).first_move + g * of(p).iterators, iterators(p)};
  }
  /// Returns the value of each iterator in a lane of a kernel's first warp; zeros on a CPU.
  std::span<const int64_t> lane(int p, int lane) const {
    return {lanes_.data() + of(p).first_lane + lane * of(p).iterators, iterators(p)};
  }
  /// Returns a mask: bit i is set if not all of these lanes stand at 0 of iterator i.
  uint32_t lanes_move(int p) const { return of(p).lanes_move; }
  /// Returns the number of lanes in the first warp; 0 without threads.
  int lanes(int p) const { return of(p).lanes; }
  /// Returns the number of neighbouring elements that a lane takes at once.
  int lane_width(int p) const { return of(p).lane_width; }
  size_t iterators(int p) const { return static_cast<size_t>(of(p).iterators); }
  /// Returns the number of the root stage that stage `p` hangs in, `p` for a root.
  int root(int p) const { return of(p).root; }
  int identities() const { return identities_; }

 private:
  struct StageLoops {
    int iterators = 0, inherited = 0, root = 0;
    int first = 0, count = 0;            // in groups_
    int first_span = 0, first_move = 0;  // in spans_ and moves_
    int first_lane = 0, lanes = 0;       // in lanes_
    int lane_width = 1;
    uint32_t lanes_move = 0;
    int first_loop = 0;  // in group_of_
  };
  const StageLoops& of(int p) const { return stages_[p]; }
  int plan_of(StageId id) const;
  /// The group of a stage's own loop.
  int& group_of(int p, size_t loop) {
    return group_of_[static_cast<size_t>(of(p).first_loop) + loop];
  }
  std::span<int64_t> own_spans(int p, int g) {
    return {spans_.data() + of(p).first_span + g * of(p).iterators, iterators(p)};
  }
  std::span<int64_t> own_moves(int p, int g) {
    return {moves_.data() + of(p).first_move + g * of(p).iterators, iterators(p)};
  }

  void make(int p);
  void inherit(int p);
  void push_own(int p);
  int push_group(int p, LoopRole role);
  void add_loop(int p, int group, size_t loop);
  void span_own(int p);
  void span_inherited(int p, const Access& access, int reader);
  bool fetched_together(int p) const;
  const NestStage* sums_of_warps(int p) const;
  void place_lanes(int p);

  const LoopNest& nest_;
  const bool gpu_;
  std::vector<StageLoops> stages_;  // one per stage of the nest
  std::vector<int> group_of_;       // one per stage and own loop
  std::vector<LoopGroup> groups_;
  std::vector<int64_t> spans_, moves_, lanes_;
  std::vector<int64_t> row_;
  int identities_ = 0;
};

}  // namespace pruner
