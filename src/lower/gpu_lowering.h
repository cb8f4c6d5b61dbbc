// Loop nest of a GPU candidate -> loop IR. Each root is a kernel: its blocks, in each its threads,
// and what a thread does, by the kind of kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lower/builder.h"
#include "space/gpu/attention.h"
#include "space/space.h"

namespace pruner {

class GpuLowering : private ProgramParts {
 public:
  GpuLowering(const Sketch& sketch, const LoopNest& nest, const Gpu& gpu, std::string name)
      : sketch_(sketch),
        dag_(sketch.dag),
        nest_(nest),
        gpu_(gpu),
        stages_(sketch.dag.stages.size()) {
    program_.name = std::move(name);
  }
  Program run();

 private:
  using Values = std::vector<Expr>;
  /// Loads of a stage become loads of its buffer, at the indices of the load turned by `place`.
  struct StageState {
    TensorId buffer;
    std::function<Values(const Values&)> place;  // empty: the indices as they are
  };
  using Emit = std::function<Stmt(const Values&)>;

  /// The place where the thread at hand works: starts of the block and of the thread, and the fused
  /// loops' indices.
  struct Place {
    Values block, thread;                                   // starts, by axis of the root
    Expr spatial = Expr(0), rows = Expr(0), row = Expr(0);  // fused; `row` counts in the block
    Expr lane = Expr(0);                                    // thread of the row
    int64_t block_rows = 1, lanes = 1;
    int64_t threads = 1;
    Expr thread_index;
  };
  /// Values of a stage's iterators: `values` count in the stage, `dense` within the thread's tile.
  struct Point {
    Values values, dense;
  };

  StageState& state(StageId id) { return stages_[static_cast<size_t>(id.value)]; }
  std::vector<const NestStage*> attached_to(StageId id) const;
  /// Returns the contractions of warps that are attached to a root, or what else is.
  std::vector<const NestStage*> attached_to(const NestStage& root, bool contractions) const;
  /// Adds a buffer in registers of the kernel at hand.
  TensorId hold(const NestStage& stage, std::vector<int64_t> held, const char* suffix = "");
  /// Allocates these registers around a body.
  Stmt with_registers(Stmt body) const;

  // ---- gpu.cpp: buffers, bodies, kernels and the loops of a thread

  void declare_buffers();
  TensorId add_buffer(const NestStage& stage,
                      std::vector<int64_t> shape,
                      Scope scope,
                      const std::string& suffix = "");
  /// A stage's body at `values`, its loads turned into loads of buffers.
  Expr body_at(StageId id, const Values& values) {
    return ProgramParts::body_at(dag_[id], values, [&](const Load& read, DType dtype) {
      const StageState& s = state(read.tensor);
      return load(s.buffer, s.place ? s.place(read.indices) : read.indices, dtype);
    });
  }
  Expr load_of(TensorId buffer, const Values& at) const {
    return load(buffer, at, program_[buffer].dtype);
  }
  static Stmt block(std::vector<Stmt> statements) {
    return statements.size() == 1 ? statements[0] : make_stmt(Block{std::move(statements)});
  }
  /// 0 where the condition, if there is one, does not hold.
  Expr or_zero(const Expr& condition, const Expr& value) const {
    if (!condition) return value;
    return select(simple(condition), value, combiner_identity(Combiner::kSum, value->dtype));
  }
  /// No condition where it is known to hold.
  Stmt guarded(const Expr& condition, Stmt body) const {
    const Expr simplified = simple(condition);
    return always(simplified) ? body : make_stmt(If{simplified, std::move(body)});
  }
  bool always(const Expr& condition) const { return bounds(condition, program_.ranges).first >= 1; }
  static Expr both(const Expr& a, const Expr& b) { return a ? a && b : b; }
  /// `count` iterations of one index, which `loops` divide in row-major order.
  Stmt decode(const std::vector<const NestLoop*>& loops,
              const std::string& name,
              const Expr& index,
              size_t first,
              const std::function<void(const NestLoop&, const Expr&)>& place,
              const std::function<Stmt()>& inner);
  Stmt kernel(const NestStage& root);
  Stmt thread_body(const NestStage& root);
  /// Whether launches begin before the ones before them have ended.
  bool begins_early() const { return compute_capability(gpu_) >= kFirstWithEarlyLaunch; }
  /// Returns a body that waits for the launches before, if its launch may begin earlier.
  Stmt after_others(Stmt body) const;
  void move(const NestLoop& loop, const Expr& at);
  /// Loops [first, end) of a stage, to be unrolled up to `unroll` iterations, around what `inner`
  /// makes of the values there.
  Stmt thread_loops(const NestStage& stage,
                    size_t first,
                    int64_t unroll,
                    const Point& at,
                    const std::function<Stmt(const Point&)>& inner);
  /// The condition that a point lies in its stage, over the axes that tiles may leave.
  Expr inside(StageId id, const Values& values, size_t first, size_t end) const;
  Stmt if_inside(const Expr& condition, Stmt body) const {
    return condition ? make_stmt(If{simple(condition), std::move(body)}) : body;
  }

