// The inside of print_source(): statements and expressions of loop IR as C. All values of floats
// are `float`; narrower ones are bits in memory. Index arithmetic is in 32 bits where the ranges of
// the variables show that it fits.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "codegen/c/dialect.h"
#include "codegen/c/names.h"
#include "codegen/launch.h"
#include "tensor/affine.h"

namespace pruner {

/// Prints one program once. What it meets on the way (types, functions) is collected for the head.
class CPrinter {
 public:
  CPrinter(const Program& program, const Dialect& dialect);

  /// Types and functions that are used, then one kernel a launch, named `symbol`_i.
  std::string source(const std::string& symbol);

 private:
  /// Part of an expression; `precedence` is as in tensor/scalar_ops.h, or kAtom if the text needs
  /// no brackets.
  struct Text {
    std::string text;
    int precedence;
  };
  static constexpr int kAtom = 9, kUnary = 8, kCompare = 3, kTernary = 0;
  /// A contiguous, aligned run of a vector loop's lanes in memory.
  struct Span {
    TensorId buffer;
    Expr base;  // place of lane 0
    int chunk;  // lanes of one load or store: as many as 16 bytes hold
  };

  // printer.cpp: statements.
  void kernel(const For& blocks, const Artifact::Launch& launch);
  void parameters(const Artifact::Launch& launch);
  void block_body(const Stmt& s);
  void stmt(const Stmt& s);
  void loop(const For& n);
  std::string unrolling(const For& n) const;
  void let(VarId var, const Expr& value);
  void declare(TensorId id);
  void guarded(const std::string& head, const std::function<void()>& body);
  std::ostream& line();

  // vectors.cpp: vector loops.
  bool vectorizes(const Stmt& s, int lanes) const;
  bool touches_span(const Store& n, int lanes) const;
  void vector_stmt(const Stmt& s, int lanes);
  void vector_store(const Store& n, const Expr& value, int lanes);
  std::optional<Span> span(TensorId buffer, const std::vector<Expr>& indices, int lanes) const;
  std::string span_text(const Span& span, int first_lane, bool writes);
  std::string vector_type(DType dtype, int lanes);
  std::vector<const Expr*> spans_of(const Expr& value, int lanes) const;
  bool depends_on_lane(const Expr& e) const;

  // warp.cpp: statements of warps.
  void warp(const Mma& n);
  void warp(const LoadMatrix& n);
  void warp(const LaneFold& n);
  void warp(const AsyncCopy& n);
  void warp(const Commit& n);
  void warp(const Wait& n);
  void warp(const GroupMma& n);
  void warp(const GroupCommit& n);
  void warp(const GroupWait& n);
  void warp(const GroupFence& n);
  void warp(const SharedFence& n);
  void warp(const GridWait& n);
  void keep_sums();
  void use_warp_function(const std::string& text);
  std::string address(const ElementPlace& place, const char* type);

  // expressions.cpp.
  Text expr(const Expr& e);
  std::string text(const Expr& e, int precedence = kTernary);
  Text index(const Expr& e, bool wide);
  Text index_binary(const Binary& n, bool wide);
  Text division(BinaryOp op, const Expr& a, const Expr& b, bool wide);
  Text value_binary(const Binary& n);
  std::string float_function(const char* form, DType narrow);
  Text truncated_text(const Expr& value, DType to);
  Text cast_text(const Expr& value, DType from, DType to);
  Text bit_cast_text(const Expr& value, DType to);
  std::string math_function(Intrinsic function, DType dtype);
  Text call_text(const Call& n);
  std::string loaded_text(const Expr& e, const Load& n);
  Text load_text(const Expr& e, const Load& n);
  Text infix(const char* op, int precedence, const Text& a, const Text& b) const;
  Text xor_text(const Text& a, const Text& b) const;
  std::string bits(const Expr& e);
  std::string stored(const Expr& e, DType dtype);
  std::string float_text(double value) const;
  std::string double_text(double value) const;
  std::string immediate(int64_t value, DType dtype) const;
  std::string int_text(int64_t value, bool wide) const;
  Expr flat_place(TensorId buffer, const std::vector<Expr>& indices) const;
  std::string element(TensorId buffer, const std::vector<Expr>& indices);
  std::string index_type(bool wide) const { return wide ? dialect_.int64 : "int"; }
  bool fits(const Expr& e) const;
  std::string storage_type(DType dtype) const;

  const std::string& name(TensorId id) const { return buffers_[id.value]; }
  std::string& name(VarId id) { return vars_[id.value]; }
  Range& range(VarId id) { return ranges_[id.value]; }
  const char* address_space(TensorId id) const;

  const Program& program_;
  const Dialect& dialect_;
  std::ostringstream out_;
  int depth_ = 0;  // nesting of blocks in braces: two spaces each
  Names names_;
  std::vector<std::string> buffers_, vars_;  // identifiers, by number of buffer and variable
  std::vector<Range> ranges_;                // range of each variable
  std::vector<Expr> lets_;                   // value of each variable that is a let
  std::vector<Expr> lane_;                   // current lane of an expanded loop, by variable
  VarId lane_var_;                           // variable of the vector loop that is being expanded
  std::map<const ExprNode*, std::pair<std::string, int>> loaded_;  // vectors that are at hand
  std::string dynamic_shared_;  // name of shared memory from this kernel's launch; empty: none
  int64_t shared_bytes_ = 0;    // bytes of dynamic_shared_ that are declared so far
  int64_t shared_alignment_ = kSharedAlignment;  // alignment of the buffers in it
  int64_t unrolled_ = 1;             // copies that the loops around make of what is printed
  bool global_fence_ = false;        // whether barriers of this kernel order global memory, too
  std::set<std::string> types_;      // vector types that are used, as declared
  std::set<std::string> functions_;  // functions of ours that are used
  std::vector<std::string> warp_functions_;  // functions of statements of warps, as defined
  std::set<int> group_sums_;  // buffers to which groups add products in this kernel, by number
  std::vector<bool> words_;   // registers that statements of warps take by their 32 bits, by buffer
};

}  // namespace pruner
