#include "ansor/index_pool.h"

#include <algorithm>
#include <numeric>

#include "support/check.h"
#include "tensor/expr.h"

namespace pruner::ansor {
namespace {

constexpr int64_t kHuge = int64_t{1} << 60;  // a bound that says nothing; sums of two fit in int64

int64_t clamped(__int128 value) {
  return value > kHuge ? kHuge : value < -kHuge ? -kHuge : static_cast<int64_t>(value);
}

int64_t times(int64_t a, int64_t b) { return clamped(static_cast<__int128>(a) * b); }

// The residue of `value` in steps of `stride`.
int64_t residue_of(int64_t value, int64_t stride) {
  return stride == 0 ? value : floor_mod(value, stride);
}

bool is_constant(const IndexNode& n) { return n.op == IndexOp::kConst; }

// low and high of a binary node, from its operands'.
void set_bounds(IndexNode& n, const IndexNode& a, const IndexNode& b) {
  switch (n.op) {
    case IndexOp::kAdd:
      n.low = clamped(a.low + b.low);
      n.high = clamped(a.high + b.high);
      break;
    case IndexOp::kSub:
      n.low = clamped(a.low - b.high);
      n.high = clamped(a.high - b.low);
      break;
    case IndexOp::kMul: {
      const auto corners = std::minmax(
          {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)});
      n.low = corners.first;
      n.high = corners.second;
      break;
    }
    case IndexOp::kFloorDiv:
      n.low = is_constant(b) ? floor_div(a.low, b.value) : -kHuge;
      n.high = is_constant(b) ? floor_div(a.high, b.value) : kHuge;
      break;
    case IndexOp::kFloorMod: {
      const bool one_row =
          is_constant(b) && floor_div(a.low, b.value) == floor_div(a.high, b.value);
      n.low = one_row ? floor_mod(a.low, b.value) : 0;
      n.high = one_row ? floor_mod(a.high, b.value) : is_constant(b) ? b.value - 1 : kHuge;
      break;
    }
    case IndexOp::kMin:
      n.low = std::min(a.low, b.low);
      n.high = std::min(a.high, b.high);
      break;
    case IndexOp::kMax:
      n.low = std::max(a.low, b.low);
      n.high = std::max(a.high, b.high);
      break;
    case IndexOp::kConst:
    case IndexOp::kVar:
    case IndexOp::kUnknown: break;
  }
}

// stride and residue of a binary node, from its operands' (TVM's modular sets).
void set_residue(IndexNode& n, const IndexNode& a, const IndexNode& b) {
  n.stride = 1;
  n.residue = 0;
  switch (n.op) {
    case IndexOp::kAdd:
    case IndexOp::kSub:
      n.stride = std::gcd(a.stride, b.stride);
      n.residue = residue_of(n.op == IndexOp::kAdd ? a.residue + b.residue : a.residue - b.residue,
                             n.stride);
      break;
    case IndexOp::kMul:
      if (!is_constant(b)) break;
      n.stride = std::abs(times(a.stride, b.value));
      n.residue = residue_of(times(a.residue, b.value), n.stride);
      break;
    case IndexOp::kFloorDiv:
      if (!is_constant(b) || a.stride % b.value != 0) break;
      n.stride = a.stride / b.value;
      n.residue = residue_of(floor_div(a.residue, b.value), n.stride);
      break;
    case IndexOp::kFloorMod:
      if (!is_constant(b)) break;
      n.stride = std::gcd(a.stride, b.value);
      n.residue = residue_of(a.residue, n.stride);
      break;
    default: break;
  }
}

// The node that a op b is without being made, or an invalid id.
IndexId identity(const IndexPool& pool, IndexOp op, IndexId a, IndexId b) {
  const bool zero_b = pool.is_const(b, 0), one_b = pool.is_const(b, 1);
  switch (op) {
    case IndexOp::kAdd: return zero_b ? a : pool.is_const(a, 0) ? b : IndexId{};
    case IndexOp::kSub: return zero_b ? a : IndexId{};
    case IndexOp::kMul:
      if (one_b || pool.is_const(a, 0)) return a;
      return zero_b || pool.is_const(a, 1) ? b : IndexId{};
    case IndexOp::kFloorDiv: return one_b || pool.is_const(a, 0) ? a : IndexId{};
    case IndexOp::kFloorMod: return pool.is_const(a, 0) ? a : IndexId{};
    case IndexOp::kMin:
    case IndexOp::kMax: return a == b ? a : IndexId{};
    default: return {};
  }
}

// Computes an operation on two constants; a division by 0 gives 0.
int64_t fold(IndexOp op, int64_t a, int64_t b) {
  switch (op) {
    case IndexOp::kAdd: return a + b;
    case IndexOp::kSub: return a - b;
    case IndexOp::kMul: return times(a, b);
    case IndexOp::kFloorDiv: return b == 0 ? 0 : floor_div(a, b);
    case IndexOp::kFloorMod: return b == 0 ? 0 : floor_mod(a, b);
    case IndexOp::kMin: return std::min(a, b);
    default: return std::max(a, b);
  }
}

// The multipliers are 2^64 by the golden ratio and the first of MurmurHash3's finaliser.
size_t hash_of(const IndexNode& n) {
  uint64_t h = static_cast<uint64_t>(n.op) * 0x9E3779B97F4A7C15u;
  for (const uint64_t part : {static_cast<uint64_t>(n.a.value),
                              static_cast<uint64_t>(n.b.value),
                              static_cast<uint64_t>(n.value)}) {
    h = (h ^ part) * 0xFF51AFD7ED558CCDu;
    h ^= h >> 32;
  }
  return static_cast<size_t>(h);
}

}  // namespace

