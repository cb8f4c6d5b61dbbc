// Statements of a candidate's loop nest. A reduction is two stores, its first value and its update,
// as in Ansor's programs.
#include <algorithm>
#include <bit>

#include "analysis/nest_loops.h"
#include "analysis/operand.h"
#include "analysis/register_tile.h"
#include "analysis/statements.h"
#include "analysis/warp_lanes.h"
#include "space/dot.h"
#include "space/plan.h"
#include "space/read_box.h"
#include "support/ceil_div.h"
#include "target/dot_rates.h"
#include "tensor/scalar_ops.h"

namespace pruner {
namespace {

// One dimension of a buffer as it is stored: (index / divisor) % modulus of an original dimension.
struct StoredDim {
  int dim = 0;
  int64_t divisor = 1, modulus = 0;  // 0: none
};

// A stage's own place: index d is iterator d.
const std::vector<std::optional<Affine>>& own_dims() {
  static const std::vector<std::optional<Affine>> dims = [] {
    constexpr int kMostDims = 16;
    std::vector<std::optional<Affine>> made;
    for (int d = 0; d < kMostDims; ++d) made.push_back(Affine{{{VarId{d}, 1}}, 0});
    return made;
  }();
  return dims;
}

class Maker {
 public:
  explicit Maker(const LoopNest& nest)
      : nest_(nest), dag_(*nest.dag), tables_(*nest.tables), loops_(nest) {
    out_.statements.reserve(2 * nest.stages.size());
    out_.loops.reserve(24 * nest.stages.size());
    out_.accesses.reserve(6 * nest.stages.size());
    out_.uses.reserve(48 * nest.stages.size());
    out_.sizes.reserve(192 * nest.stages.size());
  }

  Statements run() {
    out_.identities = loops_.identities();
    add_buffers();
    const int stages = static_cast<int>(nest_.stages.size());
    kernel_of_.assign(nest_.stages.size(), 0);
    for (int p = 0; p < stages; ++p) {
      if (loops_.root(p) == p) kernel_of_[p] = out_.kernels++;
    }
    for (int p = 0; p < stages; ++p) {
      if (loops_.root(p) == p) add_stage(p);
    }
    return std::move(out_);
  }

 private:
  const NestStage& nest(int p) const { return nest_.stages[p]; }
  const Stage& stage(int p) const { return dag_[nest(p).stage]; }

  // In the program's order: what hangs outside of the reduction, the first value, what hangs inside
  // (what threads fetch together always does), the update.
  void add_stage(int p) {
    hold_buffer(p);
    int spatial = 0;
    for (const NestLoop& loop : nest(p).loops) {
      if (loop.axis == kFusedReduce || loop.axis >= static_cast<int>(stage(p).axes.size())) break;
      ++spatial;
    }
    const auto hanging = [&](bool inside) {
      for (int q = 0; q < p; ++q) {
        if (nest(q).at != nest(p).stage) continue;
        // All stages of attention are made anew for each chunk of keys, also if there is one chunk.
        const bool each_chunk = stage(p).is_reduction() &&
                                (nest(q).scope == Scope::kShared || tables_.attention.has_value());
        if ((each_chunk || nest(q).depth > spatial) == inside) add_stage(q);
      }
    };
    hanging(false);
    if (stage(p).is_reduction()) add_statement(p, true);
    hanging(true);
    add_statement(p, false);
  }

  void add_buffers() {
    out_.buffers.resize(dag_.stages.size());
    for (size_t s = 0; s < dag_.stages.size(); ++s) {
      StatementBuffer& buffer = out_.buffers[s];
      const Stage& tensor = dag_.stages[s];
      buffer.element_bytes = static_cast<int>(dtype_bytes(tensor.dtype));
      buffer.first_dim = static_cast<int>(out_.shape.size());
      const PackSpec* packing = packing_of(nest_, StageId{static_cast<int32_t>(s)});
      if (packing != nullptr && !packing->order.empty()) {
        add_packed_dims(*packing, tensor);
      } else {
        for (size_t d = 0; d < tensor.axes.size(); ++d) {
          dims_.push_back({static_cast<int>(d), 1, 0});
          out_.shape.push_back(tensor.axes[d].extent);
        }
      }
      buffer.dims = static_cast<int>(out_.shape.size()) - buffer.first_dim;
    }
    out_.held = out_.shape;
  }

