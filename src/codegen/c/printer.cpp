// Kernels and statements as C.
#include "codegen/c/printer.h"

#include <fmt/format.h>

#include "codegen/c/source.h"
#include "lower/rewrite.h"
#include "support/check.h"

namespace pruner {
namespace {

struct FunctionRow {
  const char* name;
  const char* text;  // after what begins a function; what differs by dialect in capitals
};

// NaN where an operand is, as everywhere; where b is a constant, the compiler drops its question.
constexpr FunctionRow kFunctions[] = {
    {"half_to_float", "HALF_TO_FLOAT"},
    {"float_to_half", "FLOAT_TO_HALF"},
    {"bf16_to_float",
     " float bf16_to_float(BITS16 bits) { return AS_FLOAT((int)((unsigned)bits << 16)); }\n"},
    // To the nearest even: half of the last bit kept, less one where that bit is even. A NaN is
    // kept apart, as rounding could carry it to infinity: it is made quiet (0x40).
    {"float_to_bf16",
     " BITS16 float_to_bf16(float x) {\n"
     "  const unsigned bits = (unsigned)AS_INT(x);\n"
     "  if ((bits & 0x7fffffff) > 0x7f800000) return (BITS16)(bits >> 16 | 0x40);\n"
     "  return (BITS16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n}\n"},
    // Half of the last bit that stays is added to the size, which may carry into the exponent.
    {"round_to_tf32",
     " float round_to_tf32(float x) {\n"
     "  return x != x ? x : AS_FLOAT((int)(((unsigned)AS_INT(x) + 0x1000) & 0xffffe000));\n}\n"},
    {"min_of", " float min_of(float a, float b) { return b < a || b != b ? b : a; }\n"},
    {"max_of", " float max_of(float a, float b) { return a < b || b != b ? b : a; }\n"},
    {"round_half", " float round_half(float x) { return half_to_float(float_to_half(x)); }\n"},
    {"round_bf16", " float round_bf16(float x) { return bf16_to_float(float_to_bf16(x)); }\n"},
    {"sigmoid", " float sigmoid(float x) { return 1.0f / (1.0f + EXP(-x)); }\n"},
    // Half of erfc(a + rest) for -x / sqrt(2) = a + rest: what the product was rounded by counts,
    // as the tail falls by a factor of exp(x * x / 2). Beyond the bounds the result is 0 or 1.
    {"normal_cdf",
     " float normal_cdf(float x) {\n"
     "  if (x < -15.0f) return 0.0f;\n"
     "  if (x > 15.0f) return 1.0f;\n"
     "  const float a = x * -0.70710677f;\n"
     "  const float rest = FUSED(x, -0.70710677f, -a) - x * 1.2101617e-8f;\n"
     "  return 0.5f * ERFC(a) - 0.56418958f * EXP(-a * a) * rest;\n}\n"},
    // A value that the type does not hold, NaN too, becomes the type's least number.
    {"truncated",
     " int truncated(float x) {\n"
     "  return x >= -2147483648.0f && x < 2147483648.0f ? (int)x : -2147483647 - 1;\n}\n"},
    {"truncated64",
     " I64 truncated64(float x) {\n"
     "  const I64 least = (I64)1 << 63;\n"
     "  return x >= (float)least && x < -(float)least ? (I64)x : least;\n}\n"},
    {"remainder_of",
     " float remainder_of(float a, float b) {\n"
     "  const float r = FMOD(a, b);\n"
     "  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;\n}\n"},
    // To the neighbour whose last bit is odd, from where a second rounding does no harm.
    {"float_to_odd",
     " float float_to_odd(double x) {\n"
     "  const float near = (float)x;\n"
     "  if (!((double)near < x || (double)near > x)) return near;\n"
     "  const int beyond = fabs((double)near) > fabs(x) ? 1 : 0;\n"
     "  return AS_FLOAT((AS_INT(near) - beyond) | 1);\n}\n"},
    {"min_of64", " double min_of64(double a, double b) { return b < a || b != b ? b : a; }\n"},
    {"max_of64", " double max_of64(double a, double b) { return a < b || b != b ? b : a; }\n"},
    {"remainder_of64",
     " double remainder_of64(double a, double b) {\n"
     "  const double r = fmod(a, b);\n"
     "  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;\n}\n"},
    {"sigmoid64", " double sigmoid64(double x) { return 1.0 / (1.0 + exp(-x)); }\n"},
    {"normal_cdf64",
     " double normal_cdf64(double x) {\n"
     "  if (x < -40.0) return 0.0;\n"
     "  if (x > 40.0) return 1.0;\n"
     "  const double a = x * -0.70710678118654757;\n"
     "  const double rest = fma(x, -0.70710678118654757, -a) + x * 4.8336466567264567e-17;\n"
     "  return 0.5 * erfc(a) - 0.56418958354775629 * exp(-a * a) * rest;\n}\n"},
    {"unsigned_div", " U32 unsigned_div(U32 a, U32 b) { return b == 0 ? a : a / b; }\n"},
    {"unsigned_mod", " U32 unsigned_mod(U32 a, U32 b) { return b == 0 ? 0 : a % b; }\n"},
    {"unsigned_div64", " U64 unsigned_div64(U64 a, U64 b) { return b == 0 ? a : a / b; }\n"},
    {"unsigned_mod64", " U64 unsigned_mod64(U64 a, U64 b) { return b == 0 ? 0 : a % b; }\n"},
    {"floor_div",
     " int floor_div(int a, int b) {\n"
     "  if (b == 0) return a;\n"
     "  if (b == -1) return (int)(0 - (unsigned)a);\n"
     "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n}\n"},
    {"floor_mod",
     " int floor_mod(int a, int b) {\n"
     "  if (b == 0 || b == -1) return 0;\n"
     "  const int r = a % b;\n"
     "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"},
    {"floor_div64",
     " I64 floor_div64(I64 a, I64 b) {\n"
     "  if (b == 0) return a;\n"
     "  if (b == -1) return (I64)(0 - (unsigned I64)a);\n"
     "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n}\n"},
    {"floor_mod64",
     " I64 floor_mod64(I64 a, I64 b) {\n"
     "  if (b == 0 || b == -1) return 0;\n"
     "  const I64 r = a % b;\n"
     "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"},
};

// `text` with every `what` in it replaced.
std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

CPrinter::CPrinter(const Program& program, const Dialect& dialect)
    : program_(program),
      dialect_(dialect),
      ranges_(program.var_names.size(), kUnbounded),
      lets_(program.var_names.size()),
      lane_(program.var_names.size()),
      words_(program.buffers.size(), false) {
  for (const Buffer& buffer : program.buffers) buffers_.push_back(names_.add(buffer.name));
  for (const std::string& var : program.var_names) vars_.push_back(names_.add(var));
  walk(program.body, [&](const StmtNode& s) {
    const auto mark = [&](const ElementPlace& place, bool) { words_[place.buffer.value] = true; };
    std::visit([&](const auto& n) { each_place(n, mark); }, s.op);
  });
}

std::string CPrinter::source(const std::string& symbol) {
  const std::vector<Artifact::Launch> plan =
      plan_launches(program_, symbol, dialect_.most_declared);
  const std::vector<const For*> loops = launches(program_);
  for (size_t i = 0; i < loops.size(); ++i) kernel(*loops[i], plan[i]);
  // The types and functions that the kernels turned out to use stand before the kernels.
  std::string head;
  const std::string exp = math_function(Intrinsic::kExp, DType::kFloat32);
  const std::string fmod = std::string("fmod") + dialect_.math_suffix;
  const std::string fused = std::string("fma") + dialect_.math_suffix;
  const std::string erfc = std::string("erfc") + dialect_.math_suffix;
  const std::pair<std::string_view, std::string_view> spellings[] = {
      {"HALF_TO_FLOAT", dialect_.half_to_float},
      {"FLOAT_TO_HALF", dialect_.float_to_half},
      {"BITS16", dialect_.bits16},
      {"AS_FLOAT", dialect_.as_float},
      {"AS_INT", dialect_.as_int},
      {"I64", dialect_.int64},
      {"FMOD", fmod},
      {"FUSED", fused},
      {"ERFC", erfc},
      {"U64", dialect_.uint64},
      {"U32", dialect_.uint32},
      {"EXP", exp}};
  for (const FunctionRow& row : kFunctions) {
    if (!functions_.contains(row.name)) continue;
    std::string text = row.text;
    for (const auto& [what, by] : spellings) text = replaced(std::move(text), what, by);
    head += dialect_.function + text;
  }
  for (const std::string& text : warp_functions_) head += dialect_.function + text;
  for (const std::string& type : types_) head += type;
  return head + out_.str();
}

std::ostream& CPrinter::line() { return out_ << std::string(static_cast<size_t>(2 * depth_), ' '); }

const char* CPrinter::address_space(TensorId id) const {
  switch (program_[id].scope) {
    case Scope::kArgument:
    case Scope::kWorkspace: return dialect_.global;
    case Scope::kShared: return dialect_.shared;
    case Scope::kLocal:
    case Scope::kRegister: break;
  }
  return "";
}

template <typename Op>
static bool contains(const Stmt& body) {
  bool found = false;
  walk(body, [&](const StmtNode& s) { found |= std::holds_alternative<Op>(s.op); });
  return found;
}

// `kMostCopies` is the number of copies of a loop's body that compilers make unasked.
static constexpr int64_t kMostCopies = 128;

void CPrinter::kernel(const For& blocks, const Artifact::Launch& launch) {
  const Touched touched = touched_buffers(program_, blocks.body);
  global_fence_ = false;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Scope scope = program_.buffers[i].scope;
    const bool global = scope == Scope::kArgument || scope == Scope::kWorkspace;
    global_fence_ |= global && touched.read[i] && touched.written[i];
  }
  if (out_.tellp() > 0) out_ << "\n";
  const bool multiplies = contains<Mma>(blocks.body) || contains<GroupMma>(blocks.body);
  const char* head = multiplies ? dialect_.warp_kernel : dialect_.kernel;
  out_ << fmt::format(fmt::runtime(head), launch.threads) << " " << launch.kernel;
  parameters(launch);
  depth_ = 1;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    if (buffer.scope != Scope::kWorkspace || !touched.any(i)) continue;
    const std::string pointer = dialect_.global + storage_type(buffer.dtype) + "*";
    line() << pointer << " const " << buffers_[i] << " = (" << pointer << ")(workspace + "
           << buffer.workspace_offset << ");\n";
  }
  dynamic_shared_.clear();
  if (launch.dynamic_bytes > 0) {
    dynamic_shared_ = names_.add("shared_memory");
    shared_bytes_ = 0;
    shared_alignment_ = shared_alignment(blocks.body);
    line() << "extern " << fmt::format(fmt::runtime(dialect_.shared_array), shared_alignment_)
           << dialect_.byte << " " << dynamic_shared_ << "[];\n";
  }
  range(blocks.var) = {0, launch.blocks - 1};
  line() << "const int " << name(blocks.var) << " = " << dialect_.block << ";\n";
  stmt(blocks.body);
  out_ << "}\n";
}