IndexPool::IndexPool() : slots_(512, -1) { nodes_.reserve(256); }  // slots: a power of 2

void IndexPool::grow() {
  std::vector<int32_t> wider(slots_.size() * 2, -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    size_t slot = hash_of(nodes_[i]) & (wider.size() - 1);
    while (wider[slot] >= 0) slot = (slot + 1) & (wider.size() - 1);
    wider[slot] = static_cast<int32_t>(i);
  }
  slots_ = std::move(wider);
}

IndexId IndexPool::intern(const IndexNode& node) {
  size_t slot = hash_of(node) & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const IndexNode& other = nodes_[slots_[slot]];
    const bool same =
        other.op == node.op && other.a == node.a && other.b == node.b && other.value == node.value;
    if (same) return IndexId{slots_[slot]};
  }
  slots_[slot] = size();
  nodes_.push_back(node);
  const IndexId id{size() - 1};
  if (nodes_.size() * 2 > slots_.size()) grow();  // at most half of the slots are taken
  return id;
}

IndexId IndexPool::constant(int64_t value) {
  return intern({IndexOp::kConst, {}, {}, value, value, value, 0, value});
}

IndexId IndexPool::variable(int number, int64_t extent) {
  if (extent == 1) return constant(0);
  return intern({IndexOp::kVar, {}, {}, number, 0, extent - 1, 1, 0});
}

IndexId IndexPool::unknown(int64_t low, int64_t high) {
  nodes_.push_back({IndexOp::kUnknown, {}, {}, size(), low, high, 1, 0});  // equal to no other
  return IndexId{size() - 1};
}

bool IndexPool::is_const(IndexId id, int64_t value) const {
  const IndexNode& n = (*this)[id];
  return n.op == IndexOp::kConst && n.value == value;
}

IndexId IndexPool::binary(IndexOp op, IndexId a, IndexId b) {
  if (const IndexId same = identity(*this, op, a, b); same.value >= 0) return same;
  const IndexNode &left = (*this)[a], &right = (*this)[b];
  if (is_constant(left) && is_constant(right)) return constant(fold(op, left.value, right.value));
  if (op == IndexOp::kFloorMod && is_const(b, 1)) return constant(0);
  IndexNode node{op, a, b, 0, 0, 0, 1, 0};
  set_bounds(node, left, right);
  set_residue(node, left, right);
  return intern(node);
}

static void add_linear(const IndexPool& pool, IndexId id, int64_t scale, LinearIndex& sum) {
  const IndexNode& n = pool[id];
  if (n.op == IndexOp::kConst) {
    sum.constant += scale * n.value;
  } else if (n.op == IndexOp::kAdd || n.op == IndexOp::kSub) {
    add_linear(pool, n.a, scale, sum);
    add_linear(pool, n.b, n.op == IndexOp::kAdd ? scale : -scale, sum);
  } else if (n.op == IndexOp::kMul && is_constant(pool[n.b])) {
    add_linear(pool, n.a, scale * pool[n.b].value, sum);
  } else if (n.op == IndexOp::kMul && is_constant(pool[n.a])) {
    add_linear(pool, n.b, scale * pool[n.a].value, sum);
  } else {
    sum.terms.emplace_back(id, scale);
  }
}

