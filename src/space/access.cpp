#include "space/access.h"

#include <algorithm>

#include "tensor/scalar_ops.h"

namespace pruner {

std::vector<Range> iterator_ranges(const Stage& stage) {
  std::vector<Range> ranges;
  for (const Iterator& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
  for (const Iterator& axis : stage.reduce_axes) ranges.push_back({0, axis.extent - 1});
  return ranges;
}

// The quotient that `e` is: floor(axis / divisor).
static std::optional<SteppedIndex::Quotient> to_quotient(const Expr& e) {
  const Binary* division = as<Binary>(e);
  if (division == nullptr || division->op != BinaryOp::kFloorDiv) return std::nullopt;
  const Var* axis = as<Var>(division->a);
  const int64_t* divisor = as_int(division->b);
  if (axis == nullptr || divisor == nullptr || *divisor <= 1) return std::nullopt;
  return SteppedIndex::Quotient{axis->id.value, *divisor, 1};
}

static std::optional<SteppedIndex> to_stepped(const Expr& e) {
  if (std::optional<Affine> affine = to_affine(e)) return SteppedIndex{*std::move(affine), {}};
  if (const auto quotient = to_quotient(e)) return SteppedIndex{{}, {*quotient}};
  const Binary* n = as<Binary>(e);
  if (n == nullptr) return std::nullopt;
  if (n->op == BinaryOp::kMul) {
    const bool first = as_int(n->a) != nullptr;
    const int64_t* factor = as_int(first ? n->a : n->b);
    auto quotient = to_quotient(first ? n->b : n->a);
    if (factor == nullptr || !quotient) return std::nullopt;
    quotient->coefficient = *factor;
    return SteppedIndex{{}, {*quotient}};
  }
  if (n->op != BinaryOp::kAdd) return std::nullopt;
  std::optional<SteppedIndex> a = to_stepped(n->a);
  const std::optional<SteppedIndex> b = to_stepped(n->b);
  // Two affine parts would have to be added: a sum in normal form has one.
  if (!a || !b || (!a->rest.terms.empty() && !b->rest.terms.empty())) return std::nullopt;
  if (a->rest.terms.empty()) a->rest.terms = b->rest.terms;
  a->rest.constant += b->rest.constant;
  a->quotients.insert(a->quotients.end(), b->quotients.begin(), b->quotients.end());
  return a;
}

static bool same_access(const Access& a, const Access& b) {
  return a.producer == b.producer && a.indices == b.indices;
}

std::vector<Access> accesses_of(const ComputeDag& dag, StageId id) {
  std::vector<Access> accesses;
  const Stage& stage = dag[id];
  if (stage.is_placeholder()) return accesses;
  const std::vector<Range> ranges = iterator_ranges(stage);
  visit(stage.body, [&](const Expr& e) {
    const Load* read = as<Load>(e);
    if (read == nullptr) return;
    Access access{read->tensor, {}, {}, {}, {}};
    const Stage& producer = dag[read->tensor];
    for (size_t d = 0; d < read->indices.size(); ++d) {
      const Expr index = simplify(read->indices[d], ranges);
      std::optional<Affine> affine = to_affine(index);
      const Range range = bounds(index, ranges);
      // The start of a box is where its iterators start; a descending index has no such place.
      const auto descends = [](const std::pair<VarId, int64_t>& term) { return term.second < 0; };
      const bool boxed = affine && std::ranges::none_of(affine->terms, descends);
      const bool leaves = range.first < 0 || range.second >= producer.axes[d].extent;
      access.whole.push_back(!boxed || leaves);
      access.leaves.push_back(boxed && leaves);
      access.stepped.push_back(affine ? std::nullopt : to_stepped(index));
      access.indices.push_back(std::move(affine));
    }
    const bool seen = std::any_of(accesses.begin(), accesses.end(), [&](const Access& other) {
      return same_access(other, access);
    });
    if (!seen) accesses.push_back(std::move(access));
  });
  return accesses;
}

AccessTable access_table(const ComputeDag& dag) {
  AccessTable table;
  for (int s = 0; s < dag.size(); ++s) table.push_back(accesses_of(dag, StageId{s}));
  return table;
}

int last_longer(const std::vector<Iterator>& axes, int end) {
  while (--end >= 0 && axes[static_cast<size_t>(end)].extent <= 1) continue;
  return end;
}

bool steps_past(const Access& access, int d, int axis) {
  const std::optional<SteppedIndex>& index = access.stepped[static_cast<size_t>(d)];
  return index && index->rest.coefficient(VarId{axis}) == 0 &&
         std::ranges::none_of(index->quotients, [&](const auto& q) { return q.axis == axis; });
}

bool needs_multi_level_tiling(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.is_placeholder()) return false;
  int missing = 0;
  for (const StageId producer : dag.producers(id)) {
    std::vector<bool> used(stage.axes.size(), false);
    visit(stage.body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || read->tensor != producer) return;
      for (const Expr& index : read->indices) {
        visit(index, [&](const Expr& part) {
          const Var* var = as<Var>(part);
          if (var != nullptr && var->id.value < static_cast<int>(used.size()))
            used[var->id.value] = true;
        });
      }
    });
    for (size_t a = 0; a < used.size(); ++a) {
      if (!used[a] && stage.axes[a].extent > 1) {
        ++missing;
        break;
      }
    }
  }
  return missing >= 2 || (missing >= 1 && stage.is_reduction());
}

