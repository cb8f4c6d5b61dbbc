// A launch of a program made ready to be run by all threads of a block at once, statement by
// statement: Program -> Lockstep. Index arithmetic lies in slots that are filled when the scope of
// their deepest variable is entered; what reads memory is a tree of nodes. A program for CPUs is
// one launch of one thread.
#pragma once

#include <compare>
#include <variant>
#include <vector>

#include "lower/program.h"
#include "tensor/affine.h"

namespace pruner {

/// An index: constant + sum(coefficient * slot). A uniform slot holds one value for all threads of
/// the block, a varying one a value a thread. In a Lockstep there is at most one varying term, of
/// coefficient 1.
struct SlotSum {
  using Terms = std::vector<std::pair<int, int64_t>>;  // ascending by slot
  int64_t constant = 0;
  Terms uniform, varying;
  auto operator<=>(const SlotSum&) const = default;
};

/// How a slot is filled.
struct SlotRule {
  // a; a `binary` b; a ? b : c; !a; |a|; a != 0
  enum class Op : uint8_t { kSum, kBinary, kSelect, kNot, kAbs, kIsTrue };
  Op op = Op::kSum;
  BinaryOp binary = BinaryOp::kAdd;
  SlotSum a, b, c;
  auto operator<=>(const SlotRule&) const = default;
};
struct SlotFill {
  SlotRule rule;
  int slot;
  bool varying;
};

/// An element: its row-major place and the indices that may be out of bounds.
struct SlotPlace {
  struct Check {
    int dim;
    SlotSum index;
  };
  TensorId buffer;
  SlotSum flat;
  std::vector<Check> checks;
  std::vector<int> computed;  // nodes of the indices, if they read memory; `flat` is not used then
};

/// A value, one a thread.
struct LockstepNode {
  enum class Op : uint8_t { kConstant, kIndex, kLoad, kBinary, kSelect, kCast, kCall };
  Op op;
  DType dtype;
  BinaryOp binary = BinaryOp::kAdd;
  Intrinsic function = Intrinsic::kExp;
  int a = -1, b = -1, c = -1;  // operands
  double real = 0;             // kConstant
  int64_t integer = 0;
  bool of_bits = false;  // kCast: keeps the bits, not the value
  SlotSum index;         // kIndex
  SlotPlace place;       // kLoad
};

struct LockstepStmt;
using LockstepBody = std::vector<LockstepStmt>;

struct LoopStep {
  int slot;  // uniform
  SlotSum extent;
  int computed = -1;    // node of an extent that reads memory
  bool blocks = false;  // the launch's kBlock loop
  std::vector<SlotFill> fills;
  LockstepBody body;
};
struct ThreadsStep {
  std::vector<SlotFill> fills;
  LockstepBody body;
};
struct LetStep {
  int slot;  // varying
  int value;
  std::vector<SlotFill> fills;
  LockstepBody body;
};  // a let whose value reads memory; other lets are sums of slots
struct StoreStep {
  SlotPlace place;
  int value;
};
struct GuardStep {
  SlotSum condition;
  int computed = -1;  // node of a condition that reads memory
  LockstepBody body;
};
struct AllocateStep {
  TensorId buffer;
};
struct BarrierStep {};
struct MmaStep {
  const MmaInstruction* instruction;
  SlotPlace sum, a, b;
};
struct LoadMatrixStep {
  SlotPlace to, from;
  int matrices;
  bool transposed;
};
struct LaneFoldStep {
  SlotPlace element;
  Combiner combiner;
  int lanes;
};
struct AsyncCopyStep {
  SlotPlace to, from;
  int elements;
  int valid;  // node
};
struct CommitStep {};
struct WaitStep {
  int groups;
};
struct GroupMmaStep {
  const MmaInstruction* instruction;
  SlotPlace sum, a, b;
  int columns;
  bool a_terms_first, b_terms_first;
};
struct GroupCommitStep {};
struct GroupWaitStep {
  int groups;
};
struct GroupFenceStep {};
struct SharedFenceStep {};
struct GridWaitStep {};

struct LockstepStmt {
  std::variant<LoopStep,
               ThreadsStep,
               LetStep,
               StoreStep,
               GuardStep,
               AllocateStep,
               BarrierStep,
               MmaStep,
               LoadMatrixStep,
               LaneFoldStep,
               AsyncCopyStep,
               CommitStep,
               WaitStep,
               GroupMmaStep,
               GroupCommitStep,
               GroupWaitStep,
               GroupFenceStep,
               SharedFenceStep,
               GridWaitStep>
      op;
};

/// One launch: a loop over the blocks, and in it what all threads of a block run.
struct Lockstep {
  int threads = 1;
  int uniform_slots = 0, varying_slots = 0;
  int thread_slot = -1;  // varying: the number of the thread
  std::vector<SlotFill> fills;
  std::vector<LockstepNode> nodes;
  LockstepBody body;
  bool waits = false;         // it has a GridWait
  std::vector<bool> watched;  // buffers of which every access is looked at for races
};

/// The launches of a program that passes verify(), in order.
std::vector<Lockstep> make_lockstep(const Program& program);

}  // namespace pruner
