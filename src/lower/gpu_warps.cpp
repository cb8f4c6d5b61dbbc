// The warps of a block compute a tile of a contraction by instructions on matrices (space/mma.h).
// Chunks of both operands are copied to shared memory some chunks ahead, in a ring of places. Warps
// load matrices from there and add their products to sums in registers; groups of four warps have
// instructions that read the matrices there themselves (gpu_groups.cpp).
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/factors.h"
#include "space/matrix_lines.h"
#include "space/structure.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

// A body that is an element of a tensor, where a condition holds, if there is one, and 0 elsewhere.
struct Copied {
  const Load* from;
  Expr where;
};
std::optional<Copied> copied_element(const Expr& body) {
  if (const Load* from = as<Load>(body)) return Copied{from, {}};
  const Select* guarded = as<Select>(body);
  const Load* from = guarded != nullptr ? as<Load>(guarded->a) : nullptr;
  if (from == nullptr) return std::nullopt;
  const FloatImm* number = as<FloatImm>(guarded->b);
  const int64_t* integer = as_int(guarded->b);
  const bool zero = number != nullptr ? number->value == 0 : integer != nullptr && *integer == 0;
  return zero ? std::optional(Copied{from, guarded->condition}) : std::nullopt;
}

// Elements along an axis from a multiple of their number on.
class AlignedRun {
 public:
  AlignedRun(VarId axis, int64_t length)
      : axis_(axis), length_(length), lets_(static_cast<size_t>(axis.value) + 1) {
    lets_.back() = Expr(length);
  }

  // Neighbours are neighbours along dimension `d` of what they are read of, of one condition.
  bool is_copied(const Copied& copied, size_t d) const {
    const std::vector<Expr>& at = copied.from->indices;
    for (size_t i = 0; i < at.size(); ++i)
      if (!(i == d ? is_counted(at[i]) : is_steady(at[i]))) return false;
    return !copied.where || is_steady(copied.where);
  }

 private:
  bool divides(const Expr& divisor) const {
    const int64_t* d = as_int(divisor);
    return d != nullptr && *d % length_ == 0;
  }

  // Whether `e` counts along the axis, from any multiple of `length_` on.
  bool is_counted(const Expr& e) const {
    if (const Var* var = as<Var>(e)) return var->id == axis_;
    const Binary* n = as<Binary>(e);
    if (n == nullptr) return false;
    const auto moved = [&](const Expr& a, const Expr& b) { return is_counted(a) && is_whole(b); };
    switch (n->op) {
      case BinaryOp::kFloorMod: return divides(n->b) && is_counted(n->a);
      case BinaryOp::kAdd: return moved(n->a, n->b) || moved(n->b, n->a);
      case BinaryOp::kSub: return moved(n->a, n->b);
      default: return false;
    }
  }
  // Whether `e` is the same all along the run, and a multiple of `length_`.
  bool is_whole(const Expr& e) const { return is_steady(e) && is_multiple(e, length_, lets_); }

  // Whether `e` is the same all along the run, as quotients of counted values are, and comparisons
  // with whole runs.
  bool is_steady(const Expr& e) const {
    const Expr rest = rewrite(e, [&](const Expr& part) {
      const Binary* n = as<Binary>(part);
      if (n == nullptr || !is_counted(n->a)) return Expr();
      if (n->op == BinaryOp::kFloorDiv && divides(n->b)) return Expr(0);
      const bool cuts = n->op == BinaryOp::kLt || n->op == BinaryOp::kGe;
      return cuts && is_whole(n->b) ? int_imm(0, DType::kBool) : Expr();
    });
    return !reads(rest, axis_);
  }

  VarId axis_;
  int64_t length_;
  std::vector<Expr> lets_;
};

// Iterations of the loops of a kind over an axis.
int64_t iterations(const NestStage& stage, int axis, LoopKind kind) {
  int64_t count = 1;
  for (const NestLoop& loop : stage.loops)
    if (loop.axis == axis && loop.kind == kind) count *= loop.extent;
  return count;
}

}  // namespace

