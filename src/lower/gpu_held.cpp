// An operand of a contraction that its block computes once and holds in shared memory, before the
// chunks of the product: rows that are normalized, a warp a row, or elements that need a sum of
// their own, such as a depthwise convolution's. The copies of the other operand are on their way
// meanwhile. Rows beyond the operand's last are that row again; their sums are not stored.
#include <algorithm>

#include "lower/gpu_lowering.h"
#include "space/structure.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int64_t kMostTerms = 25;  // terms of a sum that is written out: 5 x 5 taps

// Returns the indices at which a body reads a stage, which it does once.
const std::vector<Expr>& indices_read(const Expr& body, StageId stage) {
  const Load* found = nullptr;
  visit(body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read != nullptr && read->tensor == stage) found = read;
  });
  CHECK(found != nullptr) << "a held operand does not read its reduction";
  return found->indices;
}

}  // namespace

Stmt GpuLowering::first_copies(const NestStage& root,
                               const WarpTile& tile,
                               const Expr& warp,
                               const std::function<Stmt(const Expr&)>& copy) {
  const bool reduces = !attached_to(root, false).empty();
  const Stmt clear = clear_sums(tile);
  std::vector<Stmt> parts = {begins_early() ? early_copies(tile) : copies_ahead(tile, copy)};
  if (reduces) parts.push_back(reduce_rows(root, tile, warp));
  if (tile.held)
    parts.push_back(tile.a.fetch.structure == &kHeldRows ? hold_rows(tile, warp)
                                                         : hold_elements(tile));
  // The registers of the sums are free for rows before.
  const bool last = tile.held || reduces;
  parts.insert(last ? parts.end() : parts.begin(), clear);
  // NVRTC may set sums of a group to zero later, among products that are on their way, where it
  // sees only one chunk. This waits for the zeros.
  const bool group = tile.contraction.instruction->of_group();
  if (group && (last || tile.second || tile.chunks == 1)) parts.push_back(make_stmt(GroupWait{0}));
  return block(std::move(parts));
}

GpuLowering::Values GpuLowering::at_line(StageId id,
                                         Values at,
                                         size_t axis,
                                         const Expr& line) const {
  at[axis] = simple(min(at[axis] + line, Expr(dag_[id].axes[axis].extent - 1)));
  return at;
}

Stmt GpuLowering::store_held(const WarpOperand& operand,
                             const Expr& line,
                             const Expr& first,
                             const Expr& lane,
                             const Expr& value) const {
  Values to = shared_place(operand, Expr(0), line, first);
  to.back() = simple(to.back() + lane);
  return make_stmt(Store{operand.shared, to, value});
}

GpuLowering::Values GpuLowering::held_start(const WarpTile& tile) const {
  const CopiedBox box = chunk_box(tile, tile.a, Expr(0));
  return simple(region_start(nest_, tile.a.fetch.stage, box.reader, box.values));
}

Stmt GpuLowering::reduce_lines(int64_t lines,
                               const std::vector<const NestStage*>& reductions,
                               const NestStage* root,
                               const WarpTile& tile,
                               const Expr& warp,
                               const std::function<Values(const Expr& line)>& place,
                               const std::function<Stmt(const ReducedRow&)>& finish) {
  const int64_t warps = place_.threads / kWarpLanes, rounds = ceil_div(lines, warps);
  const Place of_block = place_;
  place_.lane = tile.lane;
  place_.lanes = kWarpLanes;
  const int64_t count = dag_[reductions[0]->stage].reduce_size();
  const int64_t together = rows_at_once(rounds, count);
  const auto batch = [&](const Expr& number) {
    std::vector<ReducedRow> rows;
    for (int64_t i = 0; i < together; ++i) {
      ReducedRow row{simple((number * Expr(together) + Expr(i)) * Expr(warps) + warp), {}, {}, {}};
      // A line past the block's last is not stored.
      row.at = place(simple(min(row.line, Expr(lines - 1))));
      row.held = held_rows(reductions, root);
      for (const HeldRow& h : row.held.tensors) registers_.push_back(h.registers);
      for (const NestStage* reduction : reductions)
        row.sums.push_back(hold(*reduction, {1}, ".sum"));
      rows.push_back(std::move(row));
    }
    std::vector<Stmt> body;
    for (const ReducedRow& row : rows)
      if (!row.held.tensors.empty()) body.push_back(load_rows(row.held, count, row.at));
    for (size_t r = 0; r < reductions.size(); ++r) {
      for (const ReducedRow& row : rows) {
        read_sums(reductions, row, r);
        body.push_back(row_reduction(*reductions[r], row.at, row.held, row.sums[r]));
        read_memory(row.held);
      }
    }
    for (const ReducedRow& row : rows) {
      read_sums(reductions, row, reductions.size());
      body.push_back(guarded(row.line < Expr(lines), finish(row)));
      read_memory(row.held);
    }
    return block(std::move(body));
  };
  Stmt result = repeated(rounds / together, LoopKind::kSerial, batch);
  place_ = of_block;
  return result;
}

