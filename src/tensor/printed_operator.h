// An operator as tables print it, by the shape of what it reads: "conv2d 1x56x56x64 3x3 s1 p1 -> 64
// +bias" -> the words of parse_operator().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// What the words name, with the shape of the data that a window reads: a stride may leave some of
/// it unread, which the extents of its output do not say.
struct PrintedOperator {
  std::vector<std::string> words;  // "conv2d", "N=1", ..., "+bias"
  std::vector<int64_t> data = {};
};

/// Whether the text is in the printed form: its second word is a shape.
bool is_printed(const std::vector<std::string>& words);
/// Nothing where only a network has such an operator. Options (bits=16) stand as they do elsewhere.
std::optional<PrintedOperator> read_printed(const std::vector<std::string>& words);

}  // namespace pruner
