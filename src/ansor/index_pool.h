// Index expressions of a nest as a flat arena: trees over loop variables, as they are written, each
// node with its bounds and residues in closed form. Equal trees are one node, so nodes compare by
// number. Nothing is rewritten here but constants and the identities of 0 and 1.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "support/id.h"

namespace pruner::ansor {

struct IndexTag {};
using IndexId = Id<IndexTag>;

enum class IndexOp : uint8_t {
  kConst,
  kVar,      // a loop's variable; value: the loop
  kUnknown,  // a value that memory holds (a gather), within its bounds
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
};

struct IndexNode {
  IndexOp op = IndexOp::kConst;
  IndexId a, b;
  int64_t value = 0;
  int64_t low = 0, high = 0;        // the value lies between, both included
  int64_t stride = 0, residue = 0;  // it is residue + n * stride; a stride of 0: it is residue
};

/// sum(coefficient * node) + constant; the nodes are variables, or what is not affine in them.
struct LinearIndex {
  std::vector<std::pair<IndexId, int64_t>> terms;  // ascending
  int64_t constant = 0;
  friend bool operator==(const LinearIndex&, const LinearIndex&) = default;
};

/// An arena of index trees. Ids hold as long as it does, a reference to a node only until the next
/// one is made. Bounds beyond 2^60 count as none.
class IndexPool {
 public:
  IndexPool();

  IndexId constant(int64_t value);
  /// The variable of loop `number`, from 0 to extent - 1; 0 itself where that is all.
  IndexId variable(int number, int64_t extent);
  IndexId unknown(int64_t low, int64_t high);
  IndexId binary(IndexOp op, IndexId a, IndexId b);
  IndexId add(IndexId a, IndexId b) { return binary(IndexOp::kAdd, a, b); }
  IndexId add(IndexId a, int64_t b) { return b == 0 ? a : add(a, constant(b)); }
  IndexId mul(IndexId a, int64_t b) { return binary(IndexOp::kMul, a, constant(b)); }
  IndexId floor_div(IndexId a, int64_t b) { return binary(IndexOp::kFloorDiv, a, constant(b)); }
  IndexId floor_mod(IndexId a, int64_t b) { return binary(IndexOp::kFloorMod, a, constant(b)); }

  const IndexNode& operator[](IndexId id) const { return nodes_[id.value]; }
  bool is_const(IndexId id, int64_t value) const;
  int size() const { return static_cast<int>(nodes_.size()); }

  /// The affine form over variables and over what is not affine, as a whole.
  LinearIndex linear(IndexId id) const;

 private:
  IndexId intern(const IndexNode& node);
  void grow();
  std::vector<IndexNode> nodes_;
  std::vector<int32_t> slots_;  // open addressing; -1: free
};

/// All values from `min` to min + width: an access over the loops inside a place, seen from there.
struct IndexSet {
  IndexId min;
  int64_t width = 0;
  friend bool operator==(const IndexSet&, const IndexSet&) = default;
};

/// Returns op(a, b) for all values of `a` and `b`. The width is the largest one if it differs from
/// point to point.
IndexSet combine(IndexPool& pool, IndexOp op, const IndexSet& a, const IndexSet& b);
/// The values of `id` while the loops in `relaxed` run and all others stand still. relaxed[i] is
/// the extent of loop i, or 0.
IndexSet relax(IndexPool& pool, IndexId id, std::span<const int64_t> relaxed);
/// Returns a set that covers both `a` and `b`.
IndexSet hull(IndexPool& pool, const IndexSet& a, const IndexSet& b);

}  // namespace pruner::ansor
