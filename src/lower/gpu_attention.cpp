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
    const int halves = tile.kernel.of_keys.instruction->sum_fragment().rows / kRowLanes;
    return unrolled(halves, [&](const Expr& half) { return body({i, half}); });
  });
}

// Scores of keys beyond the last, and of queries beyond the last, are minus infinity.
Stmt GpuLowering::mask_scores(const AttentionTile& tile, const Expr& chunk) {
  const WarpTile& t = tile.scores;
  const StageId scores = tile.kernel.scores;
  Values start = place_.block;
  start[static_cast<size_t>(t.contraction.n)] = chunk * Expr(t.b.lines());
  return each_sum(t, [&](const Expr& i, const Expr& j) {
    return unrolled(t.contraction.instruction->sum_fragment().elements(), [&](const Expr& v) {
      const Values at = place_of_sum(t, start, i, j, v);
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
    return block({load_fragments(t, t.b, slot, step), add_products(t, [&](const Expr& i) {
                    return ElementPlace{tile.weights, {i, step, Expr(0)}};
                  })});
  });
}

// The weighed sums of a chunk are on their way until the next one's scores are there.
Stmt GpuLowering::add_keys(const AttentionTile& tile, const Expr& chunk, const Expr& slot) {
  const bool groups = tile.kernel.of_keys.instruction->of_group();
  const Stmt products = groups ? multiply_by_group(tile.scores, {Expr(0)}, slot, 0)
                               : multiply(tile.scores, {Expr(0)}, slot);
  const auto weights = [&](const Expr& i, const Expr& step) {
    return ElementPlace{tile.weights, {i, step, Expr(0)}};
  };
  return block(
      {clear_sums(tile.scores),
       products,
       mask_scores(tile, chunk),
       move_maximum(tile),
       weigh(tile),
       groups ? begin_products(tile.weighed, slot, weights) : multiply_values(tile, slot)});
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
  // Products of a group may be on their way from one chunk to the next: NVRTC has to see that there
  // is a chunk. Where all of its keys are hidden it adds nothing.
  const int64_t least = a.of_keys.instruction->of_group() ? 1 : 0;
  return simple(max(min(chunks, all), Expr(least)));
}

// The queries are copied in the group of the first chunk.
Stmt GpuLowering::attention_chunks(const AttentionTile& tile) {
  const WarpTile &scores = tile.scores, &weighed = tile.weighed;
  const auto of_scores = [&](const WarpOperand& operand, const Expr& first_key, const Expr& slot) {
    Values values = place_.block;
    values[static_cast<size_t>(scores.contraction.n)] = first_key;
    values.emplace_back(0);
    const int64_t terms = iterator_of(dag_[scores.sum.stage], scores.contraction.k).extent;
    return copy_box(operand, {scores.sum.stage, std::move(values), slot, Expr(0), terms});
  };
  const auto copy = [&](const Expr& chunk) {
    const Expr slot = simple(floor_mod(chunk, Expr(weighed.stages)));
    return block({of_scores(scores.b, simple(chunk * Expr(scores.b.lines())), slot),
                  copy_chunk(weighed, weighed.b, chunk)});
  };
  const auto add = [&](const Expr& chunk, const Expr& slot) { return add_keys(tile, chunk, slot); };
  const Stmt queries = of_scores(scores.a, Expr(0), Expr(0));
  return block({queries, pipeline(weighed, chunks_seen(tile), copy, add)});
}

GpuLowering::AttentionTile GpuLowering::attention_tile(const Expr& warp, const Expr& lane) {
  const AttentionKernel& a = *nest_.tables->attention;
  const MmaInstruction& row = *a.of_keys.instruction;
  const NestStage &products = nest_.of(a.products), &weighed = nest_.of(a.weighed);
  const auto extent = [](const NestStage& stage, int axis) {
    return stage.extents[static_cast<size_t>(axis)];
  };
  const Fragment sums = row.sum_fragment();
  const int64_t rows = extent(weighed, a.rows()) * kRowLanes / sums.rows;
  const Expr of_group = simple(floor_div(warp, Expr(row.warps)) * Expr(rows * row.m));
  const Expr first = simple(of_group + floor_mod(warp, Expr(row.warps)) * Expr(sums.rows));
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
  WarpTile values{weighed,
                  a.of_values,
                  {query, row.a_fragment(), false, first, rows},
                  {value, row.b_fragment(), true, Expr(0), value.extents.back() / row.n},
                  lane,
                  value.extents[value.extents.size() - 2] / row.k,
                  weighed.chunks(),
                  weighed.buffers};
  if (row.of_group()) {
    lay_in_lines(scores.a, of_group, rows * row.m);
    lay_in_lines(scores.b, Expr(0), scores.b.lines());
    lay_in_lines(values.b, Expr(0), values.b.width());
  }
  return {a, std::move(scores), std::move(values), {}, {}};
}

Stmt GpuLowering::attention(const NestStage& root) {
  return of_warps([&](const Expr& warp, const Expr& lane) {
    AttentionTile tile = attention_tile(warp, lane);
    hold_attention(tile);
    const AttentionKernel& a = tile.kernel;
    // The largest score of a row begins at the least number, not at minus infinity: a chunk of
    // which a query sees nothing then has exponentials of zero, not of a difference of infinities.
    const DType dtype = dag_[a.sum].dtype;
    const Expr least = float_imm(std::numeric_limits<float>::lowest(), dtype);
    const Stmt begin = each_row(tile, [&](const Values& at) {
      return block({make_stmt(Store{tile.rows.largest, at, least}),
                    make_stmt(Store{tile.rows.sum, at, float_imm(0, dtype)})});
    });
    const Stmt join = each_row(tile, [&](const Values& at) {
      return make_stmt(LaneFold{{tile.rows.sum, at}, Combiner::kSum, kLanesOfRow});
    });
    const int run = a.of_keys.instruction->sum_fragment().run;
    const Stmt chunks = attention_chunks(tile);
    const Stmt write = write_sums(root, tile.weighed, [&](const Expr& i, const Expr& v) {
      const Expr half = simple(floor_div(v, Expr(run)));
      state(a.sum) = {tile.rows.sum, [=](const Values&) { return Values{i, half}; }};
    });
    return block({clear_sums(tile.weighed), begin, chunks, join, write});
  });
}

void GpuLowering::hold_attention(AttentionTile& tile) {
  WarpTile &scores = tile.scores, &weighed = tile.weighed;
  const AttentionKernel& a = tile.kernel;
  const MmaInstruction& row = *a.of_keys.instruction;
  share(scores.a, 1);
  share(scores.b, weighed.stages);
  share(weighed.b, weighed.stages);
  if (!row.of_group())
    for (WarpOperand* operand : {&scores.a, &scores.b, &weighed.b}) hold_fragments(*operand);
  const int64_t own = row.sum_fragment().elements(), rows = scores.a.fragments;
  scores.sums = hold(nest_.of(a.products), {rows, scores.b.fragments, own});
  weighed.sums = hold(nest_.of(a.weighed), {rows, weighed.b.fragments, own});
  tile.weights =
      hold(nest_.of(a.value), {rows, weighed.steps, row.a_fragment().elements()}, ".weights");
  const int64_t halves = row.sum_fragment().rows / kRowLanes;
  tile.rows.largest = hold(nest_.of(a.largest), {rows, halves});
  tile.rows.sum = hold(nest_.of(a.sum), {rows, halves});
  tile.rows.factor = hold(nest_.of(a.largest), {rows, halves}, ".factor");
}

}  // namespace pruner