  // ---- gpu_contraction.cpp: a block computes a tile of a contraction

  /// The part of a block's tile that a thread adds up.
  struct ThreadTile {
    const NestStage& sum;                   // the contraction
    std::vector<const NestStage*> fetched;  // its operands that lie in shared memory
    TensorId sums;                          // accumulators
    Point start;
  };
  Stmt block_tile(const NestStage& root);
  static NestStage from_loop(const NestStage& stage, size_t first);
  /// A thread's part of a stage has the dimensions in which the part is more than one element, at
  /// least one dimension (add_buffer()). `dense` counts in the thread's own part.
  static std::vector<int64_t> held_shape(const NestStage& stage);
  static Values held_place(const NestStage& stage, const Values& dense);
  void set_shared_places(const ThreadTile& tile, const Values& chunk);
  /// The loop over the chunks: in each, the threads fetch, meet, add, and meet again.
  Stmt chunks(const ThreadTile& tile);
  Stmt add_chunk(const ThreadTile& tile, const Values& chunk);
  /// The threads of the block fetch the box of an operand that a chunk needs; what lies beyond the
  /// operand is 0.
  Stmt fetch(const NestStage& operand, const NestStage& sum, const Values& chunk);

  // ---- gpu_warps.cpp: the warps of a block compute a tile of a contraction by instructions on
  // matrices

