#include "tensor/parse_expr.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "tensor/scalar_ops.h"

namespace pruner {

static bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '@';
}

bool is_name(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(text, is_part_of_name);
}

namespace {

constexpr int kMaxDepth = 500;       // levels of nesting
constexpr int kMaxOperators = 5000;  // operators in one text: a chain is as deep as it is long

// Recursive descent with precedence climbing over one text.
class ExprParser {
 public:
  ExprParser(std::string_view text, const ExprScope& scope) : text_(text), scope_(scope) {}

  Result<Expr> expression(int least_precedence = 1) {
    if (++depth_ > kMaxDepth) return error("at most 500 levels of nesting");
    TRY_ASSIGN(Expr left, operand());
    while (const BinaryFacts* row = take_operator(least_precedence)) {
      TRY_ASSIGN(Expr right, expression(row->precedence + 1));
      TRY_ASSIGN(left, make_binary(row->op, left, right));
    }
    --depth_;
    return left;
  }

  Result<ParsedBody> body() {
    ParsedBody body;
    if (!take("reduce[")) {
      TRY_ASSIGN(body.source, expression());
      return body;
    }
    for (const CombinerFacts& row : kCombiners) {
      if (take(row.json)) {
        body.combiner = row.combiner;
        break;
      }
    }
    if (body.combiner == Combiner::kNone) {
      return error("a combiner: (x + y), (x * y), max(x, y) or min(x, y)");
    }
    TRY(expect("]"));
    TRY(expect("("));
    TRY_ASSIGN(body.source, expression());
    TRY(expect(";"));
    TRY(expect("axis=["));
    while (!take("]")) {  // the stage lists its axes; here they need only be known
      const std::string_view axis = identifier();
      if (!scope_.variables.contains(axis)) return error("a reduce axis");
      take(",");
    }
    TRY(expect(";"));
    TRY(expect("value_index=0"));
    TRY(expect(")"));
    return body;
  }

  Result<Unit> end() {
    skip_space();
    if (at_ != text_.size()) return error("the end");
    return Unit{};
  }

