// Loop IR: what a candidate becomes when it is to be measured. Statements over buffers; every tile
// is a full one (ragged ends are handled by overlapping tiles, by a vector loop's active lanes, or
// by a dynamic trip count), so the only control flow is loops and guards.
//
// Meaning, the same for the interpreter and every backend:
//  - For runs var from 0 to extent-1. kUnroll has a constant extent and is unrolled completely.
//    kVectorize runs as one vector of `lanes` lanes, of which the first `extent` are active;
//    inactive lanes load and store nothing of arguments, workspace and local buffers. It holds no
//    other loop but kUnroll, kDot and kMatrix ones. kDot and kMatrix are as kUnroll; where the body
//    of a kDot adds one product of narrow numbers to a register, its iterations may be one
//    instruction, which may round the sum otherwise. kParallel is outermost, has a constant extent
//    or one of symbols, and iterations may run at the same time.
//  - A kRegister buffer is a set of SSA values: all its indices are constants once unrolled loops
//    are, but for the lane of a vector loop in the last index. `lanes` says how wide its elements
//    are held: 1 (scalars), or the last dim is a multiple of `lanes` and is accessed by vector
//    loops of that width starting at multiples of it. Where it has `rows`, tiles of so many vectors
//    are held as one: a nest of kMatrix rows { kVectorize { ... } } sets such a tile to 0, loads or
//    stores it, or adds to it products of narrow numbers, the terms of each sum in two loops more,
//    kMatrix steps { kDot { ... } }.
//  - A streaming Store is a hint that nothing here reads the value again: it may go past the
//  caches.
//    A Prefetch asks for the cache line of a place, which may lie beyond the buffer; it computes
//    nothing.
//  - A Store in a vector loop whose place does not depend on the lane must have the form
//    x = combine(x, value): the lanes are folded (a horizontal reduction).
//
// A GPU program's body is one kBlock loop or a Block of them: each is a launch of its own, and they
// run one after the other. Inside it, below nothing but lets and allocations of kShared buffers,
// stands one kThread loop; both have constant extents. Blocks run in any order and at the same
// time, and so do the threads of a block, between two barriers. A Barrier stands where all threads
// of the block come by equally often: in no guard and no loop whose condition or extent differs
// between them. A kShared buffer is one for the threads of the block, a kLocal or kRegister one of
// the thread alone. A kVectorize loop has 2, 4 or 8 lanes and no reduction over them.
//
// Threads 32 * w to 32 * w + 31 of a block are warp w. Statements of warps stand in no vector loop,
// and but for AsyncCopy where all threads of a warp come by together: in blocks of whole warps, in
// no guard and no loop whose condition or extent differs between them. What a place of them names
// is the first of some elements that lie side by side, row-major.
//  - Mma adds the product of two fragments to a third: what each lane holds of them, in registers
//    of its own, the instruction's row says (space/mma.h).
//  - LoadMatrix loads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory. Lane 8 * i + r
//    says where row r of matrix i begins, at a multiple of 16 bytes; where there are fewer rows
//    than lanes, the others name rows that exist, too. Each lane gets its matrix_fragment() of one
//    matrix after the other, or, of elements of two bytes, of each one transposed.
//  - LaneFold folds one float32 of each lane over groups of 2, 4, 8, 16 or 32 neighbouring lanes.
//    Each lane of a group gets the group's result. Lanes whose numbers differ in one bit exchange
//    their values and fold them, from the lowest bit on.
//  - AsyncCopy copies elements of together 4, 8 or 16 bytes, at a multiple of as many in both
//    memories, from global to shared memory while its thread goes on. Only the first `valid` of
//    them are read, and need to be there; the others become 0. Its threads go their own ways.
//  - Commit makes a group of all copies of each thread since its last one. Wait lets each thread
//    wait until all of its groups but the last `groups` are done. Not before that may it touch the
//    elements, and not before a Barrier after it may the others; what is not waited for is never
//    there. As an AsyncCopy may write at once, no other thread may read or write the elements
//    between the last Barrier before it and that Wait.
//
// Warps 4 * g to 4 * g + 3 are group g. Statements of groups stand where all threads of the block
// come by together, in blocks of whole groups.
//  - GroupMma begins to add the product of two matrices in shared memory to sums in registers. The
//    row of the instruction says which sums each lane holds (space/mma.h); there are `columns` of
//    them. The matrices lie in lines of 32, 64 or 128 bytes, the last dimension of their buffers,
//    of which there is a multiple of eight; runs of 16 bytes are exchanged as by swizzled()
//    (space/matrix_lines.h). Either a line has terms of one row, and the place is one of the
//    first terms of a line whose number is a multiple of eight; or a line has rows of one term,
//    also one of 16 bytes, and the place is the first of such a line. Then rows beyond the line's
//    are so many lines further on as the next to last dimension has. The first matrix may also lie
//    in registers, where each warp has the fragment of its 16 rows.
//  - GroupCommit makes one of all products that a group has begun since its last one. GroupWait
//    lets each group wait until all of these but the last `groups` are done. Until then nobody may
//    touch their sums and what they read of registers, nor write to their matrices; more products
//    may be added to the same sums.
//  - GroupFence orders what a thread did with its registers before the products that are begun
//    after. SharedFence orders what it wrote to shared memory before what products read there
//    after the next Barrier: no Barrier alone does.
//
// A launch may begin before the one before it has ended if a GridWait stands in it: once, where all
// threads come by, in no loop. Threads wait there until all launches before are complete, and see
// what these wrote. Before that they touch no memory of others but what nobody writes
// (Buffer::constant).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "space/loop_kind.h"
#include "space/mma.h"
#include "tensor/affine.h"
#include "tensor/compute_dag.h"
#include "tensor/pack.h"
#include "tensor/task.h"

