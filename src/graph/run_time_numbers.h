// Numbers that are computed at run time and say how long an axis is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pruner {

/// The numbers that a node takes for extents or places and that the data say at run time. The node
/// is replaced by others, which make each of these numbers the extent of a tensor (kExtent):
/// graph/onnx/expansion.h.
struct RunTimeNumbers {
  /// One element of a value of the file.
  struct Element {
    std::string value;
    int64_t index = 0;
    bool known = false;  // it follows from constants and shapes
    friend bool operator==(const Element&, const Element&) = default;
  };
  std::string op;                   // the node's
  std::vector<Element> elements;    // of a Slice: starts, then ends; of a Loop: its trip count
  std::vector<int64_t> axes = {};   // of a Slice or Resize: of each start and size
  std::vector<int64_t> steps = {};  // of a Slice
  bool data_vary = false;           // of a Slice: its input's extents are not known
  int64_t rank = 0;                 // of a Resize: its input's
  bool has_condition = false;       // of a Loop: whether to begin is computed at run time
  bool counts_rounds = false;       // of a Loop: so is whether to go on
  bool own_trips = false;  // of a Loop: its trip count is a symbol, even where extents say it
  friend bool operator==(const RunTimeNumbers&, const RunTimeNumbers&) = default;
};

}  // namespace pruner