Stmt GpuLowering::repeated(int64_t extent,
                           LoopKind kind,
                           const std::function<Stmt(const Expr&)>& body) {
  if (extent == 1) return body(Expr(0));
  const VarId i = new_var("u", {0, extent - 1});
  For loop{i, Expr(extent), kind, 1, body(var(i))};
  loop.rolled = kind == LoopKind::kSerial;
  return make_stmt(std::move(loop));
}

Stmt GpuLowering::unrolled(int64_t extent, const std::function<Stmt(const Expr&)>& body) {
  return repeated(extent, LoopKind::kUnroll, body);
}

Stmt GpuLowering::vector(int lanes, const std::function<Stmt(const Expr&)>& body) {
  if (lanes == 1) return body(Expr(0));
  const VarId lane = new_var("v", {0, lanes - 1});
  return make_stmt(For{lane, Expr(lanes), LoopKind::kVectorize, lanes, body(var(lane))});
}

Stmt GpuLowering::each_sum(const WarpTile& tile,
                           const std::function<Stmt(const Expr&, const Expr&)>& body) {
  return unrolled(tile.a.fragments, [&](const Expr& i) {
    return unrolled(tile.b.fragments, [&](const Expr& j) { return body(i, j); });
  });
}

int64_t GpuLowering::copied_run(const WarpOperand& operand, const Values& start) {
  const Stage& s = dag_[operand.fetch.stage];
  const std::optional<Copied> copied = copied_element(s.body);
  if (!copied || compute_capability(gpu_) < kFirstWithAsyncCopy) return 0;
  const Buffer& from = program_[state(copied->from->tensor).buffer];
  const int64_t bytes = dtype_bytes(s.dtype);
  if (from.dtype != s.dtype) return 0;
  size_t d = from.shape.size() - 1;  // the last that has neighbours
  while (d > 0 && from.shape[d] == 1) --d;
  const VarId last{static_cast<int32_t>(s.axes.size()) - 1};
  for (int64_t run = kSwizzleBytes / bytes; run * bytes >= kLeastAsyncCopyBytes; run /= 2) {
    if (operand.width() % run == 0 && from.shape[d] % run == 0 &&
        is_multiple(start.back(), run, {}) && AlignedRun(last, run).is_copied(*copied, d))
      return run;
  }
  return 0;
}

GpuLowering::CopiedBox GpuLowering::chunk_box(const WarpTile& tile,
                                              const WarpOperand& operand,
                                              const Expr& chunk) const {
  Values values = place_.block;
  values.resize(values.size() + dag_[tile.sum.stage].reduce_axes.size(), Expr(0));
  const Expr first_term = chunk * Expr(operand.terms());
  values[static_cast<size_t>(tile.contraction.k)] = first_term;
  return {tile.sum.stage,
          std::move(values),
          simple(floor_mod(chunk, Expr(tile.stages))),
          first_term,
          iterator_of(dag_[tile.sum.stage], tile.contraction.k).extent};
}

Stmt GpuLowering::each_copied_run(const WarpOperand& operand,
                                  int64_t together,
                                  const std::function<Stmt(const Expr& line, const Expr& at)>& body,
                                  LoopKind kind) {
  const int64_t runs = operand.width() / together, all = operand.lines() * runs;
  const auto run = [&](const Expr& round) {
    const Expr number = round * Expr(place_.threads) + place_.thread_index;
    const Expr line = simple(floor_div(number, Expr(runs)));
    const Expr at = simple(floor_mod(number, Expr(runs)) * Expr(together));
    return guarded(number < Expr(all), body(line, at));
  };
  return repeated(ceil_div(all, place_.threads), kind, run);
}

Stmt GpuLowering::copy_box(const WarpOperand& operand, const CopiedBox& box) {
  const Stage& s = dag_[operand.fetch.stage];
  const size_t rank = s.axes.size();
  Values start = simple(region_start(nest_, operand.fetch.stage, box.reader, box.values));
  const int64_t run = copied_run(operand, start), together = std::max<int64_t>(run, 1);
  return each_copied_run(operand, together, [&](const Expr& line, const Expr& at) {
    Values point = start;
    point[rank - 2] = simple(start[rank - 2] + line);
    point[rank - 1] = simple(start[rank - 1] + at);
    const Values into = shared_place(operand, box.slot, line, at);
    const Expr term = box.first_term + (operand.terms_first ? line : at);
    const Expr left = simple(Expr(box.all_terms) - term);
    return copy_run(operand, into, point, run, left);
  });
}

