// Statements of warps, by the fragments of space/mma.h; a copy's elements are there when its thread
// has waited.
#include "lower/lockstep_run.h"
#include "lower/mma_numbers.h"
#include "tensor/scalar_ops.h"

namespace pruner {

// Copies and products that the block before did not wait for are nobody's.
void LockstepRun::begin_block() {
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].commits.push_back(std::move(groups_[g].open));
    for (const Products& products : groups_[g].commits)
      end_products(products, static_cast<int>(g) * kGroupThreads);
    groups_[g] = {};
  }
  for (Copies& copies : copies_) {
    copies.groups.push_back(std::move(copies.open));
    for (const std::vector<Copied>& group : copies.groups)
      for (const Copied& c : group) races_.end_copy(memory(c.buffer).touches[c.at]);
    copies = {};
  }
  races_.begin_block();
  waited_ = !launch_->waits;
}

// Whether so many elements from `first` on are in the buffer.
bool LockstepRun::holds(TensorId buffer, int64_t first, int64_t elements) {
  if (first + elements <= program_[buffer].num_elements()) return true;
  report(program_[buffer].name + ": " + std::to_string(elements) + " elements from number " +
         std::to_string(first) + " on are beyond its end");
  return false;
}

// Returns where a thread's `elements` elements begin, by thread; empty if any is out of bounds.
std::vector<int64_t> LockstepRun::places(const SlotPlace& place,
                                         const Threads& threads,
                                         int64_t elements) {
  std::vector<int64_t> flats(static_cast<size_t>(launch_->threads), 0);
  if (!place.computed.empty()) {
    flats = computed_places(place, threads);
  } else {
    const int64_t base = uniform(place.flat);
    const int64_t* offsets = varying(place.flat);
    for (const int t : threads) flats[static_cast<size_t>(t)] = offsets ? base + offsets[t] : base;
  }
  if (!checked(place, threads)) return {};
  for (const int t : threads)
    if (!holds(place.buffer, flats[static_cast<size_t>(t)], elements)) return {};
  return flats;
}

size_t LockstepRun::memory_place(TensorId buffer, int64_t flat, int thread) {
  const auto at = static_cast<size_t>(flat);
  if (!memory(buffer).a_thread) return at;
  return at * static_cast<size_t>(launch_->threads) + static_cast<size_t>(thread);
}

// The threads of statements of warps are whole warps, as verify() sees to.
void LockstepRun::mma(const MmaStep& s, const Threads& threads) {
  if (is_float(s.instruction->sum)) {
    multiply(s, threads, &Memory::reals);
  } else {
    multiply(s, threads, &Memory::integers);
  }
}

template <typename T>
void LockstepRun::multiply(const MmaStep& s,
                           const Threads& threads,
                           std::vector<T> Memory::*values) {
  const MmaInstruction& row = *s.instruction;
  // Calls fn(element, its place in the matrix) with all that the lanes of a warp hold.
  const auto each = [&](const Fragment& f, const SlotPlace& place, int first, const auto& fn) {
    Threads lanes;
    for (int lane = 0; lane < kWarpLanes; ++lane) lanes.push_back(first + lane);
    const std::vector<int64_t> flats = places(place, lanes, f.elements());
    if (flats.empty()) return;
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      for (int v = 0; v < f.elements(); ++v) {
        const int64_t flat = flats[static_cast<size_t>(first + lane)] + v;
        const size_t at = memory_place(place.buffer, flat, first + lane);
        if (!touched<false>(looks(place.buffer), static_cast<size_t>(flat), at, first + lane))
          return;
        fn((memory(place.buffer).*values)[at], f.row(lane, v) * f.cols + f.col(lane, v));
      }
    }
  };
  std::vector<T> a(static_cast<size_t>(row.m * row.k)), b(static_cast<size_t>(row.n * row.k));
  for (size_t i = 0; i < threads.size() && problem_.empty(); i += kWarpLanes) {
    each(row.a_fragment(), s.a, threads[i], [&](T x, int at) {
      a[static_cast<size_t>(at)] = factor_of(row.a, x);
    });
    each(row.b_fragment(), s.b, threads[i], [&](T x, int at) {
      b[static_cast<size_t>(at)] = factor_of(row.b, x);
    });
    each(row.sum_fragment(), s.sum, threads[i], [&](T& sum, int at) {
      const T* x = &a[static_cast<size_t>(at / row.n * row.k)];
      const T* y = &b[static_cast<size_t>(at % row.n * row.k)];
      T total = sum;
      for (int k = 0; k < row.k; ++k) total += x[k] * y[k];
      sum = sum_of(row.sum, total);
    });
  }
}

