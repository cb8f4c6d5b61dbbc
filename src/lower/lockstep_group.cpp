// Statements of groups of four warps. A product is computed when it is begun; that nobody touches
// its sums, or writes to its matrices, before the group has waited is checked.
#include <numeric>

#include "lower/lockstep_run.h"
#include "lower/mma_numbers.h"
#include "space/matrix_lines.h"

namespace pruner {

// Returns where the elements [rows, terms] of a matrix lie whose first element is at `first`; empty
// if the matrix is not there.
std::vector<int64_t> LockstepRun::matrix_places(
    TensorId buffer, int64_t first, int rows, int terms, bool terms_first) {
  const std::vector<int64_t>& shape = program_[buffer].shape;
  const int64_t width = shape.back(), lines = shape[shape.size() - 2];
  const int64_t bytes = dtype_bytes(program_[buffer].dtype);
  const int64_t line = first / width, column = first % width;
  if (line % kSwizzleLines != 0 || column + (terms_first ? 0 : terms) > width) {
    report("a matrix of " + program_[buffer].name + " begins at element " + std::to_string(first) +
           ", in the middle of eight lines or beyond a line's terms");
    return {};
  }
  std::vector<int64_t> places;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t term = 0; term < terms; ++term) {
      const int64_t of = terms_first ? line + row / width * lines + term : line + row;
      const int64_t at = terms_first ? row % width : column + term;
      places.push_back(of * width + swizzled(of, at, width, bytes));
      if (!holds(buffer, places.back(), 1)) return {};
    }
  }
  return places;
}

// Returns a factor's elements [rows, terms], which a product of the group of thread `first` reads
// from now on.
template <typename T>
std::vector<T> LockstepRun::factor(const SlotPlace& place,
                                   int first,
                                   int rows,
                                   int terms,
                                   bool terms_first,
                                   std::vector<T> Memory::*values) {
  Threads group(kGroupThreads);
  std::iota(group.begin(), group.end(), first);
  const std::vector<int64_t> flats = places(place, group, 1);
  if (flats.empty()) return {};
  const int64_t begin = flats[static_cast<size_t>(first)];
  for (const int t : group) {
    if (flats[static_cast<size_t>(t)] == begin) continue;
    report("threads of a group name different matrices of " + program_[place.buffer].name);
    return {};
  }
  Memory& m = memory(place.buffer);
  Products& open = groups_[static_cast<size_t>(first / kGroupThreads)].open;
  const DType dtype = program_[place.buffer].dtype;
  std::vector<T> elements;
  for (const int64_t flat : matrix_places(place.buffer, begin, rows, terms, terms_first)) {
    const auto at = static_cast<size_t>(flat);
    if (const std::optional<Race> race = races_.begin_product(m.touches[at], first)) {
      report_race(place.buffer, at, *race);
      return {};
    }
    open.factors.push_back({place.buffer, at});
    if (!m.written.empty() && !m.written[at]) {
      report_unwritten(place.buffer, at);
      return {};
    }
    elements.push_back(group_factor_of(dtype, (m.*values)[at]));
  }
  return elements;
}

bool LockstepRun::is_fenced(TensorId buffer) {
  if (!memory(buffer).unfenced) return true;
  report(program_[buffer].name +
         " is written with no fence of its group before its products begin");
  return false;
}

// An element of registers is part of a product on its way.
void LockstepRun::begin_product(TensorId buffer, size_t at, int first) {
  Memory& m = memory(buffer);
  if (m.summed.empty()) m.summed.assign(m.is_real ? m.reals.size() : m.integers.size(), 0);
  ++m.summed[at];
  groups_[static_cast<size_t>(first / kGroupThreads)].open.held.push_back({buffer, at});
}

