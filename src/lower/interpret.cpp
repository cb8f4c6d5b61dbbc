// Programs run as they are written: what every backend is held against. All threads of a block run
// a statement before any of them runs the next; that no thread may notice is what RaceCheck sees
// to.
#include <limits>
#include <numeric>

#include "lower/lockstep.h"
#include "lower/race_check.h"
#include "tensor/scalar_ops.h"
#include "tensor/tape_run.h"

namespace pruner {
namespace {

// The elements of a buffer: one array, or (`a_thread`) one for each thread of the block, in which
// the elements of equal number stand side by side.
struct Memory {
  bool is_real = true, a_thread = false;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  std::vector<bool> written;  // only if unwritten elements are asked for
  std::vector<Touch> touches;
};

using Threads = std::vector<int>;

class Interpreter {
 public:
  Interpreter(const Program& program, const InterpretOptions& options)
      : program_(program), options_(options), memory_(program.buffers.size()) {}

  Result<Unit> run(std::span<Tensor> args) {
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

 private:
  void launch(const Lockstep& launch) {
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
    Threads all(threads);
    std::iota(all.begin(), all.end(), 0);
    races_.begin_launch();
    fill(launch.fills);
    run(launch.body, all);
  }

  Memory& memory(TensorId id) { return memory_[static_cast<size_t>(id.value)]; }

  void read_argument(TensorId id, const Tensor& tensor) {
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

  void write_argument(TensorId id, Tensor& tensor) {
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

  // What was never written is NaN (or a number that no test expects).
  void make(TensorId id) {
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
  }

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

  void fill(const std::vector<SlotFill>& fills) {
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

  void run(const LockstepBody& body, const Threads& threads) {
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
          [&](const BarrierStep&) { barrier(threads); });
    }
  }

  void loop(const LoopStep& s, const Threads& threads) {
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
        if (s.blocks) races_.begin_block();
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

  void guard(const GuardStep& s, const Threads& threads) {
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

  void barrier(const Threads& threads) {
    if (threads.size() != static_cast<size_t>(launch_->threads)) {
      return report("a barrier is reached by " + std::to_string(threads.size()) + " of " +
                    std::to_string(launch_->threads) + " threads");
    }
    races_.barrier();
  }

  // -- Memory.

  std::string element_name(TensorId id, int64_t flat) const {
    const Buffer& buffer = program_[id];
    std::string indices;
    for (size_t d = buffer.shape.size(); d-- > 0; flat /= buffer.shape[d]) {
      indices = std::to_string(flat % buffer.shape[d]) + (indices.empty() ? "" : ", ") + indices;
    }
    return buffer.name + "[" + indices + "]";
  }

  bool in_bounds(const SlotPlace& place, int dim, int64_t index) {
    const Buffer& buffer = program_[place.buffer];
    const int64_t extent = buffer.shape[static_cast<size_t>(dim)];
    if (index >= 0 && index < extent) return true;
    report(buffer.name + ": index " + std::to_string(index) + " of dim " + std::to_string(dim) +
           " is not below " + std::to_string(extent));
    return false;
  }

  // Calls fn(thread, place of its element in memory) for each of `threads`; stops at what is out of
  // bounds or races.
  template <bool kWrites, typename Fn>
  void each_element(const SlotPlace& place, const Threads& threads, const Fn& fn) {
    Memory& m = memory(place.buffer);
    const auto stride = static_cast<size_t>(m.a_thread ? launch_->threads : 1);
    const bool of_block = program_[place.buffer].scope == Scope::kShared;
    const bool watched = launch_->watched[static_cast<size_t>(place.buffer.value)];
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
      if (watched) {
        Touch& touch = m.touches[flat];
        const std::optional<std::string> race =
            kWrites ? races_.write(touch, t, of_block) : races_.read(touch, t, of_block);
        if (race) {
          return report("race on " + element_name(place.buffer, static_cast<int64_t>(flat)) + ": " +
                        *race);
        }
      }
      const size_t at = flat * stride + static_cast<size_t>(m.a_thread ? t : 0);
      if (!m.written.empty()) {
        if (!kWrites && !m.written[at]) {
          return report(element_name(place.buffer, static_cast<int64_t>(flat)) +
                        " is read before it is written");
        }
        if (kWrites) m.written[at] = true;
      }
      fn(static_cast<size_t>(t), at);
    }
  }

  bool checked(const SlotPlace& place, const Threads& threads) {
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
  std::vector<int64_t> computed_places(const SlotPlace& place, const Threads& threads) {
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

  void store(const StoreStep& s, const Threads& threads) {
    Memory& m = memory(s.place.buffer);
    const DType dtype = program_[s.place.buffer].dtype;
    if (m.is_real) {
      const double* values = reals(s.value, threads).data();
      if (dtype == DType::kFloat32) {
        each_element<true>(s.place, threads, [&](size_t t, size_t at) {
          m.reals[at] = static_cast<double>(static_cast<float>(values[t]));
        });
      } else {
        each_element<true>(s.place, threads, [&](size_t t, size_t at) {
          m.reals[at] = round_to(dtype, values[t]);
        });
      }
    } else {
      const int64_t* values = integers(s.value, threads).data();
      each_element<true>(s.place, threads, [&](size_t t, size_t at) {
        m.integers[at] = wrap_to(dtype, values[t]);
      });
    }
  }

  // -- Values, one a thread; of threads that do not run they are anything.

  const LockstepNode& node(int id) const { return launch_->nodes[static_cast<size_t>(id)]; }

  // The threads for which a condition holds, and the others.
  std::pair<Threads, Threads> split(int condition, const Threads& threads) {
    const std::vector<int64_t>& holds = integers(condition, threads);
    std::pair<Threads, Threads> parts;
    for (const int t : threads) {
      (holds[static_cast<size_t>(t)] ? parts.first : parts.second).push_back(t);
    }
    return parts;
  }

  template <typename T, typename Values>
  void select(const LockstepNode& n, std::vector<T>& to, const Threads& threads, Values values) {
    const auto [first, second] = split(n.a, threads);
    for (const auto& [part, operand] : {std::pair{&first, n.b}, std::pair{&second, n.c}}) {
      if (part->empty()) continue;
      const std::vector<T>& from = values(operand, *part);
      for (const int t : *part) to[static_cast<size_t>(t)] = from[static_cast<size_t>(t)];
    }
  }

  const std::vector<double>& reals(int id, const Threads& threads) {
    const LockstepNode& n = node(id);
    std::vector<double>& to = reals_[static_cast<size_t>(id)];
    switch (n.op) {
      case LockstepNode::Op::kConstant:
      case LockstepNode::Op::kIndex: break;
      case LockstepNode::Op::kLoad: {
        const Memory& m = memory(n.place.buffer);
        each_element<false>(n.place, threads, [&](size_t t, size_t at) { to[t] = m.reals[at]; });
        break;
      }
      case LockstepNode::Op::kBinary: {
        const double* a = reals(n.a, threads).data();
        const double* b = reals(n.b, threads).data();
        with_value(n.binary, [&](const auto& value) {
          for (size_t t = 0; t < to.size(); ++t) to[t] = value(a[t], b[t]);
        });
        break;
      }
      case LockstepNode::Op::kSelect:
        select(
            n, to, threads, [&](int operand, const Threads& part) -> const auto& {
              return reals(operand, part);
            });
        break;
      case LockstepNode::Op::kCast: {
        const DType from = node(n.a).dtype;
        if (n.of_bits) {
          const std::vector<uint64_t> bits = bits_of(n.a, threads);
          for (const int t : threads)
            to[static_cast<size_t>(t)] = decode_float(n.dtype, bits[static_cast<size_t>(t)]);
          break;
        }
        const double* x = is_float(from) ? reals(n.a, threads).data() : nullptr;
        const int64_t* i = is_float(from) ? nullptr : integers(n.a, threads).data();
        for (const int t : threads) {
          to[static_cast<size_t>(t)] =
              x ? cast_float(from, n.dtype, x[t]) : cast_int(from, n.dtype, i[t]);
        }
        break;
      }
      case LockstepNode::Op::kCall: {
        const double* x = reals(n.a, threads).data();
        const double* y = n.b >= 0 ? reals(n.b, threads).data() : x;
        with_value(n.function, [&](const auto& value) {
          for (const int t : threads) to[static_cast<size_t>(t)] = value(x[t], y[t]);
        });
        break;
      }
    }
    return to;
  }

  // The bits of a node's values, as its type holds them.
  std::vector<uint64_t> bits_of(int id, const Threads& threads) {
    const DType dtype = node(id).dtype;
    std::vector<uint64_t> bits(static_cast<size_t>(launch_->threads));
    for (const int t : threads) {
      const auto at = static_cast<size_t>(t);
      bits[at] = is_float(dtype)
                     ? encode_float(dtype, cast_float(dtype, dtype, reals(id, threads)[at]))
                     : static_cast<uint64_t>(integers(id, threads)[at]);
    }
    return bits;
  }

  const std::vector<int64_t>& integers(int id, const Threads& threads) {
    const LockstepNode& n = node(id);
    std::vector<int64_t>& to = integers_[static_cast<size_t>(id)];
    const auto set = [&](int t, int64_t value) {
      to[static_cast<size_t>(t)] = wrap_to(n.dtype, value);
    };
    switch (n.op) {
      case LockstepNode::Op::kConstant: break;
      case LockstepNode::Op::kIndex: {
        const int64_t base = uniform(n.index);
        const int64_t* offsets = varying(n.index);
        for (size_t t = 0; t < to.size(); ++t) to[t] = offsets ? base + offsets[t] : base;
        break;
      }
      case LockstepNode::Op::kLoad: {
        const Memory& m = memory(n.place.buffer);
        each_element<false>(n.place, threads, [&](size_t t, size_t at) { to[t] = m.integers[at]; });
        break;
      }
      case LockstepNode::Op::kBinary:
        if (is_float(node(n.a).dtype)) {
          const double* a = reals(n.a, threads).data();
          const double* b = reals(n.b, threads).data();
          with_value(n.binary, [&](const auto& value) {
            for (const int t : threads) set(t, value(a[t], b[t]) != 0);
          });
        } else {
          const int64_t* a = integers(n.a, threads).data();
          const int64_t* b = integers(n.b, threads).data();
          const bool wide = is_wide_unsigned(node(n.a).dtype);
          with_value(n.binary, [&](const auto& value) {
            const auto of = [&](auto as) {
              using T = decltype(as);
              for (const int t : threads)
                set(t, static_cast<int64_t>(value(static_cast<T>(a[t]), static_cast<T>(b[t]))));
            };
            wide ? of(uint64_t{}) : of(int64_t{});
          });
        }
        break;
      case LockstepNode::Op::kSelect:
        select(
            n, to, threads, [&](int operand, const Threads& part) -> const auto& {
              return integers(operand, part);
            });
        break;
      case LockstepNode::Op::kCast:
        if (n.of_bits) {
          const std::vector<uint64_t> bits = bits_of(n.a, threads);
          for (const int t : threads) set(t, static_cast<int64_t>(bits[static_cast<size_t>(t)]));
        } else if (is_float(node(n.a).dtype)) {
          const double* x = reals(n.a, threads).data();
          for (const int t : threads) set(t, truncate_to(n.dtype, x[t]));
        } else {
          const int64_t* x = integers(n.a, threads).data();
          for (const int t : threads) set(t, x[t]);
        }
        break;
      case LockstepNode::Op::kCall: {
        const int64_t* x = integers(n.a, threads).data();
        for (const int t : threads) {
          const bool negative = is_signed_int(n.dtype) && x[t] < 0;
          const auto size =
              negative ? 0 - static_cast<uint64_t>(x[t]) : static_cast<uint64_t>(x[t]);
          set(t, n.function == Intrinsic::kNot ? x[t] == 0 : static_cast<int64_t>(size));
        }
        break;
      }
    }
    return to;
  }

  const Program& program_;
  const InterpretOptions options_;
  const Lockstep* launch_ = nullptr;
  std::vector<Memory> memory_;
  std::vector<int64_t> uniform_;
  std::vector<std::vector<int64_t>> varying_;
  std::vector<std::vector<double>> reals_;  // of each node
  std::vector<std::vector<int64_t>> integers_;
  RaceCheck races_;
  std::string problem_;
};

}  // namespace

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
  return Interpreter(program, options).run(args);
}

}  // namespace pruner