namespace pruner {

struct Buffer {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // row-major; of what is packed: the packed shape
  Scope scope = Scope::kArgument;
  int lanes = 1;                 // kRegister only
  bool output = false;           // kArgument only
  PackSpec pack;                 // kArgument and kWorkspace; identity when not packed
  int64_t workspace_offset = 0;  // kWorkspace only, bytes, 64-byte aligned
  // kArgument only: the shape of the tensor that the buffer is a box of, beginning where the
  // argument points. Empty: the buffer is a whole tensor, as all arguments of the interpreter are.
  std::vector<int64_t> box_of = {};
  // `extents` and `box_extents` are formulas of `shape` and `box_of`, with the symbols of a program
  // over a range of shapes (generalize.h); the numbers are the largest. Empty: equal at all shapes.
  std::vector<Expr> extents = {}, box_extents = {};
  int rows = 1;       // kRegister only: rows of tiles; 1: the buffer holds vectors
  bool over = false;  // kShared only: the buffer lies where the block's other buffers begin, whose
                      // elements nobody touches any more
  bool constant = false;  // kArgument only: nobody writes it while programs run
  // Notes, each of which a pass carries out and takes away (passes.h).
  PackSpec repack = {};  // pack_operands: the order in which loops read the buffer
  bool stream = false;   // stream_stores: stored values are not read here again

  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * dtype_bytes(dtype); }
};

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

struct For {
  VarId var;
  Expr extent;
  LoopKind kind = LoopKind::kSerial;
  int lanes = 1;  // kVectorize: width of the vector
  Stmt body = {};
  // Notes, each of which the pass of its name carries out and takes away (passes.h).
  int64_t unroll = 0;          // most statements that the unrolled body has; 0: not unrolled
  int64_t prefetch_bytes = 0;  // distance ahead of operands that stream; 0: none, kPrefetchRound
  bool open = false;           // note to `unroll`: the extent is one of a range of extents
  bool double_buffer = false;  // fetches before a barrier run an iteration earlier
  // Whether compilers are asked not to unroll the loop: two copies' values would not fit registers.
  bool rolled = false;
};
struct Let {
  VarId var;
  Expr value;
  Stmt body;
};  // an index value computed once
struct Store {
  TensorId buffer;
  std::vector<Expr> indices;
  Expr value;
  bool streaming = false;
};
struct Prefetch {
  TensorId buffer;
  std::vector<Expr> indices;
  int level = 1;  // first cache level that gets the line
};
struct If {
  Expr condition;
  Stmt then;
};
struct Allocate {
  TensorId buffer;
  Stmt body;
};                  // kShared, kLocal or kRegister; contents undefined
struct Barrier {};  // all threads of a block meet; what they wrote to memory before is seen after
struct Block {
  std::vector<Stmt> statements;
};

/// The place where elements begin.
struct ElementPlace {
  TensorId buffer;
  std::vector<Expr> indices;
};
struct Mma {
  const MmaInstruction* instruction;  // a row of the table
  ElementPlace sum, a, b;             // kRegister
};
struct LoadMatrix {
  ElementPlace to, from;  // kRegister, kShared
  int matrices = 1;
  bool transposed = false;
};
struct LaneFold {
  ElementPlace element;                // kRegister
  Combiner combiner = Combiner::kSum;  // kSum or kMax
  int lanes = 2;                       // lanes of a group
};
struct AsyncCopy {
  ElementPlace to, from;  // kShared, kArgument or kWorkspace
  int elements = 1;       // elements copied
  Expr valid;             // elements read, of the elements copied
};
struct Commit {};
struct Wait {
  int groups = 0;  // groups that may be left
};

