// Statements of a replayed record: a walk over the program that TVM lowers the record to, with its
// simplified index expressions (Pruner's and Ansor's extractors; reference.md, program and
// regions).
#include "analysis/replayed_statements.h"

#include <algorithm>

#include "analysis/warp_lanes.h"
#include "ansor/program_values.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

using ansor::Annotation;
using ansor::NodeKind;
using ansor::StatementKind;

LoopRole role_of(Annotation annotation) {
  // Both count in one order; tensorize stands behind all, as a serial loop.
  return annotation == Annotation::kTensorize ? LoopRole::kSerial : LoopRole(annotation);
}

bool holds(const Expr& e, int variable) {
  return match(
      e->op,
      [](const IntImm&) { return false; },
      [](const FloatImm&) { return false; },
      [&](const Var& n) { return n.id.value == variable; },
      [&](const Binary& n) { return holds(n.a, variable) || holds(n.b, variable); },
      [&](const Select& n) {
        return holds(n.condition, variable) || holds(n.a, variable) || holds(n.b, variable);
      },
      [&](const Cast& n) { return holds(n.value, variable); },
      [&](const Call& n) {
        return std::ranges::any_of(n.args, [&](const Expr& a) { return holds(a, variable); });
      },
      [&](const Load& n) {
        return std::ranges::any_of(n.indices, [&](const Expr& i) { return holds(i, variable); });
      });
}

// The factor of a variable in an index as the reference finds it, by the shape of the expression
// (reference.md, coefficient): after the variable the first product gives it, unless a sum came
// before.
class Coefficient {
 public:
  explicit Coefficient(int variable) : variable_(variable) {}
  int64_t of(const Expr& e) {
    walk(e);
    return found_ && !summed_ && !multiplied_ ? 1 : value_;
  }

 private:
  void walk(const Expr& e) {
    if (const Var* var = as<Var>(e)) {
      if (var->id.value != variable_) return;
      found_ = true;
      value_ = 2;
    } else if (const Binary* n = as<Binary>(e)) {
      walk(n->a);
      walk(n->b);
      if (!found_) return;
      if (n->op == BinaryOp::kMul && !summed_) {
        const int64_t* factor = as_int(n->a) ? as_int(n->a) : as_int(n->b);
        if (factor == nullptr) return;
        multiplied_ = true;
        value_ = *factor;
      } else if (n->op == BinaryOp::kAdd && !multiplied_) {
        summed_ = true;
        value_ = 1;
      }
    } else if (const Call* call = as<Call>(e)) {
      for (const Expr& arg : call->args) walk(arg);
    } else if (const Select* choice = as<Select>(e)) {
      for (const Expr* part : {&choice->condition, &choice->a, &choice->b}) walk(*part);
    } else if (const Cast* converted = as<Cast>(e)) {
      walk(converted->value);
    }
  }

  int variable_;
  bool found_ = false, summed_ = false, multiplied_ = false;
  int64_t value_ = 0;
};

class Reader {
 public:
  Reader(const ansor::ReplayNest& nest, bool with_warps)
      : nest_(nest),
        with_warps_(with_warps),
        dag_(nest.structure->dag),
        values_(nest, false),
        ranges_(nest.loops.size(), {0, 0}) {}

  Statements run() {
    out_.buffers.resize(dag_.stages.size());
    for (size_t s = 0; s < dag_.stages.size(); ++s) {
      StatementBuffer& buffer = out_.buffers[s];
      buffer.element_bytes = static_cast<int>(dtype_bytes(dag_.stages[s].dtype));
      buffer.first_dim = static_cast<int>(out_.shape.size());
      buffer.dims = static_cast<int>(dag_.stages[s].axes.size());
      for (const Iterator& axis : dag_.stages[s].axes) out_.shape.push_back(axis.extent);
    }
    out_.held = out_.shape;
    visit_nodes(0, static_cast<int>(nest_.nodes.size()));
    return std::move(out_);
  }

 private:
  struct Open {
    int variable;
    StatementLoop loop;
  };
  struct TensorAccess {
    StageId buffer;
    AccessKind kind;
    std::vector<const std::vector<Expr>*> places;
  };

  void visit_nodes(int from, int to) {
    for (int i = from; i < to; i = nest_.nodes[i].end) visit_node(i);
  }

