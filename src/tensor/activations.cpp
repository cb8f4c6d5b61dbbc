// Activation functions as expressions, one row each.
#include "tensor/operator_dags.h"

namespace pruner {

static Expr f(double value) { return float_imm(value); }
static Expr fn(Intrinsic function, const Expr& x) { return call(function, {x}); }

static Expr relu(const Expr& x) { return max(x, f(0)); }
static Expr relu6(const Expr& x) { return max(min(x, f(6)), f(0)); }
static Expr leaky_relu(const Expr& x) { return max(x, x * f(0.01)); }
static Expr sigmoid(const Expr& x) { return fn(Intrinsic::kSigmoid, x); }
static Expr tanh(const Expr& x) { return fn(Intrinsic::kTanh, x); }
static Expr silu(const Expr& x) { return x * sigmoid(x); }
static Expr gelu(const Expr& x) { return x * fn(Intrinsic::kNormalCdf, x); }
// x / 2 * (1 + tanh((x + 0.044715 x^3) sqrt(2 / pi))), where (1 + tanh(t)) / 2 is sigmoid(2 t).
static Expr gelu_tanh(const Expr& x) {
  return x * sigmoid((x + x * x * x * f(0.044715)) * f(1.5957691216057308));
}
static Expr hard_sigmoid(const Expr& x) { return max(min(x * f(1. / 6) + f(0.5), f(1)), f(0)); }
static Expr hard_swish(const Expr& x) { return x * hard_sigmoid(x); }
static Expr elu(const Expr& x) { return select(x < f(0), fn(Intrinsic::kExpm1, x), x); }
static Expr softplus(const Expr& x) {  // log(1 + e^x) that doesn't overflow
  return max(x, f(0)) + fn(Intrinsic::kLog1p, fn(Intrinsic::kExp, f(0) - fn(Intrinsic::kAbs, x)));
}
static Expr mish(const Expr& x) { return x * tanh(softplus(x)); }
static Expr exp(const Expr& x) { return fn(Intrinsic::kExp, x); }
static Expr abs(const Expr& x) { return fn(Intrinsic::kAbs, x); }

static constexpr Activation kActivations[] = {
    {"relu", "T_relu", relu},
    {"relu6", "T_relu6", relu6},
    {"leakyrelu", "T_leaky_relu", leaky_relu},
    {"sigmoid", "T_sigmoid", sigmoid},
    {"tanh", "T_tanh", tanh},
    {"silu", "T_silu", silu},
    {"gelu", "T_gelu", gelu},
    {"gelutanh", "T_gelu_tanh", gelu_tanh},
    {"hardsigmoid", "T_hard_sigmoid", hard_sigmoid},
    {"hardswish", "T_hard_swish", hard_swish},
    {"elu", "T_elu", elu},
    {"softplus", "T_softplus", softplus},
    {"mish", "T_mish", mish},
    {"exp", "T_exp", exp},
    {"abs", "T_abs", abs},
};

std::span<const Activation> activations() { return kActivations; }

const Activation* find_activation(std::string_view name) {
  for (const Activation& row : kActivations) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace pruner