  // Blocks of a dimension stand behind all dimensions, outer before inner.
  void add_packed_dims(const PackSpec& spec, const Stage& tensor) {
    const auto divisor_after = [&](int dim, size_t block) {
      int64_t divisor = 1;
      for (size_t b = block; b < spec.blocks.size(); ++b)
        divisor *= spec.blocks[b].first == dim ? spec.blocks[b].second : 1;
      return divisor;
    };
    for (const int dim : spec.order) {
      const int64_t divisor = divisor_after(dim, 0);
      dims_.push_back({dim, divisor, 0});
      const int64_t extent = tensor.axes[dim].extent;
      out_.shape.push_back(ceil_div(extent, divisor));
    }
    for (size_t b = 0; b < spec.blocks.size(); ++b) {
      const auto [dim, size] = spec.blocks[b];
      dims_.push_back({dim, divisor_after(dim, b + 1), size});
      out_.shape.push_back(size);
    }
  }

  // Sets the memory that the stage's buffer lies in, and how much of the buffer is held at a time.
  void hold_buffer(int p) {
    StatementBuffer& buffer = out_.buffers[nest(p).stage.value];
    switch (nest(p).scope) {
      case Scope::kArgument:
      case Scope::kWorkspace: buffer.scope = BufferScope::kGlobal; break;
      case Scope::kShared: buffer.scope = BufferScope::kShared; break;
      case Scope::kLocal:
      case Scope::kRegister: buffer.scope = BufferScope::kLocal; break;
    }
    if (nest(p).at.valid())
      std::ranges::copy(nest(p).extents, out_.held.begin() + buffer.first_dim);
    double elements = 1, outside = 1;
    for (const int64_t extent : nest(p).extents) elements *= static_cast<double>(extent);
    const auto groups = loops_.groups(p).first(static_cast<size_t>(loops_.inherited(p)));
    for (const LoopGroup& group : groups) {
      outside *= static_cast<double>(group.loop.extent);
      // A virtual thread's part of an accumulator is its own; threads that reduce a row together
      // have one each.
      if (group.loop.role == LoopRole::kVThread && buffer.scope == BufferScope::kLocal)
        elements /= static_cast<double>(group.loop.extent);
      if (group.loop.role == LoopRole::kThreadX && group.reduces)
        elements *= static_cast<double>(group.loop.extent);
    }
    if (buffer.scope == BufferScope::kShared && nest(p).at.valid()) elements *= buffers_of(p);
    buffer.allocated = elements;
    buffer.realize_iterations = outside;
  }

  // Returns the number of chunks that shared memory holds of the operand that stage `p` fetches.
  double buffers_of(int p) const {
    if (tables_.attention && tables_.attention->query == nest(p).stage) return 1;
    if (is_held(nest_, nest(p))) return 1;
    return static_cast<double>(nest(tables_.plan_of[nest(p).at]).buffers);
  }

  // Returns the unroll limit of a stage; a fetched operand has its contraction's.
  int64_t unroll_steps(int p) const {
    if (nest(p).scope != Scope::kShared || nest(p).unroll_steps > 0) return nest(p).unroll_steps;
    return nest(tables_.plan_of[nest(p).at]).unroll_steps;
  }

  void add_statement(int p, bool init) {
    const Stage& s = stage(p);
    const auto groups = loops_.groups(p);
    Statement made;
    made.buffer = nest(p).stage;
    made.kernel = kernel_of_[loops_.root(p)];
    made.unroll_steps = unroll_steps(p);
    made.first_loop = static_cast<int>(out_.loops.size());
    places_.clear();
    bool reducing = false;
    for (size_t g = 0; g < groups.size(); ++g) {
      StatementLoop loop = groups[g].loop;
      const bool own = static_cast<int>(g) >= loops_.inherited(p);
      reducing = reducing || (own && groups[g].reduces);
      if (init && own && groups[g].reduces) continue;
      if (init && reducing) loop.identity = out_.identities++;  // loops of the first value's own
      places_.push_back(static_cast<int>(g));
      out_.loops.push_back(loop);
      const auto extent = static_cast<float>(loop.extent);
      made.iterations *= extent;
      if (!is_binding(loop.role) || loop.role == LoopRole::kVThread) made.work *= extent;
      gpu_ = gpu_ || is_binding(loop.role);
    }
    made.gpu = gpu_;
    if (!init && s.is_reduction()) made.batches = batches(p);
    made.loops = static_cast<int>(places_.size());
    if (!init) made.counts = counts(p);
    if (!init) made.unit = unit_use(p, made);
    made.first_access = static_cast<int>(out_.accesses.size());
    if (!init) add_loads(p);
    const AccessKind kind = !init && s.is_reduction() ? AccessKind::kReadWrite : AccessKind::kWrite;
    begin_access(made.buffer, kind);
    set_access(p, own_dims());
    made.accesses = static_cast<int>(out_.accesses.size()) - made.first_access;
    out_.statements.push_back(made);
  }