// Reads of the first `count` reductions become reads of a row's sums.
void GpuLowering::read_sums(const std::vector<const NestStage*>& reductions,
                            const ReducedRow& row,
                            size_t count) {
  for (size_t r = 0; r < count; ++r)
    state(reductions[r]->stage) = {row.sums[r], [](const Values&) { return Values{Expr(0)}; }};
}

Stmt GpuLowering::reduce_rows(const NestStage& root, const WarpTile& tile, const Expr& warp) {
  const auto m = static_cast<size_t>(tile.contraction.m);
  const int64_t lines = root.block_extent(tile.contraction.m);
  const std::vector<const NestStage*> reductions = attached_to(root, false);
  std::vector<TensorId> results;
  for (const NestStage* reduction : reductions) {
    results.push_back(add_buffer(*reduction, {lines}, Scope::kShared));
    shared_.push_back(results.back());
  }
  const auto place = [&](const Expr& line) { return at_line(root.stage, place_.block, m, line); };
  const auto finish = [&](const ReducedRow& row) {
    std::vector<Stmt> stores;
    for (size_t i = 0; i < reductions.size(); ++i)
      stores.push_back(make_stmt(Store{results[i], {row.line}, load_of(row.sums[i], {Expr(0)})}));
    return make_stmt(If{tile.lane < Expr(1), block(std::move(stores))});
  };
  Stmt result = reduce_lines(lines, reductions, nullptr, tile, warp, place, finish);
  const Expr first = place_.block[m];
  for (size_t i = 0; i < reductions.size(); ++i) {
    state(reductions[i]->stage) = {
        results[i], [=, this](const Values& row) { return Values{simple(row[m] - first)}; }};
  }
  return result;
}

Stmt GpuLowering::hold_rows(const WarpTile& tile, const Expr& warp) {
  const WarpOperand& operand = tile.a;
  const StageId id = operand.fetch.stage;
  const Stage& s = dag_[id];
  const size_t along = s.axes.size() - 1;
  const int64_t count = s.axes[along].extent;
  const Values start = held_start(tile);
  const auto place = [&](const Expr& line) { return at_line(id, start, along - 1, line); };
  const auto finish = [&](const ReducedRow& row) {
    const auto store = [&](const Expr& first, const Expr& lane, const Expr& value) {
      return store_held(operand, row.line, first, lane, value);
    };
    std::vector<Stmt> body = {
        each_run(row.held, count, [&](const Expr& first, const Expr& held_at) {
          return vector(row.held.lanes, [&](const Expr& lane) {
            read_held(row.held, simple(held_at + lane));
            Values point = row.at;
            point[along] = simple(first + lane);
            return store(first, lane, body_at(id, point));
          });
        })};
    // The last chunk may reach beyond the terms.
    const int64_t beyond = operand.width() - count;
    if (beyond > 0) {
      body.push_back(unrolled(ceil_div(beyond, kWarpLanes), [&](const Expr& part) {
        const Expr term = simple(Expr(count) + part * Expr(kWarpLanes) + tile.lane);
        return guarded(term < Expr(operand.width()), store(term, Expr(0), float_imm(0, s.dtype)));
      }));
    }
    return block(std::move(body));
  };
  return reduce_lines(operand.lines(), attached_to(id), &operand.fetch, tile, warp, place, finish);
}

Stmt GpuLowering::fold_neighbours(const NestStage& reduction,
                                  const WarpOperand& operand,
                                  const Values& point,
                                  int64_t lanes,
                                  TensorId sums) {
  const Stage& s = dag_[reduction.stage];
  const std::vector<Expr>& read = indices_read(dag_[operand.fetch.stage].body, reduction.stage);
  const auto each_lane = [&](const std::function<Expr(const Expr& lane)>& value) {
    return vector(static_cast<int>(lanes), [&](const Expr& lane) {
      return make_stmt(Store{sums, {lane}, value(lane)});
    });
  };
  const auto at_lane = [&](const Values& reduced, const Expr& lane) {
    Values element = point;
    element.back() = simple(element.back() + lane);
    Values at;
    for (const Expr& index : read) at.push_back(simple(substitute(index, element)));
    at.insert(at.end(), reduced.begin() + static_cast<int64_t>(s.axes.size()), reduced.end());
    return at;
  };
  NestStage loops = reduction;
  std::erase_if(loops.loops, [&](const NestLoop& loop) { return loop.axis < std::ssize(s.axes); });
  if (s.reduce_size() <= kMostTerms)
    for (NestLoop& loop : loops.loops) loop.kind = LoopKind::kUnroll;
  const Values none(s.axes.size() + s.reduce_axes.size(), Expr(0));
  const Stmt add = thread_loops(loops, 0, kMostUnrolled, {none, none}, [&](const Point& p) {
    GuardedLoads loads;
    const Stmt combined = each_lane([&](const Expr& lane) {
      const Expr term = body_at(reduction.stage, at_lane(p.values, lane));
      return combine(s.combiner, load_of(sums, {lane}), take_guarded_loads(term, lane, loads));
    });
    std::vector<Stmt> body;
    for (size_t i = 0; i < loads.size(); ++i) body.push_back(load_neighbours(loads[i], lanes));
    body.push_back(combined);
    return block(std::move(body));
  });
  return block(
      {each_lane([&](const Expr&) { return combiner_identity(s.combiner, s.dtype); }), add});
}

