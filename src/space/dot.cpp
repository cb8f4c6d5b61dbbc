#include "space/dot.h"

#include <algorithm>

#include "space/sketch_rule.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr DType kBf16 = DType::kBFloat16, kF16 = DType::kFloat16, kF32 = DType::kFloat32;
constexpr DType kU8 = DType::kUInt8, kS8 = DType::kInt8, kS32 = DType::kInt32;

constexpr Isa kX86 = Isa::kX86, kArm = Isa::kArm;
constexpr int kRows = kMatrixRows, kSteps = kMatrixSteps;

constexpr DotInstruction kDotInstructions[] = {
    {"vdpbf16ps", kX86, kBf16, kBf16, kF32, 1, 1, 2, &DotRates::bfloat16},
    {"vpdpbusd", kX86, kU8, kS8, kS32, 1, 1, 4, &DotRates::int8},
    {"tdpbf16ps", kX86, kBf16, kBf16, kF32, kRows, kSteps, 2, &DotRates::bfloat16_tile},
    {"tdpfp16ps", kX86, kF16, kF16, kF32, kRows, kSteps, 2, &DotRates::float16_tile},
    {"tdpbusd", kX86, kU8, kS8, kS32, kRows, kSteps, 4, &DotRates::int8_tile},
    {"bfdot", kArm, kBf16, kBf16, kF32, 1, 1, 2, &DotRates::bfloat16},
    {"usdot", kArm, kU8, kS8, kS32, 1, 1, 4, &DotRates::int8},
    {"sdot", kArm, kS8, kS8, kS32, 1, 1, 4, &DotRates::int8_alike},
    {"udot", kArm, kU8, kU8, kS32, 1, 1, 4, &DotRates::int8_alike},
    {"bfmmla", kArm, kBf16, kBf16, kF32, kPairRows, 1, 4, &DotRates::bfloat16_tile},
    {"usmmla", kArm, kU8, kS8, kS32, kPairRows, 1, 8, &DotRates::int8_tile},
    {"smmla", kArm, kS8, kS8, kS32, kPairRows, 1, 8, &DotRates::int8_tile},
    {"ummla", kArm, kU8, kU8, kS32, kPairRows, 1, 8, &DotRates::int8_tile},
};

// Least rows and steps of a large tile; with fewer, tiles are no gain over vectors.
constexpr int kLeastRows = 4, kLeastSteps = 4;

// Whether the factors of a contraction lie as rows and steps of a matrix instruction: a[m][k], k
// contiguous, and b, a constant that is to be packed.
bool lies_in_rows(const ComputeDag& dag, StageId id, const DotInstruction& dot) {
  const Stage& stage = dag[id];
  const int row = matrix_row_axis(stage), vector = vector_axis(stage);
  const int last = last_longer(stage.reduce_axes, static_cast<int>(stage.reduce_axes.size()));
  if (row < 0 || last < 0 ||
      stage.axes[static_cast<size_t>(row)].extent < std::min(kLeastRows, dot.rows))
    return false;
  const int64_t steps = stage.reduce_axes[static_cast<size_t>(last)].extent / dot.terms;
  if (matrix_steps(steps, dot.steps) < std::min(kLeastSteps, dot.steps)) return false;
  const VarId rows{row}, lanes{vector}, terms{static_cast<int>(stage.axes.size()) + last};
  int packed = 0, in_rows = 0;
  for (const Access& access : accesses_of(dag, id)) {
    if (access.indices.empty() ||
        std::ranges::any_of(access.indices, [](const auto& index) { return !index.has_value(); }))
      return false;
    const auto moves = [&](VarId by) {
      return std::ranges::any_of(access.indices,
                                 [&](const auto& index) { return index->coefficient(by) != 0; });
    };
    // The terms follow each other along the last dimension longer than 1.
    const std::vector<Iterator>& dims = dag[access.producer].axes;
    const int inner = last_longer(dims, static_cast<int>(dims.size()));
    bool contiguous = inner >= 0;
    for (int d = 0; d < static_cast<int>(access.indices.size()); ++d)
      contiguous &= access.indices[static_cast<size_t>(d)]->coefficient(terms) == (d == inner);
    const bool free =
        std::ranges::find(stage.layout_free, access.producer) != stage.layout_free.end();
    if (moves(lanes)) {
      packed += free && dag[access.producer].constant && !moves(rows) && moves(terms) &&
                is_packable(dag, id, access.producer, vector);
    } else {
      // AMX (x86) has another instruction for factors of the other signs, so either order will do.
      const bool placed = dot.isa == kX86 || dag[access.producer].dtype == dot.a;
      in_rows += moves(rows) && contiguous && placed;
    }
  }
  return packed == 1 && in_rows == 1;
}

}  // namespace