  /// An operand of the tile: [rows, terms] in the shared memory of a chunk, or the other way round.
  struct WarpOperand {
    const NestStage& fetch;
    Fragment fragment;
    bool terms_first;
    Expr first;         // row of the warp's first sums
    int64_t fragments;  // fragments of the warp
    TensorId shared = {}, registers = {};
    /// Row of the group's first matrix, and elements of a line in shared memory: a group reads
    /// boxes of such lines, side by side. Without a group there is one box.
    Expr of_group = Expr(0);
    int64_t box = 0;
    /// Lines and width of a chunk.
    int64_t lines() const { return fetch.extents[fetch.extents.size() - 2]; }
    int64_t width() const { return fetch.extents.back(); }
    int64_t terms() const { return terms_first ? lines() : width(); }
  };
  struct WarpTile {
    const NestStage& sum;
    const MmaContraction& contraction;
    WarpOperand a, b;
    Expr lane;
    int64_t steps, chunks, stages;
    bool held = false;                    // the first operand is computed once, before the chunks
    const WarpTile* second = nullptr;     // another product of the first operand, if there is one
    TensorId sums = {}, block_sums = {};  // in registers; in shared memory, if sums go through it
    /// Chunks of which products may go on while the next chunk is copied to where they were.
    int64_t multiplied() const { return contraction.instruction->of_group() ? 1 : 0; }
    /// Chunks that are copied before they are multiplied.
    int64_t ahead() const { return stages - 1 - multiplied(); }
  };
  Stmt warp_tile(const NestStage& root);
  /// Returns the tile of one contraction of a block, without its buffers.
  WarpTile tile_of(const NestStage& root,
                   const NestStage& sum,
                   const Expr& warp,
                   const Expr& lane) const;
  void hold_operand(WarpOperand& operand, const WarpTile& tile, int64_t stages);
  Stmt one_tile(const NestStage& root, WarpTile& tile, const Expr& warp);
  /// `work` gets the numbers of the warp and of the lane; registers that it holds stand around it.
  Stmt of_warps(const std::function<Stmt(const Expr&, const Expr&)>& work);
  void share(WarpOperand& operand, int64_t stages);
  /// Returns the place of element `at` of line `line` of a chunk in shared memory.
  Values shared_place(const WarpOperand& operand,
                      const Expr& slot,
                      const Expr& line,
                      const Expr& at) const;
  void hold_fragments(WarpOperand& operand);
  /// The software pipeline of a tile over its first `chunks` chunks. `copy` copies a chunk, `add`
  /// adds up the chunk in a slot. `first` are the copies of the chunks ahead, copies_ahead() if
  /// there are none.
  Stmt pipeline(const WarpTile& tile,
                const Expr& chunks,
                const std::function<Stmt(const Expr&)>& copy,
                const std::function<Stmt(const Expr&, const Expr&)>& add,
                Stmt first = nullptr);
  Stmt committed(Stmt copy) const;
  Stmt copies_ahead(const WarpTile& tile, const std::function<Stmt(const Expr&)>& copy) const;
  /// The copies of the chunks ahead, those of constants before the launches before are complete.
  Stmt early_copies(const WarpTile& tile);
  bool is_constant(const WarpOperand& operand) const;
  Stmt copy_chunk(const WarpTile& tile, const WarpOperand& operand, const Expr& chunk) {
    return copy_box(operand, chunk_box(tile, operand, chunk));
  }
  /// CopiedBox says which box of an operand is copied: the box that the stage `reader` reads where
  /// its iterators start at `values`.
  struct CopiedBox {
    StageId reader;
    Values values;
    Expr slot;              // place in the ring
    Expr first_term;        // number of the box's first term in the product
    int64_t all_terms = 0;  // terms of the product
  };
  CopiedBox chunk_box(const WarpTile& tile, const WarpOperand& operand, const Expr& chunk) const;
  /// The runs of `together` neighbours that each thread copies of an operand, by the lines and the
  /// places in them where they begin.
  Stmt each_copied_run(const WarpOperand& operand,
                       int64_t together,
                       const std::function<Stmt(const Expr& line, const Expr& at)>& body,
                       LoopKind kind = LoopKind::kUnroll);
  /// Threads copy a box of an operand to a place of the pipeline; 0 to what lies beyond it.
  Stmt copy_box(const WarpOperand& operand, const CopiedBox& box);
  /// `terms_left`: terms of the product from the point on.
  Stmt copy_run(const WarpOperand& operand,
                const Values& at,
                const Values& point,
                int64_t run,
                const Expr& terms_left);
  /// How many elements a thread copies at once from where the operand lies; 0: it is no plain copy.
  int64_t copied_run(const WarpOperand& operand, const Values& start);
  /// A chunk's place in the ring of an operand, and the number of its first step there.
  struct ChunkPlace {
    Expr slot, first_step = Expr(0);
  };
  /// The place of a chunk's part of the first operand. `slot` is the place of the second one's.
  static ChunkPlace first_operand(const WarpTile& tile, const Expr& chunk, const Expr& slot) {
    if (!tile.held) return {slot};
    return {Expr(0), chunk * Expr(tile.steps)};
  }
  Stmt multiply(const WarpTile& tile, const ChunkPlace& a, const Expr& slot_b);
  /// Adds one step's products to the sums; `first_factor` says where a row of fragments lies.
  Stmt add_products(const WarpTile& tile,
                    const std::function<ElementPlace(const Expr&)>& first_factor);
  Stmt clear_sums(const WarpTile& tile);
  /// Returns the place of a lane's element `v` of fragment [i, j] in a tile that starts at `start`.
  Values place_of_sum(
      const WarpTile& tile, Values start, const Expr& i, const Expr& j, const Expr& v) const;
  Stmt load_fragments(const WarpTile& tile,
                      const WarpOperand& operand,
                      const Expr& slot,
                      const Expr& step);
  /// `at_sum`, if there is one, is told the fragment's row and the element before each sum.
  Stmt write_sums(const NestStage& root,
                  const WarpTile& tile,
                  const std::function<void(const Expr&, const Expr&)>& at_sum = {});
  Stmt write_through_shared(const NestStage& root, const WarpTile& tile);
  Stmt each_sum(const WarpTile& tile, const std::function<Stmt(const Expr&, const Expr&)>& body);
  /// A loop of a kind; none around what it does once.
  Stmt repeated(int64_t extent, LoopKind kind, const std::function<Stmt(const Expr&)>& body);
  Stmt unrolled(int64_t extent, const std::function<Stmt(const Expr&)>& body);
  /// A vector of so many lanes; without a loop where it is one.
  Stmt vector(int lanes, const std::function<Stmt(const Expr&)>& body);

