// Texts of others (names from ONNX files, error messages, paths) -> text that a page can hold
// without becoming part of its markup or its scripts.
#pragma once

#include <string>
#include <string_view>

#include "support/json.h"

namespace pruner {

/// For between tags, and for values of attributes in double quotes. Control characters, which HTML
/// does not allow, and those that turn the direction of text around become U+FFFD.
std::string html_text(std::string_view text);
/// For between <script type="application/json"> and </script>: ASCII without <, > and &.
std::string json_island(const Json& json);
/// "3f0a" (hex digits, an even number) -> base64, as a content security policy names hashes.
std::string base64_of_hex(std::string_view hex);

}  // namespace pruner