void CPrinter::parameters(const Artifact::Launch& launch) {
  const char* separator = "(\n    ";
  for (const int i : launch.arguments) {
    const TensorId id = program_.args[i];
    const Buffer& buffer = program_[id];
    out_ << separator << dialect_.global << (buffer.output ? "" : "const ")
         << storage_type(buffer.dtype) << "*" << dialect_.restricted << " " << name(id);
    separator = ",\n    ";
  }
  if (launch.workspace) out_ << separator << dialect_.global << dialect_.byte << "* workspace";
  out_ << ") {\n";
}

// `head` with a body in braces.
void CPrinter::guarded(const std::string& head, const std::function<void()>& body) {
  line() << head << (head.empty() ? "{\n" : " {\n");
  ++depth_;
  body();
  --depth_;
  line() << "}\n";
}

// A let is printed as int where its bounds fit 32 bits, though parts of its value may not.
void CPrinter::let(VarId var, const Expr& value) {
  const Range r = bounds(value, ranges_);
  range(var) = r;
  lets_[var.value] = simplify(value, ranges_);
  const bool wide = r.first < INT32_MIN || r.second > INT32_MAX;
  const std::string type = index_type(wide);
  const bool narrowed = !wide && !fits(value);
  line() << "const " << type << " " << name(var) << " = "
         << (narrowed ? "(int)(" + text(value) + ")" : text(value)) << ";\n";
}