  // ---- gpu_groups.cpp: groups of warps multiply what lies in shared memory

  /// Threads round what they have copied to tf32.
  Stmt round_copied(const WarpOperand& operand, const CopiedBox& box);
  /// Begins a chunk's products by a group's instructions, and commits them. `first_factor` says
  /// where a row of fragments of a step lies.
  Stmt begin_products(
      const WarpTile& tile,
      const Expr& slot,
      const std::function<ElementPlace(const Expr& i, const Expr& step)>& first_factor);
  /// Begins the products of two factors in shared memory, and waits for all but the last `left`
  /// commits.
  Stmt multiply_by_group(const WarpTile& tile, const ChunkPlace& a, const Expr& slot_b, int left);
  /// Returns the place of the matrix of a group from row `along` and term `term` on.
  ElementPlace matrix_place(const WarpOperand& operand,
                            const Expr& slot,
                            const Expr& along,
                            const Expr& term) const;
  /// Lays an operand, of which a group reads `rows` rows from `first` on, in a group's lines.
  void lay_in_lines(WarpOperand& operand, const Expr& first, int64_t rows) const;

  // ---- gpu_attention.cpp: the warps of a block compute rows of attention

  /// Buffers of three numbers for each row of a warp's queries: [fragment of the queries, half of
  /// the fragment's rows].
  struct RowBuffers {
    TensorId largest, sum, factor;
  };
  struct AttentionTile {
    const AttentionKernel& kernel;
    WarpTile scores, weighed;
    TensorId weights;  // exponentials in the values' type, as the first factor of a product
    RowBuffers rows;
  };
  Stmt attention(const NestStage& root);
  AttentionTile attention_tile(const Expr& warp, const Expr& lane);
  /// Makes the tile's buffers.
  void hold_attention(AttentionTile& tile);
  Expr chunks_seen(const AttentionTile& tile) const;
  Stmt attention_chunks(const AttentionTile& tile);
  Stmt add_keys(const AttentionTile& tile, const Expr& chunk, const Expr& slot);
  Stmt mask_scores(const AttentionTile& tile, const Expr& chunk);
  Stmt move_maximum(const AttentionTile& tile);
  Stmt weigh(const AttentionTile& tile);
  Stmt multiply_values(const AttentionTile& tile, const Expr& slot);
  Stmt each_row(const AttentionTile& tile, const std::function<Stmt(const Values&)>& body);

  // ---- gpu_elements.cpp: a thread computes elements

  /// Values of axes [first, end) of a stage, of which `index` numbers the points in row-major
  /// order.
  Stmt decode_axes(const std::vector<Iterator>& axes,
                   size_t first,
                   size_t end,
                   const Expr& index,
                   Values values,
                   size_t offset,
                   const Emit& inner);
  Stmt elements(const NestStage& root);
  Stmt one_element(const NestStage& root, const Values& values);
  Stmt serial_reduction(const NestStage& stage, const Values& point, TensorId sum);

  // ---- gpu_rows.cpp: the threads of a row reduce it together

  /// A tensor whose row lies in the registers of the row's threads.
  struct HeldRow {
    StageId tensor;
    TensorId memory, registers;
    Values leading;  // indices before the last, by the iterators that number the rows
  };
  struct HeldRows {
    std::vector<HeldRow> tensors;
    int lanes = 1;  // neighbours that a thread takes at once
  };
  /// Finds what the reductions of a row read, and `root`, unless it is null.
  HeldRows held_rows(const std::vector<const NestStage*>& reductions, const NestStage* root);
  Stmt each_run(const HeldRows& held,
                int64_t count,
                const std::function<Stmt(const Expr&, const Expr&)>& body);
  Stmt at_element(const std::vector<Iterator>& axes,
                  size_t first,
                  const Expr& index,
                  Values values,
                  size_t offset,
                  const Emit& inner);
  void read_held(const HeldRows& held, const Expr& at);
  void read_memory(const HeldRows& held);
  Stmt load_rows(const HeldRows& held, int64_t count, const Values& row);
  Stmt rows(const NestStage& root);
  /// Each thread of the row folds its share of the terms into `sum`, then the others' shares.
  Stmt row_reduction(const NestStage& stage, const Values& row, const HeldRows& held, TensorId sum);
  bool folds_by_lanes(const Stage& reduction) const;
  Stmt fold_lanes(const NestStage& stage, TensorId sum);
  Stmt fold_shared(const NestStage& stage, TensorId sum);