Stmt GpuLowering::copy_run(const WarpOperand& operand,
                           const Values& at,
                           const Values& point,
                           int64_t run,
                           const Expr& terms_left) {
  const StageId id = operand.fetch.stage;
  const size_t last = point.size() - 1, row = operand.terms_first ? last : last - 1;
  const Expr value = body_at(id, point);
  Expr within = inside(id, point, 0, last - 1);
  const auto require = [&](const Expr& condition) {
    if (static_cast<bool>(condition) && !always(simple(condition)))
      within = both(within, condition);
  };
  const bool along_row = run > 0 && operand.terms_first;
  if (!along_row) require(inside(id, point, row, row + 1));
  if (run == 0 || operand.terms_first) require(Expr(0) < terms_left);
  if (run == 0) return make_stmt(Store{operand.shared, at, or_zero(within, value)});
  const Expr left = along_row ? Expr(dag_[id].axes[last].extent) - point[last] : terms_left;
  const std::optional<Copied> copied = copied_element(value);
  if (!copied) {  // padding alone, whatever the place
    return unrolled(run, [&](const Expr& i) {
      Values to = at;
      to.back() = simple(to.back() + i);
      return make_stmt(Store{operand.shared, to, value});
    });
  }
  require(copied->where);
  return make_stmt(AsyncCopy{{operand.shared, at},
                             {copied->from->tensor, copied->from->indices},
                             static_cast<int>(run),
                             simple(or_zero(within, max(min(left, Expr(run)), Expr(0))))});
}

// Matrices are 8 rows of 16 bytes. Of an operand with its terms first they are transposed on the
// way, which is of 16-bit elements alone; others are read one by one.
Stmt GpuLowering::load_fragments(const WarpTile& tile,
                                 const WarpOperand& operand,
                                 const Expr& slot,
                                 const Expr& step) {
  const Fragment& f = operand.fragment;
  const DType dtype = dag_[operand.fetch.stage].dtype;
  const Expr term0 = step * Expr(f.cols);
  const auto place = [&](const Expr& row, const Expr& term) {
    const Expr along = operand.first + row, terms = term0 + term;
    const Expr line = operand.terms_first ? terms : along, at = operand.terms_first ? along : terms;
    return shared_place(operand, slot, line, at);
  };
  if (operand.terms_first && dtype_bytes(dtype) != 2) {
    return unrolled(operand.fragments, [&](const Expr& i) {
      return unrolled(f.elements(), [&](const Expr& v) {
        const Expr row = i * Expr(f.rows) + f.row(tile.lane, v);
        return make_stmt(Store{operand.registers,
                               {i, v},
                               load(operand.shared, place(row, f.col(tile.lane, v)), dtype)});
      });
    });
  }
  // If a fragment has two matrices or fewer, the matrices of two fragments are loaded at once.
  const int down = f.rows / 8, along = f.elements() / f.run / down;
  const int together = operand.fragments % 2 == 0 && down * along <= 2 ? 2 : 1;
  const int matrices = together * down * along;
  return unrolled(operand.fragments / together, [&](const Expr& i) {
    const Expr matrix = floor_mod(floor_div(tile.lane, Expr(8)), Expr(matrices));
    const Expr line = floor_mod(tile.lane, Expr(8));
    const Expr part = floor_mod(matrix, Expr(down * along));
    const Expr row = (i * Expr(together) + floor_div(matrix, Expr(down * along))) * Expr(f.rows) +
                     floor_mod(part, Expr(down)) * Expr(8);
    const Expr term = floor_div(part, Expr(down)) * Expr(4 * f.run);
    return make_stmt(LoadMatrix{
        {operand.registers, {simple(i * Expr(together)), Expr(0)}},
        {operand.shared, operand.terms_first ? place(row, term + line) : place(row + line, term)},
        matrices,
        operand.terms_first});
  });
}

