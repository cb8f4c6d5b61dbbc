#include "tensor/tape_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/check.h"
#include "tensor/scalar_ops.h"

namespace pruner {

// out[i] = fn(a[i], ...): in chunks of a constant size, which the compiler turns into vectors.
template <typename Out, typename Fn, typename... In>
static void map_lanes(int n, Out* __restrict out, Fn fn, const In*... in) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int j = 0; j < 8; ++j) out[i + j] = fn(in[i + j]...);
  }
  for (; i < n; ++i) out[i] = fn(in[i]...);
}

template <typename T, typename Out>
static void binary_lanes(BinaryOp op, int n, const T* a, const T* b, Out* out) {
  with_value(op, [&](const auto& value) { map_lanes(n, out, value, a, b); });
}

// Applies `op` to integers of a type, whose sign decides how integers are compared and divided.
template <typename Out>
static void integer_lanes(
    BinaryOp op, DType dtype, int n, const int64_t* a, const int64_t* b, Out* out) {
  if (!is_wide_unsigned(dtype)) return binary_lanes(op, n, a, b, out);
  const auto* x = reinterpret_cast<const uint64_t*>(a);
  const auto* y = reinterpret_cast<const uint64_t*>(b);
  binary_lanes(op, n, x, y, out);
}

static void call_lanes(Intrinsic function, int n, const double* a, const double* b, double* out) {
  with_value(function, [&](const auto& value) { map_lanes(n, out, value, a, b); });
}

template <typename T>
static void select_lanes(
    int n, const int64_t* condition, bool condition_lanes, const T* a, const T* b, T* out) {
  if (!condition_lanes) {
    std::copy_n(*condition ? a : b, n, out);
    return;
  }
  map_lanes(
      n, out, [](int64_t c, T x, T y) { return c ? x : y; }, condition, a, b);
}

TapeRun::TapeRun(const ComputeDag& dag, StageId stage, Tape tape, TapeMemory& memory)
    : dag_(dag),
      stage_(dag[stage]),
      tape_(std::move(tape)),
      memory_(memory),
      reals_(static_cast<size_t>(tape_.reals)),
      integers_(static_cast<size_t>(tape_.integers)) {}

double TapeRun::cost(int count) const {
  const auto reduced = static_cast<double>(stage_.reduce_size());
  if (!tape_.lanes_reduce && tape_.lane_var >= 0) {
    return reduced * (tape_.block_cost + tape_.lane_cost * count);
  }
  const double lanes = static_cast<double>(std::min<int64_t>(tape_.lane_extent, kLanes));
  return count * (reduced / lanes) * (tape_.block_cost + tape_.lane_cost * lanes);
}

void TapeRun::run(int64_t first, int count, Word* out) {
  if (!tape_.lanes_reduce && tape_.lane_var >= 0) return run_block(first, count, out);
  for (int i = 0; i < count; ++i) run_block(first + i, 1, out + i);
}

void TapeRun::set_var(int var, int64_t value) {
  const int node = tape_.var_nodes[var];
  if (node >= 0) *integers(node) = value;
}

void TapeRun::run_block(int64_t first, int lanes, Word* out) {
  int64_t rest = first;
  for (size_t d = stage_.axes.size(); d-- > 0;) {
    set_var(static_cast<int>(d), rest % stage_.axes[d].extent);
    rest /= stage_.axes[d].extent;
  }
  if (tape_.lanes_reduce) {
    set_var(tape_.lane_var, 0);
    lanes = static_cast<int>(std::min<int64_t>(tape_.lane_extent, kLanes));
  }
  if (is_float(stage_.dtype)) {
    fold_loops<double>(lanes, out);
  } else if (is_wide_unsigned(stage_.dtype)) {
    fold_loops<uint64_t>(lanes, out);
  } else {
    fold_loops<int64_t>(lanes, out);
  }
}

// acc[i] = fn(acc[i], v[i]); across lanes, eight running results take turns.
template <typename T, typename Fn>
static void fold_lanes(bool across, int n, const T* v, T* acc, Fn fn) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    T* to = across ? acc : acc + i;
    for (int j = 0; j < 8; ++j) to[j] = fn(to[j], v[i + j]);
  }
  for (; i < n; ++i) {
    T& to = acc[across ? i % 8 : i];
    to = fn(to, v[i]);
  }
}

template <typename T>
static void fold_lanes(Combiner combiner, bool across, int n, const T* v, T* acc) {
  if (combiner == Combiner::kNone) return fold_lanes(across, n, v, acc, [](T, T y) { return y; });
  with_value(facts_of(combiner).op,
             [&](const auto& value) { fold_lanes(across, n, v, acc, value); });
}

