// Runs the launches of a Lockstep on the threads of one block after the other: what interpret() is
// made of. Statements and memory are in interpret.cpp, values in lockstep_values.cpp, statements of
// warps in lockstep_warp.cpp, of groups in lockstep_group.cpp.
#pragma once

#include <deque>

#include "lower/lockstep.h"
#include "lower/race_check.h"

namespace pruner {

// The elements of a buffer: one array, or (`a_thread`) one for each thread of the block, in which
// the elements of equal number stand side by side.
struct Memory {
  bool is_real = true, a_thread = false;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  std::vector<bool> written;  // only if unwritten elements are asked for
  std::vector<Touch> touches;
  std::vector<uint8_t> summed;  // products on their way of each element of registers
  bool unfenced = false;        // a statement wrote it after the last fence of its group
};

using Threads = std::vector<int>;
class LockstepRun {
 public:
  LockstepRun(const Program& program, const InterpretOptions& options)
      : program_(program), options_(options), memory_(program.buffers.size()) {}

  Result<Unit> run(std::span<Tensor> args);

 private:
  void launch(const Lockstep& launch);
  void begin_block();
  Memory& memory(TensorId id) { return memory_[static_cast<size_t>(id.value)]; }
  void read_argument(TensorId id, const Tensor& tensor);
  void write_argument(TensorId id, Tensor& tensor);
  void make(TensorId id);
  void report(std::string problem) {
    if (problem_.empty()) problem_ = program_.name + ": " + std::move(problem);
  }

  // -- Slots.

  int64_t uniform(const SlotSum& sum) const {
    int64_t value = sum.constant;
    for (const auto& [slot, c] : sum.uniform) value += c * uniform_[static_cast<size_t>(slot)];
    return value;
  }
  // The varying part of a sum of a Lockstep; null: none.
  const int64_t* varying(const SlotSum& sum) const {
    return sum.varying.empty() ? nullptr
                               : varying_[static_cast<size_t>(sum.varying[0].first)].data();
  }
  void fill(const std::vector<SlotFill>& fills);

  // -- Statements.

  void run(const LockstepBody& body, const Threads& threads);
  void loop(const LoopStep& s, const Threads& threads);
  void guard(const GuardStep& s, const Threads& threads);
  void barrier(const Threads& threads);
  void store(const StoreStep& s, const Threads& threads);

  // -- Memory.

  std::string element_name(TensorId id, int64_t flat) const;
  bool in_bounds(const SlotPlace& place, int dim, int64_t index);
  bool checked(const SlotPlace& place, const Threads& threads);
  std::vector<int64_t> computed_places(const SlotPlace& place, const Threads& threads);

  // `Looks` holds the data that touched() looks at for each element of a buffer.
  struct Looks {
    Memory& m;
    TensorId buffer;
    bool watched, of_block;
  };
  Looks looks(TensorId id) {
    if (!waited_) check_waited(id);
    const bool watched = launch_->watched[static_cast<size_t>(id.value)];
    return {memory(id), id, watched, program_[id].scope == Scope::kShared};
  }
  // Whether thread `t` may touch an element, which is at `at` in memory; reports what is wrong.
  template <bool kWrites>
  [[gnu::always_inline]] bool touched(const Looks& looks, size_t flat, size_t at, int t) {
    if (looks.watched) {
      Touch& touch = looks.m.touches[flat];
      const std::optional<Race> race =
          kWrites ? races_.write(touch, t, looks.of_block) : races_.read(touch, t, looks.of_block);
      if (race) return report_race(looks.buffer, flat, *race);
    }
    if (!looks.m.summed.empty() && looks.m.summed[at] > 0) return report_summed(looks.buffer, flat);
    if (looks.m.written.empty()) return true;
    if (!kWrites && !looks.m.written[at]) return report_unwritten(looks.buffer, flat);
    if (kWrites) looks.m.written[at] = true;
    return true;
  }
  bool report_race(TensorId buffer, size_t flat, const Race& race);
  bool report_unwritten(TensorId buffer, size_t flat);
  bool report_summed(TensorId buffer, size_t flat);
  void check_waited(TensorId buffer);

