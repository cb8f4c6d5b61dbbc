// Python's pickles as data: a stream in, the nodes that it describes out. A closed machine: nothing
// is called and nothing imported; a class is a name that must stand on the caller's list.
// Protocols 2 and 3, as torch.save and pickle.dump of Python 3.7 write them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

using PickleId = int32_t;  // an index into Pickle::nodes
inline constexpr PickleId kNoNode = -1;

enum class PickleKind {
  kNone,
  kInteger,  // also booleans
  kFloat,
  kText,  // strings, bytes, and integers of more than 8 bytes
  kTuple,
  kList,
  kDict,
  kGlobal,      // a class or function: text is "module name"
  kCall,        // callee(arguments), perhaps with items set and a state given afterwards
  kPersistent,  // an object that lies outside of the stream, named by items[0]
};

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;
  double number = 0;
  std::string_view text{};        // part of the stream
  std::vector<PickleId> items{};  // elements, or keys and values in turn
  PickleId callee = kNoNode, arguments = kNoNode, state = kNoNode;
};

struct Pickle {
  std::vector<PickleNode> nodes;
  PickleId root = kNoNode;
  size_t bytes = 0;  // size of the pickle; others may follow in the stream

  const PickleNode& operator[](PickleId id) const { return nodes[id]; }
  /// Returns the value that the dictionary (or call with items) holds under `key`; kNoNode if none.
  PickleId find(PickleId dict, std::string_view key) const;
};

/// Reads the pickle that `stream` starts with; `stream` must outlive the result. `known` lists
/// every "module name" that may occur.
Result<Pickle> read_pickle(std::string_view stream, std::span<const std::string_view> known);

}  // namespace pruner