Stmt GpuLowering::add_products(const WarpTile& tile,
                               const std::function<ElementPlace(const Expr&)>& first_factor) {
  return each_sum(tile, [&](const Expr& i, const Expr& j) {
    return make_stmt(Mma{tile.contraction.instruction,
                         {tile.sums, {i, j, Expr(0)}},
                         first_factor(i),
                         {tile.b.registers, {j, Expr(0)}}});
  });
}

Stmt GpuLowering::multiply(const WarpTile& tile, const ChunkPlace& a, const Expr& slot_b) {
  return unrolled(tile.steps, [&](const Expr& step) {
    std::vector<Stmt> parts = {load_fragments(tile, tile.a, a.slot, simple(a.first_step + step))};
    for (const WarpTile* of = &tile; of != nullptr; of = of->second) {
      parts.push_back(load_fragments(*of, of->b, slot_b, step));
      parts.push_back(add_products(*of, [&](const Expr& i) {
        return ElementPlace{tile.a.registers, {i, Expr(0)}};
      }));
    }
    return block(std::move(parts));
  });
}

Stmt GpuLowering::committed(Stmt copy) const {
  if (compute_capability(gpu_) < kFirstWithAsyncCopy) return copy;
  return block({std::move(copy), make_stmt(Commit{})});
}

Stmt GpuLowering::copies_ahead(const WarpTile& tile,
                               const std::function<Stmt(const Expr&)>& copy) const {
  std::vector<Stmt> parts;
  for (int64_t chunk = 0; chunk < tile.ahead(); ++chunk)
    parts.push_back(committed(copy(Expr(chunk))));
  return block(std::move(parts));
}

bool GpuLowering::is_constant(const WarpOperand& operand) const {
  bool constant = true;
  visit(dag_[operand.fetch.stage].body, [&](const Expr& part) {
    const Load* read = as<Load>(part);
    constant = constant && (read == nullptr || dag_[read->tensor].constant);
  });
  return constant;
}

// All copies of constants are of the first commit: whoever waits for the first chunk waits for
// these, too.
Stmt GpuLowering::early_copies(const WarpTile& tile) {
  std::vector<Stmt> parts, others;
  for (int64_t chunk = 0; chunk < tile.ahead(); ++chunk) {
    std::vector<Stmt> late;
    const auto add = [&](const WarpTile& of, const WarpOperand& operand) {
      (is_constant(operand) ? parts : late).push_back(copy_chunk(of, operand, Expr(chunk)));
    };
    if (!tile.held) add(tile, tile.a);
    for (const WarpTile* of = &tile; of != nullptr; of = of->second) add(*of, of->b);
    others.push_back(committed(block(std::move(late))));
  }
  parts.push_back(make_stmt(GridWait{}));
  parts.insert(parts.end(), others.begin(), others.end());
  return block(std::move(parts));
}

// The first chunks on their way; then, for each, what waits until it is there, starts the one that
// takes the place of a chunk whose products are done, and adds it up. Copies of chunks past the
// last are of zeros. A device without copies beside the work stores what it loads, which the
// barriers alone order.
Stmt GpuLowering::pipeline(const WarpTile& tile,
                           const Expr& chunks,
                           const std::function<Stmt(const Expr&)>& copy,
                           const std::function<Stmt(const Expr&, const Expr&)>& add,
                           Stmt first) {
  const bool async = compute_capability(gpu_) >= kFirstWithAsyncCopy;
  const int64_t ahead = tile.ahead();
  std::vector<Stmt> parts = {first ? std::move(first) : copies_ahead(tile, copy)};
  const VarId chunk = new_var("chunk", {0, tile.chunks - 1});
  std::vector<Stmt> body = {make_stmt(Barrier{}),
                            committed(copy(var(chunk) + Expr(ahead))),
                            add(var(chunk), simple(floor_mod(var(chunk), Expr(tile.stages))))};
  const bool groups = tile.contraction.instruction->of_group();
  if (groups) body.insert(body.begin(), make_stmt(SharedFence{}));
  if (groups && tile.contraction.instruction->a == DType::kFloat32) {
    body.insert(body.begin(), round_copied(tile.a, chunk_box(tile, tile.a, var(chunk))));
    for (const WarpTile* of = &tile; of != nullptr; of = of->second)
      body.insert(body.begin(), round_copied(of->b, chunk_box(*of, of->b, var(chunk))));
  }
  if (async) body.insert(body.begin(), make_stmt(Wait{static_cast<int>(ahead) - 1}));
  parts.push_back(make_stmt(For{chunk, chunks, LoopKind::kSerial, 1, block(std::move(body))}));
  if (groups) parts.push_back(make_stmt(GroupWait{0}));
  return block(std::move(parts));
}

