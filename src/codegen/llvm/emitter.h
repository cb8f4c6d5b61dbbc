// Loop IR -> LLVM IR, one function at a time. Expressions become uniform scalars or, inside a
// vector loop, vectors with a value a lane; what is the same in all lanes stays scalar until a
// vector needs it. Register buffers are SSA values, carried by phis through loops and guards. Index
// expressions are kept as LaneIndex forms until an address is needed, so that unrolled bodies share
// one pointer for each distinct variable part and differ in constant offsets only.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/llvm/math.h"
#include "lower/matrix.h"
#include "target/target.h"
#include "tensor/affine.h"

namespace pruner {

/// constant + lane * (number of the lane) + sum(coefficient * atom)
/// + sum(coefficient * floor(number of the lane / divisor)). An atom is an index value that is
/// known only when the code runs; terms ascend by atom, and so by the depth of its definition;
/// steps ascend by divisor.
struct LaneIndex {
  using Terms = llvm::SmallVector<std::pair<int, int64_t>, 4>;
  using Steps = llvm::SmallVector<std::pair<int64_t, int64_t>, 1>;
  int64_t constant = 0;
  int64_t lane = 0;
  Terms terms;
  Steps steps = {};

  bool is_constant() const { return !counts_lanes() && terms.empty(); }
  bool counts_lanes() const { return lane != 0 || !steps.empty(); }
  /// Returns by how much the value in lane `i` exceeds the value in lane 0, atoms aside.
  int64_t of_lane(int64_t i) const;
  void add(const LaneIndex& other, int64_t factor);
  friend bool operator==(const LaneIndex&, const LaneIndex&) = default;
  friend bool operator<(const LaneIndex& a, const LaneIndex& b) {
    return std::tie(a.constant, a.lane, a.terms, a.steps) <
           std::tie(b.constant, b.lane, b.terms, b.steps);
  }
};

/// `CpuInstructions` lists the instructions of a CPU that LLVM does not find by itself.
struct CpuInstructions {
  bool bfloat16 = false;  // an instruction that rounds float32 to bfloat16
  bool avx512 = false;    // the instructions of AVX-512F
  bool fma = true;        // instructions that multiply and add with one rounding
};

/// `Kernel` holds the data that the functions of one kernel share.
struct Kernel {
  Kernel(const Program& program, llvm::Module& module, CpuInstructions instructions);

  /// The register buffers that are stored to inside `body`.
  const std::vector<TensorId>& stored_registers(const Stmt& body);
  /// `lanes` times `value` in constant memory.
  llvm::Constant* splat_in_memory(llvm::Constant* value, int lanes);

  const Program& program;
  llvm::Module& module;
  llvm::LLVMContext& context;
  const Isa isa;              // the module's instruction set
  const bool makes_bfloat16;  // whether an instruction does; only if instructions add products, too
  const MathInstructions math;
  std::vector<int> argument;  // each buffer's index in the kernel's args; -1: none
  // `strides` holds the elements a step in each dim of each buffer; steps may depend on the shapes.
  std::vector<std::vector<Expr>> strides;
  std::vector<TensorId> streams;           // the buffers of streaming stores
  std::vector<bool> read_only;             // no statement stores to this buffer
  std::vector<llvm::MDNode*> alias_scope;  // each buffer's own scope
  std::vector<llvm::MDNode*> no_alias;     // scopes of the buffers that a buffer never overlaps

 private:
  void mark_aliases();
  std::map<const StmtNode*, std::vector<TensorId>> stored_registers_;
  std::map<std::pair<llvm::Constant*, int>, llvm::Constant*> in_memory_;
};

/// Adds the kernel of `program` to `module` as the function `symbol`.
void emit_kernel(const Program& program,
                 llvm::Module& module,
                 const std::string& symbol,
                 CpuInstructions instructions);

class Emitter {
 public:
  Emitter(Kernel& kernel, llvm::Function* function);

  /// The body of the kernel itself.
  void emit_entry();

 private:
  using Value = llvm::Value;

  // `Scope` caches the values that are known in a straight-line region and so in inner scopes, too.
  struct Scope {
    llvm::Instruction* entry;   // the branch that leads into it
    std::vector<Value*> atoms;  // numbered depth * kAtoms, depth * kAtoms + 1, ...
    std::map<std::pair<int, LaneIndex::Terms>, Value*> pointers;      // buffer
    std::map<std::tuple<int, int, Value*, LaneIndex>, Value*> loads;  // buffer, width, mask
    std::map<std::tuple<BinaryOp, int, LaneIndex, LaneIndex>, Value*> indices;  // operator, width
    // Operands' tiles in registers, the one used last at the end, by buffer, place, stride, rows
    // and bytes of a row; not valid in inner scopes, nor after a store to memory.
    std::vector<std::pair<std::tuple<int, LaneIndex, int64_t, int, int>, Value*>> tiles;
  };
  static constexpr int kAtoms = 1 << 20;
  static constexpr int64_t kStreamAlignment = 64;
  // Conditions under which the code at hand counts: values computed elsewhere are not used.
  struct Predicate {
    Value* uniform = nullptr;
    Value* lanes = nullptr;
  };

