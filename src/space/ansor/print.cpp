// A replayed nest in TVM's words: the program that its feature extraction reads.
#include <array>
#include <cstdio>
#include <sstream>

#include "space/ansor/nest.h"
#include "space/ansor/tvm_simplify.h"
#include "support/match.h"
#include "tensor/spelling.h"

namespace pruner::ansor {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

constexpr int kOwnRegister = 1'000'000;  // tensors that are no stage: registers of a reduction

std::string float_text(double value) {
  std::ostringstream out;
  out << value << 'f';
  return out.str();
}

const char* binary_text(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return " + ";
    case BinaryOp::kSub: return " - ";
    case BinaryOp::kMul: return "*";
    case BinaryOp::kDiv: return "/";
    case BinaryOp::kLt: return " < ";
    case BinaryOp::kLe: return " <= ";
    case BinaryOp::kGt: return " > ";
    case BinaryOp::kGe: return " >= ";
    case BinaryOp::kEq: return " == ";
    case BinaryOp::kNe: return " != ";
    case BinaryOp::kAnd: return " && ";
    case BinaryOp::kOr: return " || ";
    case BinaryOp::kFloorDiv: return "floordiv";
    case BinaryOp::kFloorMod: return "floormod";
    case BinaryOp::kMin: return "min";
    case BinaryOp::kMax: return "max";
  }
  return "";
}

std::string_view call_text(Intrinsic function) {
  return function == Intrinsic::kRound ? "nearbyint" : spelling_of(function);
}

const char* thread_text(Annotation annotation) {
  static constexpr const char* kNames[] = {"serial",
                                           "unrolled",
                                           "vectorized",
                                           "parallel",
                                           "vthread",
                                           "blockIdx.x",
                                           "threadIdx.x",
                                           "blockIdx.y",
                                           "threadIdx.y",
                                           "blockIdx.z",
                                           "threadIdx.z",
                                           "serial"};
  return kNames[static_cast<size_t>(annotation)];
}