void CPrinter::declare(TensorId id) {
  const Buffer& buffer = program_[id];
  const bool shared = buffer.scope == Scope::kShared;
  if (shared && !dynamic_shared_.empty()) {
    const int64_t offset = buffer.over ? 0 : shared_offset(shared_bytes_, shared_alignment_);
    line() << fmt::format("{0}* const {1} = ({0}*)({2} + {3});\n",
                          storage_type(buffer.dtype),
                          name(id),
                          dynamic_shared_,
                          offset);
    if (!buffer.over) shared_bytes_ = offset + buffer.bytes();
    return;
  }
  const bool words = !shared && words_[id.value] && dtype_bytes(buffer.dtype) < 4;
  const std::string array = fmt::format(fmt::runtime(dialect_.shared_array), kSharedAlignment);
  line() << (shared  ? array
             : words ? "__align__(4) "
                     : "")
         << storage_type(buffer.dtype) << " " << name(id) << "[" << buffer.num_elements() << "]"
         << (shared ? dialect_.aligned_array : "") << ";\n";
}

void CPrinter::stmt(const Stmt& s) {
  match(
      s->op,
      [&](const For& n) { loop(n); },
      [&](const Let& n) {
        let(n.var, n.value);
        stmt(n.body);
      },
      [&](const Store& n) {
        const DType dtype = program_[n.buffer].dtype;
        const std::string value = stored(n.value, dtype);
        line() << element(n.buffer, n.indices) << " = " << value << ";\n";
      },
      [](const Prefetch&) {},
      [&](const If& n) { guarded("if (" + text(n.condition) + ")", [&] { stmt(n.then); }); },
      [&](const Allocate& n) {
        declare(n.buffer);
        stmt(n.body);
      },
      [&](const Barrier&) {
        line() << (global_fence_ ? dialect_.barrier_global : dialect_.barrier) << ";\n";
      },
      [&](const WarpStmt auto& n) { warp(n); },
      [&](const Block& n) {
        for (const Stmt& part : n.statements) stmt(part);
      });
}