struct GroupMma {
  const MmaInstruction* instruction;                  // a group's row of the table
  ElementPlace sum, a, b;                             // kRegister; kShared or kRegister; kShared
  int columns = 8;                                    // a multiple of the row's that it takes
  bool a_terms_first = false, b_terms_first = false;  // whether a line has rows of one term
};
struct GroupCommit {};
struct GroupWait {
  int groups = 0;  // commits that may be left
};
struct GroupFence {};
struct SharedFence {};
struct GridWait {};

/// Statements of groups of warps.
template <typename T>
concept GroupStmt = std::same_as<T, GroupMma> || std::same_as<T, GroupCommit> ||
    std::same_as<T, GroupWait> || std::same_as<T, GroupFence>;

/// Statements for which CUDA C alone has words: of warps, of groups of them, and GridWait.
template <typename T>
concept WarpStmt = GroupStmt<T> || std::same_as<T, Mma> || std::same_as<T, LoadMatrix> ||
    std::same_as<T, LaneFold> || std::same_as<T, AsyncCopy> || std::same_as<T, Commit> ||
    std::same_as<T, Wait> || std::same_as<T, SharedFence> || std::same_as<T, GridWait>;

/// Calls fn(place, whether it is written) with each place of a statement of warps.
template <typename Node, typename Fn>
void each_place(Node& n, const Fn& fn) {
  if constexpr (requires { n.sum; }) {
    fn(n.sum, true);
    fn(n.a, false);
    fn(n.b, false);
  }
  if constexpr (requires { n.element; }) fn(n.element, true);
  if constexpr (requires { n.to; }) {
    fn(n.to, true);
    fn(n.from, false);
  }
}

struct StmtNode {
  std::variant<For,
               Let,
               Store,
               Prefetch,
               If,
               Allocate,
               Barrier,
               Block,
               Mma,
               LoadMatrix,
               LaneFold,
               AsyncCopy,
               Commit,
               Wait,
               GroupMma,
               GroupCommit,
               GroupWait,
               GroupFence,
               SharedFence,
               GridWait>
      op;
};

template <typename Op>
Stmt make_stmt(Op op) {
  return std::make_shared<const StmtNode>(StmtNode{std::move(op)});
}

/// A kernel: args are the DAG's inputs in order, then its outputs; a program over a range of shapes
/// also takes an array of its symbols' values.
struct Program {
  std::string name;
  std::vector<Buffer> buffers;         // a Load's or Store's TensorId names one
  std::vector<std::string> var_names;  // a VarId names one
  std::vector<Range> ranges;           // range of each variable
  std::vector<VarId> symbols;          // variables that the caller gives values, an int64 each
  std::vector<TensorId> args;
  Stmt body;
  int64_t workspace_bytes = 0;
  bool rewrites = false;  // some outputs are written more than once (overlapping tiles): an output
                          // must not share memory with an input

  const Buffer& operator[](TensorId id) const { return buffers[static_cast<size_t>(id.value)]; }
  VarId add_var(std::string var_name, Range range = kUnbounded);
  TensorId add_buffer(Buffer buffer);
  Expr var(VarId id) const { return make_var(id, var_names[static_cast<size_t>(id.value)]); }
  Expr simple(const Expr& e) const { return simplify(e, ranges); }
};

/// Returns the kBlock loops of a GPU program, one a launch, in order; a CPU program has none.
std::vector<const For*> launches(const Program& program);

/// C-like text, one statement a line; what --print=program shows.
std::string print(const Program& program);

/// Every rule of this file's head, index ranks, dtypes, use of variables in scope; the first broken
/// one as an error.
Result<Unit> verify(const Program& program);

struct InterpretOptions {
  bool unwritten = false;  // reads of what was never written are errors, too
};

/// Runs a program that passes verify() on tensors (packed arguments already packed; outputs in
/// place), one iteration at a time. Errors: an index out of bounds; of a GPU program also a race
/// (an element that two threads touch, one of them writing, with no barrier between them or in two
/// blocks of a launch) and a barrier that some threads do not come to.
Result<Unit> interpret(const Program& program,
                       std::span<Tensor> args,
                       const InterpretOptions& options = {});

}  // namespace pruner
