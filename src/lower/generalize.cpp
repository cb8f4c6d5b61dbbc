#include "lower/generalize.h"

#include <algorithm>

#include "lower/rewrite.h"
#include "support/check.h"
#include "tensor/generalize.h"

namespace pruner {
namespace {

/// Goes through some programs at once, as ExprGeneralizer through expressions.
class Generalizer : public ExprGeneralizer {
 public:
  Generalizer(std::span<const Program> programs, NumbersForm form)
      : ExprGeneralizer(std::move(form)), programs_(programs) {}

  Stmt body() {
    All<StmtNode> all;
    for (const Program& p : programs_) all.push_back(p.body.get());
    return stmt(all);
  }

 private:
  template <typename T>
  using All = std::vector<const T*>;  // the same part of each program

  /// Whether `of` is the same in all.
  template <typename T, typename Of>
  bool alike(const All<T>& all, const Of& of, std::string_view what) {
    const bool same =
        std::ranges::all_of(all, [&](const T* one) { return of(*one) == of(*all[0]); });
    if (!same) fail(what);
    return same;
  }
  template <typename Op>
  static All<StmtNode> bodies(const All<Op>& all, Stmt Op::*body) {
    All<StmtNode> list;
    for (const Op* one : all) list.push_back((one->*body).get());
    return list;
  }
  template <typename Op>
  Expr expr_of(const All<Op>& all, Expr Op::*part) {
    std::vector<Expr> list;
    for (const Op* one : all) list.push_back(one->*part);
    return expr(list);
  }
  template <typename Op>
  std::vector<Expr> indices(const All<Op>& all) {
    std::vector<std::vector<Expr>> lists;
    for (const Op* one : all) lists.push_back(one->indices);
    return exprs(lists);
  }

  Stmt stmt(const All<StmtNode>& all) {
    for (const StmtNode* node : all)
      if (node->op.index() != all[0]->op.index()) fail("statements are of two kinds");
    if (failed()) return {};
    return std::visit(
        [&](const auto& first) {
          using Op = std::decay_t<decltype(first)>;
          All<Op> list;
          for (const StmtNode* node : all) list.push_back(&std::get<Op>(node->op));
          return made(list);
        },
        all[0]->op);
  }

  Stmt made(const All<For>& all) {
    const auto form = [](const For& n) { return std::tuple(n.var.value, n.kind, n.lanes); };
    if (!alike(all, form, "loops are of two kinds")) return {};
    For n = *all[0];
    n.extent = expr_of(all, &For::extent);
    if (n.kind != LoopKind::kSerial && n.kind != LoopKind::kParallel &&
        n.kind != LoopKind::kVectorize && as_int(n.extent) == nullptr)
      fail("the iterations of an unrolled loop differ");
    n.body = stmt(bodies(all, &For::body));
    return make_stmt(std::move(n));
  }
  Stmt made(const All<Let>& all) {
    if (!alike(
            all, [](const Let& n) { return n.var.value; }, "lets differ"))
      return {};
    return make_stmt(Let{all[0]->var, expr_of(all, &Let::value), stmt(bodies(all, &Let::body))});
  }
  Stmt made(const All<Store>& all) {
    const auto form = [](const Store& n) { return std::tuple(n.buffer.value, n.streaming); };
    if (!alike(all, form, "stores differ")) return {};
    Store n = *all[0];
    n.indices = indices(all);
    n.value = expr_of(all, &Store::value);
    return make_stmt(std::move(n));
  }
  Stmt made(const All<Prefetch>& all) {
    const auto form = [](const Prefetch& n) { return std::tuple(n.buffer.value, n.level); };
    if (!alike(all, form, "prefetches differ")) return {};
    Prefetch n = *all[0];
    n.indices = indices(all);
    return make_stmt(std::move(n));
  }
  Stmt made(const All<If>& all) {
    return make_stmt(If{expr_of(all, &If::condition), stmt(bodies(all, &If::then))});
  }
  Stmt made(const All<Allocate>& all) {
    if (!alike(
            all, [](const Allocate& n) { return n.buffer.value; }, "buffers differ"))
      return {};
    return make_stmt(Allocate{all[0]->buffer, stmt(bodies(all, &Allocate::body))});
  }
  Stmt made(const All<Block>& all) {
    const auto size = [](const Block& n) { return n.statements.size(); };
    if (!alike(all, size, "blocks have different statements")) return {};
    Block n;
    for (size_t i = 0; i < all[0]->statements.size(); ++i) {
      All<StmtNode> parts;
      for (const Block* one : all) parts.push_back(one->statements[i].get());
      n.statements.push_back(stmt(parts));
    }
    return make_stmt(std::move(n));
  }
  // A GPU's.
  template <typename Op>
  Stmt made(const All<Op>&) {
    fail("programs of a range of shapes are for CPUs");
    return {};
  }