  void visit_node(int number) {
    const ansor::ReplayNode& node = nest_.nodes[number];
    const auto inside = [&] { visit_nodes(number + 1, node.end); };
    switch (node.kind) {
      case NodeKind::kRealize: return visit_realize(node.index, inside);
      case NodeKind::kPragmas: return visit_pragmas(nest_.pragmas[node.index], inside);
      case NodeKind::kLoop: return visit_loop(node.index, inside);
      case NodeKind::kGuard: return visit_guard(nest_.guards[node.index], inside);
      case NodeKind::kTemporary: return inside();
      case NodeKind::kStatement: return visit_statement(nest_.statements[node.index]);
    }
  }

  template <typename Inside>
  void visit_realize(int s, const Inside& inside) {
    const std::string& name = nest_.state.stages[s].scope_name;
    StatementBuffer& buffer = out_.buffers[s];
    if (!name.empty()) {
      buffer.scope = name.starts_with("shared")  ? BufferScope::kShared
                     : name.starts_with("local") ? BufferScope::kLocal
                                                 : BufferScope::kGlobal;
    } else {
      for (const Open& open : open_) {
        if (is_block(open.loop.role)) buffer.scope = BufferScope::kShared;
        if (is_thread(open.loop.role)) buffer.scope = BufferScope::kLocal;
      }
    }
    const std::vector<int64_t>& extents = nest_.regions[s].extents;
    std::ranges::copy(extents, out_.held.begin() + buffer.first_dim);
    inside();
    float elements = 1;
    for (const int64_t extent : extents) elements *= static_cast<float>(extent);
    buffer.allocated = elements;
    buffer.realize_iterations = iterations_;
  }

  template <typename Inside>
  void visit_pragmas(const ansor::ReplayPragma& pragma, const Inside& inside) {
    const int64_t outer = unroll_steps_;
    const int64_t own = nest_.state.stages[pragma.stage].iters[pragma.iter].auto_unroll;
    if (own >= 0) unroll_steps_ = own;
    inside();
    unroll_steps_ = outer;
  }

  // Bindings are known by slots, of which the last one left is taken again first (reference.md,
  // slots).
  int enter(bool binding) {
    if (!binding || free_.empty()) return out_.identities++;
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }

  template <typename Inside>
  void visit_loop(int number, const Inside& inside) {
    const ansor::ReplayLoop& loop = nest_.loops[number];
    const LoopRole role = role_of(loop.annotation);
    const float extent = static_cast<float>(loop.extent);
    const bool binding = is_binding(role);
    const bool of_thread = !binding || role == LoopRole::kVThread;
    if (open_.empty()) kernel_ = out_.kernels++;
    gpu_ = gpu_ || binding;
    open_.push_back({number, {role, enter(binding), loop.extent}});
    values_.enter_loop(number);
    iterations_ *= extent;
    if (of_thread) work_ *= extent;
    inside();
    if (binding) free_.push_back(open_.back().loop.identity);
    open_.pop_back();
    iterations_ /= extent;
    if (of_thread) work_ /= extent;
  }

  template <typename Inside>
  void visit_guard(const ansor::ReplayGuard& guard, const Inside& inside) {
    const Expr condition = values_.guard(guard);
    if (const int64_t* known = as_int(condition)) {
      if (*known) inside();
      return;
    }
    values_.push_condition(condition);
    inside();
    values_.pop_condition();
  }

  void visit_statement(const ansor::ReplayStatement& s) {
    const bool to_register = s.kind == StatementKind::kThreadInit ||
                             s.kind == StatementKind::kThreadUpdate ||
                             s.kind == StatementKind::kAllReduce;
    if (to_register) return;
    if (open_.empty()) kernel_ = out_.kernels++;
    const std::vector<Expr> indices = values_.indices(s);
    const Expr value = values_.value(s);
    Statement made;
    made.buffer = stored_ = StageId{s.stage};
    made.kernel = kernel_;
    made.gpu = gpu_;
    made.iterations = iterations_;
    made.work = work_;
    made.unroll_steps = unroll_steps_;
    made.counts = count_operations(value);
    guarded_ = made.counts[Operation::kFloatMath] > 0;
    made.first_loop = static_cast<int>(out_.loops.size());
    made.loops = static_cast<int>(open_.size());
    for (const Open& open : open_) out_.loops.push_back(open.loop);
    std::vector<TensorAccess> accesses = {{made.buffer, AccessKind::kWrite, {&indices}}};
    if (value) add_loads(value, accesses);
    made.first_access = static_cast<int>(out_.accesses.size());
    made.accesses = static_cast<int>(accesses.size());
    // The reference's map gives them in the reverse order of their insertion (reference.md, order).
    for (size_t i = accesses.size(); i-- > 0;) add_access(accesses[i]);
    out_.statements.push_back(made);
  }

