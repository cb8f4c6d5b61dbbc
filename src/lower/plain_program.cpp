#include "lower/plain_program.h"

#include <algorithm>
#include <numeric>

#include "lower/builder.h"
#include "lower/generalize.h"
#include "lower/passes.h"

namespace pruner {
namespace {

constexpr int64_t kVectors = 64;  // vectors of an axis that is alone, which a thread takes at once

class PlainLowering : private ProgramParts {
 public:
  PlainLowering(const TaskRange& task, const std::vector<PackSpec>& packing, std::string name)
      : task_(task), dag_(task.dag().form()), lanes_(task.target().lanes(4)) {
    program_.name = std::move(name);
    for (size_t s = 0; s < task.symbols().size(); ++s) {
      program_.symbols.push_back(
          program_.add_var(task.symbols()[s].name, {task.box().min[s], task.box().max[s]}));
      symbols_.push_back(var(program_.symbols.back()));
    }
    buffers_.resize(dag_.stages.size());
    declare_buffers(packing);
  }

  Program run() {
    std::vector<Stmt> stages;
    for (int32_t s = 0; s < dag_.size(); ++s)
      if (buffers_[static_cast<size_t>(s)].valid() && !dag_[StageId{s}].is_placeholder())
        stages.push_back(stage(StageId{s}));
    program_.body = stages.size() == 1 ? stages[0] : make_stmt(Block{std::move(stages)});
    lay_out_workspace(program_);
    return pack_operands(std::move(program_));
  }

 private:
  void declare_buffers(const std::vector<PackSpec>& packing) {
    std::vector<StageId> args = dag_.inputs();
    std::ranges::copy(dag_.outputs(), std::back_inserter(args));
    for (size_t a = 0; a < args.size(); ++a) {
      declare(args[a], Scope::kArgument);
      if (a < packing.size())
        program_.buffers[static_cast<size_t>(buffer(args[a]).value)].repack = packing[a];
      program_.args.push_back(buffer(args[a]));
    }
    for (int32_t s = 0; s < dag_.size(); ++s)
      if (!buffer(StageId{s}).valid() && !is_inlined(StageId{s}))
        declare(StageId{s}, Scope::kWorkspace);
  }

  TensorId& buffer(StageId id) { return buffers_[static_cast<size_t>(id.value)]; }

  void declare(StageId id, Scope scope) {
    const Stage& s = dag_[id];
    Buffer made{s.name, s.dtype, {}, scope, 1, s.output, {}, 0};
    bool varies = false;
    for (const Expr& extent : extents(task_.dag().axes(id))) {
      made.shape.push_back(bounds(extent, program_.ranges).second);
      made.extents.push_back(extent);
      varies = varies || as_int(extent) == nullptr;
    }
    if (!varies) made.extents.clear();
    buffer(id) = program_.add_buffer(std::move(made));
  }

  /// Formulas of the task, of the program's symbols.
  std::vector<Expr> extents(const std::vector<Expr>& formulas) const {
    std::vector<Expr> made;
    for (const Expr& formula : formulas) made.push_back(simple(substitute(formula, symbols_)));
    return made;
  }

  /// Whether whoever reads an element computes it: what moves elements, as padding, costs nothing.
  bool is_inlined(StageId id) const {
    const Stage& s = dag_[id];
    if (s.is_reduction() || s.output || s.is_placeholder()) return false;
    int loads = 0, calls = 0;
    visit(s.body, [&](const Expr& e) {
      loads += as<Load>(e) != nullptr;
      calls += as<Call>(e) != nullptr;
    });
    return loads <= 1 && calls == 0;
  }

  /// The body of a stage where its iterators have these values. Loads of stages become loads of
  /// buffers, or the bodies of stages that have none.
  Expr body(StageId id, std::vector<Expr> values) {
    std::ranges::copy(symbols_, std::back_inserter(values));
    // Once for each node: the numbers of buffers are those of other stages.
    return simple(rewrite(task_.dag().body(id), [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) return values[static_cast<size_t>(var->id.value)];
      const Load* read = as<Load>(e);
      if (read == nullptr) return Expr();
      if (!buffer(read->tensor).valid()) return body(read->tensor, read->indices);
      return load(buffer(read->tensor), read->indices, e->dtype);
    }));
  }

  /// A loop, with a variable that stands for its iterations in `inner`.
  template <typename Inner>
  Stmt loop(const Expr& extent, LoopKind kind, const Inner& inner) {
    const VarId id = new_var("i", {0, bounds(extent, program_.ranges).second - 1});
    return make_stmt(For{id, extent, kind, 1, inner(var(id))});
  }

