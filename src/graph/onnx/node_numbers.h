// Names that say which node of a file something was made of, whatever the passes did with it.
#pragma once

#include <onnx/onnx_pb.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace pruner {

/// Names the nodes of the main graph "#0", "#1", ...
inline void number_nodes(onnx::ModelProto& model) {
  for (int i = 0; i < model.graph().node_size(); ++i)
    model.mutable_graph()->mutable_node(i)->set_name("#" + std::to_string(i));
}

/// The number in the name of a node that was made of a numbered one: "#12", or "#12/loop/3/Add" of
/// a graph within it; nullopt of other names.
inline std::optional<int> node_number(std::string_view name) {
  int number = 0;
  if (!name.starts_with('#')) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [at, code] = std::from_chars(name.data() + 1, end, number);
  if (code != std::errc() || (at != end && *at != '/')) return std::nullopt;
  return number;
}

}  // namespace pruner
