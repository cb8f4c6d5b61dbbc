// Programs run as they are written: what every backend is held against. All threads of a block run
// a statement before any of them runs the next; that no thread may notice is what RaceCheck sees
// to.
#include <limits>
#include <numeric>

#include "lower/lockstep_run.h"
#include "tensor/scalar_ops.h"
#include "tensor/tape_run.h"

namespace pruner {

Result<Unit> LockstepRun::run(std::span<Tensor> args) {
  for (size_t i = 0; i < args.size(); ++i) read_argument(program_.args[i], args[i]);
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    if (program_.buffers[i].scope == Scope::kWorkspace) make(TensorId{static_cast<int32_t>(i)});
  }
  for (const Lockstep& launch : make_lockstep(program_)) {
    this->launch(launch);
    if (!problem_.empty()) return Error(problem_);
  }
  for (size_t i = 0; i < args.size(); ++i) write_argument(program_.args[i], args[i]);
  return Unit{};
}

void LockstepRun::launch(const Lockstep& launch) {
  launch_ = &launch;
  const auto threads = static_cast<size_t>(launch.threads);
  uniform_.assign(static_cast<size_t>(launch.uniform_slots), 0);
  varying_.assign(static_cast<size_t>(launch.varying_slots), std::vector<int64_t>(threads, 0));
  reals_.assign(launch.nodes.size(), {});
  integers_.assign(launch.nodes.size(), {});
  for (size_t i = 0; i < launch.nodes.size(); ++i) {
    const LockstepNode& node = launch.nodes[i];
    if (is_float(node.dtype)) {
      reals_[i].assign(threads, node.real);
    } else {
      integers_[i].assign(threads, node.integer);
    }
  }
  if (launch.thread_slot >= 0) {
    std::vector<int64_t>& numbers = varying_[static_cast<size_t>(launch.thread_slot)];
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
  }
  for (size_t i = 0; i < memory_.size(); ++i) {
    const auto elements = static_cast<size_t>(program_.buffers[i].num_elements());
    if (launch.watched[i]) memory_[i].touches.assign(elements, {});
  }
  copies_.assign(threads, {});
  groups_.assign(threads / kGroupThreads, {});
  Threads all(threads);
  std::iota(all.begin(), all.end(), 0);
  races_.begin_launch(threads);
  fill(launch.fills);
  run(launch.body, all);
}

void LockstepRun::read_argument(TensorId id, const Tensor& tensor) {
  Memory& m = memory(id);
  m.is_real = is_float(tensor.dtype());
  const int64_t elements = tensor.num_elements();
  if (m.is_real) {
    m.reals.resize(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i) m.reals[static_cast<size_t>(i)] = tensor.get(i);
  } else {
    m.integers.resize(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i) m.integers[static_cast<size_t>(i)] = tensor.get_int(i);
  }
}

void LockstepRun::write_argument(TensorId id, Tensor& tensor) {
  if (!program_[id].output) return;
  const Memory& m = memory(id);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (m.is_real) {
      tensor.set(i, m.reals[static_cast<size_t>(i)]);
    } else {
      tensor.set_int(i, m.integers[static_cast<size_t>(i)]);
    }
  }
}

// Makes a buffer. An element that was never written is NaN (or a number that no test expects).
void LockstepRun::make(TensorId id) {
  const Buffer& buffer = program_[id];
  Memory& m = memory(id);
  m.is_real = is_float(buffer.dtype);
  m.a_thread = buffer.scope == Scope::kLocal || buffer.scope == Scope::kRegister;
  const int threads = m.a_thread ? launch_->threads : 1;
  const auto elements = static_cast<size_t>(buffer.num_elements() * threads);
  if (m.is_real) {
    m.reals.assign(elements, std::numeric_limits<double>::quiet_NaN());
  } else {
    m.integers.assign(elements, wrap_to(buffer.dtype, -77));
  }
  if (options_.unwritten) m.written.assign(elements, false);
  m.summed.clear();
}

static int64_t evaluate(const SlotRule& rule, int64_t a, int64_t b, int64_t c) {
  switch (rule.op) {
    case SlotRule::Op::kSum: return a;
    case SlotRule::Op::kBinary: return value_of<int64_t>(rule.binary, a, b);
    case SlotRule::Op::kSelect: return a ? b : c;
    case SlotRule::Op::kNot: return a == 0;
    case SlotRule::Op::kAbs: return std::abs(a);
    case SlotRule::Op::kIsTrue: return a != 0;
  }
  return 0;
}

