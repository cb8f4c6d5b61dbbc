// A stage's body as a straight list of operations (a tape) over a block of lanes: points that
// differ in one variable, the lane variable. Stages that are not stored are inlined. What does not
// depend on the lane is one value; an integer that steps evenly from lane to lane is its first
// value and the step; a node is evaluated again only when a loop that it depends on advances.
#pragma once

#include <vector>

#include "tensor/compute_dag.h"

namespace pruner {

inline constexpr int kLanes = 256;  // points of a block, at most

enum class TapeOp : uint8_t {
  kConst,
  kVar,
  kSpread,  // `a` as a value a lane
  kLoad,
  kInRange,  // stops the program where an index leaves its dim
  kBinary,
  kSelect,
  kCast,
  kCall
};

struct TapeNode {
  TapeOp op;
  DType dtype = DType::kInt64;
  BinaryOp binary = BinaryOp::kAdd;
  Intrinsic function = Intrinsic::kExp;
  int a = -1, b = -1, c = -1;  // operands. kLoad: position, guard; kInRange: index, guard, dim
  int64_t value = 0;           // kConst; kVar: which; kInRange: extent; kCast: whether of bits
  double real = 0;             // kConst of a float
  StageId tensor = {};         // kLoad, kInRange
  StageId reader = {};         // kLoad, kInRange: the stage whose body this is

  bool lanes = false;  // a value a lane
  int64_t step = 0;    // without lanes: the value of lane l is that of lane 0 plus l * step
  bool exact = false;  // is a value of its type already: needs no rounding when it is stored
  int level = 0;       // deepest loop that it depends on
  int slot = -1;       // first value in the pool of its type

  bool is_real() const { return is_float(dtype); }
};

/// A variable that is stepped around the tape, outermost first.
struct TapeLoop {
  int var;
  int64_t extent;
  int64_t step;  // kLanes for the lane variable
};

/// A stage's body for one choice of the lane variable.
struct Tape {
  std::vector<TapeNode> nodes;   // ordered by level; operands before users
  std::vector<int> level_start;  // first node of each level and, last, the number of nodes
  std::vector<TapeLoop> loops;   // loop i is level i + 1
  std::vector<int> var_nodes;    // the node of each variable; -1: not read
  int result = -1;               // has lanes
  int lane_var = -1;             // -1: one lane
  int64_t lane_extent = 1;
  bool lanes_reduce = false;             // the lane variable is a reduce axis
  int reals = 0, integers = 0;           // sizes of the two pools
  double block_cost = 0, lane_cost = 0;  // rough ns a block and a lane, to choose a lane variable
};

/// The tape of `stage`. stored[i]: elements of stage i are read from memory, not inlined.
Tape compile_tape(const ComputeDag& dag,
                  StageId stage,
                  int lane_var,
                  const std::vector<bool>& stored);

}  // namespace pruner