template <typename T>
void TapeRun::fold_loops(int lanes, Word* out) {
  const Expr identity = combiner_identity(stage_.combiner, stage_.dtype);
  const T start = as_int(identity) ? static_cast<T>(*as_int(identity))
                                   : static_cast<T>(as<FloatImm>(identity)->value);
  T acc[kLanes];
  const bool across = tape_.lanes_reduce;
  std::fill_n(acc, across ? 8 : lanes, start);

  std::vector<int64_t> at(tape_.loops.size(), 0);
  for (const TapeLoop& loop : tape_.loops) set_var(loop.var, 0);
  for (int level = 0;;) {
    const bool lane_loop = across && !at.empty() && tape_.loops.back().var == tape_.lane_var;
    const int64_t left = lane_loop ? tape_.lane_extent - at.back() : lanes;
    const int n = static_cast<int>(std::min<int64_t>(left, lanes));
    run_from(level, n);
    if constexpr (std::is_same_v<T, double>) {
      fold_lanes(stage_.combiner, across, n, reals(tape_.result), acc);
    } else {
      const auto* values = reinterpret_cast<const T*>(integers(tape_.result));
      fold_lanes(stage_.combiner, across, n, values, acc);
    }
    level = static_cast<int>(at.size());  // the loop that advances; those inside it start again
    for (; level > 0; --level) {
      const auto l = static_cast<size_t>(level - 1);
      at[l] += tape_.loops[l].step;
      if (at[l] >= tape_.loops[l].extent) at[l] = 0;
      set_var(tape_.loops[l].var, at[l]);
      if (at[l] != 0) break;
    }
    if (level == 0) break;
  }
  if (across) {
    for (int i = 1; i < 8; ++i) fold_lanes(stage_.combiner, false, 1, acc + i, acc);
    lanes = 1;
  }
  for (int i = 0; i < lanes; ++i) {
    if constexpr (std::is_same_v<T, double>) {
      out[i] = std::bit_cast<Word>(round_to(stage_.dtype, acc[i]));
    } else {
      out[i] = std::bit_cast<Word>(wrap_to(stage_.dtype, static_cast<int64_t>(acc[i])));
    }
  }
}

void TapeRun::run_from(int level, int lanes) {
  const auto first = static_cast<size_t>(tape_.level_start[level]);
  for (size_t i = first; i < tape_.nodes.size(); ++i) run_node(tape_.nodes[i], lanes);
}

void TapeRun::run_node(const TapeNode& node, int lanes) {
  const int n = node.lanes ? lanes : 1;
  const auto operand = [&](int id) -> const TapeNode& { return tape_.nodes[id]; };
  double* real_out = node.is_real() ? &reals_[node.slot] : nullptr;
  int64_t* out = node.is_real() ? nullptr : &integers_[node.slot];
  switch (node.op) {
    case TapeOp::kVar: return;
    case TapeOp::kConst:
      if (real_out) *real_out = node.real;
      if (out) *out = node.value;
      return;
    case TapeOp::kSpread:
      if (real_out) std::fill_n(real_out, n, *reals(node.a));
      if (out) {
        const int64_t first = *integers(node.a), step = operand(node.a).step;
        for (int l = 0; l < n; ++l) out[l] = first + l * step;
      }
      return;
    case TapeOp::kLoad: return run_load(node, lanes);
    case TapeOp::kInRange: return check_range(node, lanes);
    case TapeOp::kBinary:
      if (real_out) return binary_lanes(node.binary, n, reals(node.a), reals(node.b), real_out);
      if (!operand(node.a).is_real()) {
        const DType dtype = operand(node.a).dtype;
        return integer_lanes(node.binary, dtype, n, integers(node.a), integers(node.b), out);
      }
      return binary_lanes(node.binary, n, reals(node.a), reals(node.b), out);
    case TapeOp::kSelect: {
      const bool condition_lanes = operand(node.a).lanes;
      const int64_t* condition = integers(node.a);
      if (real_out) {
        return select_lanes(n, condition, condition_lanes, reals(node.b), reals(node.c), real_out);
      }
      return select_lanes(n, condition, condition_lanes, integers(node.b), integers(node.c), out);
    }
    case TapeOp::kCast: return run_cast(node, n, real_out, out);
    case TapeOp::kCall:
      if (real_out) {
        const double* b = reals(node.b >= 0 ? node.b : node.a);
        return call_lanes(node.function, n, reals(node.a), b, real_out);
      }
      CHECK(node.function == Intrinsic::kAbs) << "a function of integers";
      return map_lanes(
          n,
          out,
          [&](int64_t x) { return x < 0 && is_signed_int(node.dtype) ? -x : x; },
          integers(node.a));
  }
}

