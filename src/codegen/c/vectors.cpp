// Vector loops as C: loads and stores of whole vectors where the lanes are known to lie side by
// side at an aligned place, arithmetic lane by lane.
#include <fmt/format.h>

#include "codegen/c/printer.h"
#include "support/check.h"

namespace pruner {

static constexpr int64_t kVectorBytes = 16;  // the widest load of a thread

bool CPrinter::depends_on_lane(const Expr& e) const { return reads(e, lane_var_); }

// The lanes' places are one span if they are base + lane and base is a multiple of a load's lanes:
// all buffers begin at multiples of 16 bytes.
std::optional<CPrinter::Span> CPrinter::span(TensorId buffer,
                                             const std::vector<Expr>& indices,
                                             int lanes) const {
  const Buffer& b = program_[buffer];
  if (b.scope == Scope::kLocal || b.scope == Scope::kRegister) return std::nullopt;
  const auto chunk =
      static_cast<int>(std::min<int64_t>(lanes, kVectorBytes / dtype_bytes(b.dtype)));
  std::vector<Expr> first(program_.var_names.size());
  first[lane_var_.value] = Expr(0);
  const Expr flat = flat_place(buffer, indices);
  const Expr base = simplify(substitute(flat, first), ranges_);
  const Expr lane = make_var(lane_var_, "lane");
  const Expr rest = simplify(flat - base - lane, ranges_);
  const int64_t* zero = as_int(rest);
  if (!zero || *zero != 0 || !is_multiple(base, chunk, lets_)) return std::nullopt;
  return Span{buffer, base, chunk};
}

// The loads of whole vectors in a value; what a select may leave out is not loaded ahead of it.
std::vector<const Expr*> CPrinter::spans_of(const Expr& value, int lanes) const {
  std::vector<const Expr*> result;
  const auto look = [&](const Expr& e, const auto& self) -> void {
    match(
        e->op,
        [](const IntImm&) {},
        [](const FloatImm&) {},
        [](const Var&) {},
        [&](const Binary& n) {
          self(n.a, self);
          self(n.b, self);
        },
        [&](const Select& n) { self(n.condition, self); },
        [&](const Cast& n) { self(n.value, self); },
        [&](const Call& n) {
          for (const Expr& arg : n.args) self(arg, self);
        },
        [&](const Load& n) {
          if (span(n.tensor, n.indices, lanes)) result.push_back(&e);
        });
  };
  look(value, look);
  return result;
}

bool CPrinter::touches_span(const Store& n, int lanes) const {
  if (span(n.buffer, n.indices, lanes) || !spans_of(n.value, lanes).empty()) return true;
  const Select* choice = as<Select>(n.value);
  return choice && !depends_on_lane(choice->condition) &&
         (!spans_of(choice->a, lanes).empty() || !spans_of(choice->b, lanes).empty());
}

// Whether the loop is worth being taken apart: something in it is a vector in memory. Statements
// that differ between lanes other than stores keep it whole.
bool CPrinter::vectorizes(const Stmt& s, int lanes) const {
  bool spans = false, possible = true;
  const auto look = [&](const Stmt& part, const auto& self) -> void {
    match(
        part->op,
        [&](const For& n) {
          possible &= !depends_on_lane(n.extent);
          self(n.body, self);
        },
        [&](const Let& n) {
          possible &= !depends_on_lane(n.value);
          self(n.body, self);
        },
        [&](const Store& n) { spans |= touches_span(n, lanes); },
        [](const Prefetch&) {},
        [&](const If& n) {
          possible &= !depends_on_lane(n.condition);
          self(n.then, self);
        },
        [&](const Allocate&) { possible = false; },
        [&](const Barrier&) { possible = false; },
        [&](const WarpStmt auto&) { possible = false; },
        [&](const Block& n) {
          for (const Stmt& one : n.statements) self(one, self);
        });
  };
  look(s, look);
  return possible && spans;
}

void CPrinter::vector_stmt(const Stmt& s, int lanes) {
  match(
      s->op,
      [&](const For& n) {
        range(n.var) = {0, std::max<int64_t>(bounds(n.extent, ranges_).second - 1, 0)};
        line() << "#pragma unroll\n";
        guarded(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name(n.var), text(n.extent, 4)),
                [&] { vector_stmt(n.body, lanes); });
      },
      [&](const Let& n) {
        let(n.var, n.value);
        vector_stmt(n.body, lanes);
      },
      [&](const Store& n) { vector_store(n, n.value, lanes); },
      [](const Prefetch&) {},
      [&](const If& n) {
        guarded("if (" + text(n.condition) + ")", [&] { vector_stmt(n.then, lanes); });
      },
      [](const Allocate&) { CHECK(false) << "an allocation in a vector loop"; },
      [](const Barrier&) { CHECK(false) << "a barrier in a vector loop"; },
      [](const WarpStmt auto&) { CHECK(false) << "a statement of warps in a vector loop"; },
      [&](const Block& n) {
        for (const Stmt& part : n.statements) vector_stmt(part, lanes);
      });
}