// Returns how many copies the unrolled loops in `body` make of the statement copied most often.
static int64_t copies_in(const Stmt& body) {
  int64_t most = 1;
  match(
      body->op,
      [&](const For& n) {
        const int64_t* known = n.kind == LoopKind::kUnroll ? as_int(n.extent) : nullptr;
        most = (known != nullptr ? *known : 1) * copies_in(n.body);
      },
      [&](const Let& n) { most = copies_in(n.body); },
      [&](const If& n) { most = copies_in(n.then); },
      [&](const Allocate& n) { most = copies_in(n.body); },
      [&](const Block& n) {
        for (const Stmt& part : n.statements) most = std::max(most, copies_in(part));
      },
      [](const auto&) {});
  return most;
}

// Returns the pragma of a loop. A long loop is a pipeline of copies, or many copies of unrolled
// loops. If a compiler unrolls a long loop unasked, its values do not fit the registers.
std::string CPrinter::unrolling(const For& n) const {
  if (n.kind == LoopKind::kUnroll || n.kind == LoopKind::kVectorize) return "#pragma unroll";
  if (n.kind != LoopKind::kSerial) return "";
  if (n.rolled || contains<Wait>(n.body)) return "#pragma unroll 1";
  const int64_t* known = as_int(n.extent);
  const int64_t copies = unrolled_ * copies_in(n.body);
  if (known == nullptr || copies == 1 || *known * copies <= kMostCopies) return "";
  return fmt::format("#pragma unroll {}", std::max<int64_t>(1, kMostCopies / copies));
}

void CPrinter::loop(const For& n) {
  const Range extent = bounds(n.extent, ranges_);
  range(n.var) = {0, std::max<int64_t>(extent.second - 1, 0)};
  if (n.kind == LoopKind::kThread) {
    line() << "const int " << name(n.var) << " = " << dialect_.thread << ";\n";
    return stmt(n.body);
  }
  const int64_t* known = as_int(n.extent);
  if (n.kind == LoopKind::kVectorize && known && *known == n.lanes) {
    lane_var_ = n.var;
    const bool vectors = vectorizes(n.body, n.lanes);
    if (vectors) vector_stmt(n.body, n.lanes);
    lane_var_ = {};
    if (vectors) return;
  }
  const std::string pragma = unrolling(n);
  const int64_t around = unrolled_;
  if (n.kind == LoopKind::kUnroll && known != nullptr) unrolled_ *= *known;
  const std::string& var = name(n.var);
  const bool wide = extent.second > INT32_MAX;
  std::string end = text(n.extent, 4);
  // NVRTC serializes products that are on their way from one iteration to the next, unless it sees
  // that there is an iteration.
  const bool runs_once = known == nullptr && extent.first >= 1 && contains<GroupMma>(n.body);
  if (n.kind == LoopKind::kVectorize && !known) {
    // A loop of constant length can be unrolled; the active lanes are those below the extent.
    end = fmt::format("{0} && {1} < {2}", n.lanes, var, end);
  }
  if (runs_once) line() << index_type(wide) << " " << var << " = 0;\n";
  if (!pragma.empty()) line() << pragma << "\n";
  guarded(runs_once
              ? "do"
              : fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", index_type(wide), var, end),
          [&] { stmt(n.body); });
  if (runs_once) line() << "while (++" << var << " < " << end << ");\n";
  unrolled_ = around;
}

std::string print_source(const Program& program,
                         const Dialect& dialect,
                         const std::string& symbol) {
  return CPrinter(program, dialect).source(symbol);
}

}  // namespace pruner
