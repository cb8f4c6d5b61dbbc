// Loops that are one instruction on tiles. One of AMX is a value of LLVM's type x86_amx, which
// allocates its registers and configures them; it must go through nothing but phis. One of Arm's is
// a vector (pair_tiles.cpp).
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>

#include "codegen/llvm/emitter.h"
#include "space/dot.h"
#include "support/check.h"
#include "target/machine_model.h"

namespace pruner {

// The place that a nest's body touches, whose steps in memory are constants.
Emitter::TilePlace Emitter::tile_place(const MatrixNest& nest,
                                       TensorId buffer,
                                       const std::vector<Expr>& indices) {
  const int outer_lanes = std::exchange(lanes_, nest.lanes->lanes);
  bind(nest.lanes->var, LaneIndex{0, 1, {}}, {0, nest.lanes->lanes - 1});
  const auto at = [&](int64_t row, int64_t step, int64_t term) {
    const auto set = [&](const For* loop, int64_t i) {
      if (loop != nullptr) bind(loop->var, LaneIndex{i, 0, {}}, {i, i});
    };
    set(nest.rows, row);
    set(nest.steps, step);
    set(nest.terms, term);
    return flatten(buffer, indices);
  };
  TilePlace place{at(0, 0, 0)};
  const auto distance = [&](const LaneIndex& to) {
    LaneIndex difference = to;
    difference.add(place.first, -1);
    CHECK(difference.is_constant()) << "rows of a tile lie at no constant distance";
    return difference.constant;
  };
  place.row = distance(at(1, 0, 0));
  if (nest.steps != nullptr) place.step = distance(at(0, 1, 0));
  if (nest.adds()) place.term = distance(at(0, 0, 1));
  place.lane = std::exchange(place.first.lane, 0);
  lanes_ = outer_lanes;
  return place;
}

llvm::Value*& Emitter::tile_slot(TensorId id, const LaneIndex& place) {
  const Buffer& buffer = program_[id];
  const int64_t columns = buffer.shape.back();
  const int64_t row = place.constant / columns, column = place.constant % columns;
  CHECK(place.is_constant() && row % buffer.rows == 0 && column % buffer.lanes == 0)
      << "tiles of " << buffer.name << " are not accessed by constants";
  return registers_[id.value][static_cast<size_t>(row / buffer.rows * (columns / buffer.lanes) +
                                                  column / buffer.lanes)];
}

// Rows of `bytes` bytes, `stride` elements apart.
llvm::Value* Emitter::load_tile(
    TensorId buffer, const LaneIndex& first, int64_t stride, int rows, int bytes) {
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64_internal,
                            {},
                            {b_.getInt16(static_cast<uint16_t>(rows)),
                             b_.getInt16(static_cast<uint16_t>(bytes)),
                             address(buffer, first),
                             int64(stride * dtype_bytes(program_[buffer].dtype))});
}

// ... unless it is one of the `most` that were used last: those have registers beside the sums.
llvm::Value* Emitter::operand_tile(
    TensorId buffer, const LaneIndex& first, int64_t stride, int rows, int bytes, size_t most) {
  const auto key = std::tuple(static_cast<int>(buffer.value), first, stride, rows, bytes);
  auto& tiles = scopes_.back().tiles;
  const auto known = std::ranges::find(tiles, key, [](const auto& tile) { return tile.first; });
  if (known != tiles.end()) {
    std::rotate(known, known + 1, tiles.end());
  } else {
    if (tiles.size() >= most) tiles.erase(tiles.begin());
    tiles.emplace_back(key, load_tile(buffer, first, stride, rows, bytes));
  }
  return tiles.back().second;
}

