// Texts of others (names from ONNX files, error messages, paths) -> text that a page can hold
// without becoming part of its markup or its scripts.
#pragma once

#include <string>
#include <string_view>

#include "support/json.h"

namespace pruner {

/// Escapes a text that stands between tags, or in an attribute's value in double quotes. Control
/// characters, which HTML does not allow, and those that turn the direction of text become U+FFFD.
std::string html_text(std::string_view text);
/// Prints JSON for <script type="application/json">: ASCII without <, > and &.
std::string json_island(const Json& json);
/// Turns hex digits like "3f0a" (an even number) into base64, as in a content security policy.
std::string base64_of_hex(std::string_view hex);

}  // namespace pruner