template <typename List, typename Text>
std::string listed(const List& list, const Text& text) {
  std::string all;
  for (const auto& item : list) all += (all.empty() ? "" : ", ") + text(item);
  return all;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const ReplayNest& nest)
      : nest_(nest), dag_(nest.structure->dag), stages_(nest.state.stages) {
    init_loop_of_ = nest.loop_of;
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const ReplayLoop& loop = nest.loops[i];
      simplifier_.bind(VarId{static_cast<int>(i)}, {0, loop.extent - 1});
      init_loop_of_[at(loop.stage)][at(loop.iter)] = static_cast<int>(i);
    }
    const int size = static_cast<int>(stages_.size());
    for (int s = 0; s < size; ++s) names_.push_back(iterator_names(s));
    for (const ReplayRegion& region : nest.regions) {
      mins_.emplace_back();
      for (const IndexId min : region.mins) {
        mins_.back().push_back(simplifier_.simplify(to_expr(min)));
      }
    }
    // The program's own passes know the loops that are open, no others.
    simplifier_ = {};
  }

  std::string run() {
    print_nodes(0, static_cast<int>(nest_.nodes.size()));
    return text_;
  }

 private:
  std::vector<std::string> iterator_names(int s) const {
    const Stage& stage = dag_[StageId{s}];
    std::vector<std::string> names(stages_[at(s)].iters.size());
    size_t next = 0;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const Iterator& axis : *axes) {
        if (next < names.size()) names[next++] = axis.name;
      }
    }
    for (const Relation& r : stages_[at(s)].relations) {
      if (r.fuse) {
        names[at(r.parent)] = names[at(r.outer)] + "." + names[at(r.inner)] + ".fused";
      } else {
        names[at(r.outer)] = names[at(r.parent)] + ".outer";
        names[at(r.inner)] = names[at(r.parent)] + ".inner";
      }
    }
    return names;
  }

  std::string loop_name(int number) const {
    const ReplayLoop& loop = nest_.loops[at(number)];
    if (thread_rank(loop.annotation) >= 0) return thread_text(loop.annotation);
    return names_[at(loop.stage)][at(loop.iter)] + (loop.init ? ".init" : "");
  }

  Expr variable(int loop) const { return make_var(VarId{loop}, loop_name(loop)); }

  Expr to_expr(IndexId id) const {
    const IndexNode& n = nest_.pool[id];
    const auto both = [&](BinaryOp op) { return binary(op, to_expr(n.a), to_expr(n.b)); };
    switch (n.op) {
      case IndexOp::kConst: return Expr(n.value);
      case IndexOp::kVar: return variable(static_cast<int>(n.value));
      case IndexOp::kUnknown: return make_var(VarId{kOwnRegister}, "?");
      case IndexOp::kAdd: return both(BinaryOp::kAdd);
      case IndexOp::kSub: return both(BinaryOp::kSub);
      case IndexOp::kMul: return both(BinaryOp::kMul);
      case IndexOp::kFloorDiv: return both(BinaryOp::kFloorDiv);
      case IndexOp::kFloorMod: return both(BinaryOp::kFloorMod);
      case IndexOp::kMin: return both(BinaryOp::kMin);
      case IndexOp::kMax: return both(BinaryOp::kMax);
    }
    return Expr(0);
  }

  // Values of a stage's iterators over the simplified starts of its region.
  std::vector<Expr> iterator_values(int s, bool init) const {
    const StateStage& stage = stages_[at(s)];
    std::vector<Expr> values(stage.iters.size());
    const auto min_of = [&](int i) { return i < stage.num_axes ? mins_[at(s)][at(i)] : Expr(0); };
    for (const int leaf : stage.leaves) {
      const int loop = (init ? init_loop_of_ : nest_.loop_of)[at(s)][at(leaf)];
      const bool zero = loop < 0 || nest_.pool.is_const(nest_.values[at(s)][at(leaf)], 0);
      values[at(leaf)] = zero ? Expr(0) : variable(loop);
      if (leaf < stage.num_axes) values[at(leaf)] = values[at(leaf)] + min_of(leaf);
    }
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      const Expr inner_extent(stage.iters[at(r->inner)].extent);
      if (r->fuse) {
        const Expr fused = values[at(r->parent)];
        values[at(r->outer)] = floor_div(fused, inner_extent) + min_of(r->outer);
        values[at(r->inner)] = floor_mod(fused, inner_extent) + min_of(r->inner);
      } else {
        values[at(r->parent)] =
            values[at(r->inner)] + values[at(r->outer)] * inner_extent + min_of(r->parent);
      }
    }
    return values;
  }

  std::string tensor_name(StageId id) const {
    if (id.value == kOwnRegister) return "normal_reduce_temp0";
    return dag_[id].name;
  }

  std::string print(const Expr& e) const {
    const auto text = [&](const Expr& x) { return print(x); };
    return match(
        e->op,
        [&](const IntImm& n) { return std::to_string(n.value); },
        [&](const FloatImm& n) { return float_text(n.value); },
        [&](const Var& n) { return n.name; },
        [&](const Binary& n) {
          const std::string op = binary_text(n.op);
          const bool function = op[0] >= 'a' && op[0] <= 'z';
          return function ? op + "(" + print(n.a) + ", " + print(n.b) + ")"
                          : "(" + print(n.a) + op + print(n.b) + ")";
        },
        [&](const Select& n) {
          return "tir.if_then_else(" + print(n.condition) + ", " + print(n.a) + ", " + print(n.b) +
                 ")";
        },
        [&](const Cast& n) {
          return std::string(dtype_name(e->dtype)) + "(" + print(n.value) + ")";
        },
        [&](const Call& n) {
          if (n.function == Intrinsic::kNot) return "!(" + print(n.args[0]) + ")";
          return "tir." + std::string(call_text(n.function)) + "(" + listed(n.args, text) + ")";
        },
        [&](const Load& n) { return tensor_name(n.tensor) + "[" + listed(n.indices, text) + "]"; });
  }

  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }

  template <typename Body>
  void block(const std::string& head, const Body& body) {
    line(head + " {");
    ++depth_;
    body();
    --depth_;
    line("}");
  }

  void print_nodes(int from, int to) {
    for (int i = from; i < to; i = nest_.nodes[at(i)].end) print_node(i);
  }

  void print_node(int number) {
    const ReplayNode& node = nest_.nodes[at(number)];
    const auto inside = [&] { print_nodes(number + 1, node.end); };
    switch (node.kind) {
      case NodeKind::kRealize: return print_realize(node.index, inside);
      case NodeKind::kPragmas: return print_pragmas(nest_.pragmas[at(node.index)], inside);
      case NodeKind::kLoop: return print_loop(node.index, inside);
      case NodeKind::kGuard: return print_guard(nest_.guards[at(node.index)], inside);
      case NodeKind::kTemporary: return print_temporary(number);
      case NodeKind::kStatement: return print_statement(nest_.statements[at(node.index)]);
    }
  }

  template <typename Body>
  void print_realize(int s, const Body& inside) {
    const Stage& stage = dag_[StageId{s}];
    const auto number = [](int64_t n) { return std::to_string(n); };
    const std::string mins =
        listed(mins_[at(s)], [&](const Expr& e) { return print(simplifier_.simplify(e)); });
    const std::string head = "realize " + stage.name + " shape (" + listed(stage.shape(), number) +
                             ") extents (" + listed(nest_.regions[at(s)].extents, number) +
                             ") mins (" + mins + ")";
    const std::string scope = stages_[at(s)].scope_name;
    block("attr realize_scope " + stage.name + " = \"" + scope + "\"",
          [&] { block(head, inside); });
  }

  template <typename Body>
  void print_pragmas(const ReplayPragma& pragma, const Body& inside) {
    const StateIterator& iter = stages_[at(pragma.stage)].iters[at(pragma.iter)];
    std::vector<std::string> heads;
    const std::string& name = names_[at(pragma.stage)][at(pragma.iter)];
    if (iter.auto_unroll >= 0) {
      heads.push_back("attr pragma_auto_unroll_max_step " + name + " = " +
                      std::to_string(iter.auto_unroll));
      heads.push_back("attr pragma_unroll_explicit " + name + " = 1");
    }
    for (const std::string& other : iter.pragmas) {
      heads.push_back("attr pragma_" + other + " " + name + " = 1");
    }
    nested(heads, 0, inside);
  }

  template <typename Body>
  void nested(const std::vector<std::string>& heads, size_t from, const Body& body) {
    if (from == heads.size()) return body();
    block(heads[from], [&] { nested(heads, from + 1, body); });
  }

  template <typename Body>
  void print_loop(int number, const Body& inside) {
    const ReplayLoop& loop = nest_.loops[at(number)];
    const std::string extent = std::to_string(loop.extent);
    const std::string name = loop_name(number);
    simplifier_.bind(VarId{number}, {0, loop.extent - 1});
    if (loop.annotation == Annotation::kVThread) {
      block("attr virtual_thread " + name + " = " + extent, inside);
    } else if (thread_rank(loop.annotation) >= 0) {
      block("attr thread_extent " + name + " = " + extent, inside);
    } else {
      const std::string kind = thread_text(loop.annotation);
      block("for " + kind + " " + name + " 0 " + extent, inside);
    }
  }

  template <typename Body>
  void print_guard(const ReplayGuard& guard, const Body& inside) {
    const Expr value = iterator_values(guard.stage, guard.init)[at(guard.iter)];
    const bool offset = !guard.of_axis && guard.iter < stages_[at(guard.stage)].num_axes;
    const Expr counted = offset ? value - mins_[at(guard.stage)][at(guard.iter)] : value;
    const Expr condition = guard.lower ? counted >= Expr(0) : counted < Expr(guard.bound);
    const Expr simple = simplifier_.simplify(condition);
    if (const int64_t* known = as_int(simple)) {
      if (*known) inside();
      return;
    }
    simplifier_.push_condition(simple);
    const bool likely = !reduces_over_threads(stages_[at(guard.stage)]);
    block("if " + (likely ? "tir.likely(" + print(simple) + ")" : print(simple)), inside);
    simplifier_.pop_condition();
  }

  void print_temporary(int number) {
    const ReplayNode& node = nest_.nodes[at(number)];
    const auto inside = [&] { print_nodes(number + 1, node.end); };
    std::vector<std::string> heads = {"attr storage_scope ? = \"local\"", "allocate reduce_temp0"};
    if (reduces_in_loops(stages_[at(node.index)])) {
      heads.insert(heads.begin(),
                   {"attr storage_scope ? = \"local\"", "allocate normal_reduce_temp0"});
    }
    nested(heads, 0, inside);
  }

  void print_statement(const ReplayStatement& s) {
    const Stage& stage = dag_[StageId{s.stage}];
    const bool init = s.kind == StatementKind::kInit;
    std::vector<Expr> values = iterator_values(s.stage, init);
    values.resize(at(stages_[at(s.stage)].num_roots));
    std::vector<Expr> indices(values.begin(), values.begin() + stages_[at(s.stage)].num_axes);
    const Expr own = load(StageId{kOwnRegister}, {Expr(0)}, stage.dtype);
    const Expr body = init ? Expr() : substitute(stage.body, values);
    switch (s.kind) {
      case StatementKind::kCompute: return print_store(stage, indices, body);
      case StatementKind::kInit:
        return print_store(stage, indices, combiner_identity(stage.combiner, stage.dtype));
      case StatementKind::kUpdate: {
        const Expr old = load(StageId{s.stage}, indices, stage.dtype);
        return print_store(stage, indices, combine(stage.combiner, old, body));
      }
      case StatementKind::kThreadInit:
        return line("rawstore normal_reduce_temp0[0] = " +
                    print(combiner_identity(stage.combiner, stage.dtype)));
      case StatementKind::kThreadUpdate:
        return line("rawstore normal_reduce_temp0[0] = " +
                    print(simplifier_.simplify(combine(stage.combiner, own, body))));
      case StatementKind::kAllReduce:
        return print_all_reduce(s.stage, reduces_in_loops(stages_[at(s.stage)]) ? own : body);
      case StatementKind::kThreadStore: return line(store_head(stage, indices) + "reduce_temp0[0]");
    }
  }

  std::string store_head(const Stage& stage, const std::vector<Expr>& indices) {
    return "store " + stage.name + "[" +
           listed(indices, [&](const Expr& e) { return print(simplifier_.simplify(e)); }) + "] = ";
  }

  void print_store(const Stage& stage, const std::vector<Expr>& indices, const Expr& value) {
    line(store_head(stage, indices) + print(simplifier_.simplify(value)));
  }

  void print_all_reduce(int s, const Expr& value) {
    std::string threads;
    for (const int leaf : stages_[at(s)].leaves) {
      const StateIterator& iter = stages_[at(s)].iters[at(leaf)];
      if (!iter.reduce || thread_rank(iter.annotation) < 0) continue;
      threads += ", " + loop_name(nest_.loop_of[at(s)][at(leaf)]);
    }
    block("attr reduce_scope ? = tir.reinterpret((uint64)0)", [&] {
      line("eval tir.tvm_thread_allreduce((uint32)1, " + print(simplifier_.simplify(value)) +
           ", (bool)1, reduce_temp0" + threads + ")");
    });
  }

  const ReplayNest& nest_;
  const ComputeDag& dag_;
  const std::vector<StateStage>& stages_;
  std::vector<std::vector<int>> init_loop_of_;   // by stage and iterator
  std::vector<std::vector<std::string>> names_;  // by stage and iterator
  std::vector<std::vector<Expr>> mins_;          // by stage and axis
  TvmSimplifier simplifier_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string print_program(const ReplayNest& nest) { return ProgramPrinter(nest).run(); }

}  // namespace pruner::ansor
