// The values of a Lockstep's nodes.
#include "lower/lockstep_run.h"
#include "tensor/scalar_ops.h"
#include "tensor/tape_run.h"

namespace pruner {

// The threads for which a condition holds, and the others.
std::pair<Threads, Threads> LockstepRun::split(int condition, const Threads& threads) {
  const std::vector<int64_t>& holds = integers(condition, threads);
  std::pair<Threads, Threads> parts;
  for (const int t : threads) {
    (holds[static_cast<size_t>(t)] ? parts.first : parts.second).push_back(t);
  }
  return parts;
}

template <typename T, typename Values>
void LockstepRun::select(const LockstepNode& n,
                         std::vector<T>& to,
                         const Threads& threads,
                         Values values) {
  const auto [first, second] = split(n.a, threads);
  for (const auto& [part, operand] : {std::pair{&first, n.b}, std::pair{&second, n.c}}) {
    if (part->empty()) continue;
    const std::vector<T>& from = values(operand, *part);
    for (const int t : *part) to[static_cast<size_t>(t)] = from[static_cast<size_t>(t)];
  }
}

const std::vector<double>& LockstepRun::reals(int id, const Threads& threads) {
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
std::vector<uint64_t> LockstepRun::bits_of(int id, const Threads& threads) {
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

template <typename Set>
void LockstepRun::binary(const LockstepNode& n, const Threads& threads, const Set& set) {
  if (is_float(node(n.a).dtype)) {
    const double* a = reals(n.a, threads).data();
    const double* b = reals(n.b, threads).data();
    return with_value(n.binary, [&](const auto& value) {
      for (const int t : threads) set(t, value(a[t], b[t]) != 0);
    });
  }
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

template <typename Set>
void LockstepRun::cast_to_integers(const LockstepNode& n, const Threads& threads, const Set& set) {
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
}

const std::vector<int64_t>& LockstepRun::integers(int id, const Threads& threads) {
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
    case LockstepNode::Op::kBinary: binary(n, threads, set); break;
    case LockstepNode::Op::kSelect:
      select(
          n, to, threads, [&](int operand, const Threads& part) -> const auto& {
            return integers(operand, part);
          });
      break;
    case LockstepNode::Op::kCast: cast_to_integers(n, threads, set); break;
    case LockstepNode::Op::kCall: {
      const int64_t* x = integers(n.a, threads).data();
      for (const int t : threads) {
        const bool negative = is_signed_int(n.dtype) && x[t] < 0;
        const auto size = negative ? 0 - static_cast<uint64_t>(x[t]) : static_cast<uint64_t>(x[t]);
        set(t, n.function == Intrinsic::kNot ? x[t] == 0 : static_cast<int64_t>(size));
      }
      break;
    }
  }
  return to;
}

}  // namespace pruner