LinearIndex IndexPool::linear(IndexId id) const {
  LinearIndex sum;
  add_linear(*this, id, 1, sum);
  std::ranges::sort(sum.terms);
  size_t kept = 0;
  for (size_t i = 0; i < sum.terms.size();) {
    auto term = sum.terms[i];
    for (++i; i < sum.terms.size() && sum.terms[i].first == term.first; ++i) {
      term.second += sum.terms[i].second;
    }
    if (term.second != 0) sum.terms[kept++] = term;
  }
  sum.terms.resize(kept);
  return sum;
}

// a // c: exact where the residue of the start is known, else one row more.
static IndexSet divide(IndexPool& pool, const IndexSet& a, int64_t c) {
  const IndexNode& start = pool[a.min];
  const int64_t step = start.stride == 0 ? c : std::gcd(start.stride, c);
  const int64_t last = floor_mod(start.residue, step) + (c - step);  // largest rest of the start
  return {pool.floor_div(a.min, c), (last + a.width) / c};
}

static IndexSet remainder(IndexPool& pool, const IndexSet& a, int64_t c) {
  return divide(pool, a, c).width == 0 ? IndexSet{pool.floor_mod(a.min, c), a.width}
                                       : IndexSet{pool.constant(0), c - 1};
}

// Returns a set that follows from the bounds of `a` and `b` alone.
static IndexSet bounded(IndexPool& pool, IndexOp op, const IndexSet& a, const IndexSet& b) {
  const IndexId low = pool.binary(op, a.min, b.min);
  const IndexId high = pool.binary(op, pool.add(a.min, a.width), pool.add(b.min, b.width));
  const int64_t from = std::min(pool[low].low, pool[high].low);
  const int64_t to = std::max(pool[low].high, pool[high].high);
  return {pool.constant(from), to - from};
}

IndexSet combine(IndexPool& pool, IndexOp op, const IndexSet& a, const IndexSet& b) {
  if (a.width == 0 && b.width == 0) return {pool.binary(op, a.min, b.min), 0};
  const bool constant_b = is_constant(pool[b.min]) && b.width == 0;
  const int64_t c = pool[b.min].value;
  switch (op) {
    case IndexOp::kAdd: return {pool.add(a.min, b.min), a.width + b.width};
    case IndexOp::kSub:
      return {pool.binary(IndexOp::kSub, a.min, pool.add(b.min, b.width)), a.width + b.width};
    case IndexOp::kMul:
      if (constant_b && c >= 0) return {pool.mul(a.min, c), times(a.width, c)};
      if (constant_b) return {pool.mul(pool.add(a.min, a.width), c), times(a.width, -c)};
      if (is_constant(pool[a.min]) && a.width == 0) return combine(pool, op, b, a);
      break;
    case IndexOp::kFloorDiv:
      if (constant_b && c > 0) return divide(pool, a, c);
      break;
    case IndexOp::kFloorMod:
      if (constant_b && c > 0) return remainder(pool, a, c);
      break;
    default: break;
  }
  return bounded(pool, op, a, b);
}

IndexSet relax(IndexPool& pool, IndexId id, std::span<const int64_t> relaxed) {
  const IndexNode node = pool[id];
  if (node.op == IndexOp::kConst || node.op == IndexOp::kUnknown) return {id, 0};
  if (node.op == IndexOp::kVar) {
    const int64_t extent = relaxed[node.value];
    return extent == 0 ? IndexSet{id, 0} : IndexSet{pool.constant(0), extent - 1};
  }
  const IndexSet a = relax(pool, node.a, relaxed), b = relax(pool, node.b, relaxed);
  if (a == IndexSet{node.a, 0} && b == IndexSet{node.b, 0}) return {id, 0};
  return combine(pool, node.op, a, b);
}

// The hull is exact if the starts differ by a constant. Else the bounds of both starts give it.
IndexSet hull(IndexPool& pool, const IndexSet& a, const IndexSet& b) {
  if (a.min == b.min) return {a.min, std::max(a.width, b.width)};
  const LinearIndex x = pool.linear(a.min), y = pool.linear(b.min);
  if (x.terms == y.terms) {
    const int64_t ahead = y.constant - x.constant;  // b's start minus a's start
    const int64_t end = std::max(a.width, ahead + b.width);
    return ahead >= 0 ? IndexSet{a.min, end} : IndexSet{b.min, end - ahead};
  }
  const int64_t from = std::min(pool[a.min].low, pool[b.min].low);
  const int64_t to = std::max(pool[a.min].high + a.width, pool[b.min].high + b.width);
  return {pool.constant(from), to - from};
}

}  // namespace pruner::ansor