void LockstepRun::fill(const std::vector<SlotFill>& fills) {
  for (const SlotFill& f : fills) {
    const int64_t a = uniform(f.rule.a), b = uniform(f.rule.b), c = uniform(f.rule.c);
    if (!f.varying) {
      uniform_[static_cast<size_t>(f.slot)] = evaluate(f.rule, a, b, c);
      continue;
    }
    std::vector<int64_t>& to = varying_[static_cast<size_t>(f.slot)];
    if (f.rule.op == SlotRule::Op::kSum) {
      std::fill(to.begin(), to.end(), a);
      for (const auto& [slot, coefficient] : f.rule.a.varying) {
        const std::vector<int64_t>& part = varying_[static_cast<size_t>(slot)];
        for (size_t t = 0; t < to.size(); ++t) to[t] += coefficient * part[t];
      }
      continue;
    }
    const int64_t *va = varying(f.rule.a), *vb = varying(f.rule.b), *vc = varying(f.rule.c);
    for (size_t t = 0; t < to.size(); ++t) {
      to[t] = evaluate(f.rule, va ? a + va[t] : a, vb ? b + vb[t] : b, vc ? c + vc[t] : c);
    }
  }
}

// -- Statements.

void LockstepRun::run(const LockstepBody& body, const Threads& threads) {
  for (const LockstepStmt& stmt : body) {
    if (!problem_.empty()) return;
    match(
        stmt.op,
        [&](const LoopStep& s) { loop(s, threads); },
        [&](const ThreadsStep& s) {
          fill(s.fills);
          run(s.body, threads);
        },
        [&](const LetStep& s) {
          varying_[static_cast<size_t>(s.slot)] = integers(s.value, threads);
          fill(s.fills);
          run(s.body, threads);
        },
        [&](const StoreStep& s) { store(s, threads); },
        [&](const GuardStep& s) { guard(s, threads); },
        [&](const AllocateStep& s) { make(s.buffer); },
        [&](const BarrierStep&) { barrier(threads); },
        [&](const MmaStep& s) { mma(s, threads); },
        [&](const LoadMatrixStep& s) { load_matrix(s, threads); },
        [&](const LaneFoldStep& s) { fold_lanes(s, threads); },
        [&](const AsyncCopyStep& s) { async_copy(s, threads); },
        [&](const CommitStep&) { commit(threads); },
        [&](const WaitStep& s) { wait(s, threads); },
        [&](const GroupMmaStep& s) { group_mma(s, threads); },
        [&](const GroupCommitStep&) { group_commit(threads); },
        [&](const GroupWaitStep& s) { group_wait(s, threads); },
        [&](const GroupFenceStep&) { group_fence(); },
        [&](const SharedFenceStep&) { shared_fence(threads); },
        [&](const GridWaitStep&) { waited_ = true; });
  }
}

void LockstepRun::loop(const LoopStep& s, const Threads& threads) {
  int64_t base = uniform(s.extent);
  const int64_t* extents = varying(s.extent);
  if (s.computed >= 0) {
    base = 0;
    extents = integers(s.computed, threads).data();
  }
  int64_t& i = uniform_[static_cast<size_t>(s.slot)];
  if (!extents) {
    for (int64_t n = 0; n < base && problem_.empty(); ++n) {
      i = n;
      if (s.blocks) begin_block();
      fill(s.fills);
      run(s.body, threads);
    }
    return;
  }
  // The threads whose extents are not reached go on.
  std::vector<int64_t> ends(extents, extents + launch_->threads);
  Threads left = threads;
  for (int64_t n = 0; problem_.empty(); ++n) {
    std::erase_if(left, [&](int t) { return n >= base + ends[static_cast<size_t>(t)]; });
    if (left.empty()) break;
    i = n;
    fill(s.fills);
    run(s.body, left);
  }
}

void LockstepRun::guard(const GuardStep& s, const Threads& threads) {
  int64_t base = uniform(s.condition);
  const int64_t* holds = varying(s.condition);
  if (s.computed >= 0) {
    base = 0;
    holds = integers(s.computed, threads).data();
  }
  if (!holds) {
    if (base) run(s.body, threads);
    return;
  }
  Threads inside;
  for (const int t : threads) {
    if (base + holds[t]) inside.push_back(t);
  }
  if (!inside.empty()) run(s.body, inside);
}

void LockstepRun::barrier(const Threads& threads) {
  if (threads.size() != static_cast<size_t>(launch_->threads)) {
    return report("a barrier is reached by " + std::to_string(threads.size()) + " of " +
                  std::to_string(launch_->threads) + " threads");
  }
  races_.barrier();
}
// -- Memory.

