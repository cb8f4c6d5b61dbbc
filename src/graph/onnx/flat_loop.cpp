// Writes a Loop as the nodes of one round, between the nodes of graph/ops/loop.cpp.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/onnx/expansion.h"
#include "graph/onnx/names.h"
#include "graph/onnx/node_writer.h"

namespace pruner {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

class FlatLoop {
 public:
  FlatLoop(const NodeProto& node, const GraphProto& body, const RunTimeNumbers& numbers)
      : node_(node), body_(body), numbers_(numbers), to_(node) {
    for (const auto& input : body.input()) defined_.insert(input.name());
    for (const auto& tensor : body.initializer()) defined_.insert(tensor.name());
    for (const NodeProto& one : body.node())
      for (const std::string& name : one.output()) makers_[name] = &one;
    for (const auto& [name, maker] : makers_) defined_.insert(name);
    defined_.erase("");
  }

  Result<NodeList> nodes() {
    const int states = node_.input_size() - 2;
    if (states < 0 || body_.input_size() != states + 2 || body_.output_size() < states + 1)
      return Error("its body takes ",
                   body_.input_size(),
                   " inputs and has ",
                   body_.output_size(),
                   " outputs, which do not fit to the ",
                   node_.input_size(),
                   " inputs of the loop");
    std::set<const NodeProto*> appending;
    for (int i = 0; i < states; ++i) {
      std::optional<Append> append = find_append(i);
      if (!append) continue;
      appending.insert(append->way.begin(), append->way.end());
      appends_.emplace(i, *std::move(append));
    }
    add_begin(states);
    for (const auto& tensor : body_.initializer()) add_initializer(tensor);
    for (const NodeProto& one : body_.node())
      if (!appending.contains(&one)) to_.add(renamed(one));
    if (numbers_.counts_rounds) {
      rounds_ = to_.prefix() + "rounds";
      add_around("LoopRounds", {inner(body_.output(0).name()), trips_}, {rounds_});
    }
    for (int i = 0; i + 1 < body_.output_size(); ++i) {
      const std::string name = i < node_.output_size() ? node_.output(i) : "";
      const std::string output = name.empty() ? to_.prefix() + "unread" + std::to_string(i) : name;
      const std::string made = inner(body_.output(i + 1).name());
      if (i < states && !appends_.contains(i)) {
        add_around("LoopLast", {inner(body_.input(i + 2).name()), made}, {output});
      } else if (!name.empty()) {
        const std::string part = i < states ? appended_part(i) : made;
        TRY(add_stack(part, i < states ? node_.input(i + 2) : "", output));
      }
    }
    return to_.take();
  }

 private:
  struct Append {
    const NodeProto* concat = nullptr;
    std::set<const NodeProto*> way;
  };

  std::string inner(const std::string& name) const {
    return defined_.contains(name) ? to_.prefix() + name : name;
  }

  /// Returns a node of the body, or of a graph in the body, with the names that its values have
  /// outside.
  NodeProto renamed(NodeProto node, bool is_inner = false) const {
    if (!is_inner) node.set_name(to_.prefix() + inner_name(node));
    for (std::string& name : *node.mutable_input()) name = inner(name);
    for (std::string& name : *node.mutable_output()) name = inner(name);
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_in(*attribute.mutable_g());
      for (GraphProto& graph : *attribute.mutable_graphs()) rename_in(graph);
    }
    return node;
  }
  void rename_in(GraphProto& graph) const {
    for (NodeProto& node : *graph.mutable_node()) node = renamed(node, true);
    for (auto& output : *graph.mutable_output()) output.set_name(inner(output.name()));
  }

  void add_initializer(const onnx::TensorProto& tensor) {
    to_.constant(tensor);
    to_.last().set_output(0, inner(tensor.name()));
  }

  /// Adds a node of graph/ops/loop.cpp.
  void add_around(const std::string& op,
                  const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs) {
    to_.add_own(op, inputs, outputs);
    to_.set_text("loop", to_.prefix());
  }

  void add_begin(int states) {
    if (!numbers_.elements.empty()) {
      const std::string given = to_.integer_of(to_.element(numbers_.elements[0]));
      trips_ = to_.add("Max", {given, to_.integers({0})});
    }
    std::vector<std::string> inputs = {trips_, numbers_.has_condition ? node_.input(1) : ""};
    std::vector<std::string> outputs = {inner(body_.input(0).name())};
    for (int i = 0; i < states; ++i) {
      if (appends_.contains(i)) continue;
      inputs.push_back(node_.input(i + 2));
      outputs.push_back(inner(body_.input(i + 2).name()));
    }
    add_around("LoopBegin", inputs, outputs);
    // A round is run where the condition is true.
    onnx::TensorProto yes;
    yes.set_data_type(onnx::TensorProto::BOOL);
    yes.add_int32_data(1);
    yes.set_name(body_.input(1).name());
    add_initializer(yes);
  }