void LockstepRun::load_matrix(const LoadMatrixStep& s, const Threads& threads) {
  const Fragment f = matrix_fragment(static_cast<int>(dtype_bytes(program_[s.to.buffer].dtype)));
  const std::vector<int64_t> from = places(s.from, threads, f.cols);
  const std::vector<int64_t> to = places(s.to, threads, int64_t{s.matrices} * f.elements());
  if (from.empty() || to.empty()) return;
  const Memory& source = memory(s.from.buffer);
  Memory& target = memory(s.to.buffer);
  for (const int t : threads) {
    const int lane = t % kWarpLanes;
    for (int v = 0; v < s.matrices * f.elements(); ++v) {
      int row = f.row(lane, v % f.elements()), col = f.col(lane, v % f.elements());
      if (s.transposed) std::swap(row, col);
      const int giver = t - lane + 8 * (v / f.elements()) + row;
      const int64_t place = from[static_cast<size_t>(giver)] + col;
      const auto at = static_cast<size_t>(place);
      if (!touched<false>(looks(s.from.buffer), at, at, t)) return;
      const int64_t flat = to[static_cast<size_t>(t)] + v;
      const size_t into = memory_place(s.to.buffer, flat, t);
      if (!touched<true>(looks(s.to.buffer), static_cast<size_t>(flat), into, t)) return;
      if (source.is_real) target.reals[into] = source.reals[at];
      if (!source.is_real) target.integers[into] = source.integers[at];
    }
  }
}

void LockstepRun::fold_lanes(const LaneFoldStep& s, const Threads& threads) {
  const std::vector<int64_t> flats = places(s.element, threads, 1);
  if (flats.empty()) return;
  Memory& m = memory(s.element.buffer);
  const auto at = [&](int t) {
    return memory_place(s.element.buffer, flats[static_cast<size_t>(t)], t);
  };
  for (const int t : threads) {
    const auto flat = static_cast<size_t>(flats[static_cast<size_t>(t)]);
    if (!touched<false>(looks(s.element.buffer), flat, at(t), t)) return;
  }
  const DType dtype = program_[s.element.buffer].dtype;
  std::vector<double> before(static_cast<size_t>(launch_->threads));
  for (int distance = 1; distance < s.lanes; distance *= 2) {
    for (const int t : threads) before[static_cast<size_t>(t)] = m.reals[at(t)];
    with_value(facts_of(s.combiner).op, [&](const auto& value) {
      for (const int t : threads) {
        const double own = before[static_cast<size_t>(t)];
        const double other = before[static_cast<size_t>(t ^ distance)];
        m.reals[at(t)] = round_to(dtype, value(own, other));
      }
    });
  }
}

void LockstepRun::async_copy(const AsyncCopyStep& s, const Threads& threads) {
  const std::vector<int64_t> valid = integers(s.valid, threads);
  Threads reading;  // threads that read nothing may name any place
  for (const int t : threads) {
    const int64_t count = valid[static_cast<size_t>(t)];
    if (count < 0 || count > s.elements)
      return report("a copy reads " + std::to_string(count) + " of " + std::to_string(s.elements) +
                    " elements");
    if (count > 0) reading.push_back(t);
  }
  const std::vector<int64_t> from = places(s.from, reading, 1),
                             to = places(s.to, threads, s.elements);
  if (from.empty() || to.empty()) return;
  Memory& target = memory(s.to.buffer);
  const Memory& source = memory(s.from.buffer);
  for (const int t : threads) {
    const auto thread = static_cast<size_t>(t);
    if (!holds(s.from.buffer, from[thread], valid[thread])) return;
    for (int64_t e = 0; e < s.elements; ++e) {
      const auto at = static_cast<size_t>(to[thread] + e);
      const std::optional<Race> race = races_.begin_copy(target.touches[at], t);
      if (race) return (void)report_race(s.to.buffer, at, *race);
      Copied copied{s.to.buffer, at, 0, 0};
      if (e < valid[thread]) {
        const auto read = static_cast<size_t>(from[thread] + e);
        if (!touched<false>(looks(s.from.buffer), read, read, t)) return;
        if (source.is_real) copied.real = source.reals[read];
        if (!source.is_real) copied.integer = source.integers[read];
      }
      copies_[thread].open.push_back(copied);
    }
  }
}

void LockstepRun::commit(const Threads& threads) {
  for (const int t : threads) {
    Copies& copies = copies_[static_cast<size_t>(t)];
    copies.groups.push_back(std::exchange(copies.open, {}));
  }
}

void LockstepRun::wait(const WaitStep& s, const Threads& threads) {
  for (const int t : threads) {
    std::deque<std::vector<Copied>>& groups = copies_[static_cast<size_t>(t)].groups;
    for (; groups.size() > static_cast<size_t>(s.groups); groups.pop_front()) {
      for (const Copied& c : groups.front()) {
        Memory& m = memory(c.buffer);
        races_.end_copy(m.touches[c.at]);
        if (!m.written.empty()) m.written[c.at] = true;
        if (m.is_real) m.reals[c.at] = c.real;
        if (!m.is_real) m.integers[c.at] = c.integer;
      }
    }
  }
}

}  // namespace pruner