Stmt GpuLowering::clear_sums(const WarpTile& tile) {
  const MmaInstruction& row = *tile.contraction.instruction;
  std::vector<Stmt> parts;
  for (const WarpTile* of = &tile; of != nullptr; of = of->second) {
    parts.push_back(each_sum(*of, [&](const Expr& i, const Expr& j) {
      return unrolled(row.sum_fragment().elements(), [&](const Expr& v) {
        return make_stmt(Store{of->sums, {i, j, v}, combiner_identity(Combiner::kSum, row.sum)});
      });
    }));
  }
  return block(std::move(parts));
}

GpuLowering::Values GpuLowering::place_of_sum(
    const WarpTile& tile, Values start, const Expr& i, const Expr& j, const Expr& v) const {
  const MmaContraction& c = tile.contraction;
  const Fragment f = c.instruction->sum_fragment();
  Expr &row = start[static_cast<size_t>(c.m)], &column = start[static_cast<size_t>(c.n)];
  row = simple(row + tile.a.first + i * Expr(c.instruction->m) + f.row(tile.lane, v));
  column = simple(column + tile.b.first + j * Expr(c.instruction->n) + f.col(tile.lane, v));
  return start;
}

// Each lane has runs of neighbouring columns, which are all inside or none where they divide the
// columns: vectors.
Stmt GpuLowering::write_sums(const NestStage& root,
                             const WarpTile& tile,
                             const std::function<void(const Expr&, const Expr&)>& at_sum) {
  const MmaContraction& c = tile.contraction;
  const Fragment f = c.instruction->sum_fragment();
  const std::vector<Iterator>& axes = dag_[root.stage].axes;
  const int lanes = axes[static_cast<size_t>(c.n)].extent % f.run == 0 ? f.run : 1;
  return each_sum(tile, [&](const Expr& i, const Expr& j) {
    return unrolled(f.elements() / lanes, [&](const Expr& run) {
      const auto point = [&](const Expr& v) { return place_of_sum(tile, place_.block, i, j, v); };
      const Expr first = run * Expr(lanes);
      const Expr within = inside(root.stage, point(first), 0, axes.size());
      return if_inside(
          within, vector(lanes, [&](const Expr& lane) {
            const Expr v = simple(first + lane);
            for (const WarpTile* of = &tile; of != nullptr; of = of->second)
              state(of->sum.stage) = {of->sums, [=](const Values&) { return Values{i, j, v}; }};
            if (at_sum) at_sum(i, v);
            const Values at = point(v);
            return make_stmt(Store{state(root.stage).buffer, at, body_at(root.stage, at)});
          }));
    });
  });
}

