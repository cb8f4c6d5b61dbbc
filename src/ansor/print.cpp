// A replayed nest in TVM's words: the program that its feature extraction reads.
#include <array>
#include <cstdio>
#include <sstream>

#include "ansor/program_values.h"
#include "support/match.h"
#include "tensor/scalar_ops.h"

namespace pruner::ansor {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

std::string float_text(double value) {
  std::ostringstream out;
  out << value << 'f';
  return out.str();
}

std::string_view call_text(Intrinsic function) {
  return function == Intrinsic::kRound ? "nearbyint" : facts_of(function).text;
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
      : nest_(nest), dag_(nest.structure->dag), stages_(nest.state.stages), values_(nest) {}

  std::string run() {
    print_nodes(0, static_cast<int>(nest_.nodes.size()));
    return text_;
  }

 private:
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
          const BinaryFacts& facts = facts_of(n.op);
          const std::string a = print(n.a), b = print(n.b);
          const std::string function(facts.is_function() ? facts.text : facts.function);
          if (!function.empty()) return function + "(" + a + ", " + b + ")";
          const std::string op(facts.text);
          return "(" + a + (op == "*" || op == "/" ? op : " " + op + " ") + b + ")";
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
    const auto text = [&](const Expr& e) { return print(e); };
    const std::string mins = listed(values_.region_mins(s), text);
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
    const std::string& name = values_.iterator_name(pragma.stage, pragma.iter);
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
    const std::string name = values_.loop_name(number);
    values_.enter_loop(number);
    if (loop.annotation == Annotation::kVThread) {
      block("attr virtual_thread " + name + " = " + extent, inside);
    } else if (thread_rank(loop.annotation) >= 0) {
      block("attr thread_extent " + name + " = " + extent, inside);
    } else {
      const std::string kind = annotation_text(loop.annotation);
      block("for " + kind + " " + name + " 0 " + extent, inside);
    }
  }

  template <typename Body>
  void print_guard(const ReplayGuard& guard, const Body& inside) {
    const Expr simple = values_.guard(guard);
    if (const int64_t* known = as_int(simple)) {
      if (*known) inside();
      return;
    }
    values_.push_condition(simple);
    const bool likely = !reduces_over_threads(stages_[at(guard.stage)]);
    block("if " + (likely ? "tir.likely(" + print(simple) + ")" : print(simple)), inside);
    values_.pop_condition();
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
    const Expr value = values_.value(s);
    switch (s.kind) {
      case StatementKind::kCompute:
      case StatementKind::kInit:
      case StatementKind::kUpdate: return line(store_head(s) + print(value));
      case StatementKind::kThreadInit:
      case StatementKind::kThreadUpdate:
        return line("rawstore normal_reduce_temp0[0] = " + print(value));
      case StatementKind::kAllReduce: return print_all_reduce(s.stage, value);
      case StatementKind::kThreadStore: return line(store_head(s) + "reduce_temp0[0]");
    }
  }

  std::string store_head(const ReplayStatement& s) {
    return "store " + dag_[StageId{s.stage}].name + "[" +
           listed(values_.indices(s), [&](const Expr& e) { return print(e); }) + "] = ";
  }

  void print_all_reduce(int s, const Expr& value) {
    std::string threads;
    for (const int leaf : stages_[at(s)].leaves) {
      const StateIterator& iter = stages_[at(s)].iters[at(leaf)];
      if (!iter.reduce || thread_rank(iter.annotation) < 0) continue;
      threads += ", " + values_.loop_name(nest_.loop_of[at(s)][at(leaf)]);
    }
    block("attr reduce_scope ? = tir.reinterpret((uint64)0)", [&] {
      line("eval tir.tvm_thread_allreduce((uint32)1, " + print(value) + ", (bool)1, reduce_temp0" +
           threads + ")");
    });
  }

  const ReplayNest& nest_;
  const ComputeDag& dag_;
  const std::vector<StateStage>& stages_;
  ProgramValues values_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string print_program(const ReplayNest& nest) { return ProgramPrinter(nest).run(); }

}  // namespace pruner::ansor