  // ---- gpu_held.cpp: an operand that is computed once, and lies whole in shared memory

  /// Returns what a tile does before its first chunk: its first copies, the first operand if it is
  /// held, the reductions that the root needs, and sums of zero.
  Stmt first_copies(const NestStage& root,
                    const WarpTile& tile,
                    const Expr& warp,
                    const std::function<Stmt(const Expr&)>& copy);
  Stmt hold_elements(const WarpTile& tile);
  /// Returns `at` moved to a line of the block along an axis of a stage, at most to the last one.
  Values at_line(StageId id, Values at, size_t axis, const Expr& line) const;
  /// Stores an element of a held operand, `lane` elements from `first` on in a line.
  Stmt store_held(const WarpOperand& operand,
                  const Expr& line,
                  const Expr& first,
                  const Expr& lane,
                  const Expr& value) const;
  /// The warps reduce the rows of the block that the root needs reductions of.
  Stmt reduce_rows(const NestStage& root, const WarpTile& tile, const Expr& warp);
  Stmt hold_rows(const WarpTile& tile, const Expr& warp);
  /// A row that a warp reduces, which is a line of the block; `sums` has one element a reduction.
  struct ReducedRow {
    Expr line;
    Values at;  // place in the tensors
    HeldRows held;
    std::vector<TensorId> sums;
  };
  /// The warps reduce so many lines of the block, rows_at_once() of a warp at a time. `place` says
  /// where a line lies, `finish` makes what is done with its reductions; `root` may be null.
  Stmt reduce_lines(int64_t lines,
                    const std::vector<const NestStage*>& reductions,
                    const NestStage* root,
                    const WarpTile& tile,
                    const Expr& warp,
                    const std::function<Values(const Expr& line)>& place,
                    const std::function<Stmt(const ReducedRow&)>& finish);
  void read_sums(const std::vector<const NestStage*>& reductions,
                 const ReducedRow& row,
                 size_t count);
  /// Returns where the rows of a block begin in the held operand.
  Values held_start(const WarpTile& tile) const;
  /// A load for each lane of a vector under one condition, and the registers it goes to.
  struct GuardedLoad {
    Expr condition, value, otherwise;
    VarId lane;
    TensorId taken;
  };
  using GuardedLoads = std::vector<GuardedLoad>;
  Expr take_guarded_loads(const Expr& term, const Expr& lane, GuardedLoads& loads);
  Stmt load_neighbours(const GuardedLoad& guarded, int64_t lanes);
  /// Folds the terms of a reduction for `lanes` neighbours along the operand's last axis, from
  /// `point` on, into `sums`.
  Stmt fold_neighbours(const NestStage& reduction,
                       const WarpOperand& operand,
                       const Values& point,
                       int64_t lanes,
                       TensorId sums);

  // ---- gpu_transform.cpp: a thread computes a tile of Stage::unrolled, what it reads in registers

  Stmt transform(const NestStage& root);
  Stmt transform_tile(const NestStage& root, const Values& start);
  /// Makes room for the elements that a tile reads of a stage, from `start` on.
  TensorId hold_part(const NestStage& part, const Values& start);

  // Loops that set and write accumulators are unrolled up to so many iterations.
  static constexpr int64_t kMostUnrolled = 256;

  const Sketch& sketch_;
  const ComputeDag& dag_;
  const LoopNest& nest_;
  const Gpu& gpu_;
  std::vector<StageState> stages_;
  Place place_;
  std::vector<TensorId> shared_, registers_;  // buffers of the kernel at hand
};

}  // namespace pruner
