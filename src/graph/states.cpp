#include <algorithm>

#include "graph/graph.h"

namespace pruner {
namespace {

// Returns the text that `*` stands for if `name` fits the pattern; nullopt if it does not.
std::optional<std::string> matched(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return name == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
    return std::nullopt;
  return std::string(name.substr(star, name.size() - head.size() - tail.size()));
}

std::string with(std::string_view pattern, const std::string& part) {
  std::string text(pattern);
  if (const size_t star = text.find('*'); star != std::string::npos) text.replace(star, 1, part);
  return text;
}

int place_of(const Graph& graph, const std::vector<ValueId>& values, std::string_view name) {
  for (size_t i = 0; i < values.size(); ++i)
    if (graph[values[i]].name == name) return static_cast<int>(i);
  return -1;
}

std::string type_of(const Value& value) {
  return std::string(dtype_name(value.dtype)) + " " + print_shape(value.shape);
}

Result<Unit> add_state(Graph& graph, int input, const std::string& output) {
  const Value& from = graph[graph.inputs[static_cast<size_t>(input)]];
  const int place = place_of(graph, graph.outputs, output);
  if (place < 0) return Error("there is no output \"", output, "\" for input \"", from.name, "\"");
  const Value& to = graph[graph.outputs[static_cast<size_t>(place)]];
  if (from.dtype != to.dtype || from.shape != to.shape)
    return Error("input ", from.name, " is ", type_of(from), ", output ", output, " ", type_of(to));
  for (const State& known : graph.states) {
    if (known.input == input || known.output == place)
      return Error("\"", known.input == input ? from.name : output, "\" is named twice");
  }
  graph.states.push_back({input, place});
  return Unit{};
}

}  // namespace

Result<Unit> mark_states(Graph& graph, std::string_view pairs) {
  while (!pairs.empty()) {
    const std::string_view pair = pairs.substr(0, pairs.find(','));
    pairs.remove_prefix(std::min(pair.size() + 1, pairs.size()));
    const size_t equals = pair.find('=');
    const std::string_view from = pair.substr(0, equals);
    const std::string_view to = equals == std::string_view::npos ? "" : pair.substr(equals + 1);
    const auto stars = [](std::string_view text) { return std::ranges::count(text, '*'); };
    if (from.empty() || to.empty() || stars(from) > 1 || stars(from) != stars(to))
      return Error("\"", pair, "\" is not INPUT=OUTPUT, each with one * or none");
    bool any = false;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::optional<std::string> part = matched(from, graph[graph.inputs[i]].name);
      if (!part) continue;
      any = true;
      TRY(add_state(graph, static_cast<int>(i), with(to, *part)));
    }
    if (!any) return Error("no input is called \"", from, "\"");
  }
  return Unit{};
}

}  // namespace pruner
