// The warps of a block compute rows of attention, chunk after chunk of keys (FlashAttention-2, Dao,
// 2023). Of each row a warp keeps the largest score m so far, the sum l of the exponentials
// e = exp(score - m), and the weighed sum o of the values. A chunk with a larger maximum m' scales
// both by exp(m - m') before its own exponentials are added. The registers of a product's sums are
// those of a first factor (space/fragment.h), so that scores and weights never leave them.
#include <limits>

#include "lower/gpu_lowering.h"
#include "space/structure.h"

namespace pruner {
namespace {

constexpr int kLanesOfRow = 4;  // lanes that share a row of a fragment of sums

}  // namespace

// A row of a fragment of sums has two neighbouring elements of a lane; the lane has rows 8 apart.
Stmt GpuLowering::each_row(const AttentionTile& tile,
                           const std::function<Stmt(const Values&)>& body) {
  return unrolled(tile.scores.a.fragments, [&](const Expr& i) {
    return unrolled(tile.kernel.of_keys.instruction->m / kRowLanes, [&](const Expr& half) {
      return body({i, half});
    });
  });
}

Stmt GpuLowering::clear_sums(const WarpTile& tile) {
  const MmaInstruction& row = *tile.contraction.instruction;
  return each_sum(tile, [&](const Expr& i, const Expr& j) {
    return unrolled(row.sum_fragment().elements(), [&](const Expr& v) {
      return make_stmt(Store{tile.sums, {i, j, v}, combiner_identity(Combiner::kSum, row.sum)});
    });
  });
}

// Scores of keys beyond the last, and of queries beyond the last, are minus infinity.
Stmt GpuLowering::mask_scores(const AttentionTile& tile, const Expr& chunk) {
  const WarpTile& t = tile.scores;
  const Fragment f = t.contraction.instruction->sum_fragment();
  const StageId scores = tile.kernel.scores;
  return each_sum(t, [&](const Expr& i, const Expr& j) {
    return unrolled(f.elements(), [&](const Expr& v) {
      Values at = place_.block;
      Expr& row = at[static_cast<size_t>(t.contraction.m)];
      row = simple(row + t.a.first + i * Expr(f.rows) + f.row(t.lane, v));
      at[static_cast<size_t>(t.contraction.n)] =
          simple(chunk * Expr(t.b.lines()) + j * Expr(f.cols) + f.col(t.lane, v));
      state(tile.kernel.products) = {t.sums, [=](const Values&) { return Values{i, j, v}; }};
      const Expr value = body_at(scores, at);
      const Expr within = inside(scores, at, 0, at.size());
      const Expr lowest = combiner_identity(Combiner::kMax, value->dtype);
      return make_stmt(
          Store{t.sums, {i, j, v}, within ? select(simple(within), value, lowest) : value});
    });
  });
}

// m' = max(m, scores); l and o are scaled by exp(m - m').
Stmt GpuLowering::move_maximum(const AttentionTile& tile) {
  const RowBuffers& rows = tile.rows;
  const Fragment f = tile.kernel.of_keys.instruction->sum_fragment();
  return each_row(tile, [&](const Values& at) {
    const Expr &i = at[0], &half = at[1];
    const auto each = [&](int64_t fragments,
                          const std::function<Stmt(const Expr&, const Expr&)>& fn) {
      return unrolled(fragments, [&](const Expr& j) {
        return unrolled(f.run,
                        [&](const Expr& v) { return fn(j, simple(half * Expr(f.run) + v)); });
      });
    };
    const Stmt keep = make_stmt(Store{rows.factor, at, load_of(rows.largest, at)});
    const Stmt fold = each(tile.scores.b.fragments, [&](const Expr& j, const Expr& v) {
      return make_stmt(Store{
          rows.largest, at, max(load_of(rows.largest, at), load_of(tile.scores.sums, {i, j, v}))});
    });
    const Stmt join = make_stmt(LaneFold{{rows.largest, at}, Combiner::kMax, kLanesOfRow});
    const Expr moved = load_of(rows.factor, at) - load_of(rows.largest, at);
    const Stmt factor = make_stmt(Store{rows.factor, at, call(Intrinsic::kExp, {moved})});
    const auto scaled = [&](TensorId buffer, const Values& place) {
      return make_stmt(Store{buffer, place, load_of(buffer, place) * load_of(rows.factor, at)});
    };
    return block({keep,
                  fold,
                  join,
                  factor,
                  scaled(rows.sum, at),
                  each(tile.weighed.b.fragments, [&](const Expr& j, const Expr& v) {
                    return scaled(tile.weighed.sums, {i, j, v});
                  })});
  });
}

// e, their sum, and the weights: element v of term step t is of fragment 2 t + v / 4 of the scores.
Stmt GpuLowering::weigh(const AttentionTile& tile) {
  const WarpTile& t = tile.scores;
  const AttentionKernel& a = tile.kernel;
  const Fragment f = t.contraction.instruction->sum_fragment();
  const Fragment factor = t.contraction.instruction->a_fragment();
  const auto row_of = [&](const Expr& v) { return simple(floor_div(v, Expr(f.run))); };
  const Stmt exponentials = each_sum(t, [&](const Expr& i, const Expr& j) {
    return unrolled(f.elements(), [&](const Expr& v) {
      const Values row = {i, row_of(v)};
      state(a.scores) = {t.sums, [=](const Values&) { return Values{i, j, v}; }};
      state(a.largest) = {tile.rows.largest, [=](const Values&) { return row; }};
      const Expr value = body_at(a.exps, Values(dag_[a.exps].axes.size(), Expr(0)));
      const Expr sum = load_of(tile.rows.sum, row) + load_of(t.sums, {i, j, v});
      return block(
          {make_stmt(Store{t.sums, {i, j, v}, value}), make_stmt(Store{tile.rows.sum, row, sum})});
    });
  });
  const DType dtype = program_[tile.weights].dtype;
  const Stmt weights = unrolled(t.a.fragments, [&](const Expr& i) {
    return unrolled(tile.weighed.steps, [&](const Expr& step) {
      return unrolled(factor.elements(), [&](const Expr& v) {
        const Expr of_step = floor_div(v, Expr(f.elements()));
        const Expr e = load_of(t.sums,
                               simple({i,
                                       step * Expr(factor.elements() / f.elements()) + of_step,
                                       floor_mod(v, Expr(f.elements()))}));
        return make_stmt(Store{tile.weights, {i, step, v}, cast(dtype, e)});
      });
    });
  });
  return block({exponentials, weights});
}

Stmt GpuLowering::multiply_values(const AttentionTile& tile, const Expr& slot) {
  const WarpTile& t = tile.weighed;
  return unrolled(t.steps, [&](const Expr& step) {
    return block(
        {load_fragments(t, t.b, slot, step), each_sum(t, [&](const Expr& i, const Expr& j) {
           return make_stmt(Mma{t.contraction.instruction,
                                {t.sums, {i, j, Expr(0)}},
                                {tile.weights, {i, step, Expr(0)}},
                                {t.b.registers, {j, Expr(0)}}});
         })});
  });
}

Stmt GpuLowering::add_keys(const AttentionTile& tile, const Expr& chunk) {
  const WarpTile& t = tile.scores;
  const Expr slot = simple(floor_mod(chunk, Expr(tile.weighed.stages)));
  const Stmt products = unrolled(t.steps, [&](const Expr& step) {
    return block({load_fragments(t, t.a, Expr(0), step),
                  load_fragments(t, t.b, slot, step),
                  each_sum(t, [&](const Expr& i, const Expr& j) {
                    return make_stmt(Mma{t.contraction.instruction,
                                         {t.sums, {i, j, Expr(0)}},
                                         {t.a.registers, {i, Expr(0)}},
                                         {t.b.registers, {j, Expr(0)}}});
                  })});
  });
  return block({clear_sums(t),
                products,
                mask_scores(tile, chunk),
                move_maximum(tile),
                weigh(tile),
                multiply_values(tile, slot)});
}

// The chunks up to the last key that a query of the block sees, where the scores of all later keys
// are known to be minus infinity (tensor/constant_part.h), as in causal attention.
Expr GpuLowering::chunks_seen(const AttentionTile& tile) const {
  const AttentionKernel& a = tile.kernel;
  const Expr all(tile.weighed.chunks);
  const std::optional<ConstantPart>& hidden = nest_.tables->constant_parts[a.scores];
  const VarId rows{a.rows()}, columns{a.columns()};
  if (!hidden || hidden->value != -std::numeric_limits<double>::infinity() ||
      hidden->beyond.coefficient(columns) != 1 || hidden->beyond.coefficient(rows) > 0)
    return all;
  // A score is hidden if key + rest > 0; the last query of the block has the least rest.
  Expr rest(hidden->beyond.constant);
  for (const auto& [axis, coefficient] : hidden->beyond.terms) {
    if (axis == columns) continue;
    Expr at = place_.block[static_cast<size_t>(axis.value)];
    if (axis == rows) at = at + Expr(tile.scores.a.lines() - 1);
    rest = rest + at * Expr(coefficient);
  }
  const Expr chunks = floor_div(Expr(0) - rest, Expr(tile.scores.b.lines())) + Expr(1);
  return simple(max(min(chunks, all), Expr(0)));
}

// The loop is that of pipeline(); the queries are copied in the group of the first chunk.
Stmt GpuLowering::attention_chunks(const AttentionTile& tile) {
  const WarpTile &scores = tile.scores, &weighed = tile.weighed;
  const auto of_scores = [&](const WarpOperand& operand, const Expr& first_key, const Expr& slot) {
    Values values = place_.block;
    values[static_cast<size_t>(scores.contraction.n)] = first_key;
    values.emplace_back(0);
    const int64_t terms = iterator_of(dag_[scores.sum.stage], scores.contraction.k).extent;
    return copy_box(operand, {scores.sum.stage, std::move(values), slot, Expr(0), terms});
  };
  const auto copies = [&](const Expr& chunk) {
    const Expr slot = simple(floor_mod(chunk, Expr(weighed.stages)));
    return block({of_scores(scores.b, simple(chunk * Expr(scores.b.lines())), slot),
                  copy_chunk(weighed, weighed.b, chunk),
                  make_stmt(Commit{})});
  };
  const int64_t ahead = weighed.stages - 1;
  std::vector<Stmt> parts = {of_scores(scores.a, Expr(0), Expr(0))};
  for (int64_t chunk = 0; chunk < ahead; ++chunk) parts.push_back(copies(Expr(chunk)));
  const VarId chunk = new_var("chunk", {0, weighed.chunks - 1});
  parts.push_back(make_stmt(For{chunk,
                                chunks_seen(tile),
                                LoopKind::kSerial,
                                1,
                                block({make_stmt(Wait{static_cast<int>(ahead) - 1}),
                                       make_stmt(Barrier{}),
                                       copies(var(chunk) + Expr(ahead)),
                                       add_keys(tile, var(chunk))})}));
  return block(std::move(parts));
}

GpuLowering::AttentionTile GpuLowering::attention_tile(const Expr& warp, const Expr& lane) {
  const AttentionKernel& a = *nest_.tables->attention;
  const MmaInstruction& row = *a.of_keys.instruction;
  const NestStage &products = nest_.of(a.products), &weighed = nest_.of(a.weighed);
  const auto extent = [](const NestStage& stage, int axis) {
    return stage.extents[static_cast<size_t>(axis)];
  };
  const int64_t rows = extent(weighed, a.rows()) * kRowLanes / row.m;
  const Expr first = simple(warp * Expr(rows * row.m));
  const NestStage &query = nest_.of(a.query), &key = nest_.of(a.key), &value = nest_.of(a.value);
  WarpTile scores{
      products,
      a.of_keys,
      {query, row.a_fragment(), false, first, rows},
      {key, row.b_fragment(), false, Expr(0), key.extents[key.extents.size() - 2] / row.n},
      lane,
      query.extents.back() / row.k,
      1,
      1};
  int64_t chunks = 1;
  for (int l = 0; l < weighed.chunk_loops; ++l)
    chunks *= weighed.loops[static_cast<size_t>(l)].extent;
  WarpTile values{weighed,
                  a.of_values,
                  {query, row.a_fragment(), false, first, rows},
                  {value, row.b_fragment(), true, Expr(0), value.extents.back() / row.n},
                  lane,
                  value.extents[value.extents.size() - 2] / row.k,
                  chunks,
                  weighed.buffers};
  return {a, std::move(scores), std::move(values), {}, {}};
}

Stmt GpuLowering::attention(const NestStage& root) {
  const VarId warp = new_var("warp", {0, place_.threads / kWarpLanes - 1});
  const VarId lane = new_var("lane", {0, kWarpLanes - 1});
  AttentionTile tile = attention_tile(var(warp), var(lane));
  WarpTile &scores = tile.scores, &weighed = tile.weighed;
  const AttentionKernel& a = tile.kernel;
  const MmaInstruction& row = *a.of_keys.instruction;
  std::vector<TensorId> registers;
  const auto hold = [&](StageId stage, std::vector<int64_t> held, const char* what) {
    registers.push_back(add_buffer(nest_.of(stage), std::move(held), Scope::kRegister, what));
    return registers.back();
  };
  const auto share = [&](WarpOperand& operand, int64_t stages) {
    operand.shared =
        add_buffer(operand.fetch, {stages, operand.lines(), operand.width()}, Scope::kShared);
    shared_.push_back(operand.shared);
  };
  share(scores.a, 1);
  share(scores.b, weighed.stages);
  share(weighed.b, weighed.stages);
  for (WarpOperand* operand : {&scores.a, &scores.b, &weighed.b})
    operand->registers = hold(
        operand->fetch.stage, {operand->fragments, operand->fragment.elements()}, ".fragments");
  const int64_t own = row.sum_fragment().elements(), rows = scores.a.fragments;
  scores.sums = hold(a.products, {rows, scores.b.fragments, own}, "");
  weighed.sums = hold(a.weighed, {rows, weighed.b.fragments, own}, "");
  tile.weights = hold(a.value, {rows, weighed.steps, row.a_fragment().elements()}, ".weights");
  const int64_t halves = row.m / kRowLanes;
  tile.rows = {hold(a.largest, {rows, halves}, ""),
               hold(a.sum, {rows, halves}, ""),
               hold(a.largest, {rows, halves}, ".factor")};

  // The largest score of a row begins at the least number, not at minus infinity: a chunk of which
  // a query sees nothing then has exponentials of zero, not of a difference of infinities.
  const DType dtype = dag_[a.sum].dtype;
  const Stmt begin = each_row(tile, [&](const Values& at) {
    return block(
        {make_stmt(
             Store{tile.rows.largest, at, float_imm(std::numeric_limits<float>::lowest(), dtype)}),
         make_stmt(Store{tile.rows.sum, at, float_imm(0, dtype)})});
  });
  const Stmt join = each_row(tile, [&](const Values& at) {
    return make_stmt(LaneFold{{tile.rows.sum, at}, Combiner::kSum, kLanesOfRow});
  });
  const Fragment f = row.sum_fragment();
  const Stmt chunks = attention_chunks(tile);
  const Stmt write = write_sums(root, weighed, [&](const Expr& i, const Expr& v) {
    const Expr half = simple(floor_div(v, Expr(f.run)));
    state(a.sum) = {tile.rows.sum, [=](const Values&) { return Values{i, half}; }};
  });
  Stmt body = block({clear_sums(weighed), begin, chunks, join, write});
  for (const TensorId buffer : registers) body = make_stmt(Allocate{buffer, std::move(body)});
  body = make_stmt(Let{lane, floor_mod(place_.thread_index, Expr(kWarpLanes)), std::move(body)});
  return make_stmt(Let{warp, floor_div(place_.thread_index, Expr(kWarpLanes)), std::move(body)});
}

}  // namespace pruner