std::string CPrinter::vector_type(DType dtype, int lanes) {
  // One letter per DTypeKind: float, int, unsigned, bool, code; "f32x4" for four floats.
  const char kind = "fiubc"[static_cast<size_t>(row_of(dtype).kind)];
  const std::string type = fmt::format("{}{}x{}", kind, 8 * dtype_bytes(dtype), lanes);
  std::string members = "s0";
  for (int i = 1; i < lanes; ++i) members += fmt::format(", s{}", i);
  types_.insert(fmt::format(fmt::runtime(dialect_.vector_type),
                            type,
                            storage_type(dtype),
                            lanes,
                            lanes * dtype_bytes(dtype),
                            members));
  return type;
}

// The vector that begins at a lane, as an lvalue.
std::string CPrinter::span_text(const Span& span, int first_lane, bool writes) {
  const std::string type = vector_type(program_[span.buffer].dtype, span.chunk);
  const Expr at = simplify(span.base + Expr(first_lane), ranges_);
  return fmt::format("*({}{}{}*)&{}[{}]",
                     writes ? "" : "const ",
                     address_space(span.buffer),
                     type,
                     name(span.buffer),
                     text(at));
}

void CPrinter::vector_store(const Store& n, const Expr& value, int lanes) {
  if (const Select* choice = as<Select>(value); choice && !depends_on_lane(choice->condition)) {
    guarded("if (" + text(choice->condition) + ")", [&] { vector_store(n, choice->a, lanes); });
    return guarded("else", [&] { vector_store(n, choice->b, lanes); });
  }
  const DType dtype = program_[n.buffer].dtype;
  const std::optional<Span> to = span(n.buffer, n.indices, lanes);
  const std::vector<const Expr*> loads = spans_of(value, lanes);
  const auto each_chunk = [&](const Span& span, const auto& fn) {
    for (int first = 0; first < lanes; first += span.chunk) fn(first);
  };
  if (const Load* from = as<Load>(value); from && to && !loads.empty()) {  // a copy
    const Span source = *span(from->tensor, from->indices, lanes);
    return each_chunk(*to, [&](int first) {
      line() << span_text(*to, first, true) << " = " << span_text(source, first, false) << ";\n";
    });
  }
  guarded("", [&] {
    for (const Expr* e : loads) {
      const Load& load = *as<Load>(*e);
      const Span source = *span(load.tensor, load.indices, lanes);
      const std::string vector = names_.add("v");
      each_chunk(source, [&](int first) {
        line() << "const " << vector_type((*e)->dtype, source.chunk) << " " << vector << "_"
               << first / source.chunk << " = " << span_text(source, first, false) << ";\n";
      });
      loaded_[&**e] = {vector, source.chunk};
    }
    const std::string result = to ? names_.add("r") : "";
    if (to) {
      each_chunk(*to, [&](int first) {
        line() << vector_type(dtype, to->chunk) << " " << result << "_" << first / to->chunk
               << ";\n";
      });
    }
    Expr& lane = lane_[lane_var_.value];
    for (int i = 0; i < lanes; ++i) {
      lane = Expr(i);
      const std::string place = to ? fmt::format("{}_{}.s{}", result, i / to->chunk, i % to->chunk)
                                   : element(n.buffer, n.indices);
      line() << place << " = " << stored(value, dtype) << ";\n";
    }
    lane = Expr();
    loaded_.clear();
    if (to) {
      each_chunk(*to, [&](int first) {
        line() << span_text(*to, first, true) << " = " << result << "_" << first / to->chunk
               << ";\n";
      });
    }
  });
}

}  // namespace pruner
