#include "support/json.h"

#include <algorithm>
#include <optional>

namespace pruner {

constexpr int kMostDepth = 500;  // depth of brackets; functions that walk a value are recursive

// The byte of the bracket that is nested too deep. Most texts have fewer brackets than that.
static std::optional<size_t> too_deep(std::string_view text) {
  const auto opens = [](char c) { return c == '[' || c == '{'; };
  if (std::ranges::count_if(text, opens) <= kMostDepth) return std::nullopt;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\';  // an escaped character ends no string
    } else if (opens(c)) {
      if (++depth > kMostDepth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::nullopt;
}

Result<Json> parse_json(std::string_view text) {
  if (const std::optional<size_t> at = too_deep(text))
    return Error("more than ", kMostDepth, " brackets in one another at byte ", *at);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    return Error("not JSON at byte ", e.byte);
  } catch (const nlohmann::json::out_of_range&) {  // 1e999, which says not where
    return Error("a number that no double holds");
  }
}

static void print_to(const Json& json, std::string& out) {
  if (json.is_array() || json.is_object()) {
    const bool object = json.is_object();
    out += object ? '{' : '[';
    bool first = true;
    for (const auto& [key, value] : json.items()) {
      if (!first) out += ", ";
      first = false;
      if (object) out += Json(key).dump() + ": ";
      print_to(value, out);
    }
    out += object ? '}' : ']';
    return;
  }
  out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string print_json(const Json& json) {
  std::string out;
  print_to(json, out);
  return out;
}

}  // namespace pruner
