#include "support/json.h"

namespace pruner {

Result<Json> parse_json(std::string_view text) {
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
