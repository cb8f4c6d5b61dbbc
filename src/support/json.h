// The door to nlohmann::json, with errors as values. Numbers are read exactly and independently of
// the locale; object keys keep their order when written (Json is the ordered form).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/result.h"

namespace pruner {

using Json = nlohmann::ordered_json;

/// Parses one JSON text; the error says at which byte it stopped being JSON, or has more than 500
/// brackets in one another.
Result<Json> parse_json(std::string_view text);

/// One line in Python's default separators (", " and ": "), as Ansor's records are written.
std::string print_json(const Json& json);

/// The value of `key` as a T; an error that names the key when it is absent or of another type.
template <typename T>
Result<T> json_get(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return Error("missing key \"", key, "\"");
  try {
    return object.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    return Error("key \"", key, "\" has a value of the wrong type");
  }
}

}  // namespace pruner