  std::span<const Program> programs_;
};

/// Whether buffers of one place agree in everything that has to be the same.
bool alike(const Buffer& a, const Buffer& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape.size() == b.shape.size() &&
         a.scope == b.scope && a.lanes == b.lanes && a.output == b.output && a.pack == b.pack &&
         a.rows == b.rows && a.box_of.empty() && b.box_of.empty();
}

/// Returns the first difference of two programs outside of their statements; empty: none.
std::string difference(const Program& a, const Program& b) {
  if (a.buffers.size() != b.buffers.size() || a.args != b.args) return "buffers differ in number";
  if (a.var_names.size() != b.var_names.size()) return "variables differ in number";
  for (size_t i = 0; i < a.buffers.size(); ++i)
    if (!alike(a.buffers[i], b.buffers[i])) return "buffers of " + a.buffers[i].name + " differ";
  return "";
}

/// Why a matrix unit cannot take a tile: its rows have to lie at a constant distance. Empty: it
/// can.
std::string uneven_rows(const Program& program) {
  std::string problem;
  const auto check = [&](VarId row, TensorId id, const std::vector<Expr>& indices) {
    const Buffer& buffer = program[id];
    for (size_t d = 0; d < indices.size(); ++d) {
      bool of_row = false;
      visit(indices[d], [&](const Expr& e) {
        const Var* var = as<Var>(e);
        of_row = of_row || (var != nullptr && var->id == row);
      });
      for (size_t inner = d + 1; of_row && inner < buffer.extents.size(); ++inner)
        if (as_int(buffer.extents[inner]) == nullptr)
          problem = "rows of " + buffer.name + " lie at another distance at each shape";
    }
  };
  walk(program.body, [&](const StmtNode& node) {
    const For* rows = std::get_if<For>(&node.op);
    if (rows == nullptr || rows->kind != LoopKind::kMatrix) return;
    walk(
        rows->body,
        [&](const StmtNode& inner) {
          if (const Store* store = std::get_if<Store>(&inner.op))
            check(rows->var, store->buffer, store->indices);
        },
        [&](const Expr& whole) {
          visit(whole, [&](const Expr& e) {
            if (const Load* load = as<Load>(e)) check(rows->var, load->tensor, load->indices);
          });
        });
  });
  return problem;
}

int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Result<Program> generalize(std::span<const Program> programs,
                           std::span<const Symbol> symbols,
                           const SymbolBox& box,
                           FormulaFinder& finder) {
  CHECK(programs.size() == finder.points().size() && !programs.empty());
  Program made = programs[0];
  for (const Program& program : programs) {
    if (const std::string differs = difference(made, program); !differs.empty())
      return Error(differs);
    made.rewrites = made.rewrites || program.rewrites;
  }
  std::vector<Expr> of_symbol;
  for (size_t s = 0; s < symbols.size(); ++s) {
    made.symbols.push_back(made.add_var(symbols[s].name, {box.min[s], box.max[s]}));
    of_symbol.push_back(made.var(made.symbols.back()));
  }
  const auto formula_of = [&](const std::vector<int64_t>& values) {
    return finder.find(values).value_or(Expr());
  };
  Generalizer generalizer(programs, [&](const std::vector<int64_t>& values) {
    const Expr formula = formula_of(values);
    return formula ? substitute(formula, of_symbol) : formula;
  });
  const auto values_of = [&](const auto& of) {
    std::vector<int64_t> values;
    for (const Program& program : programs) values.push_back(of(program));
    return values;
  };
  // Extents first: fused loops have products of them.
  for (size_t b = 0; b < made.buffers.size(); ++b) {
    Buffer& buffer = made.buffers[b];
    bool varies = false;
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      const std::vector<int64_t> extents =
          values_of([&](const Program& p) { return p.buffers[b].shape[d]; });
      const Expr formula = formula_of(extents);
      if (!formula) return Error("an extent of ", buffer.name, " is no formula of the shapes");
      varies = varies || as_int(formula) == nullptr;
      buffer.extents.push_back(substitute(formula, of_symbol));
      buffer.shape[d] = bounds_in(formula, box).second;
    }
    if (!varies) buffer.extents.clear();
    if (varies && buffer.scope == Scope::kRegister)
      return Error("registers of ", buffer.name, " differ in number");
  }
  lay_out_workspace(made);
  for (size_t v = 0; v < programs[0].ranges.size(); ++v) {
    const Expr low = formula_of(values_of([&](const Program& p) { return p.ranges[v].first; }));
    const Expr high = formula_of(values_of([&](const Program& p) { return p.ranges[v].second; }));
    const bool known = bool(low) && bool(high);
    made.ranges[v] =
        known ? Range{bounds_in(low, box).first, bounds_in(high, box).second} : kUnbounded;
  }
  made.body = generalizer.body();
  if (generalizer.failed()) return Error(generalizer.problem());
  if (const std::string problem = uneven_rows(made); !problem.empty()) return Error(problem);
  return made;
}

std::string difference_beside_numbers(const Program& a, const Program& b) {
  std::string differs = difference(a, b);
  if (!differs.empty()) return differs;
  const Program both[] = {a, b};
  Generalizer generalizer(both, [](const std::vector<int64_t>& values) { return Expr(values[0]); });
  generalizer.body();
  return generalizer.problem();
}

void lay_out_workspace(Program& program) {
  program.workspace_bytes = 0;
  for (Buffer& buffer : program.buffers) {
    if (buffer.scope != Scope::kWorkspace) continue;
    buffer.workspace_offset = program.workspace_bytes;
    program.workspace_bytes += whole_lines(buffer.bytes());
  }
}

Program at_shape(const Program& program, std::span<const int64_t> values) {
  Program made = program;
  std::vector<Expr> known(program.var_names.size());
  for (size_t s = 0; s < program.symbols.size(); ++s)
    known[static_cast<size_t>(program.symbols[s].value)] = Expr(values[s]);
  const auto at = [&](const Expr& e) { return made.simple(substitute(e, known)); };
  for (Buffer& buffer : made.buffers) {
    const auto fix = [&](std::vector<Expr>& extents, std::vector<int64_t>& shape) {
      for (size_t d = 0; d < extents.size(); ++d) shape[d] = *as_int(at(extents[d]));
      extents.clear();
    };
    fix(buffer.extents, buffer.shape);
    fix(buffer.box_extents, buffer.box_of);
  }
  lay_out_workspace(made);
  made.body = rewrite(program.body, {}, at);
  made.symbols.clear();
  return made;
}

}  // namespace pruner