  void add_loads(const Expr& value, std::vector<TensorAccess>& accesses) const {
    visit_uses(value, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read == nullptr || read->tensor.value >= dag_.size()) return;
      auto found = std::ranges::find(accesses, read->tensor, &TensorAccess::buffer);
      if (found == accesses.end()) {
        accesses.push_back({read->tensor, AccessKind::kRead, {}});
        found = accesses.end() - 1;
      }
      if (found->kind == AccessKind::kWrite) found->kind = AccessKind::kReadWrite;
      if (found->kind == AccessKind::kRead) found->places.push_back(&read->indices);
    });
  }

  void add_access(const TensorAccess& access) {
    const std::span<const int64_t> shape = out_.shape_of(access.buffer);
    const auto first_use = out_.uses.size(), first_size = out_.sizes.size();
    out_.accesses.push_back(
        {access.buffer, access.kind, static_cast<int>(first_use), static_cast<int>(first_size)});
    out_.uses.resize(first_use + open_.size());
    out_.sizes.resize(first_size + open_.size() * shape.size());
    for (const Open& open : open_) ranges_[open.variable] = {0, 0};
    if (with_warps_) out_.accesses.back().warp_transactions = warp_transactions(access);
    for (size_t i = open_.size(); i-- > 0;) {
      const Open& open = open_[i];
      out_.uses[first_use + i] = use_of(open.variable, access, shape);
      ranges_[open.variable] = {0, open.loop.extent - 1};
      for (size_t d = 0; d < shape.size(); ++d) {
        const bool same = i + 1 < open_.size() && !holds_any(access, d, open.variable);
        if (same) {  // the size without this loop
          out_.sizes[first_size + i * shape.size() + d] =
              out_.sizes[first_size + (i + 1) * shape.size() + d];
          continue;
        }
        Range range = bounds_of((*access.places[0])[d]);
        for (const std::vector<Expr>* place : access.places) {
          const Range other = bounds_of((*place)[d]);
          range = {std::min(range.first, other.first), std::max(range.second, other.second)};
        }
        const bool known = range.first > kUnbounded.first && range.second < kUnbounded.second;
        out_.sizes[first_size + i * shape.size() + d] =
            known ? range.second - range.first + 1 : shape[d];
      }
    }
  }

  static bool holds_any(const TensorAccess& access, size_t dim, int variable) {
    return std::ranges::any_of(access.places, [&](const std::vector<Expr>* place) {
      return holds((*place)[dim], variable);
    });
  }

  // Counts the transactions of a warp while all loops but the threads' are at their start.
  int warp_transactions(const TensorAccess& access) {
    const StatementBuffer& buffer = out_.buffer(access.buffer);
    const auto thread = std::find_if(open_.rbegin(), open_.rend(), [](const Open& open) {
      return open.loop.role == LoopRole::kThreadX;
    });
    if (thread == open_.rend() || buffer.scope == BufferScope::kLocal) return 0;
    const std::vector<Expr>& place = *access.places[0];
    const bool shared = buffer.scope == BufferScope::kShared;
    const auto extents = shared ? out_.held_of(access.buffer) : out_.shape_of(access.buffer);
    WarpLanes lanes(static_cast<int>(std::min<int64_t>(kWarpLanes, thread->loop.extent)));
    int64_t pitch = 1;
    for (size_t d = place.size(); d-- > 0; pitch *= extents[d]) {
      if (!holds(place[d], thread->variable)) continue;
      for (int lane = 0; lane < lanes.count; ++lane) {
        ranges_[thread->variable] = {lane, lane};
        lanes.elements[lane] += pitch * bounds_of(place[d]).first;
      }
    }
    ranges_[thread->variable] = {0, 0};
    const Open& last = open_.back();
    int64_t repeats = 1;  // elements that the device does not move as a vector
    if (last.loop.role == LoopRole::kVectorize && !place.empty() &&
        holds(place.back(), last.variable)) {
      const int64_t row = out_.held_of(stored_).empty() ? 1 : out_.held_of(stored_).back();
      const bool vector = !guarded_ && is_vector(last.loop.extent, buffer.element_bytes, row);
      if (vector) {
        lanes.width = static_cast<int>(last.loop.extent);
      } else {
        repeats = last.loop.extent;
      }
    }
    const int bytes = buffer.element_bytes;
    return static_cast<int>(repeats) * (shared ? bank_cycles(lanes, bytes) : sectors(lanes, bytes));
  }

  LoopUse use_of(int variable, const TensorAccess& access, std::span<const int64_t> shape) const {
    LoopUse use;
    int64_t least = -1;
    for (const std::vector<Expr>* place : access.places) {
      int64_t factor = 1;
      for (size_t d = shape.size(); d-- > 0; factor *= shape[d]) {
        const Expr& index = (*place)[d];
        if (!holds(index, variable)) continue;
        use.used = true;
        const int64_t stride = std::abs(Coefficient(variable).of(index)) * factor;
        least = least < 0 ? stride : std::min(least, stride);
        break;
      }
    }
    use.stride = std::max<int64_t>(least, 0);
    return use;
  }

  // Interval arithmetic (reference.md, regions). Loops outside of the one at hand stand at 0.
  Range bounds_of(const Expr& e) const {
    const auto limited = [](int64_t x) {
      return std::clamp(x, kUnbounded.first, kUnbounded.second);
    };
    const auto corners = [&](const Range& a, const Range& b, const auto& op) -> Range {
      const auto [low, high] = std::minmax({op(a.first, b.first),
                                            op(a.first, b.second),
                                            op(a.second, b.first),
                                            op(a.second, b.second)});
      return {limited(low), limited(high)};
    };
    return match(
        e->op,
        [](const IntImm& n) {
          return Range{n.value, n.value};
        },
        [](const FloatImm&) { return kUnbounded; },
        [&](const Var& n) { return ranges_[n.id.value]; },
        [&](const Binary& n) {
          const Range a = bounds_of(n.a), b = bounds_of(n.b);
          if (a == kUnbounded || b == kUnbounded) return kUnbounded;
          switch (n.op) {
            case BinaryOp::kAdd: return Range{a.first + b.first, a.second + b.second};
            case BinaryOp::kSub: return Range{a.first - b.second, a.second - b.first};
            case BinaryOp::kMul: return corners(a, b, [](int64_t x, int64_t y) { return x * y; });
            case BinaryOp::kFloorDiv:
              if (b.first <= 0) return kUnbounded;
              return corners(a, b, [](int64_t x, int64_t y) { return floor_div(x, y); });
            case BinaryOp::kFloorMod:
              if (b.first <= 0) return kUnbounded;
              if (a.first < 0) return Range{0, b.second - 1};
              return a.second < b.first ? a : Range{0, std::min(a.second, b.second - 1)};
            case BinaryOp::kMin:
              return Range{std::min(a.first, b.first), std::min(a.second, b.second)};
            case BinaryOp::kMax:
              return Range{std::max(a.first, b.first), std::max(a.second, b.second)};
            default: return Range{0, 1};
          }
        },
        [&](const Select& n) {
          const Range a = bounds_of(n.a), b = bounds_of(n.b);
          return Range{std::min(a.first, b.first), std::max(a.second, b.second)};
        },
        [&](const Cast& n) { return bounds_of(n.value); },
        [](const Call&) { return kUnbounded; },
        [](const Load&) { return kUnbounded; });
  }

  const ansor::ReplayNest& nest_;
  bool with_warps_;
  const ComputeDag& dag_;
  ansor::ProgramValues values_;
  std::vector<Range> ranges_;  // one per variable
  std::vector<Open> open_;     // outer to inner
  std::vector<int> free_;
  float iterations_ = 1, work_ = 1;
  int64_t unroll_steps_ = 0;
  int kernel_ = 0;
  bool gpu_ = false;
  StageId stored_;        // buffer that the statement at hand stores
  bool guarded_ = false;  // the statement chooses by conditions, element for element
  Statements out_;
};

}  // namespace

Statements make_statements(const ansor::ReplayNest& nest) { return Reader(nest, true).run(); }

Statements make_model_statements(const ansor::ReplayNest& nest) {
  return Reader(nest, false).run();
}

}  // namespace pruner