// Replaces the loads that a condition guards, the same for all lanes, by loads of registers:
// neighbours are then loaded at once.
Expr GpuLowering::take_guarded_loads(const Expr& term, const Expr& lane, GuardedLoads& loads) {
  const Var* var = as<Var>(lane);
  if (var == nullptr) return term;
  return rewrite(term, [&](const Expr& e) -> Expr {
    const Select* guarded = as<Select>(e);
    const Load* read = guarded == nullptr ? nullptr : as<Load>(guarded->a);
    if (read == nullptr || reads(guarded->condition, var->id) || !is_leaf(guarded->b))
      return Expr();
    const TensorId taken = program_.add_buffer({program_[read->tensor].name + ".taken",
                                                e->dtype,
                                                {program_.ranges[var->id.value].second + 1},
                                                Scope::kRegister,
                                                1,
                                                false,
                                                {},
                                                0});
    registers_.push_back(taken);
    loads.push_back({guarded->condition, guarded->a, guarded->b, var->id, taken});
    return load_of(taken, {lane});
  });
}

Stmt GpuLowering::load_neighbours(const GuardedLoad& guarded, int64_t lanes) {
  const auto each_lane = [&](const Expr& value) {
    return vector(static_cast<int>(lanes), [&](const Expr& lane) {
      const Expr own = rewrite(value, [&](const Expr& e) {
        const Var* var = as<Var>(e);
        return var != nullptr && var->id == guarded.lane ? lane : Expr();
      });
      return make_stmt(Store{guarded.taken, {lane}, own});
    });
  };
  return block(
      {each_lane(guarded.otherwise), make_stmt(If{guarded.condition, each_lane(guarded.value)})});
}

Stmt GpuLowering::hold_elements(const WarpTile& tile) {
  const WarpOperand& operand = tile.a;
  const StageId id = operand.fetch.stage;
  const Stage& s = dag_[id];
  const size_t along = s.axes.size() - 1;
  const int64_t count = s.axes[along].extent;
  int64_t lanes = gpu_.vector_bytes / dtype_bytes(s.dtype);
  while (lanes > 1 && (count % lanes != 0 || operand.width() % lanes != 0)) lanes /= 2;
  const std::vector<const NestStage*> reductions = attached_to(id);
  std::vector<TensorId> sums;
  for (const NestStage* reduction : reductions) sums.push_back(hold(*reduction, {lanes}, ".sum"));
  const Values start = held_start(tile);
  return each_copied_run(
      operand,
      lanes,
      [&](const Expr& line, const Expr& at) {
        Values point = at_line(id, start, along - 1, line);
        point[along] = at;
        std::vector<Stmt> body;
        for (size_t i = 0; i < reductions.size(); ++i) {
          body.push_back(fold_neighbours(*reductions[i], operand, point, lanes, sums[i]));
        }
        const auto store = [&](const std::function<Expr(const Expr&)>& value) {
          return vector(static_cast<int>(lanes), [&](const Expr& lane) {
            return store_held(operand, line, at, lane, value(lane));
          });
        };
        body.push_back(store([&](const Expr& lane) {
          for (size_t i = 0; i < reductions.size(); ++i)
            state(reductions[i]->stage) = {sums[i], [lane](const Values&) { return Values{lane}; }};
          Values element = point;
          element[along] = simple(at + lane);
          return body_at(id, element);
        }));
        // The last chunk may reach beyond the terms.
        const Expr inside = simple(at < Expr(count));
        if (always(inside)) return block(std::move(body));
        const Stmt zeros = store([&](const Expr&) { return float_imm(0, s.dtype); });
        return block({make_stmt(If{inside, block(std::move(body))}),
                      make_stmt(If{simple(Expr(count - 1) < at), zeros})});
      },
      LoopKind::kSerial);
}

}  // namespace pruner
