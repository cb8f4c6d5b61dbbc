// Copies whose reads are contiguous along the loop outside of the vector: a square of elements is
// read row by row and transposed in registers, in log2(lanes) steps (Eklundh, "A fast computer
// method for matrix transposing", 1972), instead of element by element.
#include <bit>

#include "codegen/llvm/emitter.h"

namespace pruner {

namespace {

constexpr int64_t kMostSquares = 64;  // each element of which is looked at

/// The loop nest `for (n) vectorize (lanes) to[..] = from[..]`.
struct Copy {
  const For* lanes;
  const Store* store;
  const Load* load;
};

std::optional<Copy> copy_of(const For& n, const Program& program) {
  const For* lanes = std::get_if<For>(&n.body->op);
  if (lanes == nullptr || lanes->kind != LoopKind::kVectorize) return std::nullopt;
  const Store* store = std::get_if<Store>(&lanes->body->op);
  const Load* load = store == nullptr ? nullptr : as<Load>(store->value);
  if (load == nullptr || load->tensor == store->buffer) return std::nullopt;
  const Buffer &from = program[load->tensor], &to = program[store->buffer];
  const bool in_memory =
      from.scope != pruner::Scope::kRegister && to.scope != pruner::Scope::kRegister;
  const int64_t* rows = as_int(n.extent);
  const int64_t* all = as_int(lanes->extent);
  const bool square = rows != nullptr && all != nullptr && *all == lanes->lanes && *all > 1 &&
                      std::has_single_bit(static_cast<uint64_t>(*all)) && *rows % *all == 0 &&
                      *rows > 0;
  if (!in_memory || !square || from.dtype != to.dtype || dtype_bytes(from.dtype) != 4)
    return std::nullopt;
  return Copy{lanes, store, load};
}

}  // namespace

// Row r of the result is column r of `rows`: in each step what lies off the diagonal of blocks of
// twice as many rows and columns is exchanged.
void Emitter::transpose(llvm::MutableArrayRef<Value*> rows) {
  const auto lanes = static_cast<int>(rows.size());
  for (int step = 1; step < lanes; step *= 2) {
    llvm::SmallVector<int, 16> low, high;
    for (int k = 0; k < lanes; ++k) {
      const bool second = (k & step) != 0;
      low.push_back(second ? lanes + k - step : k);
      high.push_back(second ? lanes + k : k + step);
    }
    for (int r = 0; r < lanes; ++r) {
      if ((r & step) != 0) continue;
      Value *a = rows[r], *b = rows[r + step];
      rows[r] = b_.CreateShuffleVector(a, b, low);
      rows[r + step] = b_.CreateShuffleVector(a, b, high);
    }
  }
}

bool Emitter::copy_transposed(const For& n) {
  const std::optional<Copy> copy = copy_of(n, program_);
  if (!copy || predicate_.uniform || predicate_.lanes || lanes_ > 1) return false;
  const int lanes = copy->lanes->lanes;
  const TensorId from = copy->load->tensor, to = copy->store->buffer;
  // Places in row `i` of the square that begins at `first`.
  const auto place =
      [&](const LaneIndex& first, int64_t i, TensorId buffer, const std::vector<Expr>& indices) {
        LaneIndex row = first;
        row.constant += i;
        vars_[n.var.value] = row;
        return flatten(buffer, indices);
      };
  const int64_t squares = *as_int(n.extent) / lanes;
  const auto is_transposed = [&] {
    const LaneIndex at = place({}, 0, from, copy->load->indices);
    LaneIndex uniform = at;
    uniform.lane = 0;
    if (at.lane == 0 || at.lane == 1 || varies_by_lane(uniform)) return false;
    for (int64_t i = 0; i < squares * lanes; ++i) {
      LaneIndex next = at;
      next.constant += i;
      if (place({}, i, from, copy->load->indices) != next) return false;
      LaneIndex written = place({}, i, to, copy->store->indices);
      if (std::exchange(written.lane, 0) != 1 || varies_by_lane(written)) return false;
    }
    return true;
  };
  const auto square = [&](const LaneIndex& first) {
    const LaneIndex at = place(first, 0, from, copy->load->indices);
    llvm::SmallVector<Value*, 16> rows;
    for (int i = 0; i < lanes; ++i) {
      LaneIndex row = at;
      row.lane = 1;
      row.constant += at.lane * i;
      rows.push_back(load_place(from, row, nullptr));
    }
    transpose(rows);
    for (int i = 0; i < lanes; ++i)
      store_place(to, place(first, i, to, copy->store->indices), rows[static_cast<size_t>(i)]);
  };

  const auto outer = std::pair(lanes_, active_);
  lanes_ = lanes;
  active_ = nullptr;
  bind(copy->lanes->var, LaneIndex{0, 1, {}}, {0, lanes - 1});
  ranges_[n.var.value] = {0, *as_int(n.extent) - 1};
  const bool fits = squares <= kMostSquares && is_transposed();
  if (fits && squares == 1) {
    square({});
  } else if (fits) {
    counted_loop(int64(0), int64(squares), n.body, [&](const LaneIndex& counter) {
      LaneIndex first;
      first.add(counter, lanes);
      square(first);
    });
  }
  std::tie(lanes_, active_) = outer;
  return fits;
}

}  // namespace pruner
