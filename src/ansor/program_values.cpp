#include "ansor/program_values.h"

namespace pruner::ansor {

static size_t at(int i) { return static_cast<size_t>(i); }

const char* annotation_text(Annotation annotation) {
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

ProgramValues::ProgramValues(const ReplayNest& nest, bool named)
    : nest_(nest), dag_(nest.structure->dag), stages_(nest.state.stages) {
  init_loop_of_ = nest.loop_of;
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    const ReplayLoop& loop = nest.loops[i];
    enter_loop(static_cast<int>(i));
    init_loop_of_[at(loop.stage)][at(loop.iter)] = static_cast<int>(i);
  }
  const int size = static_cast<int>(stages_.size());
  for (int s = 0; named && s < size; ++s) names_.push_back(iterator_names(s));
  for (int i = 0; i < static_cast<int>(nest.loops.size()); ++i)
    variables_.push_back(make_var(VarId{i}, named ? loop_name(i) : std::string()));
  for (auto& values : values_) values.resize(stages_.size());
  for (const ReplayRegion& region : nest.regions) {
    mins_.emplace_back();
    for (const IndexId min : region.mins) {
      mins_.back().push_back(simplifier_.simplify(to_expr(min)));
    }
  }
  // The program's own passes know the loops that are open, no others.
  simplifier_ = {};
}

void ProgramValues::enter_loop(int number) {
  simplifier_.bind(VarId{number}, {0, nest_.loops[at(number)].extent - 1});
}

Expr ProgramValues::guard(const ReplayGuard& guard) {
  const Expr value = iterator_values(guard.stage, guard.init)[at(guard.iter)];
  const bool offset = !guard.of_axis && guard.iter < stages_[at(guard.stage)].num_axes;
  const Expr counted = offset ? value - mins_[at(guard.stage)][at(guard.iter)] : value;
  return simplifier_.simplify(guard.lower ? counted >= Expr(0) : counted < Expr(guard.bound));
}

std::vector<Expr> ProgramValues::region_mins(int stage) {
  std::vector<Expr> mins;
  for (const Expr& min : mins_[at(stage)]) mins.push_back(simplifier_.simplify(min));
  return mins;
}

std::vector<Expr> ProgramValues::indices(const ReplayStatement& s) {
  const std::vector<Expr>& values = iterator_values(s.stage, s.kind == StatementKind::kInit);
  std::vector<Expr> indices;
  for (int i = 0; i < stages_[at(s.stage)].num_axes; ++i) {
    indices.push_back(simplifier_.simplify(values[at(i)]));
  }
  return indices;
}

// TVM's extremes begin at the greatest numbers that are finite.
static Expr tvm_identity(Combiner combiner, DType dtype) {
  const bool extreme = combiner == Combiner::kMax || combiner == Combiner::kMin;
  if (!extreme || !is_float(dtype)) return combiner_identity(combiner, dtype);
  const double greatest = greatest_float(dtype);
  return float_imm(combiner == Combiner::kMax ? -greatest : greatest, dtype);
}

Expr ProgramValues::value(const ReplayStatement& s) {
  const Stage& stage = dag_[StageId{s.stage}];
  const bool init = s.kind == StatementKind::kInit;
  std::vector<Expr> values = iterator_values(s.stage, init);
  values.resize(at(stages_[at(s.stage)].num_roots));
  const std::vector<Expr> places(values.begin(), values.begin() + stages_[at(s.stage)].num_axes);
  const Expr own = load(StageId{kOwnRegister}, {Expr(0)}, stage.dtype);
  switch (s.kind) {
    case StatementKind::kCompute: return simplifier_.simplify(substitute(stage.body, values));
    case StatementKind::kInit:
    case StatementKind::kThreadInit:
      return simplifier_.simplify(tvm_identity(stage.combiner, stage.dtype));
    case StatementKind::kUpdate:
    case StatementKind::kThreadUpdate: {
      const bool in_register = s.kind == StatementKind::kThreadUpdate;
      const Expr old = in_register ? own : load(StageId{s.stage}, places, stage.dtype);
      return simplifier_.simplify(combine(stage.combiner, old, substitute(stage.body, values)));
    }
    case StatementKind::kAllReduce:
      return simplifier_.simplify(
          reduces_in_loops(stages_[at(s.stage)]) ? own : substitute(stage.body, values));
    case StatementKind::kThreadStore: break;
  }
  return Expr();
}

const std::string& ProgramValues::iterator_name(int stage, int iter) const {
  return names_[at(stage)][at(iter)];
}

std::vector<std::string> ProgramValues::iterator_names(int s) const {
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

std::string ProgramValues::loop_name(int number) const {
  const ReplayLoop& loop = nest_.loops[at(number)];
  if (thread_rank(loop.annotation) >= 0) return annotation_text(loop.annotation);
  return names_[at(loop.stage)][at(loop.iter)] + (loop.init ? ".init" : "");
}

Expr ProgramValues::to_expr(IndexId id) const {
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
const std::vector<Expr>& ProgramValues::iterator_values(int s, bool init) {
  std::vector<Expr>& values = values_[init][at(s)];
  if (values.empty()) values = make_iterator_values(s, init);
  return values;
}

std::vector<Expr> ProgramValues::make_iterator_values(int s, bool init) const {
  const StateStage& stage = stages_[at(s)];
  std::vector<Expr> values(stage.iters.size());
  const auto min_of = [&](int i) { return i < stage.num_axes ? mins_[at(s)][at(i)] : Expr(0); };
  for (const int leaf : stage.leaves) {
    const int loop = (init ? init_loop_of_ : nest_.loop_of)[at(s)][at(leaf)];
    // The loop has one iteration, or the buffer is nearer than the thread (nest.cpp, leaf_value).
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

}  // namespace pruner::ansor
