// The body of an operator that is defined by others. Its nodes are added and inferred one by one,
// so that what is added next may ask for shapes and small constants of what was added before.
#pragma once

#include "graph/ops/op.h"

namespace pruner {

class Body;

/// A value of a body, with the arithmetic that bodies are written in. A number takes the type of
/// the term beside the number.
struct Term {
  Body* body = nullptr;
  ValueId id;

  bool valid() const { return id.valid(); }
  DType dtype() const;
  std::vector<int64_t> shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  /// Returns the extent of dimension d, which counts from the end if it is below 0; 1 if there is
  /// no such dimension.
  int64_t extent(int64_t d) const;
  /// Returns the value if it is known while the network is compiled.
  const std::optional<Tensor>& constant() const;
};

/// Appends the nodes of one call to the graph. The first failure is kept, and nothing is added
/// after the failure: each function then returns a value without a shape.
class Body {
 public:
  /// `call` has its attributes and number of inputs checked (check_call).
  Body(Graph& graph, const Node& call, int64_t opset);

  const OpCall& call() const { return call_; }
  /// Returns the model's opset; bodies whose meaning changed ask for the opset.
  int64_t opset() const { return opset_; }
  /// Returns input i; not valid if the input is left out.
  Term input(size_t i);
  bool has(size_t i) const { return call_.has(i); }
  /// Whether the call has a name for its output i.
  bool wants(size_t i) const {
    return i < node_.outputs.size() && !graph_[node_.outputs[i]].name.empty();
  }

  /// Returns the type that an attribute names by ONNX's number.
  DType dtype(const char* attribute, DType fallback);

  /// Adds a node with one output.
  Term add(const std::string& op, std::vector<Term> inputs, Attributes attributes = {});
  /// Adds a node with `outputs` outputs.
  std::vector<Term> add_many(const std::string& op,
                             std::vector<Term> inputs,
                             size_t outputs,
                             Attributes attributes = {});
  Term constant(Tensor tensor);
  /// These add one number of a type, and a rank-one list of int64.
  Term scalar(double value, DType dtype);
  Term integers(std::span<const int64_t> values);

  Term cast(Term x, DType to);  // x itself if x has the type
  Term reshape(Term x, std::vector<int64_t> shape);
  Term transpose(Term x, std::vector<int64_t> order);
  Term unsqueeze(Term x, int64_t axis);
  /// Returns elements [start, end) along an axis.
  Term slice(Term x, int64_t axis, int64_t start, int64_t end);
  Term concat(std::vector<Term> parts, int64_t axis);
  /// Adds a ReduceSum, ReduceMean, ... over axes, which stay with an extent of 1.
  Term reduce(const std::string& op, Term x, std::span<const int64_t> axes);

  /// Makes the value output i of the call. Outputs that the call does not want are let go.
  void output(size_t i, Term value);
  void fail(Error error);
  Result<Unit> finish() const;

 private:
  Term made(ValueId id) { return {this, id}; }
  ValueId new_value(const std::string& op);
  friend struct Term;

  Graph& graph_;
  Node node_;
  OpCall call_;
  int64_t opset_;
  size_t first_value_;         // number of the graph's values before the body
  std::vector<bool> written_;  // whether the output is written; per output
  std::optional<Error> error_;
};

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator-(double a, Term b);
Term operator*(Term a, double b);
Term operator/(Term a, double b);

/// An operator that is written as nodes of others when it is imported. `name` is ONNX's own name,
/// or a name with its domain: "com.microsoft::FusedMatMul".
struct Function {
  std::string_view name;
  size_t min_inputs, max_inputs;
  std::string_view attributes;  // in the form of GraphOp's attributes
  void (*body)(Body&);
};

/// A BatchNormalization with training_mode.
inline constexpr const char* kTrainingBatchNormalization = "pruner::TrainingBatchNormalization";
/// LayerNormalization with its second and third outputs.
inline constexpr const char* kStatisticalLayerNormalization =
    "pruner::StatisticalLayerNormalization";

/// Every function, sorted by name.
std::span<const Function> graph_functions();
/// Returns null if no function has the name.
const Function* find_function(std::string_view name);

/// The newest version of ONNX's operators that is read: the meaning of later versions is not known.
inline constexpr int64_t kNewestOpset = 28;

/// Appends the call to the graph, inferred: a node, or the nodes of the function's body.
Result<Unit> append_call(Graph& graph, Node call, int64_t opset = kNewestOpset);

}  // namespace pruner
