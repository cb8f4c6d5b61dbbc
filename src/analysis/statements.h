// A program as the analysis sees it: for every store the loops around it, what it computes, and
// what each buffer access touches from each loop inwards, in closed form (Pruner, sections 4.2 and
// 4.3; reference.md, program). Symbols, the draft and every feature set read this and
// nothing else. A replayed record and a candidate's loop nest are both made into it.
//
// Loops include the bindings of blocks, threads and virtual threads. Flat arrays: a statement holds
// the numbers of its first loop and access, an access those of its first use and size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "space/mma.h"
#include "tensor/compute_dag.h"
#include "tensor/operation_counts.h"

namespace pruner {

namespace ansor {
struct ReplayNest;
}
struct LoopNest;

enum class LoopRole : uint8_t {
  kSerial,
  kUnroll,
  kVectorize,
  kParallel,
  kVThread,
  kBlockX,
  kThreadX,
  kBlockY,
  kThreadY,
  kBlockZ,
  kThreadZ,
};
constexpr bool is_binding(LoopRole role) { return role >= LoopRole::kVThread; }
constexpr bool is_block(LoopRole role) {
  return role == LoopRole::kBlockX || role == LoopRole::kBlockY || role == LoopRole::kBlockZ;
}
constexpr bool is_thread(LoopRole role) {
  return role == LoopRole::kThreadX || role == LoopRole::kThreadY || role == LoopRole::kThreadZ;
}

/// A loop around a statement. Statements inside one loop share its identity.
struct StatementLoop {
  LoopRole role = LoopRole::kSerial;
  int32_t identity = 0;
  int64_t extent = 1;
};

/// The effect of one loop around a statement on one of the statement's accesses.
struct LoopUse {
  bool used = false;   // the loop's variable stands in an index
  int64_t stride = 0;  // elements that one iteration moves the access by
};

enum class AccessKind : uint8_t { kRead, kWrite, kReadWrite };

struct StatementAccess {
  StageId buffer;
  AccessKind kind = AccessKind::kRead;
  int first_use = 0;   // place in Statements::uses: one per loop, outer to inner
  int first_size = 0;  // place in Statements::sizes: per loop one number per dimension
  // 32-byte sectors of global memory, or cycles of shared memory's banks. The number is for the 32
  // lanes of a warp and all of a vectorised loop; 0: not computed (no threads, or registers).
  int warp_transactions = 0;
};

/// The memory that a buffer lies in.
enum class BufferScope : uint8_t { kGlobal, kShared, kLocal };

struct StatementBuffer {
  BufferScope scope = BufferScope::kGlobal;
  int element_bytes = 4;
  int first_dim = 0, dims = 0;    // range in Statements::shape, as accesses index the buffer
  double allocated = 0;           // elements held at a time; 0: an input
  double realize_iterations = 1;  // iterations of the loops around the allocation
};

/// A contraction's use of a unit that multiplies narrow numbers.
struct UnitUse {
  int unit = -1;                      // number of the unit's row in kDotRates; -1: none
  int factor_bits = 0, sum_bits = 0;  // bits of an element
  float useful = 0;                   // share of the unit's products that are asked for
  float instructions = 0;             // number in one iteration of the parallel loops, or of a warp
  float rows = 0, columns = 0;  // rows x columns registers of sums (or a warp's fragments) are
                                // added to in turn
  const MmaInstruction* mma = nullptr;  // a warp's instruction; null: no GPU
  int64_t stages = 1;                   // chunks that a warp's pipeline holds
  float steps = 1, warps = 1;           // steps of a chunk, warps of a block
  float stage_bytes = 0;                // bytes of one chunk of both operands
  float epilogue_bytes = 0;  // bytes of the sums in shared memory; 0: they don't go there
  bool used() const { return unit >= 0 || mma != nullptr; }
  /// Returns the registers that are loaded for one instruction.
  float loads() const { return (rows + columns) / (rows * columns); }
};

/// One store.
struct Statement {
  StageId buffer;
  int kernel = 0;        // loops at the root, counted in the program's order
  bool gpu = false;      // some thread has been bound here or before
  float iterations = 1;  // iterations of all loops (reference.md, O)
  float work = 1;  // iterations of one thread and its virtual threads (reference.md, symbols: W)
  /// Batches of rows that a warp reduces one after another, of a reduction in the kernel of a
  /// contraction (kHeldRows); 0: it is none.
  float batches = 0;
  int64_t unroll_steps = 0;            // auto_unroll_max_step in force; 0: none
  OperationCounts counts;              // operations of one evaluation of the stored value
  UnitUse unit;                        // unit that a contraction's update uses
  int first_loop = 0, loops = 0;       // range in Statements::loops, outer to inner
  int first_access = 0, accesses = 0;  // range in Statements::accesses; the stored buffer's is last
};

struct Statements {
  std::vector<StatementBuffer> buffers;  // one per stage
  std::vector<Statement> statements;     // in the program's order
  std::vector<StatementLoop> loops;
  std::vector<StatementAccess> accesses;
  std::vector<LoopUse> uses;
  std::vector<int64_t> sizes;  // elements of each dimension touched by a loop and those inside it
  std::vector<int64_t> shape;
  std::vector<int64_t> held;  // like `shape`: extents of the part allocated at a time
  int identities = 0;         // one more than the largest identity of a loop
  int kernels = 0;

  std::span<const StatementLoop> loops_of(const Statement& s) const {
    return {loops.data() + s.first_loop, static_cast<size_t>(s.loops)};
  }
  std::span<const StatementAccess> accesses_of(const Statement& s) const {
    return {accesses.data() + s.first_access, static_cast<size_t>(s.accesses)};
  }
  std::span<const LoopUse> uses_of(const Statement& s, const StatementAccess& a) const {
    return {uses.data() + a.first_use, static_cast<size_t>(s.loops)};
  }
  const StatementBuffer& buffer(StageId id) const { return buffers[id.value]; }
  std::span<const int64_t> shape_of(StageId id) const {
    return {shape.data() + buffer(id).first_dim, static_cast<size_t>(buffer(id).dims)};
  }
  std::span<const int64_t> held_of(StageId id) const {
    return {held.data() + buffer(id).first_dim, static_cast<size_t>(buffer(id).dims)};
  }
  /// Returns the elements of each dimension that the statement's loop number `loop` (from 0) and
  /// the loops inside it touch.
  std::span<const int64_t> region(const StatementAccess& a, int loop) const {
    const int dims = buffer(a.buffer).dims;
    return {sizes.data() + a.first_size + loop * dims, static_cast<size_t>(dims)};
  }
};

/// Makes the statements of a replayed record as the reference sees them, quirks included
/// (reference.md, slots): bindings of consecutive kernels share identities.
Statements make_statements(const ansor::ReplayNest& nest);

/// Makes the statements of a candidate's loop nest. Blocks, virtual threads and threads of a kernel
/// are one binding each, outermost, as in Ansor's programs. Indices are those of whole tensors; a
/// packed operand is indexed in its packed order.
Statements make_statements(const LoopNest& nest);

}  // namespace pruner