  /// Returns the node that appends to a state, if a round does no more with the state: `state =
  /// Concat(state, part)` along axis 0. Also returns the nodes that hand the state on to the Concat
  /// and to the next round; nobody else reads the outputs of these nodes.
  std::optional<Append> find_append(int state) const {
    std::set<const NodeProto*> way;
    // The search goes back from the state of the next round to the state of this round.
    const NodeProto* concat = nullptr;
    std::string name = body_.output(state + 1).name();
    std::set<std::string> names = {name};
    for (auto maker = makers_.find(name); maker != makers_.end(); maker = makers_.find(name)) {
      const NodeProto* node = maker->second;
      const std::string& op = node->op_type();
      const bool appends = op == "Concat" && node->input_size() > 1 && concat == nullptr;
      if (!appends && op != "Identity" && (op != "Cast" || concat == nullptr)) return std::nullopt;
      if (appends) concat = node;
      way.insert(node);
      name = node->input(0);
      names.insert(name);
    }
    if (concat == nullptr || name != body_.input(state + 2).name()) return std::nullopt;
    const auto is_state = [&](const std::string& part) { return names.contains(part); };
    if (std::any_of(concat->input().begin() + 1, concat->input().end(), is_state))
      return std::nullopt;
    const AttributeProto* axis = written_attribute(*concat, "axis");
    if (axis != nullptr && axis->i() != 0) return std::nullopt;
    for (const NodeProto& node : body_.node()) {
      std::set<std::string> read;
      add_reads(node, read);
      const bool reads = std::ranges::any_of(names, [&](auto& of) { return read.contains(of); });
      if (reads && !way.contains(&node)) return std::nullopt;
    }
    const auto is_output = [&](const auto& output) { return names.contains(output.name()); };
    if (std::ranges::count_if(body_.output(), is_output) > 1) return std::nullopt;
    return Append{concat, std::move(way)};
  }
  std::string appended_part(int state) {
    const NodeProto& concat = *appends_.at(state).concat;
    std::vector<std::string> parts;
    for (int i = 1; i < concat.input_size(); ++i) parts.push_back(inner(concat.input(i)));
    return parts.size() == 1 ? parts[0] : to_.add("Concat", parts, "axis", 0);
  }

  /// Adds all that the rounds make of an output, behind what there was before the rounds.
  Result<Unit> add_stack(const std::string& part,
                         const std::string& before,
                         const std::string& output) {
    if (trips_.empty())
      return Error("it has no trip count, and no bound is known of what its rounds make together");
    if (number_.empty()) number_ = to_.number(trips_, numbers_.own_trips);
    std::vector<std::string> inputs = {number_, part};
    if (!before.empty()) inputs.push_back(before);
    if (rounds_.empty()) {
      add_around("LoopStack", inputs, {output});
      return Unit{};
    }
    // The output is the part of the room that the rounds filled that were run.
    const std::string room = output + "~room";
    add_around("LoopStack", inputs, {room});
    std::string count = rounds_;
    if (!before.empty()) {
      const std::string appended = to_.add("Mul", {rounds_, to_.extent_of(part, 0)});
      count = to_.add("Add", {to_.extent_of(before, 0), appended});
    }
    to_.add_own("Part", {room, count}, {output});
    to_.set_text("symbol", before.empty() ? rounds_ : output);
    return Unit{};
  }

  const NodeProto& node_;
  const GraphProto& body_;
  const RunTimeNumbers& numbers_;
  NodeWriter to_;
  std::set<std::string> defined_;  // names of the body
  std::map<std::string, const NodeProto*> makers_;
  std::map<int, Append> appends_;  // the appending nodes, by state
  std::string trips_, number_;     // the trip count, and the same as an extent
  std::string rounds_;             // how many rounds were run
};

}  // namespace

Result<NodeList> expand_loop(const NodeProto& node, const RunTimeNumbers& numbers) {
  const AttributeProto* body = written_attribute(node, "body");
  if (body == nullptr) return Error("Loop has no graph \"body\"");
  return FlatLoop(node, body->g(), numbers).nodes();
}

}  // namespace pruner