// Returns a first factor's elements [rows, terms] that lie in the registers of the group of thread
// `first`.
template <typename T>
std::vector<T> LockstepRun::held_factor(const SlotPlace& place,
                                        const MmaInstruction& row,
                                        int first,
                                        std::vector<T> Memory::*values) {
  Threads group(kGroupThreads);
  std::iota(group.begin(), group.end(), first);
  const Fragment f = row.a_fragment();
  const std::vector<int64_t> flats = places(place, group, f.elements());
  if (flats.empty() || !is_fenced(place.buffer)) return {};
  std::vector<T> elements(static_cast<size_t>(row.m * row.k));
  for (const int t : group) {
    const int lane = t % kWarpLanes, of_warp = (t - first) / kWarpLanes * f.rows;
    for (int v = 0; v < f.elements(); ++v) {
      const int64_t flat = flats[static_cast<size_t>(t)] + v;
      const size_t at = memory_place(place.buffer, flat, t);
      if (!touched<false>(looks(place.buffer), static_cast<size_t>(flat), at, t)) return {};
      elements[static_cast<size_t>((of_warp + f.row(lane, v)) * row.k + f.col(lane, v))] =
          group_factor_of(row.a, (memory(place.buffer).*values)[at]);
      begin_product(place.buffer, at, first);
    }
  }
  return elements;
}

template <typename T>
void LockstepRun::begin_products(const GroupMmaStep& s, int first, std::vector<T> Memory::*values) {
  const MmaInstruction& row = *s.instruction;
  const bool held = program_[s.a.buffer].scope == Scope::kRegister;
  const std::vector<T> a = held ? held_factor(s.a, row, first, values)
                                : factor(s.a, first, row.m, row.k, s.a_terms_first, values);
  const std::vector<T> b = factor(s.b, first, s.columns, row.k, s.b_terms_first, values);
  Threads group(kGroupThreads);
  std::iota(group.begin(), group.end(), first);
  const Fragment f = {row.m / kGroupWarps, s.columns, row.sum_fragment().run};
  const std::vector<int64_t> flats = places(s.sum, group, f.elements());
  if (!problem_.empty() || flats.empty() || !is_fenced(s.sum.buffer)) return;
  Memory& m = memory(s.sum.buffer);
  for (const int t : group) {
    const int lane = t % kWarpLanes, of_warp = (t - first) / kWarpLanes * f.rows;
    for (int v = 0; v < f.elements(); ++v) {
      const size_t at = memory_place(s.sum.buffer, flats[static_cast<size_t>(t)] + v, t);
      const T* x = &a[static_cast<size_t>((of_warp + f.row(lane, v)) * row.k)];
      const T* y = &b[static_cast<size_t>(f.col(lane, v) * row.k)];
      T total = (m.*values)[at];
      for (int k = 0; k < row.k; ++k) total += x[k] * y[k];
      (m.*values)[at] = sum_of(row.sum, total);
      if (!m.written.empty()) m.written[at] = true;
      begin_product(s.sum.buffer, at, first);
    }
  }
}

// The threads are whole groups, as verify() sees to.
void LockstepRun::group_mma(const GroupMmaStep& s, const Threads& threads) {
  for (size_t i = 0; i < threads.size() && problem_.empty(); i += kGroupThreads) {
    if (is_float(s.instruction->sum)) {
      begin_products(s, threads[i], &Memory::reals);
    } else {
      begin_products(s, threads[i], &Memory::integers);
    }
  }
}

void LockstepRun::group_commit(const Threads& threads) {
  for (size_t i = 0; i < threads.size(); i += kGroupThreads) {
    GroupProducts& group = groups_[static_cast<size_t>(threads[i] / kGroupThreads)];
    group.commits.push_back(std::exchange(group.open, {}));
  }
}

void LockstepRun::group_wait(const GroupWaitStep& s, const Threads& threads) {
  for (size_t i = 0; i < threads.size(); i += kGroupThreads) {
    std::deque<Products>& commits =
        groups_[static_cast<size_t>(threads[i] / kGroupThreads)].commits;
    for (; commits.size() > static_cast<size_t>(s.groups); commits.pop_front())
      end_products(commits.front(), threads[i]);
  }
}

void LockstepRun::end_products(const Products& products, int first) {
  for (const Element& e : products.factors)
    races_.end_product(memory(e.buffer).touches[e.at], first);
  for (const Element& e : products.held) {
    std::vector<uint8_t>& summed = memory(e.buffer).summed;
    if (!summed.empty()) --summed[e.at];
  }
}

void LockstepRun::group_fence() {
  for (Memory& m : memory_) m.unfenced = false;
}

void LockstepRun::shared_fence(const Threads& threads) {
  for (const int t : threads) races_.fence(t);
}

}  // namespace pruner
