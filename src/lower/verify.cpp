// The rules of loop IR (program.h), checked one statement at a time.
#include <algorithm>

#include "lower/matrix.h"
#include "lower/program.h"
#include "lower/warp_rules.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

bool is_power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        vars_(program.var_names.size(), VarKind::kUnbound),
        spreads_(program.var_names.size(), ThreadSpread::kSame),
        lets_(program.var_names.size()),
        live_(program.buffers.size(), false) {}

  Result<Unit> run() {
    for (const VarId symbol : program_.symbols) {
      if (!known(symbol)) return Error("symbol ", symbol.value, " has no name");
      kind_of(symbol) = VarKind::kUniform;
    }
    TRY(buffers());
    if (!program_.body) return Error("the program has no body");
    if (launches(program_).empty()) return stmt(program_.body);
    gpu_ = true;
    const Block* parts = std::get_if<Block>(&program_.body->op);
    if (!parts) return launch(program_.body);
    for (const Stmt& part : parts->statements) TRY(launch(part));
    return Unit{};
  }

 private:
  // The kind of a variable in scope: the same for all lanes or not, a constant once unrolled.
  enum class VarKind : uint8_t { kUnbound, kUniform, kUnrolled, kLane, kVarying };

  Result<Unit> buffers() {
    for (const TensorId id : program_.args) {
      if (!known(id)) return Error("argument ", id.value, " is no buffer");
      if (program_[id].scope != Scope::kArgument)
        return Error(program_[id].name, " is no argument");
      if (live(id)) return Error(program_[id].name, " is an argument twice");
      live(id) = true;
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      if (b.scope == Scope::kArgument && !live_[i])
        return Error(b.name, " is missing in the arguments");
      if (b.num_elements() <= 0) return Error(b.name, " is empty");
      if (b.scope == Scope::kWorkspace) {
        live_[i] = true;
        if (b.workspace_offset < 0 || b.workspace_offset % 64 != 0 ||
            b.workspace_offset + b.bytes() > program_.workspace_bytes) {
          return Error(b.name,
                       " does not fit the workspace: offset ",
                       b.workspace_offset,
                       ", ",
                       b.bytes(),
                       " bytes of ",
                       program_.workspace_bytes);
        }
      }
      if (b.lanes != 1 && (b.scope != Scope::kRegister || !is_power_of_two(b.lanes) ||
                           b.shape.empty() || b.shape.back() % b.lanes != 0)) {
        return Error(b.name, " cannot be held by ", b.lanes, " lanes");
      }
      if (b.rows != 1 && (b.lanes == 1 || b.num_elements() / b.shape.back() % b.rows != 0))
        return Error(b.name, " cannot be held by tiles of ", b.rows, " rows");
    }
    return Unit{};
  }

  Result<Unit> launch(const Stmt& s) {
    const For* blocks = s ? std::get_if<For>(&s->op) : nullptr;
    if (!blocks || blocks->kind != LoopKind::kBlock) {
      return Error("beside a block loop stands what is none");
    }
    TRY(constant_extent(*blocks));
    waits_ = waits_for_grid(s);
    return bound(
        blocks->var, VarKind::kUniform, [&] { return block_body(blocks->var, blocks->body); });
  }

  // Lets and shared buffers, and in them one thread loop.
  Result<Unit> block_body(VarId blocks, const Stmt& s) {
    if (!s) return Error("an empty statement");
    if (const Let* let = std::get_if<Let>(&s->op)) {
      TRY(index(let->value, "a let"));
      if (known(let->var)) lets_[static_cast<size_t>(let->var.value)] = let->value;
      return bound(let->var, VarKind::kUniform, [&] { return block_body(blocks, let->body); });
    }
    if (const Allocate* allocation = std::get_if<Allocate>(&s->op)) {
      return allocate(*allocation, [&] { return block_body(blocks, allocation->body); });
    }
    const For* threads = std::get_if<For>(&s->op);
    if (!threads || threads->kind != LoopKind::kThread) {
      return Error("in block loop ",
                   name(blocks),
                   " stands what is no let, no shared buffer and no thread loop");
    }
    TRY(constant_extent(*threads));
    in_threads_ = true;
    threads_ = *as_int(threads->extent);
    spread_of(threads->var) = ThreadSpread::kNumbers;
    TRY(bound(threads->var, VarKind::kUniform, [&] { return stmt(threads->body); }));
    in_threads_ = false;
    return Unit{};
  }

  Result<Unit> constant_extent(const For& n) {
    TRY(index(n.extent, "an extent"));
    if (!known(n.var)) return Error("variable ", n.var.value, " has no name");
    const int64_t* extent = as_int(n.extent);
    if (extent && *extent > 0) return Unit{};
    return Error("loop ", name(n.var), " needs a constant extent above 0");
  }

  Result<Unit> stmt(const Stmt& s) {
    if (!s) return Error("an empty statement");
    seen_ = {};
    return match(
        s->op,
        [&](const For& n) { return loop(n); },
        [&](const Let& n) -> Result<Unit> {
          TRY(index(n.value, "a let"));
          if (!known(n.var)) return Error("variable ", n.var.value, " has no name");
          spread_of(n.var) = spread(n.value);
          lets_[static_cast<size_t>(n.var.value)] = n.value;
          return bound(n.var, varies(n.value) ? VarKind::kVarying : VarKind::kUniform, [&] {
            return stmt(n.body);
          });
        },
        [&](const Store& n) { return store(n); },
        [&](const Prefetch& n) { return prefetch(n); },
        [&](const If& n) -> Result<Unit> {
          TRY(expr(n.condition));
          if (n.condition->dtype != DType::kBool) return Error("a guard's condition is no bool");
          return inside(n.condition, [&] { return stmt(n.then); });
        },
        [&](const Allocate& n) { return allocate(n, [&] { return stmt(n.body); }); },
        [&](const Barrier&) -> Result<Unit> {
          if (!in_threads_) return Error("a barrier stands in no thread loop");
          if (divided_ > 0) return Error("a barrier stands where not all threads come by");
          if (lanes_ > 0) return Error("a barrier stands in a vector loop");
          return Unit{};
        },
        [&](const WarpStmt auto& n) { return warp(n); },
        [&](const Block& n) -> Result<Unit> {
          for (const Stmt& part : n.statements) TRY(stmt(part));
          return Unit{};
        });
  }

  // Checks a body for which a condition or an extent, `decides`, says which threads come by.
  template <typename Fn>
  Result<Unit> inside(const Expr& decides, const Fn& body) {
    const ThreadSpread by = gpu_ ? spread(decides) : ThreadSpread::kSame;
    divided_ += by != ThreadSpread::kSame;
    divided_warps_ += by > ThreadSpread::kByWarp;
    TRY(body());
    divided_ -= by != ThreadSpread::kSame;
    divided_warps_ -= by > ThreadSpread::kByWarp;
    return Unit{};
  }

  template <WarpStmt Node>
  Result<Unit> warp(const Node& n) {
    const std::string_view what = statement_name(n);
    if (!in_threads_) return Error(what, " stands in no thread loop");
    if (lanes_ > 0) return Error(what, " stands in a vector loop");
    if constexpr (GroupStmt<Node>) {
      if (divided_ > 0) return Error(what, " stands where not all threads come by");
      if (threads_ % kGroupThreads != 0)
        return Error(what, " stands in a block of ", threads_, " threads, which are no groups");
    }
    if constexpr (std::same_as<Node, GridWait>) {
      if (divided_ > 0 || loops_ > 0)
        return Error(what, " stands where not all threads come by once");
      if (!waits_) return Error(what, " stands behind another one");
      waits_ = false;
      return Unit{};
    }
    constexpr bool kOfThreads = std::same_as<Node, AsyncCopy> || std::same_as<Node, SharedFence>;
    if constexpr (!kOfThreads) {
      if (divided_warps_ > 0) return Error(what, " stands where not all threads of a warp come by");
      if (threads_ % kWarpLanes != 0)
        return Error(what, " stands in a block of ", threads_, " threads, which are no warps");
    }
    Result<Unit> placed = Unit{};
    each_place(n, [&](const ElementPlace& at, bool) {
      if (placed.ok()) placed = place(at.buffer, at.indices);
    });
    TRY(placed);
    if constexpr (std::same_as<Node, AsyncCopy>) TRY(index(n.valid, "a copy's valid elements"));
    return check_warp_stmt(program_, n, lets_);
  }

  // Checks what is in the scope of a variable.
  template <typename Fn>
  Result<Unit> bound(VarId var, VarKind kind, const Fn& body) {
    if (!known(var)) return Error("variable ", var.value, " has no name");
    if (kind_of(var) != VarKind::kUnbound) return Error("variable ", name(var), " is bound twice");
    kind_of(var) = kind;
    TRY(body());
    kind_of(var) = VarKind::kUnbound;
    return Unit{};
  }

  Result<Unit> loop(const For& n) {
    TRY(index(n.extent, "an extent"));
    const int64_t* extent = as_int(n.extent);
    if (!known(n.var)) return Error("variable ", n.var.value, " has no name");
    const std::string& loop_name = name(n.var);
    if (varies(n.extent)) return Error("the extent of ", loop_name, " differs between lanes");
    const bool copied =
        n.kind == LoopKind::kUnroll || n.kind == LoopKind::kDot || n.kind == LoopKind::kMatrix;
    if (!extent && (copied || (n.kind == LoopKind::kParallel && !of_symbols(n.extent)))) {
      return Error("loop ", loop_name, " needs a constant extent");
    }
    if (lanes_ > 0 && !copied) {
      return Error("loop ", loop_name, " is inside a vector loop and not unrolled");
    }
    if (n.kind == LoopKind::kBlock) return Error("block loop ", loop_name, " is not outermost");
    if (n.kind == LoopKind::kThread) {
      return Error("thread loop ", loop_name, " stands not directly in a block loop");
    }
    if (n.kind == LoopKind::kParallel && gpu_) {
      return Error("parallel loop ", loop_name, " in a program for GPUs");
    }
    const auto body = [&] { return stmt(n.body); };
    if (n.kind == LoopKind::kMatrix && !in_matrix_) return matrix(n, body);
    if (copied) return bound(n.var, VarKind::kUnrolled, body);
    if (n.kind == LoopKind::kVectorize) {
      if (!is_power_of_two(n.lanes) || (gpu_ && (n.lanes < 2 || n.lanes > 8)))
        return Error("vector loop ", loop_name, " has ", n.lanes, " lanes");
      if (extent && (*extent > n.lanes || *extent < 1)) {
        return Error(
            "vector loop ", loop_name, " has extent ", *extent, " and ", n.lanes, " lanes");
      }
      lanes_ = n.lanes;
      TRY(bound(n.var, VarKind::kLane, body));
      lanes_ = 0;
      return Unit{};
    }
    if (n.kind == LoopKind::kParallel && loops_ > 0) {
      return Error("parallel loop ", loop_name, " is not outermost");
    }
    ++loops_;
    // A buffer in registers or on the stack belongs to one thread.
    std::vector<bool> outside = live_;
    if (n.kind == LoopKind::kParallel) {
      for (size_t i = 0; i < live_.size(); ++i) live_[i] = live_[i] && shared(program_.buffers[i]);
    }
    TRY(inside(n.extent, [&] { return bound(n.var, VarKind::kUniform, body); }));
    live_ = std::move(outside);
    --loops_;
    return Unit{};
  }

  bool of_symbols(const Expr& e) const {
    bool only = true;
    visit(e, [&](const Expr& part) {
      if (const Var* var = as<Var>(part))
        only = only && std::ranges::find(program_.symbols, var->id) != program_.symbols.end();
      only = only && as<Load>(part) == nullptr;
    });
    return only;
  }

  // A nest that touches a tile takes all of it.
  template <typename Fn>
  Result<Unit> matrix(const For& rows, const Fn& body) {
    const std::optional<MatrixNest> nest = matrix_nest(rows);
    const TensorId tile = nest ? tile_of(program_, *nest) : TensorId{};
    if (tile.valid() && known(tile)) {
      const Buffer& buffer = program_[tile];
      const int64_t *n = as_int(rows.extent), *lanes = as_int(nest->lanes->extent);
      if (n == nullptr || *n != buffer.rows || lanes == nullptr || *lanes != buffer.lanes)
        return Error(
            "loop ", name(rows.var), " takes another part of ", buffer.name, " than a tile");
    }
    in_matrix_ = tile.valid();
    TRY(bound(rows.var, VarKind::kUnrolled, body));
    in_matrix_ = false;
    return Unit{};
  }

  static bool shared(const Buffer& b) {
    return b.scope == Scope::kArgument || b.scope == Scope::kWorkspace;
  }

  Result<Unit> prefetch(const Prefetch& n) {
    if (!known(n.buffer)) return Error("prefetch of buffer ", n.buffer.value);
    const Buffer& buffer = program_[n.buffer];
    if (!shared(buffer))
      return Error("prefetch of ", buffer.name, ", which is no memory of others");
    if (n.indices.size() != buffer.shape.size()) {
      return Error("prefetch of ", buffer.name, " with ", n.indices.size(), " indices");
    }
    for (const Expr& i : n.indices) {
      TRY(index(i, "a prefetch"));
      if (varies(i)) return Error("the prefetch of ", buffer.name, " differs between lanes");
    }
    return Unit{};
  }

  template <typename Fn>
  Result<Unit> allocate(const Allocate& n, const Fn& body) {
    if (!known(n.buffer)) return Error("allocation of buffer ", n.buffer.value);
    if (shared(program_[n.buffer])) return Error(program_[n.buffer].name, " needs no allocation");
    if (live(n.buffer)) return Error(program_[n.buffer].name, " is allocated twice");
    const bool of_block = program_[n.buffer].scope == Scope::kShared;
    if (of_block != (gpu_ && !in_threads_)) {
      return Error(program_[n.buffer].name,
                   of_block ? " is shared and not allocated between a block and its threads"
                            : " is allocated outside of a thread");
    }
    live(n.buffer) = true;
    TRY(body());
    live(n.buffer) = false;
    return Unit{};
  }

  Result<Unit> store(const Store& n) {
    TRY(place(n.buffer, n.indices));
    TRY(expr(n.value));
    const Buffer& buffer = program_[n.buffer];
    if (buffer.dtype != n.value->dtype) {
      return Error("a ",
                   dtype_name(n.value->dtype),
                   " is stored to ",
                   buffer.name,
                   " of ",
                   dtype_name(buffer.dtype));
    }
    if (buffer.scope == Scope::kArgument && !buffer.output)
      return Error(buffer.name, " is no output");
    bool varying = false;
    for (const Expr& i : n.indices) varying |= varies(i);
    if (lanes_ <= 1 || varying) return Unit{};
    if (gpu_) return Error("all lanes of a GPU's vector loop store to one place of ", buffer.name);
    const Binary* update = as<Binary>(n.value);
    const auto is_place = [&](const Expr& e) {
      const Load* load = as<Load>(e);
      return load && load->tensor == n.buffer &&
             std::equal(
                 load->indices.begin(), load->indices.end(), n.indices.begin(), structural_equal);
    };
    const bool reduces = update && (update->op == BinaryOp::kAdd || update->op == BinaryOp::kMul ||
                                    update->op == BinaryOp::kMin || update->op == BinaryOp::kMax);
    if (!reduces || (!is_place(update->a) && !is_place(update->b))) {
      return Error("a store to one place of ", buffer.name, " by all lanes is no reduction");
    }
    return Unit{};
  }

  Result<Unit> place(TensorId id, const std::vector<Expr>& indices) {
    if (!known(id)) return Error("access to buffer ", id.value);
    const Buffer& buffer = program_[id];
    if (!live(id)) return Error(buffer.name, " is not allocated here");
    if (waits_ && shared(buffer) && !buffer.constant)
      return Error(buffer.name, " is touched before its launch waits for the ones before it");
    if (indices.size() != buffer.shape.size()) {
      return Error(
          buffer.name, " has ", buffer.shape.size(), " dims and is accessed by ", indices.size());
    }
    for (const Expr& i : indices) TRY(index(i, buffer.name));
    return buffer.scope == Scope::kRegister ? register_place(buffer, indices) : Unit{};
  }

  // Constants once unrolled loops are; the lane counts from a multiple of the width.
  Result<Unit> register_place(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (gpu_) return unrolled_place(buffer, indices);
    if (buffer.rows > 1 && !in_matrix_)
      return Error("the tiles of ", buffer.name, " are accessed by what is no matrix loop");
    for (const Expr& i : indices) {
      const bool last = &i == &indices.back();
      bool constant = true, starts_vector = true;
      int64_t lane = 0;
      const std::optional<Affine> form = to_affine(i);
      if (form) {
        starts_vector = form->constant % buffer.lanes == 0;
        for (const auto& [var, coefficient] : form->terms) {
          if (kind_of(var) == VarKind::kLane) {
            lane = coefficient;
          } else {
            constant &= kind_of(var) == VarKind::kUnrolled;
            starts_vector &= coefficient % buffer.lanes == 0;
          }
        }
      } else {
        visit(i, [&](const Expr& part) {
          const Var* var = as<Var>(part);
          constant &= !as<Load>(part) && (!var || kind_of(var->id) == VarKind::kUnrolled);
        });
        starts_vector = buffer.lanes == 1;
      }
      if (!constant)
        return Error("register buffer ", buffer.name, " is accessed by what is no constant");
      if (lane != (last && buffer.lanes > 1 ? 1 : 0)) {
        return Error("register buffer ", buffer.name, " is accessed by ", lane, " * lane");
      }
      if (last && buffer.lanes > 1 && (!starts_vector || lanes_ != buffer.lanes)) {
        return Error(
            "register buffer ", buffer.name, " is not accessed by its vectors of ", buffer.lanes);
      }
    }
    return Unit{};
  }

  // A GPU's vector loops are unrolled where they touch registers.
  Result<Unit> unrolled_place(const Buffer& buffer, const std::vector<Expr>& indices) {
    bool constant = true;
    for (const Expr& i : indices) {
      visit(i, [&](const Expr& part) {
        const Var* var = as<Var>(part);
        constant &= !as<Load>(part) && (!var || kind_of(var->id) == VarKind::kUnrolled ||
                                        kind_of(var->id) == VarKind::kLane);
      });
    }
    if (constant) return Unit{};
    return Error("register buffer ", buffer.name, " is accessed by what is no constant");
  }

  Result<Unit> index(const Expr& e, std::string_view what) {
    TRY(expr(e));
    if (e->dtype != DType::kInt64)
      return Error("an index of ", what, " is of ", dtype_name(e->dtype));
    return Unit{};
  }

  bool varies(const Expr& e) {
    bool result = false;
    visit(e, [&](const Expr& part) {
      if (const Var* var = as<Var>(part)) {
        result |= kind_of(var->id) == VarKind::kLane || kind_of(var->id) == VarKind::kVarying;
      }
    });
    return result;
  }

  ThreadSpread spread(const Expr& e) { return spread_of_threads(program_, e, spreads_); }
  ThreadSpread& spread_of(VarId var) { return spreads_[static_cast<size_t>(var.value)]; }

  Result<Unit> expr(const Expr& e) {
    if (!e) return Error("an empty expression");
    if (seen_.find(e) != nullptr) return Unit{};
    TRY(expr_node(e));
    seen_.keep(e, true);
    return Unit{};
  }

  Result<Unit> expr_node(const Expr& e) {
    return match(
        e->op,
        [](const IntImm&) -> Result<Unit> { return Unit{}; },
        [](const FloatImm&) -> Result<Unit> { return Unit{}; },
        [&](const Var& n) -> Result<Unit> {
          if (!known(n.id) || kind_of(n.id) == VarKind::kUnbound) {
            return Error("variable ", n.name, " is used out of its scope");
          }
          return Unit{};
        },
        [&](const Binary& n) -> Result<Unit> {
          TRY(expr(n.a));
          TRY(expr(n.b));
          if (n.a->dtype != n.b->dtype) {
            return Error("operands of ", dtype_name(n.a->dtype), " and ", dtype_name(n.b->dtype));
          }
          return Unit{};
        },
        [&](const Select& n) -> Result<Unit> {
          for (const Expr& part : {n.condition, n.a, n.b}) TRY(expr(part));
          if (n.condition->dtype != DType::kBool) return Error("a select's condition is no bool");
          if (n.a->dtype != n.b->dtype) return Error("a select between two dtypes");
          return Unit{};
        },
        [&](const Cast& n) { return expr(n.value); },
        [&](const Call& n) -> Result<Unit> {
          for (const Expr& arg : n.args) TRY(expr(arg));
          return Unit{};
        },
        [&](const Load& n) -> Result<Unit> {
          TRY(place(n.tensor, n.indices));
          if (program_[n.tensor].dtype != e->dtype) {
            return Error(program_[n.tensor].name, " is loaded as ", dtype_name(e->dtype));
          }
          return Unit{};
        });
  }

  bool known(TensorId id) const {
    return id.valid() && static_cast<size_t>(id.value) < program_.buffers.size();
  }
  bool known(VarId var) const {
    return var.valid() && static_cast<size_t>(var.value) < vars_.size();
  }
  VarKind& kind_of(VarId var) { return vars_[static_cast<size_t>(var.value)]; }
  const std::string& name(VarId var) const {
    return program_.var_names[static_cast<size_t>(var.value)];
  }
  std::vector<bool>::reference live(TensorId id) { return live_[static_cast<size_t>(id.value)]; }

  const Program& program_;
  std::vector<VarKind> vars_;
  std::vector<ThreadSpread> spreads_;  // spread of each variable
  std::vector<Expr> lets_;             // value of each variable that is a let
  std::vector<bool> live_;             // buffers that may be accessed here
  int lanes_ = 0;                      // lanes of the vector loop at hand; 0: none
  int loops_ = 0;                      // loops around the place at hand
  bool gpu_ = false;
  bool waits_ = false;      // a GridWait of the launch is still to come
  bool in_matrix_ = false;  // the place is in loops that touch a tile
  bool in_threads_ = false;
  NodeMemo<bool> seen_;  // expressions seen in the statement at hand
  int64_t threads_ = 0;  // threads of a block
  // Guards and loops around the place that not all threads of a block, of a warp, enter equally.
  int divided_ = 0, divided_warps_ = 0;
};

}  // namespace

Result<Unit> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace pruner
