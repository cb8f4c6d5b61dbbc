// Kernels of rows: the threads of a row reduce it together, then write its elements.
//
// What the reductions and the root read of a row is loaded once, in vectors of neighbours, and kept
// in registers where it fits. On CUDA the threads of a row exchange float32 sums and maxima within
// warps; if a row has several warps, these then meet once. Other folds are done in shared memory.
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/structure.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

// The elements of a row, as a stage numbers them: its reduce axes or, of the root, the axes behind
// those that number the rows.
struct RowElements {
  std::span<const Iterator> axes;
  int first;  // number of the first of these iterators
};

// Whether a read goes along the one axis of a row's elements, at a place that the row decides.
bool goes_along_row(const Stage& read_of, const Load& read, const RowElements& elements, int rows) {
  const Var* last = as<Var>(read.indices.back());
  if (last == nullptr || last->id.value != elements.first) return false;
  if (read_of.axes.back().extent != elements.axes[0].extent) return false;
  for (size_t d = 0; d + 1 < read.indices.size(); ++d) {
    bool of_row = true;
    visit(read.indices[d], [&](const Expr& e) {
      const Var* var = as<Var>(e);
      of_row = of_row && as<Load>(e) == nullptr && (var == nullptr || var->id.value < rows);
    });
    if (!of_row) return false;
  }
  return true;
}

bool same_row(const Load& a, const Load& b) {
  for (size_t d = 0; d + 1 < a.indices.size(); ++d)
    if (!structural_equal(a.indices[d], b.indices[d])) return false;
  return true;
}

}  // namespace

// Finds the tensors whose rows the root and its reductions read element by element, at least one
// reduction among them, and how many neighbours a thread takes at once.
GpuLowering::HeldRows GpuLowering::held_rows(const std::vector<const NestStage*>& reductions,
                                             const NestStage* root) {
  if (reductions.empty()) return {};
  const int rows = reductions[0]->row_axes;
  const Stage& first = dag_[reductions[0]->stage];
  struct Found {
    const Load* read;
    bool reduced, held;
  };
  std::vector<std::pair<StageId, Found>> found;
  const auto look = [&](const Stage& reader, const RowElements& elements, bool reduces) {
    visit(reader.body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || read->indices.empty()) return;
      const auto known = std::ranges::find(found, read->tensor, [](auto& f) { return f.first; });
      const bool along = goes_along_row(dag_[read->tensor], *read, elements, rows);
      if (known == found.end()) {
        found.push_back({read->tensor, {read, reduces, along}});
        return;
      }
      known->second.held = known->second.held && along && same_row(*known->second.read, *read);
      known->second.reduced = known->second.reduced || reduces;
    });
  };
  const int64_t count = first.reduce_axes[0].extent;
  for (const NestStage* reduction : reductions) {
    const Stage& r = dag_[reduction->stage];
    if (r.reduce_axes.size() != 1 || r.reduce_axes[0].extent != count) return {};
    look(r, {r.reduce_axes, static_cast<int>(r.axes.size())}, true);
  }
  int64_t bytes = dtype_bytes(first.dtype);
  if (root != nullptr) {
    const Stage& s = dag_[root->stage];
    const std::span<const Iterator> own = std::span(s.axes).subspan(static_cast<size_t>(rows));
    if (own.size() != 1 || own[0].extent != count) return {};
    look(s, {own, rows}, false);
    bytes = dtype_bytes(s.dtype);
  }
  std::erase_if(found, [](const auto& f) { return !f.second.held || !f.second.reduced; });
  HeldRows held;
  if (found.empty()) return held;
  for (const auto& [tensor, read] : found)
    bytes = std::max<int64_t>(bytes, dtype_bytes(dag_[tensor].dtype));
  while (is_gpu_vector(2 * held.lanes, bytes, gpu_) && count % (2 * held.lanes) == 0 &&
         2 * held.lanes * place_.lanes <= count)
    held.lanes *= 2;
  const int64_t elements = ceil_div(count, place_.lanes * held.lanes) * held.lanes;
  if (elements * std::ssize(found) > kMostHeldElements) return {};
  for (const auto& [tensor, read] : found) {
    const Stage& t = dag_[tensor];
    held.tensors.push_back(
        {tensor,
         state(tensor).buffer,
         program_.add_buffer(
             {t.name + ".row", t.dtype, {elements}, Scope::kRegister, 1, false, {}, 0}),
         {read.read->indices.begin(), read.read->indices.end() - 1}});
  }
  return held;
}

