// The door to nlohmann::json, with errors as values. Numbers are read exactly and independently of
// the locale; object keys keep their order when written (Json is the ordered form).
#pragma once

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "support/result.h"

namespace pruner {

using Json = nlohmann::ordered_json;

/// Parses one JSON text; the error says at which byte it stopped being JSON, or has more than 500
/// brackets in one another.
Result<Json> parse_json(std::string_view text);

/// One line in Python's default separators (", " and ": "), as Ansor's records are written.
std::string print_json(const Json& json);

/// Whether a T holds the number, cut to its whole part where T is an integer's type; of a list,
/// every number.
template <typename T>
bool holds_numbers(const Json& value) {
  if constexpr (std::is_same_v<T, Json> || std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (requires { typename T::value_type; }) {
    return !value.is_array() || std::ranges::all_of(value, holds_numbers<typename T::value_type>);
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (value.is_number_unsigned()) return std::in_range<T>(value.get<uint64_t>());
    if (value.is_number_integer()) return std::in_range<T>(value.get<int64_t>());
    const double least = static_cast<double>(std::numeric_limits<T>::min());
    const double beyond = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    return !value.is_number() || (value.get<double>() >= least && value.get<double>() < beyond);
  } else {
    return true;
  }
}

/// A value as a T; an error that says what it is when it is of another type, or a number that no T
/// holds.
template <typename T>
Result<T> json_value(const Json& value, std::string_view what) {
  try {
    if (holds_numbers<T>(value)) return value.get<T>();
  } catch (const nlohmann::json::exception&) {
    return Error(what, " has a value of the wrong type");
  }
  return Error(what, " has a number that is out of range");
}

/// The value of `key`; an error that names the key when it is absent or json_value() has one.
template <typename T>
Result<T> json_get(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return Error("missing key \"", key, "\"");
  return json_value<T>(object.at(key), "key \"" + std::string(key) + "\"");
}

}  // namespace pruner
