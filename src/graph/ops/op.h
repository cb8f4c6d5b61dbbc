// The graph layer's table of operators: the number of inputs, the attributes, the output shapes,
// the compute stages that mean an operator, and how it fuses. Each operator has one row, in the
// file of this folder where its functions stand; graph_ops.cpp lists the files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "pruner/kernel.h"
#include "tensor/dag_builder.h"
#include "tensor/products.h"

namespace pruner {

/// The type and the shape that inference finds for an output.
struct TensorType {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// How an operator fuses, as relay's patterns. kAlias: its output is another view of its input's
/// bytes. kConstant: known when the network is compiled, never a kernel.
enum class Fusion : uint8_t {
  kElemWise,
  kBroadcast,
  kInjective,
  kReduce,
  kOutEWiseFusable,
  kOpaque,
  kAlias,
  kConstant
};

/// A node with its graph and one of its outputs: typed access to what a row needs. The attributes'
/// types were checked against the row when the node came in (check_attributes).
struct OpCall {
  const Graph& graph;
  const Node& node;
  size_t place = 0;  // number of the output among the node's outputs

  size_t num_inputs() const { return node.inputs.size(); }
  bool has(size_t i) const { return i < num_inputs() && node.inputs[i].valid(); }
  const Value& input(size_t i) const { return graph[node.inputs[i]]; }
  const std::vector<int64_t>& shape(size_t i) const { return input(i).shape; }
  int64_t rank(size_t i = 0) const { return static_cast<int64_t>(shape(i).size()); }
  const Value& output() const { return graph[node.outputs[place]]; }
  /// Returns the number of the output among the operator's outputs.
  size_t output_index() const { return static_cast<size_t>(node.first_output) + place; }
  TensorType type(size_t i) const { return {input(i).dtype, input(i).shape}; }

  bool has_attribute(const char* name) const { return node.attributes.contains(name); }
  int64_t integer(const char* name, int64_t fallback) const;
  double number(const char* name, double fallback) const;
  std::string text(const char* name, const char* fallback) const;
  /// Empty when absent.
  std::vector<int64_t> integers(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  /// Returns a contraction's attribute `sums` (ours): the type that products add up in and the
  /// result has. The operands may then differ in type. Without `sums` all have the operands' type.
  std::optional<DType> sums() const;
  /// Returns sums(), and whether the attribute `factors` (ours) is "tf32".
  Products products() const;

  /// Attribute `name`, made to count from the front; an error when it is not in [-rank, rank).
  Result<int64_t> axis(const char* name, int64_t fallback, int64_t rank) const;
  /// The elements of input i, an integer tensor that has to be constant; `what` names it.
  Result<std::vector<int64_t>> constant_integers(size_t i, const char* what) const;
  /// The value of input i if it is a constant with one element.
  std::optional<double> scalar(size_t i) const;
};

/// The builder that takes the stages of nodes. `operand` gives the stage of a node's input: what
/// another node of the group made, or a placeholder. A placeholder is made when first asked for, so
/// parameters read at compile time (a shape, a permutation) never become placeholders.
struct StageSink {
  DagBuilder& dag;
  std::function<StageId(const OpCall&, size_t)> operand;