// Each of the thread's elements of a row of `count`: runs of held.lanes neighbours. `body` makes
// the statement of a run from the number of its first element and that element's place among the
// thread's.
Stmt GpuLowering::each_run(const HeldRows& held,
                           int64_t count,
                           const std::function<Stmt(const Expr&, const Expr&)>& body) {
  const int64_t rounds = ceil_div(count, place_.lanes * held.lanes);
  const VarId round = new_var("r", {0, rounds - 1});
  const Expr first = simple((var(round) * Expr(place_.lanes) + place_.lane) * Expr(held.lanes));
  Stmt run = guarded(first < Expr(count), body(first, simple(var(round) * Expr(held.lanes))));
  const LoopKind kind = held.tensors.empty() ? LoopKind::kSerial : LoopKind::kUnroll;
  return make_stmt(For{round, Expr(rounds), kind, 1, std::move(run)});
}

// The place of element `index` in a row. With one axis that is the index itself. A variable for it
// would hide from code generation that the elements of a vector are neighbours; decode_axes() makes
// such variables.
Stmt GpuLowering::at_element(const std::vector<Iterator>& axes,
                             size_t first,
                             const Expr& index,
                             Values values,
                             size_t offset,
                             const Emit& inner) {
  if (axes.size() - first != 1)
    return decode_axes(axes, first, axes.size(), index, std::move(values), offset, inner);
  values[offset + first] = index;
  return inner(values);
}

// Reads of held rows become reads of the thread's element `at`.
void GpuLowering::read_held(const HeldRows& held, const Expr& at) {
  for (const HeldRow& row : held.tensors)
    state(row.tensor) = {row.registers, [at](const Values&) { return Values{at}; }};
}

void GpuLowering::read_memory(const HeldRows& held) {
  for (const HeldRow& row : held.tensors) state(row.tensor) = {row.memory, {}};
}

Stmt GpuLowering::load_rows(const HeldRows& held, int64_t count, const Values& row) {
  return each_run(held, count, [&](const Expr& first, const Expr& place) {
    std::vector<Stmt> loads;
    for (const HeldRow& h : held.tensors) {
      Values from;
      for (const Expr& index : h.leading) from.push_back(simple(substitute(index, row)));
      loads.push_back(vector(held.lanes, [&](const Expr& lane) {
        Values at = from;
        at.push_back(simple(first + lane));
        return make_stmt(Store{h.registers, {simple(place + lane)}, load_of(h.memory, at)});
      }));
    }
    return block(std::move(loads));
  });
}

Stmt GpuLowering::rows(const NestStage& root) {
  const Stage& s = dag_[root.stage];
  const size_t row_axes = static_cast<size_t>(root.row_axes);
  int64_t count = 1, rest = 1;
  for (size_t a = 0; a < s.axes.size(); ++a) (a < row_axes ? count : rest) *= s.axes[a].extent;
  // Threads beyond the last row do that row again: all come by every barrier.
  const Expr row = simple(min(place_.rows, Expr(count - 1)));
  const Values none(s.axes.size(), Expr(0));
  const HeldRows held = held_rows(attached_to(root.stage), &root);
  for (const HeldRow& h : held.tensors) registers_.push_back(h.registers);
  Stmt result = decode_axes(s.axes, 0, row_axes, row, none, 0, [&](const Values& at) {
    std::vector<Stmt> body;
    if (!held.tensors.empty()) body.push_back(load_rows(held, rest, at));
    for (const NestStage* reduction : attached_to(root.stage))
      body.push_back(row_reduction(*reduction, at, held, hold(*reduction, {1}, ".sum")));
    const Stmt write = each_run(held, rest, [&](const Expr& first, const Expr& place) {
      return vector(held.lanes, [&](const Expr& lane) {
        read_held(held, simple(place + lane));
        return at_element(s.axes, row_axes, simple(first + lane), at, 0, [&](const Values& p) {
          return make_stmt(Store{state(root.stage).buffer, p, body_at(root.stage, p)});
        });
      });
    });
    body.push_back(guarded(place_.rows < Expr(count), write));
    return block(std::move(body));
  });
  // Other kernels read the tensors in memory.
  read_memory(held);
  return with_registers(std::move(result));
}