std::string LockstepRun::element_name(TensorId id, int64_t flat) const {
  const Buffer& buffer = program_[id];
  std::string indices;
  for (size_t d = buffer.shape.size(); d-- > 0; flat /= buffer.shape[d]) {
    indices = std::to_string(flat % buffer.shape[d]) + (indices.empty() ? "" : ", ") + indices;
  }
  return buffer.name + "[" + indices + "]";
}

bool LockstepRun::report_race(TensorId buffer, size_t flat, const Race& race) {
  report("race on " + element_name(buffer, static_cast<int64_t>(flat)) + ": " + races_.text(race));
  return false;
}

bool LockstepRun::report_unwritten(TensorId buffer, size_t flat) {
  report(element_name(buffer, static_cast<int64_t>(flat)) + " is read before it is written");
  return false;
}

// Memory that another launch writes may be touched only when that launch is complete.
void LockstepRun::check_waited(TensorId id) {
  const Buffer& buffer = program_[id];
  const bool of_others = buffer.scope == Scope::kArgument || buffer.scope == Scope::kWorkspace;
  if (of_others && !buffer.constant)
    report(buffer.name + " is touched before the launch has waited for the ones before it");
}

bool LockstepRun::report_summed(TensorId buffer, size_t flat) {
  report(element_name(buffer, static_cast<int64_t>(flat)) +
         " is touched before its group has waited for its products");
  return false;
}

bool LockstepRun::in_bounds(const SlotPlace& place, int dim, int64_t index) {
  const Buffer& buffer = program_[place.buffer];
  const int64_t extent = buffer.shape[static_cast<size_t>(dim)];
  if (index >= 0 && index < extent) return true;
  report(buffer.name + ": index " + std::to_string(index) + " of dim " + std::to_string(dim) +
         " is not below " + std::to_string(extent));
  return false;
}
bool LockstepRun::checked(const SlotPlace& place, const Threads& threads) {
  if (threads.empty()) return problem_.empty();
  for (const SlotPlace::Check& check : place.checks) {
    const int64_t base = uniform(check.index);
    const int64_t* offsets = varying(check.index);
    if (!offsets) {
      if (!in_bounds(place, check.dim, base)) return false;
      continue;
    }
    for (const int t : threads) {
      if (!in_bounds(place, check.dim, base + offsets[t])) return false;
    }
  }
  return problem_.empty();
}

// Indices that read memory. Out of bounds is reported, and 0 taken in its place.
std::vector<int64_t> LockstepRun::computed_places(const SlotPlace& place, const Threads& threads) {
  std::vector<int64_t> flat(static_cast<size_t>(launch_->threads), 0);
  for (size_t d = 0; d < place.computed.size(); ++d) {
    const std::vector<int64_t>& index = integers(place.computed[d], threads);
    for (const int t : threads) {
      const auto at = static_cast<size_t>(t);
      if (!in_bounds(place, static_cast<int>(d), index[at])) return flat;
      flat[at] = flat[at] * program_[place.buffer].shape[d] + index[at];
    }
  }
  return flat;
}

void LockstepRun::store(const StoreStep& s, const Threads& threads) {
  Memory& m = memory(s.place.buffer);
  m.unfenced = true;
  const DType dtype = program_[s.place.buffer].dtype;
  if (m.is_real) {
    const double* values = reals(s.value, threads).data();
    if (dtype == DType::kFloat32) {
      each_element<true>(s.place, threads, [&](size_t t, size_t at) {
        m.reals[at] = static_cast<double>(static_cast<float>(values[t]));
      });
    } else {
      each_element<true>(
          s.place, threads, [&](size_t t, size_t at) { m.reals[at] = round_to(dtype, values[t]); });
    }
  } else {
    const int64_t* values = integers(s.value, threads).data();
    each_element<true>(
        s.place, threads, [&](size_t t, size_t at) { m.integers[at] = wrap_to(dtype, values[t]); });
  }
}

Result<Unit> interpret(const Program& program,
                       std::span<Tensor> args,
                       const InterpretOptions& options) {
  if (args.size() != program.args.size()) {
    return Error(program.name, " takes ", program.args.size(), " tensors, not ", args.size());
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = program[program.args[i]];
    if (args[i].dtype() != buffer.dtype || args[i].num_elements() != buffer.num_elements()) {
      return Error("argument ", i, " does not fit ", buffer.name);
    }
  }
  return LockstepRun(program, options).run(args);
}

}  // namespace pruner