bool reads_at_own_places(const ComputeDag& dag, StageId reader, StageId producer) {
  const Stage& stage = dag[reader];
  std::vector<bool> used(stage.axes.size(), false);
  for (const Access& access : accesses_of(dag, reader)) {
    if (access.producer != producer) continue;
    for (const std::optional<Affine>& index : access.indices) {
      if (!index) return false;
      for (const auto& [iterator, coefficient] : index->terms) {
        const auto v = static_cast<size_t>(iterator.value);
        if (v < used.size()) used[v] = true;
      }
    }
  }
  for (size_t a = 0; a < used.size(); ++a) {
    if (!used[a] && stage.axes[a].extent > 1) return false;
  }
  return true;
}

int lone_iterator(const std::optional<Affine>& index) {
  const bool lone =
      index && index->constant == 0 && index->terms.size() == 1 && index->terms[0].second == 1;
  return lone ? index->terms[0].first.value : -1;
}

bool reads_elementwise(const ComputeDag& dag, StageId consumer, StageId producer) {
  const Stage& reader = dag[consumer];
  if (reader.shape() != dag[producer].shape() || reader.is_reduction()) return false;
  for (const Access& access : accesses_of(dag, consumer)) {
    if (access.producer != producer) continue;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const std::optional<Affine>& index = access.indices[d];
      if (!index) return false;
      const bool constant_zero =
          index->terms.empty() && index->constant == 0 && reader.axes[d].extent == 1;
      if (!constant_zero && lone_iterator(index) != static_cast<int>(d)) return false;
    }
  }
  return true;
}

// An index that is compared with a constant is known in the code (Stage::unrolled): on average a
// chain of such choices costs what one of its branches does.
static double select_operations(const Select& n) {
  const auto chooses = [](const Select& s) {
    const Binary* condition = as<Binary>(s.condition);
    return condition != nullptr && condition->op == BinaryOp::kEq &&
           as_int(condition->b) != nullptr;
  };
  if (as<Load>(n.a) != nullptr && as<FloatImm>(n.b) != nullptr) return 0.1;  // a guard: it holds
  if (!chooses(n)) return 1.0 + body_operations(n.a) + body_operations(n.b);
  double sum = 0, branches = 1;
  const Select* at = &n;
  for (; as<Select>(at->b) && chooses(*as<Select>(at->b)); at = as<Select>(at->b)) {
    sum += body_operations(at->a);
    ++branches;
  }
  return (sum + body_operations(at->a) + body_operations(at->b)) / (branches + 1);
}

double body_operations(const Expr& body) {
  return match(
      body->op,
      [](const IntImm&) { return 0.0; },
      [](const FloatImm&) { return 0.0; },
      [](const Var&) { return 0.0; },
      [&](const Binary& n) {
        const double own = is_float(body->dtype) ? (n.op == BinaryOp::kDiv ? 4.0 : 1.0) : 0.0;
        return own + body_operations(n.a) + body_operations(n.b);
      },
      [](const Select& n) { return select_operations(n); },
      [](const Cast& n) { return 1.0 + body_operations(n.value); },
      [](const Call& n) {
        double sum = facts_of(n.function).operations;
        for (const Expr& arg : n.args) sum += body_operations(arg);
        return sum;
      },
      [](const Load&) { return 0.0; });
}

bool has_expensive_call(const Expr& body) {
  bool found = false;
  visit(body, [&](const Expr& e) {
    const Call* c = as<Call>(e);
    found = found || (c != nullptr && facts_of(c->function).operations > 8);
  });
  return found;
}

bool has_select(const Expr& body) {
  bool found = false;
  visit(body, [&](const Expr& e) { found = found || as<Select>(e) != nullptr; });
  return found;
}

}  // namespace pruner