// The sums of all warps meet where the chunks were; from there each thread takes runs of whole
// rows.
Stmt GpuLowering::write_through_shared(const NestStage& root, const WarpTile& tile) {
  const MmaContraction& c = tile.contraction;
  const Fragment f = c.instruction->sum_fragment();
  const size_t m = static_cast<size_t>(c.m), n = static_cast<size_t>(c.n);
  const Stage& s = dag_[root.stage];
  const Stmt meet = each_sum(tile, [&](const Expr& i, const Expr& j) {
    return unrolled(f.elements() / f.run, [&](const Expr& run) {
      return vector(f.run, [&](const Expr& lane) {
        const Expr v = simple(run * Expr(f.run) + lane);
        const Expr row = tile.a.first + i * Expr(c.instruction->m) + f.row(tile.lane, v);
        const Expr column = tile.b.first + j * Expr(c.instruction->n) + f.col(tile.lane, v);
        return make_stmt(
            Store{tile.block_sums, simple({row, column}), load_of(tile.sums, {i, j, v})});
      });
    });
  });
  const int64_t run = epilogue_run(s.axes[n].extent, dtype_bytes(s.dtype));
  const int64_t runs = root.block_extent(c.n) / run, all = root.block_extent(c.m) * runs;
  const int64_t rounds = ceil_div(all, place_.threads);
  const VarId round = new_var("round", {0, rounds - 1});
  const auto write = [&] {
    const Expr number = var(round) * Expr(place_.threads) + place_.thread_index;
    const Expr row = simple(floor_div(number, Expr(runs)));
    const Expr column = simple(floor_mod(number, Expr(runs)) * Expr(run));
    Values first = place_.block;
    first[m] = simple(first[m] + row);
    first[n] = simple(first[n] + column);
    const Stmt written = vector(static_cast<int>(run), [&](const Expr& lane) {
      state(tile.sum.stage) = {tile.block_sums, [=](const Values&) {
                                 return Values{row, column + lane};
                               }};
      Values at = first;
      at[n] = simple(at[n] + lane);
      return make_stmt(Store{state(root.stage).buffer, at, body_at(root.stage, at)});
    });
    return guarded(number < Expr(all),
                   if_inside(inside(root.stage, first, 0, s.axes.size()), written));
  };
  std::vector<Stmt> parts = {make_stmt(Barrier{}),
                             meet,
                             make_stmt(Barrier{}),
                             make_stmt(For{round, Expr(rounds), LoopKind::kSerial, 1, write()})};
  // Also of chunks past the last.
  if (compute_capability(gpu_) >= kFirstWithAsyncCopy)
    parts.insert(parts.begin(), make_stmt(Wait{0}));
  return block(std::move(parts));
}

void GpuLowering::hold_fragments(WarpOperand& operand) {
  operand.registers =
      hold(operand.fetch, {operand.fragments, operand.fragment.elements()}, ".fragments");
}

void GpuLowering::share(WarpOperand& operand, int64_t stages) {
  std::vector<int64_t> shape = {stages, operand.lines(), operand.width()};
  if (operand.box > 0) {
    shape.back() = operand.box;
    shape.insert(shape.begin() + 1, operand.width() / operand.box);
  }
  operand.shared = add_buffer(operand.fetch, std::move(shape), Scope::kShared);
  shared_.push_back(operand.shared);
}

GpuLowering::Values GpuLowering::shared_place(const WarpOperand& operand,
                                              const Expr& slot,
                                              const Expr& line,
                                              const Expr& at) const {
  const int64_t bytes = dtype_bytes(dag_[operand.fetch.stage].dtype);
  if (operand.box == 0) return simple({slot, line, swizzled(line, at, operand.width(), bytes)});
  const Expr inside = simple(floor_mod(at, Expr(operand.box)));
  return simple({slot,
                 floor_div(at, Expr(operand.box)),
                 line,
                 swizzled(simple(line), inside, operand.box, bytes)});
}

Stmt GpuLowering::of_warps(const std::function<Stmt(const Expr&, const Expr&)>& work) {
  const VarId warp = new_var("warp", {0, place_.threads / kWarpLanes - 1});
  const VarId lane = new_var("lane", {0, kWarpLanes - 1});
  Stmt body = with_registers(work(var(warp), var(lane)));
  body = make_stmt(Let{lane, floor_mod(place_.thread_index, Expr(kWarpLanes)), std::move(body)});
  return make_stmt(Let{warp, floor_div(place_.thread_index, Expr(kWarpLanes)), std::move(body)});
}

