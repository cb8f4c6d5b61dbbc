#include "analysis/gpu_registers.h"

#include <algorithm>
#include <span>

#include "analysis/operand.h"
#include "space/plan.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

double product(const std::vector<int64_t>& extents) {
  double total = 1;
  for (const int64_t extent : extents) total *= static_cast<double>(extent);
  return total;
}

/// Returns the iterations of those loops of a thread over a stage that `counts` accepts.
template <typename Counts>
double iterations(const NestStage& stage, const Counts& counts) {
  double total = 1;
  for (const NestLoop& loop : stage.loops) {
    const bool of_thread = loop.kind != LoopKind::kBlock && loop.kind != LoopKind::kThread;
    if (of_thread && counts(loop)) total *= static_cast<double>(loop.extent);
  }
  return total;
}

// Returns a thread's registers for its copies of an operand in a chunk. The copies' addresses are
// one address plus constants. If threads do not stand alike in each line, a part of an address
// depends on the place in the line.
double copy_registers(const NestStage& operand) {
  const GpuModel& m = kGpuModel;
  int64_t threads = 1, run = 1;
  double copies = 1;
  for (const NestLoop& loop : operand.loops) {
    if (loop.kind == LoopKind::kThread) threads *= loop.extent;
    if (loop.kind == LoopKind::kVectorize) run *= loop.extent;
    if (loop.kind == LoopKind::kSerial) copies *= static_cast<double>(loop.extent);
  }
  const int64_t runs = std::max<int64_t>(1, operand.extents.back() / run);
  const bool alike = threads % runs == 0 || runs % threads == 0;
  return std::min(copies, m.copies_apart) * (alike ? m.copy_registers : m.odd_copy_registers);
}

// Returns the registers of a warp that computes rows of attention. Each weighed sum takes one, and
// the values of the next step half of one where there is more than one chunk. Each score takes one,
// and its weight in 16 bits half of one.
double attention_registers(const LoopNest& nest, const NestStage& weighed) {
  const double sums = product(weighed.extents);
  const double scores = product(nest.of(nest.tables->attention->scores).extents);
  return kGpuModel.attention_registers + sums * (weighed.chunk_loops > 0 ? 1.5 : 1) + scores * 1.5;
}

// Returns the registers of a lane for the rows that it loads before the first chunk; 0: there are
// no such rows.
double row_registers(const LoopNest& nest, const NestStage& sum) {
  double most = 0;
  for (const NestStage& stage : nest.stages) {
    const Stage& s = (*nest.dag)[stage.stage];
    if (stage.structure != &kHeldRows || !s.is_reduction()) continue;
    if (stage.at != sum.at && nest.of(stage.at).at != sum.stage) continue;
    most = std::max(most, static_cast<double>(row_lane_registers(s.reduce_size())));
  }
  return most > 0 ? kGpuModel.row_registers + most : 0;
}

// Returns the registers of a warp's tile: sums, the operands' fragments of one step, and addresses
// of a thread's copies. If a chunk has more steps, the next step's fragments count, too. If there
// is only one chunk, neither the next step nor the addresses take registers.
double warp_registers(const LoopNest& nest, const NestStage& sum, const MmaContraction& c) {
  if (nest.tables->attention) return attention_registers(nest, sum);
  const auto own = [&](int axis) { return sum.extents[static_cast<size_t>(axis)]; };
  const bool group = c.instruction->of_group();  // whose operands lie in shared memory
  const double fragments = group ? 0 : static_cast<double>(operand_registers(own(c.m), own(c.n)));
  double sums = 0;
  for (const NestStage& other : nest.stages)
    if (other.at == sum.at && nest.tables->mmas[other.stage]) sums += product(other.extents);
  const double beside = (group ? kGpuModel.group_tile_registers : kGpuModel.warp_registers) + sums;
  if (sum.chunk_loops == 0) return std::max(beside + fragments, row_registers(nest, sum));
  double copies = 0;
  for (const NestStage& operand : nest.stages)
    copies += operand.at == sum.stage && !is_held(nest, operand) ? copy_registers(operand) : 0;
  return std::max(beside + fragments * (sum.chunk_extent(c.k) > c.instruction->k ? 2 : 1) + copies,
                  row_registers(nest, sum));
}

// Returns the registers of a transform, which holds the longest part of its tile.
double transform_registers(const LoopNest& nest, const NestStage& root) {
  double held = 0;
  for (const NestStage& part : nest.stages)
    if (part.at == root.stage) held = std::max(held, product(part.extents));
  return kGpuModel.element_registers + held;
}

class Contraction {
 public:
  Contraction(const LoopNest& nest, const NestStage& sum)
      : nest_(nest),
        sum_(sum),
        loops_(sum.loops.begin() + sum.chunk_loops, sum.loops.end()),
        rank_(static_cast<int>((*nest.dag)[sum.stage].axes.size())) {}

  double registers() const {
    return kGpuModel.contraction_registers + product(sum_.extents) + operands() + in_flight();
  }

 private:
  /// Returns the elements of all operands that one step of the reduction reads for the whole tile.
  double operands() const {
    double total = 0;
    for (const Access& access : nest_.tables->accesses[sum_.stage]) {
      const Stage& producer = (*nest_.dag)[access.producer];
      double elements = 1;
      for (const NestLoop& loop : loops_) {
        if (loop.axis < rank_ && element_stride(access, producer, loop.axis) != 0)
          elements *= static_cast<double>(loop.extent);
      }
      total += elements;
    }
    return total;
  }

  double in_flight() const {
    double total = 0;
    for (const NestStage& operand : nest_.stages) {
      if (operand.at != sum_.stage) continue;
      double elements = 1;
      for (const NestLoop& loop : operand.loops) {
        if (loop.kind == LoopKind::kSerial)
          elements *= static_cast<double>(std::min(loop.extent, kGpuModel.rounds_in_flight));
        if (loop.kind == LoopKind::kVectorize) elements *= static_cast<double>(loop.extent);
      }
      total += elements;
    }
    return total;
  }

  const LoopNest& nest_;
  const NestStage& sum_;
  const std::span<const NestLoop> loops_;  // loops of one chunk
  const int rank_;
};

}  // namespace

double thread_registers(const LoopNest& nest, const NestStage& root) {
  if (root.structure == &kThreadTransform) return transform_registers(nest, root);
  const bool tiles = std::ranges::none_of(root.loops, [](const NestLoop& l) { return l.axis < 0; });
  double reductions = 0, terms = 1;
  const auto add_terms = [&](const NestStage& stage) {
    const auto spatial = static_cast<int>((*nest.dag)[stage.stage].axes.size());
    terms = std::max(terms, iterations(stage, [&](const NestLoop& loop) {
                       return loop.axis == kFusedReduce || loop.axis >= spatial;
                     }));
  };
  add_terms(root);
  for (const NestStage& stage : nest.stages) {
    if (stage.at != root.stage) continue;
    if (const auto& mma = nest.tables->mmas[stage.stage]) return warp_registers(nest, stage, *mma);
    if (tiles && stage.scope == Scope::kLocal) {
      return Contraction(nest, stage).registers();
    }
    if (stage.scope == Scope::kShared) ++reductions;
    add_terms(stage);
  }
  const double held = terms <= kMostHeldElements ? terms : kGpuModel.row_terms;
  return reductions > 0
             ? kGpuModel.row_registers + kGpuModel.row_reduction_registers * reductions + held
             : kGpuModel.element_registers + std::min(terms, kGpuModel.element_terms) +
                   iterations(root, [](const NestLoop& l) { return l.axis < 0; });
}

}  // namespace pruner