void TapeRun::run_cast(const TapeNode& node, int n, double* real_out, int64_t* out) {
  const DType to = node.dtype, from = tape_.nodes[node.a].dtype;
  const bool from_real = is_float(from);
  if (node.value != 0) {  // the same bits
    for (int l = 0; l < n; ++l) {
      const uint64_t bits = from_real ? encode_float(from, cast_float(from, from, reals(node.a)[l]))
                                      : static_cast<uint64_t>(wrap_to(from, integers(node.a)[l]));
      if (real_out) real_out[l] = decode_float(to, bits);
      if (out) out[l] = wrap_to(to, static_cast<int64_t>(bits));
    }
    return;
  }
  if (real_out && to == DType::kFloat32 && from_real) {
    const auto round = [](double x) { return static_cast<double>(static_cast<float>(x)); };
    return map_lanes(n, real_out, round, reals(node.a));
  }
  for (int l = 0; l < n; ++l) {
    const double real = from_real ? reals(node.a)[l] : 0;
    if (real_out) {
      const int64_t whole = from_real ? 0 : wrap_to(from, integers(node.a)[l]);
      real_out[l] = from_real ? cast_float(from, to, real) : cast_int(from, to, whole);
    } else {
      out[l] = from_real ? truncate_to(to, real) : wrap_to(to, integers(node.a)[l]);
    }
  }
}

bool TapeRun::active(const TapeNode& node, int lane) const {
  if (node.b < 0) return true;
  return integers(node.b)[tape_.nodes[node.b].lanes ? lane : 0] != 0;
}

void TapeRun::check_range(const TapeNode& node, int lanes) const {
  const TapeNode& index = tape_.nodes[node.a];
  const bool guard_lanes = node.b >= 0 && tape_.nodes[node.b].lanes;
  const int n = index.lanes || index.step != 0 || guard_lanes ? lanes : 1;
  for (int l = 0; l < n; ++l) {
    const int64_t i = index.lanes ? integers(node.a)[l] : *integers(node.a) + l * index.step;
    if ((i >= 0 && i < node.value) || !active(node, l)) continue;
    CHECK(false) << "stage " << dag_[node.reader].name << " reads " << dag_[node.tensor].name
                 << " at " << i << " of dim " << node.c << ", whose extent is " << node.value;
  }
}

void TapeRun::run_load(const TapeNode& node, int lanes) {
  const TapeNode& position = tape_.nodes[node.a];
  const bool guard_lanes = node.b >= 0 && tape_.nodes[node.b].lanes;
  const int n = node.lanes ? lanes : 1;
  const int64_t* at = integers(node.a);
  const Tensor* tensor = memory_.tensor(node.tensor);
  double* real_out = node.is_real() ? &reals_[node.slot] : nullptr;
  int64_t* out = node.is_real() ? nullptr : &integers_[node.slot];

  const bool none = node.b >= 0 && !guard_lanes && *integers(node.b) == 0;
  if (none || guard_lanes) {
    if (real_out) std::fill_n(real_out, n, 0.0);
    if (out) std::fill_n(out, n, 0);
    if (none) return;
  }
  if (tensor && node.dtype == DType::kFloat32 && !guard_lanes) {
    const float* data = tensor->values<float>().data();
    const int64_t step = position.step;
    if (position.lanes)
      return map_lanes(
          n, real_out, [data](int64_t i) { return data[i]; }, at);
    if (step == 1)
      return map_lanes(
          n, real_out, [](float x) { return x; }, data + *at);
    for (int l = 0; l < n; ++l) real_out[l] = data[*at + l * step];
    return;
  }
  int64_t positions[kLanes];
  int lane_of[kLanes];
  Word words[kLanes];
  size_t count = 0;
  for (int l = 0; l < n; ++l) {
    if (!active(node, l)) continue;
    lane_of[count] = l;
    positions[count++] = position.lanes ? at[l] : *at + l * position.step;
  }
  if (!tensor) memory_.fetch(node.tensor, {positions, count}, words);
  for (size_t i = 0; i < count; ++i) {
    if (real_out) {
      real_out[lane_of[i]] = tensor ? tensor->get(positions[i]) : std::bit_cast<double>(words[i]);
    } else {
      out[lane_of[i]] = tensor ? tensor->get_int(positions[i]) : std::bit_cast<int64_t>(words[i]);
    }
  }
}

}  // namespace pruner
