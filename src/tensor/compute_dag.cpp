#include "tensor/compute_dag.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"
#include "support/hash.h"
#include "tensor/scalar_ops.h"

namespace pruner {

static int64_t product(const std::vector<Iterator>& iterators) {
  int64_t n = 1;
  for (const Iterator& i : iterators) n *= i.extent;
  return n;
}

std::vector<int64_t> Stage::shape() const {
  std::vector<int64_t> shape;
  for (const Iterator& axis : axes) shape.push_back(axis.extent);
  return shape;
}
int64_t Stage::num_elements() const { return product(axes); }
int64_t Stage::tile(int axis) const {
  for (const auto& [own, extent] : unrolled)
    if (own == axis) return extent;
  return 1;
}

int64_t Stage::reduce_size() const { return product(reduce_axes); }

template <typename Keep>
static std::vector<StageId> stages_that(const ComputeDag& dag, Keep keep) {
  std::vector<StageId> ids;
  for (int i = 0; i < dag.size(); ++i) {
    if (keep(dag[StageId{i}])) ids.push_back(StageId{i});
  }
  return ids;
}

std::vector<StageId> ComputeDag::inputs() const {
  return stages_that(*this, [](const Stage& s) { return s.is_placeholder(); });
}
std::vector<StageId> ComputeDag::outputs() const {
  return stages_that(*this, [](const Stage& s) { return s.output; });
}

static bool reads(const Stage& stage, StageId id) {
  bool found = false;
  if (stage.is_placeholder()) return false;
  visit(stage.body, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    found |= load && load->tensor == id;
  });
  return found;
}

std::vector<StageId> ComputeDag::consumers(StageId id) const {
  return stages_that(*this, [&](const Stage& s) { return reads(s, id); });
}

std::vector<StageId> ComputeDag::producers(StageId id) const {
  std::vector<StageId> ids;
  const Stage& stage = (*this)[id];
  if (stage.is_placeholder()) return ids;
  visit(stage.body, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) ids.push_back(load->tensor);
  });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<Unit> check_sizes(const ComputeDag& dag) {
  constexpr double kMostElements = 1e11, kMostTerms = 1e17;
  const auto product_of = [](const std::vector<Iterator>& iterators) {
    double n = 1;
    for (const Iterator& i : iterators) n *= static_cast<double>(i.extent);
    return n;
  };
  for (const Stage& stage : dag.stages) {
    const double elements = product_of(stage.axes);
    if (elements > kMostElements)
      return Error("stage ", stage.name, ": ", elements, " elements, at most ", kMostElements);
    const double terms = elements * product_of(stage.reduce_axes);
    if (terms > kMostTerms)
      return Error("stage ", stage.name, ": ", terms, " terms, at most ", kMostTerms);
  }
  return Unit{};
}

static Expr extreme(DType dtype, bool low) {
  if (!is_float(dtype)) return int_imm(low ? least_int(dtype) : greatest_int(dtype), dtype);
  return float_imm(low ? -HUGE_VAL : HUGE_VAL, dtype);
}

Expr combiner_identity(Combiner combiner, DType dtype) {
  switch (combiner) {
    case Combiner::kNone:
    case Combiner::kSum: return cast(dtype, 0);
    case Combiner::kProd: return cast(dtype, 1);
    case Combiner::kMax: return extreme(dtype, true);
    case Combiner::kMin: return extreme(dtype, false);
  }
  return {};
}

Expr combine(Combiner combiner, Expr a, Expr b) {
  if (combiner == Combiner::kNone) return b;
  return binary(facts_of(combiner).op, std::move(a), std::move(b));
}

// Types count as equal by class: float32 with float16, int64 with int8.
static int type_class(DType t) { return is_float(t) ? 0 : t == DType::kBool ? 1 : 2; }

// Operations whose result is of the class `counted`, that of the stage's type: so comparisons and
// index arithmetic count nothing in a stage of floats. Of a select the dearer side counts.
static double flops_of(const Expr& e, int counted) {
  const auto sub = [&](const Expr& part) { return flops_of(part, counted); };
  return match(
      e->op,
      [](const IntImm&) { return 0.0; },
      [](const FloatImm&) { return 0.0; },
      [](const Var&) { return 0.0; },
      [](const Load&) { return 0.0; },
      [&](const Binary& n) { return (type_class(e->dtype) == counted) + sub(n.a) + sub(n.b); },
      [&](const Select& n) { return sub(n.condition) + std::max(sub(n.a), sub(n.b)); },
      [&](const Cast& n) { return sub(n.value); },
      [&](const Call& n) {
        double sum = 0;  // the function itself counts nothing
        for (const Expr& arg : n.args) sum += sub(arg);
        return sum;
      });
}