  StageId input(const OpCall& call, size_t i) { return operand(call, i); }
};

using Types = Result<std::vector<TensorType>>;

/// An operator as a function of the module's runtime, for what no compute DAG means (sorting, say):
/// graph/routines/routines.h. Nothing is fused with it and nothing is tuned. GPUs run a routine if
/// codegen/gpu_routine.h has code for it.
struct Routine {
  std::string_view symbol;  // the function's name in a module
  PrunerKernel function;
  size_t tensors;  // number of first inputs that it takes, if they are there
  /// Returns the routine's last input: the shapes and attributes that a kernel has in its code.
  std::vector<int64_t> (*parameters)(const OpCall&);
  int64_t (*workspace_bytes)(const OpCall&) = nullptr;  // null: it needs none
  bool in_place = false;  // its output may be its first input, of which it then writes a part
  bool on_gpus = false;   // whether codegen/gpu_routine.h has code for it
};

/// Properties that passes and inference ask of an operator beside its row's columns.
enum GraphOpTrait : uint16_t {
  kCommutative = 1 << 0,      // and associative: inputs in any order
  kOfTruth = 1 << 1,          // element-wise: of bool alone
  kOfAnything = 1 << 2,       // element-wise: of bool, too
  kComparison = 1 << 3,       // element-wise: gives bool
  kMixesTypes = 1 << 4,       // element-wise: inputs may differ in type
  kReadsOnce = 1 << 5,        // no element of an input is read twice, whatever the shapes say
  kRepeatsReads = 1 << 6,     // elements of the input are read more than once
  kTakesDataByTile = 1 << 7,  // a contraction: what is done to input 0 can be done tile by tile
  kIsAsLongAsFound = 1 << 8,  // its outputs have room for all; how much is used, the data say
  kNotOfDouble = 1 << 9,      // element-wise: its function has no code for float64
  kTakesCodes = 1 << 10,      // its inputs may be of types that are only moved and cast
  kOwn = 1 << 11,             // ONNX has no such operator: the import and passes add it
  kOfTorch = 1 << 12,         // ONNX has no such operator: files of pruner.torch have it
  kCountsOutputs = 1 << 13,   // the number of its outputs decides what they are
};

inline constexpr size_t kAnyNumber = 1 << 20;  // max_inputs of operators that take any number

/// An input that holds indices. It is a tensor of its own, whose elements are checked before the
/// operator runs.
struct IndexInput {
  /// Returns extents of dims along which the indices, in turn, are places; none if any index will
  /// do. The call has its input, and inference has found no error.
  std::vector<int64_t> (*extents)(const OpCall&) = nullptr;
  size_t place = 0;      // number of the input
  bool from_end = true;  // an index below 0 counts from the end; else it is none
};

struct GraphOp {
  std::string_view name;
  Fusion fusion;
  size_t min_inputs, max_inputs;
  std::string_view attributes;  // "axis:i alpha:f mode:s pads:I value:t ...": name and kind
  Types (*infer)(const OpCall&);
  StageId (*lower)(const OpCall&, StageSink&);  // null: an alias, a constant or a routine
  int64_t since = 13;                           // first opset that knows the form we keep
  uint16_t traits = 0;
  std::string_view shown = {};       // in names of groups; empty: the name in lower case
  std::string_view now_inputs = {};  // "min:1 max:2": attributes of old opsets, and their inputs
  const Routine* routine = nullptr;  // runs the operator if `lower` is null and fusion kOpaque
  std::optional<IndexInput> indices = {};

  bool is(GraphOpTrait trait) const { return (traits & trait) != 0; }
  /// Whether it decides the loops of its group: what is fused with it follows.
  bool is_anchor() const { return fusion >= Fusion::kReduce && fusion <= Fusion::kOpaque; }
  /// Whether what it makes are elements of its inputs (or of an attribute), unchanged.
  bool only_moves() const {
    return fusion == Fusion::kInjective || fusion == Fusion::kAlias || fusion == Fusion::kConstant;
  }

