// An import under way. The model's nodes become nodes of our graph one by one, producers first.
// Each node is brought to the newest form and inferred at once, so that values computed from shapes
// and constants are known in time. A node that calls a function of the model's, or chooses or
// repeats a graph (constructs.h), becomes the nodes that it stands for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "graph/bounds.h"
#include "graph/found_values.h"
#include "graph/import_cache.h"
#include "graph/onnx/names.h"
#include "graph/onnx/parsed_model.h"
#include "graph/partition.h"

namespace pruner {

class Importer {
 public:
  Importer(ParsedModel& file, const NetworkOptions& options)
      : file_(file), model_(file.proto()), options_(options) {
    graph_.folded = folded_of(options.cache);
  }

  Result<Graph> run();
  /// The nodes that run() could not read (survey.cpp).
  Result<NodeSurvey> survey();

  // Constructs are made with these functions:
  const Graph& graph() const { return graph_; }
  ValueId add_constant(const std::string& name, Tensor tensor);
  /// Adds a list of int64.
  ValueId add_integers(const std::string& name, std::span<const int64_t> values);
  /// Adds a scalar of int64.
  ValueId add_integer(const std::string& name, int64_t value);
  /// Adds a node with `outputs` outputs, the first of which is named as the node is.
  Result<std::vector<ValueId>> add(const std::string& op,
                                   std::vector<ValueId> inputs,
                                   Attributes attributes,
                                   const std::string& name,
                                   size_t outputs = 1);
  /// Adds a graph within the graph of `outer`, and returns its outputs. All names in the graph
  /// begin with `prefix`. `needed`: names of the outputs that are read, if a part is imported; the
  /// other outputs are not there. Null: all outputs are there.
  Result<std::vector<Entry>> add_body(const onnx::GraphProto& body,
                                      const NameScope& outer,
                                      const std::string& prefix,
                                      std::vector<Entry> inputs,
                                      const std::set<std::string>* needed = nullptr);
  /// Returns an error if `more` more nodes would be more than anybody can compile.
  Result<Unit> check_unfolded(int64_t more) const;
  /// Returns an error with every operator of `graph` that is not supported, and its nodes. The
  /// graphs of an If are checked when one is chosen.
  Result<Unit> check_operators(const onnx::GraphProto& graph) const;
  /// Whether a part is given the value `name`; given_value() returns the value.
  bool is_given(const std::string& name) const {
    return options_.part != nullptr && options_.part->given.contains(name);
  }
  ValueId given_value(const std::string& name);
  /// Returns the name of the condition of the If `name`, if both of its branches are computed.
  static std::string condition_of(const std::string& name) {
    return name + std::string(kCondition);
  }
  /// Whether values that the data find may be read.
  bool reads_found() const { return options_.found != nullptr; }
  /// Returns the outputs of a node's graph that are the node's outputs `names`, or wanted.
  std::set<std::string> needed_outputs(const onnx::NodeProto& node,
                                       const onnx::GraphProto& body,
                                       const std::set<std::string>& names,
                                       const std::string& prefix) const;
  /// Returns the branch that the If `name` is known to take; nullopt: its condition decides.
  std::optional<bool> known_branch(const std::string& name) const {
    if (options_.part == nullptr || !options_.part->branches.contains(name)) return std::nullopt;
    return options_.part->branches.at(name);
  }
  void note_branch(const std::string& name, ValueId condition, bool then) {
    graph_.branches[name] = then;
    graph_.conditions[name] = condition;
  }
  /// Adds a number of one element, int64, as an extent: a constant that is called `name`. `own`:
  /// the extent is a symbol of its own even if it follows from shapes.
  Result<ValueId> add_number(ValueId number, const std::string& name, bool own);
  /// Adds the first `count` elements of `room` along axis 0, whose extent is a symbol.
  Result<ValueId> add_first_of(ValueId room,
                               ValueId count,
                               const std::string& symbol,
                               const std::string& name);

 private:
  /// A list of nodes in the order in which they are read, and the names that are read at all.
  struct Body {
    std::vector<int> order;
    std::set<std::string> reads;
    std::set<std::string> outputs;  // names of the graph's outputs
  };

  // In inputs.cpp:
  Result<Unit> check_named_inputs(const NameScope& scope) const;
  Result<Unit> check_named_dims() const;
  Result<std::vector<int64_t>> input_shape(const onnx::ValueInfoProto& input);
  void note_given_shape(const onnx::ValueInfoProto& input, const std::vector<int64_t>& given);
  Result<Unit> add_inputs(NameScope& scope);
  Result<Unit> add_input(const onnx::ValueInfoProto& input, NameScope& scope);
  Result<Unit> check_computes() const;
  Result<Tensor> given_constant(const onnx::ValueInfoProto& input, DType dtype);
  // In survey.cpp:
  void assume(const std::string& name, const onnx::ValueInfoProto* declared, NameScope& scope);
  // In attributes.cpp:
  Result<std::optional<Attribute>> attribute_of(const onnx::AttributeProto& proto);
  Result<Attributes> attributes_of(const onnx::NodeProto& proto, const NameScope& scope);