Stmt GpuLowering::row_reduction(const NestStage& stage,
                                const Values& row,
                                const HeldRows& held,
                                TensorId sum) {
  const Stage& s = dag_[stage.stage];
  const Values zero = {Expr(0)};
  Values start(row.begin(), row.begin() + stage.row_axes);
  start.resize(s.axes.size() + s.reduce_axes.size(), Expr(0));
  const Stmt add = each_run(held, s.reduce_size(), [&](const Expr& first, const Expr& place) {
    return unrolled(held.lanes, [&](const Expr& lane) {
      read_held(held, simple(place + lane));
      const Emit fold = [&](const Values& at) {
        const Expr term = body_at(stage.stage, at);
        return make_stmt(Store{sum, zero, combine(s.combiner, load_of(sum, zero), term)});
      };
      return at_element(s.reduce_axes, 0, simple(first + lane), start, s.axes.size(), fold);
    });
  });
  state(stage.stage) = {sum, [](const Values&) { return Values{Expr(0)}; }};
  return block({make_stmt(Store{sum, zero, combiner_identity(s.combiner, s.dtype)}),
                add,
                folds_by_lanes(s) ? fold_lanes(stage, sum) : fold_shared(stage, sum)});
}

bool GpuLowering::folds_by_lanes(const Stage& reduction) const {
  const bool folds = reduction.combiner == Combiner::kSum || reduction.combiner == Combiner::kMax;
  return folds && reduction.dtype == DType::kFloat32 && compute_capability(gpu_) > 0 &&
         place_.threads % kWarpLanes == 0;
}

// Lanes of a warp exchange their sums. Of rows with several warps, each warp leaves its sum in
// shared memory; then all of their threads read and fold these.
Stmt GpuLowering::fold_lanes(const NestStage& stage, TensorId sum) {
  const Values zero = {Expr(0)};
  const auto fold = [&](int64_t lanes) {
    const LaneFold all{{sum, zero}, dag_[stage.stage].combiner, static_cast<int>(lanes)};
    return lanes > 1 ? make_stmt(all) : block({});
  };
  const int64_t warps = place_.lanes / kWarpLanes;
  if (warps <= 1) return fold(place_.lanes);
  const TensorId parts = add_buffer(stage, {place_.block_rows, warps}, Scope::kShared);
  shared_.push_back(parts);
  const Expr own = simple(floor_mod(place_.lane, Expr(kWarpLanes)));
  const Expr warp = simple(floor_div(place_.lane, Expr(kWarpLanes)));
  const Expr other = simple(floor_mod(place_.lane, Expr(warps)));
  return block({fold(kWarpLanes),
                make_stmt(If{own < Expr(1),
                             make_stmt(Store{parts, {place_.row, warp}, load_of(sum, zero)})}),
                make_stmt(Barrier{}),
                make_stmt(Store{sum, zero, load_of(parts, {place_.row, other})}),
                fold(warps)});
}

// The lower half of a row's threads folds in what the upper half left. The result ends in part 0;
// each thread takes it there.
Stmt GpuLowering::fold_shared(const NestStage& stage, TensorId sum) {
  const Stage& s = dag_[stage.stage];
  const TensorId parts = add_buffer(stage, {place_.block_rows, place_.lanes}, Scope::kShared);
  shared_.push_back(parts);
  const Values zero = {Expr(0)};
  const auto part = [&](const Expr& lane) { return Values{place_.row, lane}; };
  const Stmt barrier = make_stmt(Barrier{});
  std::vector<Stmt> body = {make_stmt(Store{parts, part(place_.lane), load_of(sum, zero)}),
                            barrier};
  for (int64_t half = place_.lanes / 2; half >= 1; half /= 2) {
    const Expr folded = combine(s.combiner,
                                load_of(parts, part(place_.lane)),
                                load_of(parts, part(simple(place_.lane + Expr(half)))));
    body.push_back(make_stmt(
        If{place_.lane < Expr(half), make_stmt(Store{parts, part(place_.lane), folded})}));
    body.push_back(barrier);
  }
  body.push_back(make_stmt(Store{sum, zero, load_of(parts, part(Expr(0)))}));
  return block(std::move(body));
}

}  // namespace pruner
