// Programs run as they are written, one iteration at a time: what every backend is held against.
#include <cmath>
#include <limits>

#include "lower/program.h"

namespace pruner {
namespace {

class Interpreter {
 public:
  Interpreter(const Program& program, std::span<Tensor> args)
      : program_(program), vars_(program.var_names.size()), memory_(program.buffers.size()) {
    for (size_t i = 0; i < args.size(); ++i)
      memory_[static_cast<size_t>(program.args[i].value)] = args[i];
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].scope == Scope::kWorkspace) make(TensorId{static_cast<int32_t>(i)});
    }
  }

  Result<Unit> run() {
    stmt(program_.body);
    if (!problem_.empty()) return Error(problem_);
    return Unit{};
  }

 private:
  // What was never written is NaN (or a number that no test expects).
  void make(TensorId id) {
    const Buffer& buffer = program_[id];
    Tensor fresh(buffer.dtype, buffer.shape);
    for (int64_t i = 0; i < fresh.num_elements(); ++i) {
      if (is_float(buffer.dtype)) {
        fresh.set(i, std::numeric_limits<double>::quiet_NaN());
      } else {
        fresh.set_int(i, -77);
      }
    }
    memory(id) = fresh;
  }

  Tensor& memory(TensorId id) { return memory_[static_cast<size_t>(id.value)]; }
  int64_t& var(VarId id) { return vars_[static_cast<size_t>(id.value)]; }

  // The element's row-major place, or none and a report of the first index that is out of bounds.
  std::optional<int64_t> place(TensorId id, const std::vector<Expr>& indices) {
    const Buffer& buffer = program_[id];
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t i = integer(indices[d]);
      if (i < 0 || i >= buffer.shape[d]) {
        if (problem_.empty()) {
          problem_ = buffer.name + ": index " + std::to_string(i) + " of dim " + std::to_string(d) +
                     " is not below " + std::to_string(buffer.shape[d]);
        }
        return std::nullopt;
      }
      flat = flat * buffer.shape[d] + i;
    }
    return flat;
  }

  void stmt(const Stmt& s) {
    if (!problem_.empty()) return;
    match(
        s->op,
        [&](const For& n) {
          const int64_t extent = integer(n.extent);
          for (int64_t i = 0; i < extent && problem_.empty(); ++i) {
            var(n.var) = i;
            stmt(n.body);
          }
        },
        [&](const Let& n) {
          var(n.var) = integer(n.value);
          stmt(n.body);
        },
        [&](const Store& n) {
          const std::optional<int64_t> at = place(n.buffer, n.indices);
          if (!at) return;
          if (is_float(n.value->dtype)) {
            memory(n.buffer).set(*at, real(n.value));
          } else {
            memory(n.buffer).set_int(*at, integer(n.value));
          }
        },
        [&](const If& n) {
          if (integer(n.condition)) stmt(n.then);
        },
        [](const Prefetch&) {},
        [](const Barrier&) {},
        [&](const Allocate& n) {
          make(n.buffer);
          stmt(n.body);
        },
        [&](const Block& n) {
          for (const Stmt& part : n.statements) stmt(part);
        });
  }

  // An integer or bool expression.
  int64_t integer(const Expr& e) {
    const int64_t v = match(
        e->op,
        [](const IntImm& n) { return n.value; },
        [](const FloatImm&) { return int64_t{0}; },
        [&](const Var& n) { return var(n.id); },
        [&](const Binary& n) {
          return is_float(n.a->dtype) ? int64_t{compare(n.op, real(n.a), real(n.b))}
                                      : integer_binary(n);
        },
        [&](const Select& n) { return integer(integer(n.condition) ? n.a : n.b); },
        [&](const Cast& n) {
          if (!is_float(n.value->dtype)) return integer(n.value);
          const double value = real(n.value);
          return e->dtype == DType::kBool ? int64_t{value != 0} : static_cast<int64_t>(value);
        },
        [&](const Call& n) {
          const int64_t value = integer(n.args[0]);
          return n.function == Intrinsic::kNot ? int64_t{value == 0} : std::abs(value);
        },
        [&](const Load& n) {
          const std::optional<int64_t> at = place(n.tensor, n.indices);
          return at ? memory(n.tensor).get_int(*at) : 0;
        });
    switch (e->dtype) {  // arithmetic wraps
      case DType::kInt32: return static_cast<int32_t>(v);
      case DType::kInt8: return static_cast<int8_t>(v);
      case DType::kBool: return v != 0;
      default: return v;
    }
  }

  int64_t integer_binary(const Binary& n) {
    const int64_t a = integer(n.a), b = integer(n.b);
    const auto unsigned_a = static_cast<uint64_t>(a), unsigned_b = static_cast<uint64_t>(b);
    switch (n.op) {
      case BinaryOp::kAdd: return static_cast<int64_t>(unsigned_a + unsigned_b);
      case BinaryOp::kSub: return static_cast<int64_t>(unsigned_a - unsigned_b);
      case BinaryOp::kMul: return static_cast<int64_t>(unsigned_a * unsigned_b);
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod: {
        if (b == 0) return n.op == BinaryOp::kFloorDiv ? a : 0;
        const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
        return n.op == BinaryOp::kFloorDiv ? quotient : a - quotient * b;
      }
      case BinaryOp::kMin: return std::min(a, b);
      case BinaryOp::kMax: return std::max(a, b);
      case BinaryOp::kAnd: return a && b;
      case BinaryOp::kOr: return a || b;
      default: return compare(n.op, a, b);
    }
  }

  template <typename T>
  static bool compare(BinaryOp op, T a, T b) {
    switch (op) {
      case BinaryOp::kLt: return a < b;
      case BinaryOp::kLe: return a <= b;
      case BinaryOp::kGt: return a > b;
      case BinaryOp::kGe: return a >= b;
      case BinaryOp::kEq: return a == b;
      default: return a != b;
    }
  }

  double real(const Expr& e) {
    return match(
        e->op,
        [](const IntImm& n) { return static_cast<double>(n.value); },
        [](const FloatImm& n) { return n.value; },
        [&](const Var& n) { return static_cast<double>(var(n.id)); },
        [&](const Binary& n) { return real_binary(n.op, real(n.a), real(n.b)); },
        [&](const Select& n) { return real(integer(n.condition) ? n.a : n.b); },
        [&](const Cast& n) {
          const double value =
              is_float(n.value->dtype) ? real(n.value) : static_cast<double>(integer(n.value));
          Tensor rounded(e->dtype, {1});
          rounded.set(0, value);
          return rounded.get(0);
        },
        [&](const Call& n) {
          return call(n.function, real(n.args[0]), n.args.size() > 1 ? real(n.args[1]) : 0);
        },
        [&](const Load& n) {
          const std::optional<int64_t> at = place(n.tensor, n.indices);
          return at ? memory(n.tensor).get(*at) : 0;
        });
  }

  static double real_binary(BinaryOp op, double a, double b) {
    switch (op) {
      case BinaryOp::kAdd: return a + b;
      case BinaryOp::kSub: return a - b;
      case BinaryOp::kMul: return a * b;
      case BinaryOp::kDiv: return a / b;
      case BinaryOp::kMin: return b < a ? b : a;
      case BinaryOp::kMax: return a < b ? b : a;
      default: return std::numeric_limits<double>::quiet_NaN();
    }
  }

  static double call(Intrinsic function, double x, double y) {
    switch (function) {
      case Intrinsic::kExp: return std::exp(x);
      case Intrinsic::kLog: return std::log(x);
      case Intrinsic::kSqrt: return std::sqrt(x);
      case Intrinsic::kRsqrt: return 1 / std::sqrt(x);
      case Intrinsic::kTanh: return std::tanh(x);
      case Intrinsic::kSigmoid: return 1 / (1 + std::exp(-x));
      case Intrinsic::kErf: return std::erf(x);
      case Intrinsic::kPow: return std::pow(x, y);
      case Intrinsic::kAbs: return std::fabs(x);
      case Intrinsic::kFloor: return std::floor(x);
      case Intrinsic::kCeil: return std::ceil(x);
      case Intrinsic::kRound: return std::nearbyint(x);
      case Intrinsic::kSin: return std::sin(x);
      case Intrinsic::kCos: return std::cos(x);
      case Intrinsic::kNot: break;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  const Program& program_;
  std::vector<int64_t> vars_;
  std::vector<Tensor> memory_;
  std::string problem_;
};

}  // namespace

Result<Unit> interpret(const Program& program, std::span<Tensor> args) {
  if (args.size() != program.args.size()) {
    return Error(program.name, " takes ", program.args.size(), " tensors, not ", args.size());
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Buffer& buffer = program[program.args[i]];
    if (args[i].dtype() != buffer.dtype || args[i].num_elements() != buffer.num_elements()) {
      return Error("argument ", i, " does not fit ", buffer.name);
    }
  }
  return Interpreter(program, args).run();
}

}  // namespace pruner