  Stmt stage(StageId id) {
    const std::vector<Expr> axes = extents(task_.dag().axes(id));
    size_t vector = axes.size();
    for (size_t a = 0; a < axes.size(); ++a)
      if (const int64_t* extent = as_int(axes[a]); extent == nullptr || *extent > 1) vector = a;
    Expr rows(1);
    for (size_t a = 0; a < axes.size(); ++a)
      if (a != vector) rows = simple(rows * axes[a]);
    std::vector<Expr> at(axes.size(), Expr(0));
    if (vector == axes.size()) return vectors(id, at, vector, Expr(0), Expr(1));
    const Expr count = simple(floor_div(axes[vector] + Expr(lanes_ - 1), Expr(lanes_)));
    const auto from_to = [&](const Expr& first, const Expr& number) {
      return loop(number, LoopKind::kSerial, [&](const Expr& v) {
        const Expr start = simple((first + v) * Expr(lanes_));
        return vectors(id, at, vector, start, simple(min(axes[vector] - start, Expr(lanes_))));
      });
    };
    if (const int64_t* one = as_int(rows); one != nullptr && *one == 1) {
      const Expr parts = simple(floor_div(count + Expr(kVectors - 1), Expr(kVectors)));
      return loop(parts, LoopKind::kParallel, [&](const Expr& part) {
        const Expr first = simple(part * Expr(kVectors));
        return from_to(first, simple(min(count - first, Expr(kVectors))));
      });
    }
    return loop(rows, LoopKind::kParallel, [&](const Expr& row) {
      Expr left = row;
      for (size_t a = axes.size(); a-- > 0;) {
        if (a == vector) continue;
        const int64_t* extent = as_int(axes[a]);
        if (extent != nullptr && *extent == 1) continue;
        at[a] = simple(floor_mod(left, axes[a]));
        left = simple(floor_div(left, axes[a]));
      }
      return from_to(Expr(0), count);
    });
  }

  /// The elements of a stage from `start` on along an axis, `active` of them.
  Stmt vectors(
      StageId id, std::vector<Expr> at, size_t vector, const Expr& start, const Expr& active) {
    const Stage& s = dag_[id];
    const bool is_vector = vector < at.size();
    const int lanes = is_vector ? lanes_ : 1;
    // A loop over the lanes, around a statement on the element of one.
    const auto each_lane = [&](const auto& statement) {
      if (!is_vector) return statement(Expr(0));
      const VarId lane = new_var("lane", {0, lanes - 1});
      at[vector] = simple(start + var(lane));
      return make_stmt(For{lane, active, LoopKind::kVectorize, lanes, statement(var(lane))});
    };
    if (!s.is_reduction())
      return each_lane([&](const Expr&) { return make_stmt(Store{buffer(id), at, body(id, at)}); });
    const TensorId sum = program_.add_buffer(
        {s.name + ".sum", s.dtype, {lanes}, Scope::kRegister, lanes, false, {}, 0});
    const auto set = [&](const Expr& lane, Expr value) {
      return make_stmt(Store{sum, {lane}, std::move(value)});
    };
    const auto held = [&](const Expr& lane) { return load(sum, {lane}, s.dtype); };
    std::vector<Stmt> parts;
    parts.push_back(each_lane(
        [&](const Expr& lane) { return set(lane, combiner_identity(s.combiner, s.dtype)); }));
    parts.push_back(terms(id, {}, [&](const std::vector<Expr>& reduced) {
      return each_lane([&](const Expr& lane) {
        std::vector<Expr> values = at;
        std::ranges::copy(reduced, std::back_inserter(values));
        return set(lane, simple(combine(s.combiner, held(lane), body(id, std::move(values)))));
      });
    }));
    parts.push_back(each_lane([&](const Expr& lane) {
      return make_stmt(Store{buffer(id), at, held(lane)});
    }));
    return make_stmt(Allocate{sum, make_stmt(Block{std::move(parts)})});
  }

  /// The loops of a reduction that are left, outermost first.
  template <typename Inner>
  Stmt terms(StageId id, const std::vector<Expr>& reduced, const Inner& inner) {
    const std::vector<Expr> axes = extents(task_.dag().reduce_axes(id));
    if (reduced.size() == axes.size()) return inner(reduced);
    return loop(axes[reduced.size()], LoopKind::kSerial, [&](const Expr& v) {
      std::vector<Expr> more = reduced;
      more.push_back(v);
      return terms(id, more, inner);
    });
  }

  const TaskRange& task_;
  const ComputeDag& dag_;
  const int lanes_;
  std::vector<Expr> symbols_;
  std::vector<TensorId> buffers_;  // buffer of each stage; invalid: inlined
};

}  // namespace

Result<Program> plain_program(const TaskRange& task,
                              const std::vector<PackSpec>& packing,
                              std::string name) {
  for (const PackSpec& pack : packing)
    if (pack.transform != Transform::kNone) return Error("a weight is stored as another tensor");
  Program program = PlainLowering(task, packing, std::move(name)).run();
  TRY(verify(program));
  return program;
}

}  // namespace pruner