  // emitter.cpp: statements.
  void stmt(const Stmt& s);
  void for_loop(const For& n);
  void loop(VarId var, Value* begin, Value* end, bool may_be_empty, const Stmt& body);
  void rotated_loop(VarId var, Value* begin, Value* end, const Stmt& body);
  void counted_loop(Value* begin,
                    Value* end,
                    const Stmt& parts,
                    const std::function<void(const LaneIndex&)>& body);
  void unrolled(const For& n);
  void vectorized(const For& n);
  void dot(const For& n);
  void matrix(const For& n);
  void parallel(const For& n);
  void become_body_of(const Emitter& parent, const For& n);
  void guard(const If& n);
  void order_streamed_stores();
  void branch(Value* condition, const Stmt& parts, const std::function<void()>& then);
  void allocate(const Allocate& n);
  void push_scope(llvm::Instruction* entry);
  void pop_scope();
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  int64_t extent_if_constant(const Expr& extent);
  void bind(VarId var, LaneIndex value, Range range);

  // dot.cpp: sums of several products by one instruction.
  struct DotOperand;
  std::optional<DotOperand> dot_operand(const Expr& e, VarId term, int64_t terms);
  Value* load_terms(const DotOperand& operand, int64_t terms);
  llvm::Function* dot_function(const struct DotInstruction& dot, int sums, int terms);

  // matrix.cpp: tiles.
  struct TilePlace {
    LaneIndex first;                                // place of row 0, step 0, lane 0
    int64_t row = 0, step = 0, term = 0, lane = 0;  // distances to the next, in elements
  };
  TilePlace tile_place(const MatrixNest& nest, TensorId buffer, const std::vector<Expr>& indices);
  Value*& tile_slot(TensorId buffer, const LaneIndex& place);
  Value* load_tile(TensorId buffer, const LaneIndex& first, int64_t stride, int rows, int bytes);
  Value* operand_tile(
      TensorId buffer, const LaneIndex& first, int64_t stride, int rows, int bytes, size_t most);
  bool add_to_tile(const MatrixNest& nest);
  llvm::Type* tile_type(const Buffer& tile);
  Value* zero_tile(const Buffer& tile);
  Value* load_sums(TensorId buffer, const TilePlace& from, const Buffer& tile);
  void store_sums(TensorId buffer, const TilePlace& to, const Buffer& tile, Value* sums);

  // pair_tiles.cpp: tiles of two rows, in vectors.
  Value* load_pairs(TensorId buffer, const TilePlace& from, int lanes);
  void store_pairs(TensorId buffer, const TilePlace& to, Value* pairs);
  Value* terms_of_pair(TensorId buffer, const LaneIndex& first, int64_t stride, int64_t terms);
  Value* added_to_pairs(const struct DotInstruction& dot,
                        Value* pairs,
                        const std::pair<TensorId, TilePlace>& rows,
                        const std::pair<TensorId, TilePlace>& lanes);

  // transpose.cpp: copies whose reads are contiguous outside of the vector.
  bool copy_transposed(const For& n);
  void transpose(llvm::MutableArrayRef<Value*> rows);

  // indices.cpp: index arithmetic.
  LaneIndex linear(const Expr& e);
  Range bounds_of(const Expr& e) {
    if (const int64_t* value = as_int(e)) return {*value, *value};
    return e->dtype == DType::kInt64 ? bounds(e, ranges_) : kUnbounded;
  }
  bool is_any_number(const Expr& e) {
    const Range range = bounds_of(e);
    return range.first <= kUnbounded.first || range.second >= kUnbounded.second;
  }
  bool may_wrap(const Expr& a, const Expr& b);
  LaneIndex as_linear(Value* value, int depth);
  Value* atom(int id) const { return scopes_[id / kAtoms].atoms[id % kAtoms]; }
  Value* once(BinaryOp op,
              const LaneIndex& a,
              const LaneIndex& b,
              const std::function<Value*()>& make);
  int depth_of(const LaneIndex& form) const;
  template <typename Make>
  auto at_depth(int level, const Make& make);
  Value* marked(const Expr& e, Value* value);
  Value* value(const LaneIndex& form);
  void bind_symbols();
  LaneIndex flatten(TensorId buffer, const std::vector<Expr>& indices);
  LaneIndex multiplied(const LaneIndex& a, const LaneIndex& b);
  LaneIndex divided(BinaryOp op, const LaneIndex& a, const LaneIndex& b, Range range_a);
  Value* floor_division(BinaryOp op, Value* a, Value* b, Range range_a, Range range_b);
  Value* lanes_below(const LaneIndex& end);
  Value* compare_indices(BinaryOp op, const Expr& a, const Expr& b);

