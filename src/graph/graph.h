// A network as a list of nodes over named values, in an order in which producers come first. Made
// from an ONNX file (graph/onnx/) or a built-in network (graph/networks/); shapes are static.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "graph/run_time_numbers.h"
#include "support/id.h"
#include "support/result.h"
#include "tensor/tensor.h"

namespace pruner {

class FoldedConstants;  // graph/folded_constants.h

struct ValueTag {};
using ValueId = Id<ValueTag>;

/// The part of another value that one is: it begins at `start` along `axis`.
struct Slice {
  ValueId of;
  int64_t axis = 0, start = 0;
};

/// A tensor that flows through the graph. A constant has its data; others get it when run.
struct Value {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::optional<Tensor> constant;
  std::optional<Slice> slice = {};  // part of another value with its bytes; set by place_concats
};

using Attribute = std::variant<int64_t,
                               double,
                               std::string,
                               std::vector<int64_t>,
                               std::vector<double>,
                               Tensor,
                               std::vector<std::string>>;
using Attributes = std::map<std::string, Attribute>;

/// One operator call, in ONNX's vocabulary ("Conv", "Relu", ...), with the inputs and attributes of
/// its newest supported version; an input that is left out is an invalid ValueId.
struct Node {
  std::string op;
  std::string name;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  int first_output = 0;   // the operator's index of outputs[0]; simplify makes a node of each
  int group = -1;         // nodes with an equal number are one kernel; set by the fuse pass
  bool in_place = false;  // a Concat that is no kernel; set by the place_concats pass
};

/// An output that becomes an input of the next run. The input is zeros in the first run.
struct State {
  int input = 0, output = 0;  // places among the graph's inputs and outputs
};

/// Properties that a network made at one of several shapes shares with the network at the others.
struct RangeHints {
  bool keeps_all = false;          // nodes that do nothing at this shape stay for other shapes
  bool any_extents = false;        // nothing is decided by how long an axis is
  std::set<std::string> literals;  // small constants that kernels have in their code as numbers
  std::set<std::string> computed;  // values that constants give at this shape, and kernels compute
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;  // without the constants
  std::vector<ValueId> outputs;
  std::vector<State> states = {};                  // pairs that an instance keeps for itself
  std::shared_ptr<const RangeHints> hints = {};    // null: it has one shape alone
  std::shared_ptr<FoldedConstants> folded = {};    // imports with one cache share it; null: none
  std::map<std::string, bool> branches = {};       // whether each If of the file took its first one
  std::map<std::string, ValueId> conditions = {};  // the value by which each If chose
  /// Nodes of the file that were replaced since it was read, by the names of their first outputs.
  std::map<std::string, RunTimeNumbers> expanded = {};
  bool never_run = false;  // only shapes are read: an operator on no elements may give any result
  /// The steps of recurrent operators are one loop (ops/recurrence.cpp), not nodes for each.
  bool loops_over_steps = false;
  bool is_stage = false;  // it counts what it finds, and other stages read that part

  bool keeps_all() const { return hints != nullptr && hints->keeps_all; }
  bool any_extents() const { return hints != nullptr && hints->any_extents; }
  bool is_literal(const Value& value) const {
    return hints != nullptr && hints->literals.contains(value.name);
  }
  bool is_computed(const Value& value) const {
    return hints != nullptr && hints->computed.contains(value.name);
  }

  Value& operator[](ValueId id) { return values[id.value]; }
  const Value& operator[](ValueId id) const { return values[id.value]; }
};

/// Inputs, then one line a node: `[group] out: float32 1x64x56x56 = Relu(in) {attributes}`.
std::string print(const Graph& graph);
/// ` axis=1 mode="linear"`.
std::string print(const Attributes& attributes);

/// Makes inputs and outputs states by their names: "h=h_out,past.*=present.*" has pairs, in which a
/// `*` stands for the same text on both sides. Errors: a pair that names none, types that differ,
/// a value named twice.
Result<Unit> mark_states(Graph& graph, std::string_view pairs);

/// "1x3x224x224"; a scalar is "scalar".
std::string print_shape(std::span<const int64_t> shape);

}  // namespace pruner
