// A replayed record as a loop nest: what TVM lowers the same steps to, before any of its passes.
// Buffers with the region that is held at a time, loops with their annotations, guards where a
// split leaves a rest, statements with the index of every access; all extents are numbers and all
// indices trees over the loops' variables. Features, symbols and checks read this; print_program()
// writes it as TVM would.
//
// The nodes are in program order; a node holds those up to its `end`.
#pragma once

#include <memory>

#include "ansor/index_pool.h"
#include "ansor/structure.h"

namespace pruner::ansor {

struct ReplayLoop {
  int stage = 0, iter = 0;  // stage of the state, iterator of the stage
  int64_t extent = 1;
  Annotation annotation = Annotation::kNone;
  bool init = false;  // true in the nest that sets a reduction to its first value
};

/// The iterator whose pragmas hold inside; its loop may be gone, its extent being 1.
struct ReplayPragma {
  int stage = 0, iter = 0;
};

/// The part of a stage's tensor that is computed at one visit.
struct ReplayRegion {
  std::vector<IndexId> mins;     // start of the region along each axis
  std::vector<int64_t> extents;  // extent of the region along each axis
};

/// value < bound, or value >= 0 where `lower`.
struct ReplayGuard {
  IndexId value;
  int64_t bound = 0;
  bool lower = false;
  int stage = 0, iter = 0;  // the iterator whose value it is
  bool of_axis = false;     // its value in the tensor; else counted from the region's start
  bool init = false;        // true in the nest that sets the first value
};

enum class StatementKind : uint8_t {
  kCompute,       // stage[indices] = body
  kInit,          // stage[indices] = identity
  kUpdate,        // stage[indices] = combine(stage[indices], body)
  kThreadInit,    // temporary = identity
  kThreadUpdate,  // temporary = combine(temporary, body)
  kAllReduce,     // reduces the temporary over threads; the body, where no loops reduce
  kThreadStore,   // stage[indices] = reduced value
};

struct ReplayAccess {
  StageId tensor;
  std::vector<IndexId> indices;
};

struct ReplayStatement {
  StatementKind kind = StatementKind::kCompute;
  int stage = 0;
  ReplayAccess store;               // without a tensor for a temporary
  std::vector<IndexId> roots;       // values of the stage's axes and reduce axes
  std::vector<ReplayAccess> loads;  // loads of the body, in the structure's order
};

enum class NodeKind : uint8_t {
  kRealize,    // index: stage; its region is there inside
  kPragmas,    // index: pragma
  kLoop,       // index: loop
  kGuard,      // index: guard
  kTemporary,  // index: stage; the registers of a reduction over threads
  kStatement,  // index: statement
};

/// One level of the program: nodes number + 1 to end - 1 stand inside it.
struct ReplayNode {
  NodeKind kind;
  int index = 0;
  int end = 0;  // number of the first node after what this one holds
};

struct ReplayNest {
  std::shared_ptr<const Structure> structure;
  State state;  // with all extents
  IndexPool pool;
  std::vector<ReplayLoop> loops;             // variable i is that of loop i
  std::vector<ReplayRegion> regions;         // one per stage; empty for inputs and inlined stages
  std::vector<std::vector<int>> loop_of;     // loop per stage and iterator, or -1
  std::vector<std::vector<IndexId>> values;  // value per stage and iterator, in the main nest
  std::vector<ReplayPragma> pragmas;
  std::vector<ReplayGuard> guards;
  std::vector<ReplayStatement> statements;
  std::vector<ReplayNode> nodes;
};

/// The nest of a state, or why it has none (a producer outside of its consumers' loops).
Result<ReplayNest> make_nest(State state, std::shared_ptr<const Structure> structure);

/// apply_steps() and make_nest() in one.
Result<ReplayNest> replay(Structures& structures, std::span<const Step> steps);

/// The program as TVM prints it, indices simplified as TVM does.
std::string print_program(const ReplayNest& nest);

}  // namespace pruner::ansor
