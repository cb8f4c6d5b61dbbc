#include "ptx.h"

#include <regex>
#include <vector>

namespace fakes {
namespace {

// asm [volatile]("text" : outputs : inputs : clobbers);
struct Statement {
  size_t begin = 0, end = 0;  // in the source; begin == end: there is none
  std::vector<std::string> parts;
};

// The next one from `at` on: parts lie between colons that no quotes or inner brackets hold.
Statement next_statement(const std::string& source, size_t at) {
  static const std::regex kBegin(R"(\basm(\s+volatile)?\s*\()");
  std::smatch found;
  const auto from = source.begin() + std::ptrdiff_t(at);
  if (!std::regex_search(from, source.end(), found, kBegin)) return {};
  Statement statement;
  statement.begin = at + size_t(found.position());
  statement.parts = {""};
  bool quoted = false;
  int depth = 1;
  for (size_t i = statement.begin + size_t(found.length()); i < source.size(); ++i) {
    const char c = source[i];
    quoted ^= c == '"';
    if (!quoted) depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0) {
      statement.end = i + 1;
      break;
    }
    if (!quoted && depth == 1 && c == ':') {
      statement.parts.emplace_back();
    } else {
      statement.parts.back() += c;
    }
  }
  statement.parts.resize(4);
  return statement;
}

std::string replaced(const std::string& text, const char* form, const char* by) {
  return std::regex_replace(text, std::regex(form), by);
}

// Whether operands are numbered as they come: outputs, inputs, and where they are added to,
// outputs.
bool in_order(const std::string& text, int outputs) {
  static const std::regex kOperand(R"(%(\d+))");
  int expected = 0, most = 0;
  for (auto i = std::sregex_iterator(text.begin(), text.end(), kOperand);
       i != std::sregex_iterator();
       ++i) {
    const int number = std::stoi((*i)[1]);
    if (number != expected && (number != 0 || most < outputs)) return false;
    expected = number + 1;
    most = std::max(most, expected);
  }
  return true;
}

// The last operands of a group's instruction on 16-bit elements: neither is negated, each may be
// transposed. Others are not transposed, and bytes not negated.
std::string transposes(const std::string& options) {
  if (options.size() < std::string(", 1, 1, 0, 0").size()) return "false, false";
  return std::string(options[8] == '1' ? "true" : "false") +
         (options[11] == '1' ? ", true" : ", false");
}

// Whether there is such an instruction (PTX: wgmma.mma_async).
bool is_group_mma(const std::smatch& m) {
  const int n = std::stoi(m[1]), k = std::stoi(m[2]);
  const std::string sum = m[3], a = m[4], b = m[5], options = m[6];
  const bool bytes = (a == "s8" || a == "u8") && (b == "s8" || b == "u8");
  if (n % 8 != 0 || n < 8 || n > 256 || (bytes && n > 32 && n % 16 != 0)) return false;
  static const std::regex kTwo("^, 1, 1$"), kFour("^, 1, 1, [01], [01]$");
  if (bytes) return k == 32 && sum == "s32" && options.empty();
  if (a != b) return false;
  if (a == "tf32") return k == 8 && sum == "f32" && std::regex_match(options, kTwo);
  const bool half = a == "f16" && (sum == "f16" || sum == "f32");
  return k == 16 && (half || (a == "bf16" && sum == "f32")) && std::regex_match(options, kFour);
}

// The same with the first operand in registers, which is never transposed: of 16-bit elements
// alone.
bool is_held_group_mma(const std::smatch& m) {
  static const std::regex kOptions("^, 1, 1, [01]$");
  const int n = std::stoi(m[1]);
  const bool types = m[4] == m[5] && (m[4] == "f16" || m[4] == "bf16") &&
                     (m[3] == "f32" || (m[3] == "f16" && m[4] == "f16"));
  return n % 8 == 0 && n >= 8 && n <= 256 && m[2] == "16" && types &&
         std::regex_match(m.str(6), kOptions);
}

// The function of the prelude and its template arguments; nothing: it has none.
std::string function_of(const std::string& text) {
  static const std::regex kMma(
      R"(^mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(\w+)\.(\w+)\.(\w+)\.\4 \{)");
  static const std::regex kLoad(
      R"(^ldmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared\.b16 \{)");
  static const std::regex kCopy(
      R"(^cp\.async\.(cg|ca)\.shared\.global \[%0\], \[%1\], (\d+), %2;$)");
  static const std::regex kExchange(R"(^shfl\.sync\.bfly\.b32 %0, %1, (\d+), 31, -1;$)");
  static const std::regex kWait(R"(^cp\.async\.wait_group (\d+);$)");
  static const std::regex kGroupMma(
      R"(^\{ \.reg \.pred p; setp\.ne\.b32 p, 1, 0; wgmma\.mma_async\.sync\.aligned\.)"
      R"(m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+) \{[^}]*\}, %\d+, %\d+, p([01 ,]*); \}$)");
  static const std::regex kHeldGroupMma(
      R"(^\{ \.reg \.pred p; setp\.ne\.b32 p, 1, 0; wgmma\.mma_async\.sync\.aligned\.)"
      R"(m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+) \{[^}]*\}, \{[^}]*\}, %\d+, p([01 ,]*); \}$)");
  static const std::regex kGroupWait(R"(^wgmma\.wait_group\.sync\.aligned ([0-7]);$)");
  std::smatch m;
  if (std::regex_search(text, m, kGroupMma) && is_group_mma(m))
    return m.format("group_mma<$1, $2, fakes::of_$3, fakes::of_$4, fakes::of_$5, ") +
           transposes(m[6]) + ">";
  if (std::regex_search(text, m, kHeldGroupMma) && is_held_group_mma(m))
    return m.format("held_group_mma<$1, $2, fakes::of_$3, fakes::of_$4, fakes::of_$5, ") +
           (m.str(6) == ", 1, 1, 1" ? "true>" : "false>");
  if (std::regex_search(text, m, kGroupWait)) return m.format("wait_for_products<$1>");
  if (text == "wgmma.commit_group.sync.aligned;") return "commit_products";
  if (text == "wgmma.fence.sync.aligned;" || text == "fence.proxy.async.shared::cta;" ||
      text == "griddepcontrol.wait;" || text == "griddepcontrol.launch_dependents;" || text.empty())
    return "keep_order";
  if (std::regex_search(text, m, kMma))
    return m.format("mma<$1, $2, $3, fakes::of_$4, fakes::of_$5, fakes::of_$6>");
  if (std::regex_search(text, m, kLoad))
    return std::string("load_matrix<") + (m[2].matched ? "true>" : "false>");
  // Past the L1 cache go 16 bytes only.
  if (std::regex_search(text, m, kCopy) && (m[1] == "ca" || m[2] == "16"))
    return m.format("async_copy<$2>");
  if (std::regex_search(text, m, kExchange)) return m.format("exchange<$1>");
  if (std::regex_search(text, m, kWait)) return m.format("wait_for_copies<$1>");
  if (text == "cp.async.commit_group;") return "commit_copies";
  if (text == "cvt.rna.tf32.f32 %0, %1;") return "to_tf32";
  return "";
}

std::string call_of(const Statement& statement) {
  const std::string quoted = replaced(statement.parts[0], R"(^\s+|\s+$)", "");
  const std::string text = quoted.substr(1, quoted.size() - 2);
  const std::string function = function_of(text);
  static const std::regex kConstraint(R"("[=+]?[a-z]"\()");
  const std::string& outputs = statement.parts[1];
  const auto count = std::distance(
      std::sregex_iterator(outputs.begin(), outputs.end(), kConstraint), std::sregex_iterator());
  if (function.empty() || !in_order(text, int(count))) return "";
  return "fakes::" + function + "(fakes::List{" +
         std::regex_replace(outputs, kConstraint, "fakes::Output(") + "}, fakes::List{" +
         std::regex_replace(statement.parts[2], kConstraint, "fakes::Input(") + "})";
}

}  // namespace

std::string with_emulated_ptx(const std::string& source) {
  std::string result;
  size_t done = 0;
  for (;;) {
    const Statement statement = next_statement(source, done);
    if (statement.end <= statement.begin) return result + source.substr(done);
    const std::string call = call_of(statement);
    result += source.substr(done, statement.begin - done);
    result += call.empty() ? source.substr(statement.begin, statement.end - statement.begin) : call;
    done = statement.end;
  }
}

}  // namespace fakes