  // Returns the batches of rows that a warp loads, and then reduces by stage `p`, one after
  // another.
  float batches(int p) const {
    if (nest(p).structure != &kHeldRows) return 0;
    const NestStage& rows =
        nest(p).loops[0].axis == kFusedReduce ? nest(tables_.plan_of[nest(p).at]) : nest(p);
    float lines = 1;
    for (const NestLoop& loop : rows.loops)
      if (loop.axis == kFusedRows && loop.kind == LoopKind::kSerial)
        lines *= static_cast<float>(loop.extent);
    const auto all = static_cast<int64_t>(lines);
    return lines / static_cast<float>(rows_at_once(all, stage(p).reduce_size()));
  }

  // The loops of an instruction are loops as any others: what it adds to, and along the sum.
  UnitUse unit_use(int p, const Statement& made) const {
    if (const auto& mma = tables_.mmas[nest(p).stage]) return warp_use(p, made, *mma);
    const DotInstruction* dot = tables_.dots[nest(p).stage];
    if (dot == nullptr) return {};
    const RegisterTile tile = register_tile(nest_, nest(p));
    if (tile.terms <= 1) return {};
    const Stage& s = stage(p);
    const auto loops = std::span(out_.loops).subspan(static_cast<size_t>(made.first_loop));
    float parallel = 1;
    for (const StatementLoop& loop : loops)
      parallel *= loop.role == LoopRole::kParallel ? static_cast<float>(loop.extent) : 1;
    const auto products = static_cast<float>(s.num_elements() * s.reduce_size());
    const double of_one = tile.lanes * tile.terms * tile.tile_rows * tile.steps;
    const DotRateRow* unit = find_dot_rate(dot->rate);
    return {.unit = static_cast<int>(unit - std::begin(kDotRates)),
            .factor_bits = row_of(dot->a).bits,
            .sum_bits = row_of(dot->sum).bits,
            .useful = products / made.iterations,
            .instructions = made.iterations / parallel / static_cast<float>(of_one),
            .rows = static_cast<float>(tile.rows),
            .columns = static_cast<float>(tile.vectors)};
  }

  // Returns the number of the stage that loops over the chunks in which stage `p` gets its
  // operands.
  int plan_of_pipeline(int p) const {
    return tables_.attention ? tables_.plan_of[tables_.attention->weighed] : p;
  }

  UnitUse warp_use(int p, const Statement& made, const MmaContraction& c) const {
    const MmaInstruction& mma = *c.instruction;
    const Stage& s = stage(p);
    const auto own = [&](int axis) {
      return static_cast<float>(nest(p).extents[static_cast<size_t>(axis)]);
    };
    float blocks = 1, threads = 1, bytes = 0;
    for (const StatementLoop& loop :
         std::span(out_.loops).subspan(static_cast<size_t>(made.first_loop))) {
      if (is_block(loop.role)) blocks *= static_cast<float>(loop.extent);
      if (is_thread(loop.role)) threads *= static_cast<float>(loop.extent);
    }
    for (const MmaOperand& operand : {c.a, c.b}) {
      // Attention's queries are fetched once, and its weights are in registers.
      if (tables_.attention && operand.stage == c.a.stage) continue;
      if (is_held(nest_, nest(tables_.plan_of[operand.stage]))) continue;
      const StatementBuffer& buffer = out_.buffer(operand.stage);
      bytes += static_cast<float>(buffer.allocated * buffer.element_bytes);
    }
    const float warps = threads / kWarpLanes;
    const Fragment of_warp = mma.sum_fragment();
    const NestStage& root = nest(loops_.root(p));
    const int64_t stages = nest(plan_of_pipeline(p)).buffers;
    const int64_t sums = epilogue_bytes(root.block_extent(c.m), root.block_extent(c.n));
    return {.factor_bits = row_of(mma.a).bits,
            .sum_bits = row_of(mma.sum).bits,
            .useful = static_cast<float>(s.num_elements() * s.reduce_size()) / made.iterations,
            .instructions = made.iterations / (blocks * warps / static_cast<float>(mma.warps) *
                                               static_cast<float>(mma.m * mma.n * mma.k)),
            .rows = own(c.m) * kRowLanes / static_cast<float>(of_warp.rows),
            .columns = own(c.n) * kColumnLanes / static_cast<float>(of_warp.cols),
            .mma = &mma,
            .stages = stages,
            .steps = static_cast<float>(nest(p).chunk_extent(c.k)) / static_cast<float>(mma.k),
            .warps = warps,
            .stage_bytes = bytes / static_cast<float>(stages),
            .epilogue_bytes = nest(p).epilogue ? static_cast<float>(sums) : 0};
  }