  template <typename T>
  constexpr GraphOp changed(T GraphOp::*column, T value) const {
    GraphOp row = *this;
    row.*column = value;
    return row;
  }
  /// The row with one of the rarer columns.
  constexpr GraphOp from(int64_t opset) const { return changed(&GraphOp::since, opset); }
  constexpr GraphOp with(int of) const {
    return changed(&GraphOp::traits, static_cast<uint16_t>(of));
  }
  constexpr GraphOp shown_as(std::string_view text) const { return changed(&GraphOp::shown, text); }
  constexpr GraphOp moved(std::string_view list) const {
    return changed(&GraphOp::now_inputs, list);
  }
  constexpr GraphOp run_by(const Routine& function) const {
    return changed(&GraphOp::routine, &function);
  }
  constexpr GraphOp reads_at(size_t input, std::vector<int64_t> (*extents)(const OpCall&)) const {
    return changed(&GraphOp::indices, std::optional(IndexInput{extents, input}));
  }
  /// The same as reads_at(), but the indices have to be 0 or more.
  constexpr GraphOp reads_from_zero_at(size_t input,
                                       std::vector<int64_t> (*extents)(const OpCall&)) const {
    return changed(&GraphOp::indices, std::optional(IndexInput{extents, input, false}));
  }
};

/// The part of a value that is used, of what has room for all (graph/found_values.h).
inline constexpr const char* kFound = "pruner::Found";
/// A tensor that is as long as a number says and has no elements that anybody reads.
inline constexpr const char* kExtent = "pruner::Extent";
/// The nodes around one round of a loop that a pipeline runs: ops/loop.cpp.
inline constexpr const char *kLoopBegin = "pruner::LoopBegin", *kLoopLast = "pruner::LoopLast",
                            *kLoopRounds = "pruner::LoopRounds", *kLoopStack = "pruner::LoopStack";

inline bool is_loop_node(const Node& node) { return node.op.starts_with("pruner::Loop"); }

/// Every operator, sorted by name.
std::span<const GraphOp> graph_ops();
/// Null when there is none of that name.
const GraphOp* find_graph_op(std::string_view name);
/// Whether only the program itself adds nodes of an operator: a model file has none.
bool is_own_operator(std::string_view name);
/// Whether ONNX has an operator; names that no row has are taken for ONNX's.
bool is_of_onnx(std::string_view name);
/// Whether an operator's result is another view of its input.
bool is_alias(std::string_view op);

/// The tensor of a node's indices; invalid: it has none.
ValueId indices_of(const Node& node);

/// Marks the stage of the call's indices, if it is a placeholder, with IndexInput's extents.
void mark_indices(const OpCall& call, StageSink& to);

/// An index, and the extent of the dim outside of which it lies.
struct IndexOutside {
  int64_t index, extent;
};
/// Returns the first element of `indices`, the call's, that lies outside of IndexInput's extents;
/// nullopt if there is none.
std::optional<IndexOutside> index_outside(const OpCall& call, const Tensor& indices);

/// The extent of the dim that the attribute `axis` names, 0 if it is not there: an
/// IndexInput::extents.
std::vector<int64_t> extent_of_axis(const OpCall& call);

/// The output of a call whose row is kConstant.
Tensor evaluate_constant(const OpCall& call);
/// A routine's last input, for a call.
Tensor routine_parameters(const Routine& routine, const OpCall& call);
/// The output of a call whose row has a routine, for the node's inputs (an absent one is empty).
Tensor run_routine(const OpCall& call, std::span<const Tensor> inputs);

/// The names of a list such as GraphOp::attributes, each with what stands behind its colon.
std::vector<std::pair<std::string_view, char>> listed(std::string_view list);

/// Checks that `attributes` (a list as GraphOp's) names those of the node, their kinds and the
/// number of inputs. Attributes that it need not name, since they change no result, are dropped.
Result<Unit> check_call(Node& node,
                        std::string_view attributes,
                        size_t min_inputs,
                        size_t max_inputs);

/// Returns the error for a parameter that is no constant. The error names the inputs that the
/// parameter is computed from, and how to give these inputs a value.
Error computed_at_run_time(const Graph& graph, ValueId id, std::string_view what);

/// An error unless input i is of a type that indices have; `what` names it, in the plural.
Result<Unit> check_index_type(const OpCall& call, size_t i, const char* what);
/// `axis` counted from the front.
Result<int64_t> normal_axis(int64_t axis, int64_t rank);
/// Returns normal_axis() of each axis, ascending; an error when an axis occurs twice.
Result<std::vector<int64_t>> normal_axes(std::vector<int64_t> axes, int64_t rank);
/// Numpy's rule; an error when extents don't fit.
Result<std::vector<int64_t>> broadcast_shapes(std::span<const int64_t> a,
                                              std::span<const int64_t> b);
int64_t element_count(std::span<const int64_t> shape);

/// Element i of a constant as a number in an expression.
Expr immediate_of(const Tensor& constant, int64_t i);

/// [n, c, spatial...] to [n, spatial..., c]: the permutation for Transpose, and back.
std::vector<int64_t> channels_last_order(int64_t rank);
std::vector<int64_t> channels_first_order(int64_t rank);

}  // namespace pruner
