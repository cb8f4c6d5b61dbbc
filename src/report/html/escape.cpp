#include "report/html/escape.h"

#include <cstdlib>

namespace pruner {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of a character at the front of `text` that is not shown; 0: it is.
size_t hidden_bytes(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) return 1;
  // U+202A to U+202E and U+2066 to U+2069, which change the direction; U+2028 and U+2029.
  if (text.size() < 3 || byte != 0xE2) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const auto third = static_cast<unsigned char>(text[2]);
  const bool turns = (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
                     (second == 0x81 && third >= 0xA6 && third <= 0xA9);
  return turns ? 3 : 0;
}

std::string_view reference_of(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return "";
  }
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t taken = hidden_bytes(text);
    if (taken > 0) {
      out += kReplacement;
    } else {
      taken = 1;
      const std::string_view reference = reference_of(text[0]);
      out += reference.empty() ? text.substr(0, 1) : reference;
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string json_island(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  // Six hex digits are four of base 64.
  for (size_t at = 0; at < hex.size(); at += 6) {
    const std::string part(hex.substr(at, 6));
    const size_t bytes = part.size() / 2;
    const auto bits =
        static_cast<uint32_t>(std::strtoul(part.c_str(), nullptr, 16) << (24 - 8 * bytes));
    for (size_t digit = 0; digit < 4; ++digit)
      out += digit <= bytes ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return out;
}

}  // namespace pruner