std::optional<NarrowProduct> narrow_product(const Expr& e) {
  const Binary* product = as<Binary>(e);
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Cast *a = as<Cast>(product->a), *b = as<Cast>(product->b);
  if (a == nullptr || b == nullptr) return std::nullopt;
  return NarrowProduct{a, b};
}

bool is_tf32_product(const Expr& e) {
  const Binary* product = as<Binary>(e);
  if (product == nullptr || product->op != BinaryOp::kMul) return false;
  const auto rounds = [](const Expr& factor) {
    const Call* n = as<Call>(factor);
    return n != nullptr && n->function == Intrinsic::kTf32;
  };
  return rounds(product->a) && rounds(product->b);
}

const DotInstruction* find_dot_instruction(Isa isa, DType a, DType b, DType sum, bool tile) {
  for (const DotInstruction& dot : kDotInstructions) {
    const bool types = (a == dot.a && b == dot.b) || (a == dot.b && b == dot.a);
    if (isa == dot.isa && types && sum == dot.sum && tile == dot.of_tile()) return &dot;
  }
  return nullptr;
}

const DotInstruction* find_dot_instruction(const ComputeDag& dag,
                                           StageId id,
                                           const Target& target,
                                           bool tile) {
  const Stage& stage = dag[id];
  if (target.is_gpu() || stage.combiner != Combiner::kSum) return nullptr;
  const std::optional<NarrowProduct> factors = narrow_product(stage.body);
  if (!factors) return nullptr;
  const DotInstruction* dot = find_dot_instruction(
      target.isa, factors->a->value->dtype, factors->b->value->dtype, stage.dtype, tile);
  if (dot == nullptr || target.dots.*dot->rate <= 1 || !needs_multi_level_tiling(dag, id))
    return nullptr;
  const int last = last_longer(stage.reduce_axes, static_cast<int>(stage.reduce_axes.size()));
  if (last < 0 || stage.reduce_axes[static_cast<size_t>(last)].extent % dot->terms != 0)
    return nullptr;
  if (tile) return lies_in_rows(dag, id, *dot) ? dot : nullptr;
  const auto packable = [&](StageId operand) { return dag[operand].constant; };
  return std::ranges::any_of(stage.layout_free, packable) ? dot : nullptr;
}

bool is_packable(const ComputeDag& dag, StageId stage, StageId operand, int vector) {
  int uses = 0;
  bool moved = false;
  for (const Access& access : accesses_of(dag, stage)) {
    if (access.producer != operand) continue;
    ++uses;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const std::optional<Affine>& index = access.indices[d];
      if (!index && steps_past(access, static_cast<int>(d), vector)) continue;
      if (!index || index->constant != 0) return false;
      const bool by_vector = index->coefficient(VarId{vector}) != 0;
      if (by_vector && index->terms != decltype(index->terms){{VarId{vector}, 1}}) return false;
      if (!index->terms.empty() && index->terms.back().second != 1) return false;
      moved = moved || by_vector;
    }
  }
  return uses == 1 && moved && dag.consumers(operand).size() == 1;
}

int matrix_row_axis(const Stage& stage) { return last_longer(stage.axes, vector_axis(stage)); }

// An instruction takes as long as its rows, but at least as long as kLeast; and each needs what the
// other factor's loads take.
int64_t matrix_rows(int64_t extent, int64_t limit) {
  constexpr int64_t kLeast = 9, kBeside = 2;
  int64_t best = std::min(extent, limit), least = -1;
  for (int64_t rows = best; rows >= std::min<int64_t>(best, 4); --rows) {
    const int64_t tiles = ceil_div(extent, rows);
    const int64_t cost = tiles * (std::max(rows, kLeast) + kBeside);
    if (least >= 0 && cost >= least) continue;
    best = rows;
    least = cost;
  }
  return best;
}

int64_t matrix_steps(int64_t extent, int64_t limit) {
  int64_t steps = std::min(extent, limit);
  while (extent % steps != 0) --steps;
  return steps;
}

}  // namespace pruner