GpuLowering::WarpTile GpuLowering::tile_of(const NestStage& root,
                                           const NestStage& sum,
                                           const Expr& warp,
                                           const Expr& lane) const {
  const std::optional<MmaContraction>& c = nest_.tables->mmas[sum.stage];
  const MmaInstruction& row = *c->instruction;
  const Fragment f = row.sum_fragment();
  // Threads along an axis are counted by warp, or by group, and, in a warp, by lane.
  const int64_t units_n = iterations(root, c->n, LoopKind::kThread) / kColumnLanes;
  const auto fragments = [&](int axis, int64_t own) {
    return sum.extents[static_cast<size_t>(axis)] / own;
  };
  const int64_t frags_m = fragments(c->m, f.rows / kRowLanes);
  const int64_t frags_n = fragments(c->n, f.cols / kColumnLanes);
  const Expr unit = floor_div(warp, Expr(row.warps));
  const Expr unit_m = simple(floor_div(unit, Expr(units_n)) * Expr(frags_m * row.m));
  const Expr first_m = simple(unit_m + floor_mod(warp, Expr(row.warps)) * Expr(f.rows));
  const Expr first_n = simple(floor_mod(unit, Expr(units_n)) * Expr(frags_n * row.n));
  WarpTile tile{sum,
                *c,
                {nest_.of(c->a.stage), row.a_fragment(), c->a.terms_first, first_m, frags_m},
                {nest_.of(c->b.stage), row.b_fragment(), c->b.terms_first, first_n, frags_n},
                lane,
                1,
                sum.chunks(),
                sum.buffers};
  tile.steps = tile.b.terms() / row.k;
  tile.held = !attached_to(c->a.stage).empty();
  if (row.of_group()) {
    lay_in_lines(tile.a, unit_m, frags_m * row.m);
    lay_in_lines(tile.b, first_n, frags_n * row.n);
  }
  return tile;
}

void GpuLowering::hold_operand(WarpOperand& operand, const WarpTile& tile, int64_t stages) {
  share(operand, stages);
  if (!tile.contraction.instruction->of_group()) hold_fragments(operand);
}

Stmt GpuLowering::warp_tile(const NestStage& root) {
  const std::vector<const NestStage*> sums = attached_to(root, true);
  CHECK(!sums.empty()) << "a sketch of warps without a contraction for them";
  return of_warps([&](const Expr& warp, const Expr& lane) {
    std::vector<WarpTile> tiles;
    for (const NestStage* sum : sums) tiles.push_back(tile_of(root, *sum, warp, lane));
    hold_operand(tiles[0].a, tiles[0], tiles[0].held ? 1 : tiles[0].stages);
    for (WarpTile& tile : tiles) {
      hold_operand(tile.b, tile, tile.stages);
      tile.sums = hold(tile.sum,
                       {tile.a.fragments,
                        tile.b.fragments,
                        tile.contraction.instruction->sum_fragment().elements()});
    }
    if (tiles.size() > 1) tiles[0].second = &tiles[1];
    return one_tile(root, tiles[0], warp);
  });
}

Stmt GpuLowering::one_tile(const NestStage& root, WarpTile& tile, const Expr& warp) {
  const NestStage& sum = tile.sum;
  const MmaContraction& c = tile.contraction;
  if (sum.epilogue) {
    tile.block_sums = add_buffer(sum,
                                 {root.block_extent(c.m), root.block_extent(c.n) + kEpiloguePad},
                                 Scope::kShared,
                                 ".block");
    program_.buffers[static_cast<size_t>(tile.block_sums.value)].over = true;
    shared_.push_back(tile.block_sums);
  }
  const auto copy = [&](const Expr& chunk) {
    std::vector<Stmt> parts;
    if (!tile.held) parts.push_back(copy_chunk(tile, tile.a, chunk));
    for (const WarpTile* of = &tile; of != nullptr; of = of->second)
      parts.push_back(copy_chunk(*of, of->b, chunk));
    return block(std::move(parts));
  };
  const auto add = [&](const Expr& chunk, const Expr& slot) {
    const ChunkPlace a = first_operand(tile, chunk, slot);
    return c.instruction->of_group() ? multiply_by_group(tile, a, slot, 1)
                                     : multiply(tile, a, slot);
  };
  return block({pipeline(tile, Expr(tile.chunks), copy, add, first_copies(root, tile, warp, copy)),
                sum.epilogue ? write_through_shared(root, tile) : write_sums(root, tile)});
}

}  // namespace pruner