  Result<const NodeList*> main_nodes();
  Result<Unit> count_unfolded();
  Result<const Body*> body_of(const NodeList& nodes, std::span<const std::string> outputs);
  ValueId add_value(Value value);
  Result<ValueId> define(const std::string& name, NameScope& scope);
  Result<Unit> add_initializer(const onnx::TensorProto& proto,
                               bool of_main_graph,
                               NameScope& scope);
  Result<Unit> add_initializers(const onnx::GraphProto& graph, NameScope& scope);
  Result<Unit> add_nodes(const NodeList& nodes,
                         const Body& body,
                         NameScope& scope,
                         const std::set<std::string>* needed = nullptr);
  Result<Unit> add_node(const onnx::NodeProto& proto, const Body& body, NameScope& scope);
  Result<std::vector<Entry>> inputs_of(const onnx::NodeProto& proto, NameScope& scope);
  Result<Unit> add_operator(const onnx::NodeProto& proto,
                            const Body& body,
                            std::span<const Entry> inputs,
                            NameScope& scope);
  Result<std::vector<Entry>> call_function(const onnx::NodeProto& proto,
                                           const ModelFunction& function,
                                           std::vector<Entry> inputs,
                                           const NameScope& scope);
  Result<std::vector<Entry>> outputs_of(std::span<const std::string> names,
                                        const NameScope& scope) const;
  Result<Unit> infer(Node node, int64_t opset);
  Result<Unit> append(Node node, int64_t opset);
  // In part.cpp:
  Result<Graph> run_part();
  const Entry* find(const std::string& name, NameScope& scope);
  std::shared_ptr<const PartNodes> part_nodes(const NodeList& nodes);
  bool is_wanted(const std::string& name) const;
  bool wants_inside(const std::string& prefix) const;
  std::vector<int> needed_nodes(const NodeList& nodes,
                                std::span<const int> order,
                                std::set<std::string> names,
                                const std::string& prefix,
                                std::set<std::string>& reads) const;
  void add_needed_reads(const onnx::NodeProto& node,
                        const std::string& prefix,
                        std::set<std::string>& names) const;
  // In found.cpp:
  /// A TopK that finds all elements along an axis, of which the first `count` are used.
  struct FirstOfAll {
    ValueId count;
    int64_t axis = 0;
  };
  std::optional<std::string> found_symbol(const Node& finder, const std::string& name);
  ValueId add_room(ValueId part);
  Result<Unit> add_part(
      ValueId room, ValueId part, int64_t axis, const std::string& symbol, ValueId count);
  Result<Unit> add_between(Node node);
  Result<Unit> add_found(size_t number);
  Result<ValueId> count_found(const Node& finder, ValueId room);
  std::optional<FirstOfAll> find_all(Node& node);
  Result<Unit> add_first(std::span<const ValueId> outputs, const FirstOfAll& wanted, size_t first);

  // In numbers.cpp:
  std::optional<RunTimeNumbers> run_time_numbers(const onnx::NodeProto& proto,
                                                 std::span<const Entry> inputs,
                                                 const NameScope& scope);
  RunTimeNumbers::Element element_of(ValueId id,
                                     int64_t index,
                                     const std::string& read,
                                     const NameScope& scope);
  bool only_moves(const Node& node);
  bool is_whole(ValueId id);
  bool is_one(ValueId id) const;
  std::string number_key(ValueId id, int depth);
  std::optional<RunTimeNumbers> run_time_loop(const onnx::NodeProto& proto,
                                              std::span<const Entry> inputs,
                                              const NameScope& scope,
                                              bool is_unknown);
  /// Whether a value's shape, or the value of a constant, may depend on what the data find.
  bool varies(ValueId id) const { return id.value < std::ssize(varies_) && varies_[id.value]; }
  void note_varying(size_t first);
  Result<Unit> add_expanded(const onnx::NodeProto& proto,
                            const RunTimeNumbers& numbers,
                            NameScope& scope);

  void fold(size_t number);
  void evaluate(ValueId id);
  Result<Unit> add_outputs(const NameScope& scope);

  ParsedModel& file_;
  const onnx::ModelProto& model_;  // the file's model
  const NetworkOptions& options_;
  Graph graph_;
  std::map<std::string, std::string> found_symbols_;  // finders with their inputs -> symbols
  std::map<std::string, ValueId> given_;              // inputs of a part -> values
  std::map<const NodeList*, Body> bodies_;
  // `made_by_` has the number of the node that computes a value from constants, else -1; per value.
  std::vector<int> made_by_;
  ValueBounds bounds_{graph_, [this](ValueId id) { return varies(id); }};
  std::map<std::string, std::string> number_symbols_;  // numbers (number_key) -> symbols
  std::vector<bool> varies_;                           // whether the value varies; per value
  int64_t unfolded_ = 0;
  bool reshaped_ = false;  // an input has another shape than the file says
  std::map<std::string, std::pair<int64_t, std::string>> named_sizes_;  // first size, its input
};

}  // namespace pruner
