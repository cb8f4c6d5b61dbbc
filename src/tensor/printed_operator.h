// An operator as tables print it, by the shape of what it reads: "conv2d 1x56x56x64 3x3 s1 p1 -> 64
// +bias" -> the words of parse_operator().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// `words` name an operator, and `data` is the shape of the data that a window reads. A stride may
/// leave some data unread, which the extents of the window's output do not say.
struct PrintedOperator {
  std::vector<std::string> words;  // "conv2d", "N=1", ..., "+bias"
  std::vector<int64_t> data = {};
};

/// Whether the text is in the printed form: its second word is a shape.
bool is_printed(const std::vector<std::string>& words);
/// Returns nothing if only a network has the operator. Options (bits=16) stand as elsewhere.
std::optional<PrintedOperator> read_printed(const std::vector<std::string>& words);

}  // namespace pruner