  // memory.cpp: buffers.
  Value* base(TensorId buffer);
  Value* pointer(TensorId buffer, const LaneIndex::Terms& terms);
  Value* address(TensorId buffer, const LaneIndex& place);
  Value* load(const Load& n, llvm::Constant* otherwise);
  Value* load_place(TensorId buffer, const LaneIndex& place, llvm::Constant* otherwise);
  Value* load_scattered(TensorId buffer, const LaneIndex& place);
  Value* part_of_mask(Value* mask, llvm::ArrayRef<int> lanes);
  Value* masked_load(TensorId buffer, llvm::Type* type, Value* from, Value* mask);
  Value* load_strided(TensorId buffer, const LaneIndex& first, int64_t step, Value* active);
  struct Run;
  std::optional<Run> run_of(TensorId buffer, const LaneIndex& place) const;
  Value* load_spread(TensorId buffer, const LaneIndex& place, const Run& run);
  Value* spread(Value* run, llvm::ArrayRef<int> element);
  void prefetch(const Prefetch& n);
  void store(const Store& n);
  Value* value_to_store(const Store& n);
  void store_place(TensorId buffer, const LaneIndex& place, Value* value, bool streaming = false);
  void store_register(const Store& n, const LaneIndex& place);
  void fold_lanes(const Store& n, const LaneIndex& place);
  Value*& register_slot(TensorId buffer, const LaneIndex& place);
  bool varies_by_lane(const LaneIndex& place) const;
  Value* scattered_pointers(TensorId buffer, const LaneIndex& place);
  Value* mask();
  Value* any_active();
  template <typename Access>
  Access* annotate(Access* access, TensorId buffer);

  // expressions.cpp: values.
  Value* expr(const Expr& e);
  Value* expr_node(const Expr& e);
  Value* binary(const Binary& n);
  Value* arithmetic(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* extreme(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* compare(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* multiply_add(const Expr& a, const Expr& b, const Expr& c);
  template <typename Make>
  Value* rounded_apart(const Make& make);
  static bool loads(const Expr& e);
  static bool place_is_loaded(const Load& n);
  Value* compared(const Binary& n);
  Value* condition_of(const Select& n);
  Value* select_value(const Select& n);
  Value* under(Value* condition, bool negated, const Expr& e);
  struct FloatRange {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
  };
  static FloatRange range_of(const Expr& e);
  Value* truncated(Value* value, DType to, const FloatRange& range);
  Value* cast_value(Value* value, DType from, DType to);
  Value* to_single(Value* value, DType from);
  Value* bit_cast_value(Value* value, DType from, DType to);
  Value* wrapped(Value* value, DType dtype);
  Value* round_to_odd(Value* value);
  Value* intrinsic(const Call& n);
  Value* fold(BinaryOp op, DType dtype, Value* vector);
  Value* widened(Value* value);
  void unify(Value*& a, Value*& b);
  llvm::Type* value_type(DType dtype);
  llvm::Type* memory_type(DType dtype);
  llvm::Type* at_width(llvm::Type* scalar, int lanes);
  Value* from_memory(Value* value, DType dtype);
  Value* to_memory(Value* value, DType dtype);
  Value* logical_and(Value* a, Value* b);
  Value* int64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  Kernel& kernel_;
  const Program& program_;
  llvm::Function* function_;
  llvm::IRBuilder<> b_;
  Value* args_ = nullptr;
  Value* workspace_ = nullptr;
  Value* pool_ = nullptr;
  std::vector<Scope> scopes_;
  llvm::SmallPtrSet<Value*, 8> wrapping_;       // int64 values that may be any number
  std::vector<LaneIndex> vars_;                 // the value of each variable in scope
  std::vector<Range> ranges_;                   // the bounds of each variable in scope
  std::vector<std::vector<Value*>> registers_;  // values of the slots of each register buffer
  std::vector<Value*> locals_;                  // place on the stack of each local buffer
  int lanes_ = 1;                               // lanes of the vector loop at hand
  Value* active_ = nullptr;                     // active lanes of the vector loop; null: all
  Predicate predicate_;
  NodeMemo<Value*> made_;   // values of the expression at hand, under the predicate at hand
  int expr_depth_ = 0;      // depth of the node at hand in the expression at hand
  bool streaming_ = false;  // stores may stream: their buffers are aligned
};

template <typename Access>
Access* Emitter::annotate(Access* access, TensorId buffer) {
  const auto i = static_cast<size_t>(buffer.value);
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, kernel_.alias_scope[i]);
  access->setMetadata(llvm::LLVMContext::MD_noalias, kernel_.no_alias[i]);
  return access;
}

// Runs `make` with its code put at the end of the scope of depth `level`. The scope is known as far
// as the branch that leads into the next inner scope.
template <typename Make>
auto Emitter::at_depth(int level, const Make& make) {
  llvm::IRBuilder<>::InsertPointGuard restore(b_);
  const auto inner = static_cast<size_t>(level) + 1;
  if (inner < scopes_.size()) b_.SetInsertPoint(scopes_[inner].entry);
  return make();
}

}  // namespace pruner