double flop_count(const ComputeDag& dag) {
  double flops = 0;
  for (const Stage& stage : dag.stages) {
    if (stage.is_placeholder()) continue;
    // A reduction combines each term with what came before: one operation more.
    const double once = flops_of(stage.body, type_class(stage.dtype)) + stage.is_reduction();
    const auto points = static_cast<double>(stage.num_elements());
    flops += once * points * static_cast<double>(stage.reduce_size());
  }
  return flops;
}

// How often the stages of the DAG load each stage.
static std::vector<double> load_counts(const ComputeDag& dag) {
  std::vector<double> counts(dag.stages.size());
  for (const Stage& stage : dag.stages) {
    if (stage.is_placeholder()) continue;
    const double points = static_cast<double>(stage.num_elements() * stage.reduce_size());
    visit_uses(stage.body, [&](const Expr& e) {
      if (const Load* load = as<Load>(e)) counts[load->tensor.value] += points;
    });
  }
  return counts;
}

double traffic_bytes(const ComputeDag& dag) {
  const std::vector<double> loads = load_counts(dag);
  double bytes = 0;
  for (size_t i = 0; i < dag.stages.size(); ++i) {
    const Stage& stage = dag.stages[i];
    const auto elements = static_cast<double>(stage.num_elements());
    const auto size = static_cast<double>(dtype_bytes(stage.dtype));
    if (stage.is_placeholder()) bytes += size * std::min(elements, loads[i]);
    if (stage.output) bytes += size * elements;
  }
  return bytes;
}

static std::string print_axes(const std::vector<Iterator>& axes) {
  std::string out;
  for (const Iterator& i : axes) {
    out += (out.empty() ? "" : ", ") + i.name + "=" + std::to_string(i.extent);
  }
  return out;
}

static std::string print(const Stage& stage, const ComputeDag& dag) {
  const auto name_of = [&](StageId id) { return dag[id].name; };
  std::string out = stage.name;
  if (stage.is_placeholder()) {
    out += " = PLACEHOLDER " + print_json(Json(stage.shape()));
  } else {
    out += "(" + print_axes(stage.axes);
    if (stage.is_reduction()) out += "; " + print_axes(stage.reduce_axes);
    out += ") ";
    out += stage.is_reduction() ? facts_of(stage.combiner).dag : "=";
    out += " " + print(stage.body, name_of);
  }
  if (stage.dtype != DType::kFloat32) out += " " + std::string(dtype_name(stage.dtype));
  if (stage.constant) out += " constant";
  if (stage.index_bound > 0) out += " below " + std::to_string(stage.index_bound);
  for (StageId id : stage.layout_free) out += " layout_free=" + name_of(id);
  if (stage.output) out += " output";
  return out;
}

std::string print(const ComputeDag& dag) {
  std::string out;
  for (const Stage& stage : dag.stages) out += print(stage, dag) + "\n";
  return out;
}

// TVM pads a maximum with the greatest finite value's negative, and so do the keys of records.
static ComputeDag without_infinities(ComputeDag dag) {
  for (Stage& stage : dag.stages) {
    if (stage.is_placeholder()) continue;
    stage.body = rewrite(stage.body, [](const Expr& e) {
      const FloatImm* imm = as<FloatImm>(e);
      if (!imm || !std::isinf(imm->value)) return Expr();
      return float_imm(std::copysign(greatest_float(e->dtype), imm->value), e->dtype);
    });
  }
  return dag;
}

std::string workload_key(const ComputeDag& dag) {
  Json key = {hash_hex(print(without_infinities(dag)))};
  const auto add_shapes = [&](const std::vector<StageId>& ids) {
    for (StageId id : ids) {
      for (int64_t extent : dag[id].shape()) key.push_back(extent);
    }
  };
  add_shapes(dag.inputs());
  add_shapes(dag.outputs());
  return print_json(key);
}

}  // namespace pruner