// tile += a * b, of which a lies in rows and b, packed, in steps of lanes of terms.
bool Emitter::add_to_tile(const MatrixNest& nest) {
  const Binary* sum = as<Binary>(nest.store->value);
  if (sum == nullptr || sum->op != BinaryOp::kAdd) return false;
  const std::optional<NarrowProduct> factors = narrow_product(sum->b);
  if (!factors) return false;
  const Load *a = as<Load>(factors->a->value), *b = as<Load>(factors->b->value);
  if (a == nullptr || b == nullptr) return false;
  TilePlace rows = tile_place(nest, a->tensor, a->indices);
  TilePlace steps = tile_place(nest, b->tensor, b->indices);
  if (rows.lane != 0) {
    std::swap(a, b);
    std::swap(rows, steps);
  }
  const int64_t terms = *as_int(nest.terms->extent),
                count = nest.steps == nullptr ? 1 : *as_int(nest.steps->extent);
  const bool lies = rows.lane == 0 && rows.term == 1 && (count == 1 || rows.step == terms) &&
                    steps.row == 0 && steps.lane == terms && steps.term == 1;
  const DType left_type = program_[a->tensor].dtype, right_type = program_[b->tensor].dtype;
  const DotInstruction* dot =
      find_dot_instruction(kernel_.isa, left_type, right_type, nest.store->value->dtype, true);
  if (!lies || dot == nullptr || dot->terms != terms || count > dot->steps) return false;
  Value*& slot = tile_slot(nest.store->buffer,
                           tile_place(nest, nest.store->buffer, nest.store->indices).first);
  if (kernel_.isa == Isa::kArm) {
    slot = added_to_pairs(*dot, slot, {a->tensor, rows}, {b->tensor, steps});
    return true;
  }
  const auto bytes = static_cast<int>(dtype_bytes(left_type) * terms);  // one sum's bytes in a step
  const int m = program_[nest.store->buffer].rows, n = nest.lanes->lanes * bytes;
  const int k = static_cast<int>(count) * bytes;
  const size_t sums = registers_[nest.store->buffer.value].size();
  const size_t most = std::max(static_cast<size_t>(kMatrixRegisters), sums + 2) - sums;
  Value* left = operand_tile(a->tensor, rows.first, rows.row, m, k, most);
  Value* right = operand_tile(b->tensor, steps.first, steps.step, static_cast<int>(count), n, most);
  const llvm::Intrinsic::ID id =
      dot->a == DType::kBFloat16  ? llvm::Intrinsic::x86_tdpbf16ps_internal
      : dot->a == DType::kFloat16 ? llvm::Intrinsic::x86_tdpfp16ps_internal
      : left_type == dot->a       ? llvm::Intrinsic::x86_tdpbusd_internal
                                  : llvm::Intrinsic::x86_tdpbsud_internal;
  const auto size = [&](int i) { return b_.getInt16(static_cast<uint16_t>(i)); };
  const std::array<Value*, 6> operands = {size(m), size(n), size(k), slot, left, right};
  slot = b_.CreateIntrinsic(id, {}, operands);
  return true;
}

llvm::Type* Emitter::tile_type(const Buffer& tile) {
  return kernel_.isa == Isa::kArm ? at_width(value_type(tile.dtype), tile.rows * tile.lanes)
                                  : llvm::Type::getX86_AMXTy(kernel_.context);
}

// The instruction's numbers of rows and of bytes in each.
static std::pair<uint16_t, uint16_t> size_of(const Buffer& tile) {
  return {static_cast<uint16_t>(tile.rows),
          static_cast<uint16_t>(tile.lanes * dtype_bytes(tile.dtype))};
}

llvm::Value* Emitter::zero_tile(const Buffer& tile) {
  if (kernel_.isa == Isa::kArm) return llvm::Constant::getNullValue(tile_type(tile));
  const auto [rows, bytes] = size_of(tile);
  return b_.CreateIntrinsic(
      llvm::Intrinsic::x86_tilezero_internal, {}, {b_.getInt16(rows), b_.getInt16(bytes)});
}

llvm::Value* Emitter::load_sums(TensorId buffer, const TilePlace& from, const Buffer& tile) {
  if (kernel_.isa == Isa::kArm) return load_pairs(buffer, from, tile.lanes);
  const auto [rows, bytes] = size_of(tile);
  return load_tile(buffer, from.first, from.row, rows, bytes);
}

void Emitter::store_sums(TensorId buffer, const TilePlace& to, const Buffer& tile, Value* sums) {
  if (kernel_.isa == Isa::kArm) return store_pairs(buffer, to, sums);
  const auto [rows, bytes] = size_of(tile);
  b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64_internal,
                     {},
                     {b_.getInt16(rows),
                      b_.getInt16(bytes),
                      address(buffer, to.first),
                      int64(to.row * dtype_bytes(tile.dtype)),
                      sums});
}

// Emits a kMatrix loop on tiles; a loop that touches no tile is unrolled.
void Emitter::matrix(const For& n) {
  const std::optional<MatrixNest> nest = matrix_nest(n);
  const TensorId id = nest ? tile_of(program_, *nest) : TensorId{};
  if (!id.valid()) return unrolled(n);
  const Buffer& tile = program_[id];
  const Store& store = *nest->store;
  const auto place_of = [&](TensorId buffer, const std::vector<Expr>& indices) {
    return tile_place(*nest, buffer, indices);
  };
  if (nest->adds()) {
    CHECK(add_to_tile(*nest)) << "a sum in a tile that no instruction adds";
  } else if (const Load* value = as<Load>(store.value); value == nullptr) {
    CHECK(as_int(store.value) != nullptr || as<FloatImm>(store.value) != nullptr)
        << "a tile is set to what is no number";
    tile_slot(id, place_of(id, store.indices).first) = zero_tile(tile);
  } else if (store.buffer == id) {
    const TilePlace from = place_of(value->tensor, value->indices);
    scopes_.back().tiles.clear();
    tile_slot(id, place_of(id, store.indices).first) = load_sums(value->tensor, from, tile);
  } else {
    const TilePlace to = place_of(store.buffer, store.indices);
    scopes_.back().tiles.clear();
    store_sums(store.buffer, to, tile, tile_slot(id, place_of(id, value->indices).first));
  }
}

}  // namespace pruner