  // Calls fn(thread, place of its element in memory) for each of `threads`; stops at what is out of
  // bounds or races.
  template <bool kWrites, typename Fn>
  void each_element(const SlotPlace& place, const Threads& threads, const Fn& fn) {
    const Looks looks = this->looks(place.buffer);
    const bool a_thread = looks.m.a_thread;
    const auto stride = static_cast<size_t>(a_thread ? launch_->threads : 1);
    int64_t base = uniform(place.flat);
    const int64_t* offsets = varying(place.flat);
    std::vector<int64_t> computed;
    if (!place.computed.empty()) {
      computed = computed_places(place, threads);
      base = 0;
      offsets = computed.data();
    }
    if (!checked(place, threads)) return;
    for (const int t : threads) {
      const auto flat = static_cast<size_t>(offsets ? base + offsets[t] : base);
      const size_t at = flat * stride + static_cast<size_t>(a_thread ? t : 0);
      if (!touched<kWrites>(looks, flat, at, t)) return;
      fn(static_cast<size_t>(t), at);
    }
  }

  // -- Statements of warps.

  // An element that an asynchronous copy brings.
  struct Copied {
    TensorId buffer;
    size_t at;
    double real;
    int64_t integer;
  };
  struct Copies {
    std::vector<Copied> open;                // elements copied since the last commit
    std::deque<std::vector<Copied>> groups;  // committed groups, in order
  };

  std::vector<int64_t> places(const SlotPlace& place, const Threads& threads, int64_t elements);
  bool holds(TensorId buffer, int64_t first, int64_t elements);
  size_t memory_place(TensorId buffer, int64_t flat, int thread);
  void mma(const MmaStep& s, const Threads& threads);
  template <typename T>
  void multiply(const MmaStep& s, const Threads& threads, std::vector<T> Memory::*values);
  void load_matrix(const LoadMatrixStep& s, const Threads& threads);
  void fold_lanes(const LaneFoldStep& s, const Threads& threads);
  void async_copy(const AsyncCopyStep& s, const Threads& threads);
  void commit(const Threads& threads);
  void wait(const WaitStep& s, const Threads& threads);

  // -- Statements of groups.

  // An element of a buffer, by its place in memory.
  struct Element {
    TensorId buffer;
    size_t at;
  };
  struct Products {
    std::vector<Element> factors, held;  // in shared memory; in registers, with the sums
  };
  struct GroupProducts {
    Products open;                 // begun since the last commit
    std::deque<Products> commits;  // in order
  };

  void group_mma(const GroupMmaStep& s, const Threads& threads);
  template <typename T>
  void begin_products(const GroupMmaStep& s, int first, std::vector<T> Memory::*values);
  template <typename T>
  std::vector<T> held_factor(const SlotPlace& place,
                             const MmaInstruction& row,
                             int first,
                             std::vector<T> Memory::*values);
  bool is_fenced(TensorId buffer);
  void begin_product(TensorId buffer, size_t at, int first);
  template <typename T>
  std::vector<T> factor(const SlotPlace& place,
                        int first,
                        int rows,
                        int terms,
                        bool terms_first,
                        std::vector<T> Memory::*values);
  std::vector<int64_t> matrix_places(
      TensorId buffer, int64_t first, int rows, int terms, bool terms_first);
  void group_commit(const Threads& threads);
  void group_wait(const GroupWaitStep& s, const Threads& threads);
  void end_products(const Products& products, int first);
  void group_fence();
  void shared_fence(const Threads& threads);

  // -- Values, one a thread; threads that do not run may have any value.

  const LockstepNode& node(int id) const { return launch_->nodes[static_cast<size_t>(id)]; }
  std::pair<Threads, Threads> split(int condition, const Threads& threads);
  template <typename T, typename Values>
  void select(const LockstepNode& n, std::vector<T>& to, const Threads& threads, Values values);
  const std::vector<double>& reals(int id, const Threads& threads);
  std::vector<uint64_t> bits_of(int id, const Threads& threads);
  template <typename Set>
  void binary(const LockstepNode& n, const Threads& threads, const Set& set);
  template <typename Set>
  void cast_to_integers(const LockstepNode& n, const Threads& threads, const Set& set);
  const std::vector<int64_t>& integers(int id, const Threads& threads);

  const Program& program_;
  const InterpretOptions options_;
  const Lockstep* launch_ = nullptr;
  std::vector<Memory> memory_;
  std::vector<int64_t> uniform_;
  std::vector<std::vector<int64_t>> varying_;
  std::vector<std::vector<double>> reals_;  // values of each node
  std::vector<std::vector<int64_t>> integers_;
  RaceCheck races_;
  bool waited_ = true;          // the block has waited for the launches before, where it has to
  std::vector<Copies> copies_;  // copies of each thread of the block
  std::vector<GroupProducts> groups_;  // products of each group of the block
  std::string problem_;
};

}  // namespace pruner