  // Loaded buffers in the reverse order of their first loads.
  void add_loads(int p) {
    const std::vector<Access>& all = tables_.accesses[nest(p).stage];
    for (size_t i = all.size(); i-- > 0;) {
      const StageId producer = all[i].producer;
      const auto first = std::ranges::find(all, producer, &Access::producer) - all.begin();
      if (static_cast<size_t>(first) != i) continue;
      begin_access(producer, AccessKind::kRead);
      for (size_t j = i; j < all.size(); ++j) {
        if (all[j].producer == producer) set_access(p, all[j].indices);
      }
    }
  }

  void begin_access(StageId buffer, AccessKind kind) {
    out_.accesses.push_back(
        {buffer, kind, static_cast<int>(out_.uses.size()), static_cast<int>(out_.sizes.size())});
    const size_t dims = out_.shape_of(buffer).size();
    out_.uses.resize(out_.uses.size() + places_.size());
    out_.sizes.resize(out_.sizes.size() + places_.size() * dims);
    placed_ = 0;
  }

  // Joins one place of the last access: by dimension of the tensor an affine index.
  void set_access(int p, const std::vector<std::optional<Affine>>& indices) {
    const StatementAccess& access = out_.accesses.back();
    const StatementBuffer& buffer = out_.buffer(access.buffer);
    const auto shape = out_.shape_of(access.buffer);
    const Stage& tensor = dag_[access.buffer];
    const StoredDim* dims = dims_.data() + buffer.first_dim;
    const bool first = placed_++ == 0;
    if (first) out_.accesses.back().warp_transactions = warp_transactions(p, indices);
    uint32_t iterators = 0;  // mask of the iterators that stand in an index
    for (size_t dim = 0; dim < tensor.axes.size(); ++dim) {
      if (!indices[dim]) iterators = ~0u;
      for (size_t t = 0; indices[dim] && t < indices[dim]->terms.size(); ++t)
        iterators |= 1u << indices[dim]->terms[t].first.value;
    }
    const auto groups = loops_.groups(p);
    for (size_t i = places_.size(); i-- > 0;) {
      const int g = places_[i];
      int64_t* sizes = out_.sizes.data() + access.first_size + i * shape.size();
      const bool moves = (groups[g].moved & iterators) != 0;
      if (first && !moves && i + 1 < places_.size()) {
        std::copy_n(sizes + shape.size(), shape.size(), sizes);
        continue;
      }
      const auto spans = loops_.spans(p, g);
      for (size_t d = 0; d < shape.size(); ++d) {
        const auto dim = static_cast<size_t>(dims[d].dim);
        const int64_t whole = tensor.axes[dim].extent;
        int64_t span = whole;
        if (indices[dim]) {
          span = index_span(*indices[dim], spans);
          span += first ? 0 : shift(p, access.buffer, dim, *indices[dim]);
        }
        span = std::min(span, whole);
        if (dims[d].divisor != 1) span = (span - 1) / dims[d].divisor + 1;
        if (dims[d].modulus > 0) span = std::min(span, dims[d].modulus);
        sizes[d] = std::max(sizes[d], span);
      }
      join_use(use_of(p, g, indices, dims, shape), first, i);
    }
  }

  // How far a further place of one access starts from the first.
  int64_t shift(int p, StageId buffer, size_t dim, const Affine& index) const {
    for (const Access& access : tables_.accesses[nest(p).stage]) {
      if (access.producer == buffer && access.indices[dim])
        return std::abs(index.constant - access.indices[dim]->constant);
    }
    return 0;
  }

