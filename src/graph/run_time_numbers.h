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
  std::string op;                   // operator of the node
  std::vector<Element> elements;    // a Slice's starts, then ends; a Loop's trip count
  std::vector<int64_t> axes = {};   // axis of each start of a Slice or size of a Resize
  std::vector<int64_t> steps = {};  // steps of a Slice
  bool data_vary = false;           // whether the extents of a Slice's input are unknown
  int64_t rank = 0;                 // rank of a Resize's input
  bool has_condition = false;       // whether a Loop's first condition is computed at run time
  bool counts_rounds = false;       // whether a Loop's later conditions are computed at run time
  bool own_trips = false;  // whether a Loop's trip count is a symbol even if extents say it
  friend bool operator==(const RunTimeNumbers&, const RunTimeNumbers&) = default;
};

}  // namespace pruner