 private:
  Error error(std::string_view expected) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 24);
    return Error("at character ",
                 at_,
                 ": expected ",
                 expected,
                 ", found ",
                 rest.empty() ? "the end" : "\"" + std::string(rest) + "\"");
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Result<Unit> expect(std::string_view token) {
    if (!take(token)) return error("\"" + std::string(token) + "\"");
    return Unit{};
  }
  std::string_view identifier() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && is_part_of_name(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  // The longest operator here that binds at least so tightly.
  const BinaryFacts* take_operator(int least_precedence) {
    skip_space();
    const BinaryFacts* found = nullptr;
    size_t length = 0;
    for (const BinaryFacts& row : kBinaryOps) {
      if (row.is_function()) continue;
      for (const std::string_view text : {row.text, row.also}) {
        if (text.size() <= length || !text_.substr(at_).starts_with(text)) continue;
        found = &row;
        length = text.size();
      }
    }
    if (!found || found->precedence < least_precedence) return nullptr;
    at_ += length;
    return found;
  }

  Result<Expr> make_binary(BinaryOp op, Expr a, Expr b) {
    if (++operators_ > kMaxOperators) return error("at most 5000 operators");
    const auto common = common_dtype(a, b);
    if (!common) return mismatch(a, b);
    const bool logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
    if (logical && *common != DType::kBool)
      return error("truth values around && or ||, before here");
    if (op == BinaryOp::kDiv && !is_float(*common))
      return error("// between integers, before here");
    const bool whole = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
    if (op == BinaryOp::kFloorDiv && is_float(*common))
      return error("integers around //, before here");
    if (op == BinaryOp::kXor && (is_float(*common) || *common == DType::kBool))
      return error("integers in xor(), before here");
    if (const int64_t* divisor = as_int(b); whole && divisor && *divisor == 0) {
      return error("a divisor other than 0, before here");
    }
    return binary(op, std::move(a), std::move(b));
  }
  Error mismatch(const Expr& a, const Expr& b) const {
    return error("operands of one type, before here not " + std::string(dtype_name(a->dtype)) +
                 " and " + std::string(dtype_name(b->dtype)));
  }

  Result<Expr> operand() {
    skip_space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (take("(")) {
      TRY_ASSIGN(Expr inner, expression());
      TRY(expect(")"));
      return inner;
    }
    if (take("!")) {
      if (++depth_ > kMaxDepth) return error("at most 500 levels of nesting");
      TRY_ASSIGN(Expr inner, operand());
      --depth_;
      if (inner->dtype != DType::kBool) return error("a truth value after !, before here");
      return call(Intrinsic::kNot, {inner});
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-') return number();
    const size_t start = at_;
    const std::string_view name = identifier();
    if (name == "true" || name == "false") return int_imm(name == "true", DType::kBool);
    if (name == "inf") return float_imm(HUGE_VAL);
    if (name == "nan") return float_imm(NAN);
    if (name == "cast" || name == "bitcast") return cast_call(name == "bitcast");
    if (take("(")) return function(name, start);
    if (take("[")) return element(name, start);
    const auto variable = scope_.variables.find(name);
    if (variable == scope_.variables.end()) {
      at_ = start;
      return error("an expression");
    }
    return variable->second;
  }

  Result<Expr> number() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    int64_t whole = 0;
    const auto as_whole = std::from_chars(begin, end, whole);
    const bool integer = as_whole.ec == std::errc() &&
                         (as_whole.ptr == end || (*as_whole.ptr != '.' && *as_whole.ptr != 'e'));
    if (integer) {
      at_ += static_cast<size_t>(as_whole.ptr - begin);
      if (take("f")) return float_imm(static_cast<double>(whole));  // TVM's own print: 0f
      return int_imm(whole);
    }
    double value = 0;
    const auto as_double = std::from_chars(begin, end, value);
    if (as_double.ec != std::errc()) return error("a number");
    at_ += static_cast<size_t>(as_double.ptr - begin);
    take("f");
    return float_imm(value);
  }

  Result<Expr> cast_call(bool of_bits) {
    TRY(expect("<"));
    const std::optional<DType> dtype = parse_dtype(identifier());
    if (!dtype) return error("a type such as float32 before here");
    TRY(expect(">"));
    TRY(expect("("));
    TRY_ASSIGN(Expr value, expression());
    TRY(expect(")"));
    if (!of_bits) return cast(*dtype, std::move(value));
    if (row_of(*dtype).bits != row_of(value->dtype).bits)
      return error("a type of as many bits as the value, before here");
    return bit_cast(*dtype, std::move(value));
  }

  // Expressions up to `close`, which is taken.
  Result<std::vector<Expr>> list(std::string_view close) {
    std::vector<Expr> out;
    if (take(close)) return out;
    do {
      TRY_ASSIGN(Expr item, expression());
      out.push_back(std::move(item));
    } while (take(","));
    TRY(expect(close));
    return out;
  }

  Result<Expr> function(std::string_view name, size_t start) {
    TRY_ASSIGN(std::vector<Expr> args, list(")"));
    if (name.starts_with("tir.")) name.remove_prefix(4);
    if ((name == "select" || name == "if_then_else") && args.size() == 3) {
      if (!common_dtype(args[1], args[2])) return mismatch(args[1], args[2]);
      if (args[0]->dtype != DType::kBool) return error("a truth value as condition, before here");
      return select(args[0], args[1], args[2]);
    }
    for (const BinaryFacts& row : kBinaryOps) {
      if ((row.is_function() ? row.text : row.function) == name && args.size() == 2)
        return make_binary(row.op, args[0], args[1]);
    }
    for (const IntrinsicFacts& row : kIntrinsics) {
      if (row.text != name || args.size() != row.arguments || row.op == Intrinsic::kNot) continue;
      const bool any_type = row.op == Intrinsic::kAbs;
      for (const Expr& arg : args) {
        if (!is_float(arg->dtype) && !any_type) return error("a float argument, before here");
      }
      if (args.size() == 2 && !common_dtype(args[0], args[1])) return mismatch(args[0], args[1]);
      return call(row.op, std::move(args));
    }
    const std::optional<DType> dtype = parse_dtype(name);
    if (dtype && args.size() == 1) return cast(*dtype, args[0]);
    at_ = start;
    return error("a known function with its number of arguments");
  }

  Result<Expr> element(std::string_view name, size_t start) {
    const auto tensor = scope_.tensors.find(name);
    if (tensor == scope_.tensors.end()) {
      at_ = start;
      return error("a tensor of an earlier stage");
    }
    const Stage& stage = (*scope_.dag)[tensor->second];
    TRY_ASSIGN(std::vector<Expr> indices, list("]"));
    if (indices.size() != stage.axes.size()) {
      at_ = start;
      return error(std::to_string(stage.axes.size()) + " indices");
    }
    for (Expr& index : indices) {
      if (is_float(index->dtype)) return error("integer indices, before here");
      index = cast(DType::kInt64, index);
    }
    return load(tensor->second, std::move(indices), stage.dtype);
  }

  std::string_view text_;
  const ExprScope& scope_;
  size_t at_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

Result<Expr> parse_expr(std::string_view text, const ExprScope& scope) {
  ExprParser parser(text, scope);
  TRY_ASSIGN(Expr e, parser.expression());
  TRY(parser.end());
  return e;
}

Result<ParsedBody> parse_body(std::string_view text, const ExprScope& scope) {
  ExprParser parser(text, scope);
  TRY_ASSIGN(ParsedBody body, parser.body());
  TRY(parser.end());
  return body;
}

}  // namespace pruner