  int warp_transactions(int p, const std::vector<std::optional<Affine>>& indices) const {
    const StageId id = out_.accesses.back().buffer;
    const StatementBuffer& buffer = out_.buffer(id);
    if (loops_.lanes(p) == 0 || buffer.scope == BufferScope::kLocal) return 0;
    const bool shared = buffer.scope == BufferScope::kShared;
    const auto extents = shared ? out_.held_of(id) : out_.shape_of(id);
    WarpLanes lanes(loops_.lanes(p));
    int64_t pitch = 1;
    for (size_t d = extents.size(); d-- > 0; pitch *= extents[d]) {
      if (!indices[d]) continue;
      for (const auto& [var, coefficient] : indices[d]->terms) {
        if ((loops_.lanes_move(p) >> var.value & 1u) == 0) continue;
        const int64_t step = pitch * coefficient;
        const int64_t* value = loops_.lane(p, 0).data() + var.value;
        for (int lane = 0; lane < lanes.count; ++lane, value += loops_.iterators(p))
          lanes.elements[lane] += step * *value;
      }
    }
    lanes.width = loops_.lane_width(p);
    return shared ? bank_cycles(lanes, buffer.element_bytes) : sectors(lanes, buffer.element_bytes);
  }

  void join_use(const LoopUse& use, bool first, size_t i) {
    LoopUse& made = out_.uses[static_cast<size_t>(out_.accesses.back().first_use) + i];
    if (!first && made.used && use.used) {
      made.stride = std::min(made.stride, use.stride);
    } else if (use.used) {
      made = use;
    }
  }

  LoopUse use_of(int p,
                 int g,
                 const std::vector<std::optional<Affine>>& indices,
                 const StoredDim* dims,
                 std::span<const int64_t> shape) const {
    const LoopGroup& group = loops_.groups(p)[g];
    const auto moves = loops_.moves(p, g);
    LoopUse use;
    int64_t factor = 1;
    for (size_t d = shape.size(); d-- > 0; factor *= shape[d]) {
      const std::optional<Affine>& index = indices[dims[d].dim];
      if (!index) {
        use.used = use.used || group.moved != 0;
        continue;
      }
      int64_t move = 0;
      for (const auto& [var, coefficient] : index->terms) {
        const auto v = static_cast<size_t>(var.value);
        if ((group.moved >> v & 1u) == 0) continue;
        use.used = true;
        move = std::max(move, std::abs(coefficient) * moves[v]);
      }
      const bool blocked = dims[d].modulus > 0 && move >= dims[d].modulus * dims[d].divisor;
      if (move == 0 || blocked || use.stride > 0) continue;
      if (dims[d].divisor != 1) {
        if (move % dims[d].divisor != 0) continue;
        move /= dims[d].divisor;
      }
      use.stride = move * factor;
    }
    return use;
  }

  // Operations of the body, with what its iterators cost as indices: a sum over the loops that
  // move one, divisions where a binding stands for several.
  OperationCounts counts(int p) const {
    const Stage& s = stage(p);
    const StageId id = nest(p).stage;
    OperationCounts counts = tables_.counts[id];
    if (s.is_reduction()) {
      const BinaryFacts& combined = facts_of(facts_of(s.combiner).op);
      ++counts[is_float(s.dtype) ? combined.of_floats : combined.of_ints];
    }
    const std::vector<int>& uses = tables_.iterator_uses[id];
    const auto groups = loops_.groups(p);
    for (size_t v = 0; v < uses.size(); ++v) {
      if (uses[v] == 0) continue;
      int terms = 0, products = 0, divisions = 0, fused = 0;
      for (size_t g = 0; g < groups.size(); ++g) {
        if ((groups[g].moved >> v & 1u) == 0) continue;
        ++terms;
        products += loops_.moves(p, static_cast<int>(g))[v] == 1 ? 0 : 1;
        if (groups[g].parts > 1) {
          ++divisions;
        } else if (std::popcount(groups[g].moved) > 1) {
          fused = 1;  // the loops over a fused axis are divided once
        }
      }
      counts[Operation::kIntAddSub] += uses[v] * std::max(0, terms - 1);
      counts[Operation::kIntMul] += uses[v] * products;
      counts[Operation::kIntDivMod] += uses[v] * (divisions + fused);
    }
    return counts;
  }

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const SketchTables& tables_;
  const NestLoops loops_;
  std::vector<StoredDim> dims_;  // parallel to Statements::shape
  std::vector<int> kernel_of_;   // one per stage of the nest, set for roots
  std::vector<int> places_;      // groups of the statement at hand
  int placed_ = 0;
  bool gpu_ = false;
  Statements out_;
};

}  // namespace

Statements make_statements(const LoopNest& nest) { return Maker(nest).run(); }

}  // namespace pruner
