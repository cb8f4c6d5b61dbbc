// Nodes that choose a graph or repeat a graph. The choice and the number of repetitions have to be
// known when the model is read; the nodes then stand for a list of nodes without branches.
#include <algorithm>
#include <limits>

#include "graph/onnx/constructs.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/ops/op.h"

namespace pruner {

// Returns the types of tensors that all have no elements; empty if one has elements, or is a
// sequence.
static std::vector<TensorType> types_of_empty(const ConstructCall& call,
                                              const std::vector<Entry>& outputs) {
  std::vector<TensorType> types;
  for (const Entry& entry : outputs) {
    const auto* id = std::get_if<ValueId>(&entry);
    if (id == nullptr || !id->valid() || element_count(call.value(*id).shape) > 0) return {};
    types.push_back({call.value(*id).dtype, call.value(*id).shape});
  }
  return types;
}

// Returns the outputs of a branch, whatever the condition says. The names of the branch's values
// begin with `prefix`.
static Outputs add_branch(const ConstructCall& call, bool then, const std::string& prefix) {
  TRY_ASSIGN(const auto chosen, call.graph(then ? "then_branch" : "else_branch"));
  const auto [graph, scope] = chosen;
  TRY(call.importer.check_operators(*graph));
  if (!call.importer.known_branch(call.name) &&
      !call.importer.is_given(Importer::condition_of(call.name)))
    return call.importer.add_body(*graph, *scope, prefix, {});
  const std::set<std::string> needed =
      call.importer.needed_outputs(call.proto, *graph, call.scope.read, call.scope.prefix);
  return call.importer.add_body(*graph, *scope, prefix, {}, &needed);
}

// Returns the outputs of the longer branch if both branches make the same tensors without elements,
// as behind `if boxes.numel() == 0`. The condition then decides nothing, and the longer branch is
// right at other extents, too. nullopt: the branch that made `made` is the right one.
static std::optional<std::vector<Entry>> longer_branch(const ConstructCall& call,
                                                       bool then,
                                                       const std::vector<Entry>& made) {
  const std::vector<TensorType> types = types_of_empty(call, made);
  const auto chosen = call.graph(then ? "then_branch" : "else_branch");
  const auto other = call.graph(then ? "else_branch" : "then_branch");
  if (types.empty() || !other.ok() || other->first->node_size() <= chosen->first->node_size())
    return std::nullopt;
  const Outputs tried = add_branch(call, !then, call.name + "/");
  if (!tried.ok() || types_of_empty(call, *tried) != types) return std::nullopt;
  return *tried;
}

// Computes both branches of a condition that the data say and chooses each output, whose type has
// to be the same in both.
static Outputs add_both_branches(const ConstructCall& call, ValueId condition) {
  Importer& importer = call.importer;
  const std::string name = Importer::condition_of(call.name);
  const bool is_given = importer.is_given(name);
  Error unknown = call.error("its condition is computed at run time");
  if (!is_given) {
    unknown =
        call.error(computed_at_run_time(importer.graph(), condition, "the condition").message());
    const Value& flag = call.value(condition);
    if (flag.dtype != DType::kBool || element_count(flag.shape) != 1) return unknown;
  }
  const Outputs made[] = {add_branch(call, true, call.name + "/then/"),
                          add_branch(call, false, call.name + "/else/")};
  for (const Outputs& branch : made) {
    if (!branch.ok())
      return Error(unknown.message(), "; to compute both branches: ", branch.error().message());
  }
  const std::vector<Entry>&thens = *made[0], &elses = *made[1];
  ValueId truth;
  if (is_given) {
    truth = importer.given_value(name);
  } else {
    const ValueId shape = importer.add_integers(call.name + "/scalar", {});
    TRY_ASSIGN(const auto scalar, importer.add("Reshape", {condition, shape}, {}, name));
    truth = scalar[0];
  }
  std::vector<Entry> outputs;
  for (size_t i = 0; i < std::min(thens.size(), elses.size()); ++i) {
    const auto *a = std::get_if<ValueId>(&thens[i]), *b = std::get_if<ValueId>(&elses[i]);
    if (is_given && a != nullptr && b != nullptr && !(a->valid() && b->valid())) {
      outputs.emplace_back(ValueId{});  // the part does not need the output
      continue;
    }
    if (a == nullptr || b == nullptr || !a->valid() || !b->valid()) return unknown;
    const Value x = call.value(*a), y = call.value(*b);
    if (x.dtype != y.dtype || x.shape != y.shape)
      return Error(unknown.message(),
                   "; output ",
                   i,
                   " is ",
                   dtype_name(x.dtype),
                   " ",
                   print_shape(x.shape),
                   " in one branch and ",
                   dtype_name(y.dtype),
                   " ",
                   print_shape(y.shape),
                   " in the other");
    const std::string output = call.name + "/output" + std::to_string(i);
    TRY_ASSIGN(const auto chosen, importer.add("Where", {truth, *a, *b}, {}, output));
    outputs.emplace_back(chosen[0]);
  }
  return outputs;
}

static Outputs add_if(const ConstructCall& call) {
  const std::string prefix = call.name + "/";
  if (const std::optional<bool> known = call.importer.known_branch(call.name))
    return add_branch(call, *known, prefix);
  if (call.importer.is_given(Importer::condition_of(call.name)))
    return add_both_branches(call, ValueId{});
  TRY_ASSIGN(const ValueId condition, call.tensor(0));
  if (!call.value(condition).constant) return add_both_branches(call, condition);
  TRY_ASSIGN(const int64_t truth, call.known(condition, "the condition"));
  const bool then = truth != 0;
  TRY_ASSIGN(std::vector<Entry> made, add_branch(call, then, prefix));
  if (!call.importer.reads_found()) return made;
  std::optional<std::vector<Entry>> longer = longer_branch(call, then, made);
  call.importer.note_branch(call.name, condition, then != longer.has_value());
  return longer ? *std::move(longer) : std::move(made);
}

// Joins tensors of one shape along a new axis.
static Result<ValueId> side_by_side(Importer& importer,
                                    std::vector<ValueId> parts,
                                    int64_t axis,
                                    const std::string& name) {
  const ValueId axes = importer.add_integers(name + "/axes", {{axis}});
  for (ValueId& part : parts) {
    TRY_ASSIGN(const auto made,
               importer.add("Unsqueeze", {part, axes}, {}, importer.graph()[part].name));
    part = made[0];
  }
  if (parts.size() == 1) return parts[0];
  TRY_ASSIGN(const auto joined, importer.add("Concat", std::move(parts), {{"axis", axis}}, name));
  return joined[0];
}

namespace {

// A graph that is run again and again, and the outputs of its runs that are stacked.
class Rounds {
 public:
  /// The graph has to have `inputs` inputs and `first` or more outputs; its first `first` outputs
  /// are not stacked.
  static Result<Rounds> of(const ConstructCall& call, size_t inputs, size_t first) {
    TRY_ASSIGN(const auto body, call.graph("body"));
    const auto found = static_cast<size_t>(body.first->input_size());
    if (found != inputs) return call.error("its body takes ", found, " inputs, expected ", inputs);
    const auto outputs = static_cast<size_t>(body.first->output_size());
    if (outputs < first)
      return call.error("its body has ", outputs, " outputs, expected ", first, " or more");
    return Rounds(call, body.first, body.second, first);
  }

  /// Runs the graph once. Returns the outputs that are not stacked.
  Outputs run(std::vector<Entry> inputs) {
    const std::string prefix = call_->name + "/" + std::to_string(count_++) + "/";
    TRY_ASSIGN(std::vector<Entry> outputs,
               call_->importer.add_body(*body_, *scope_, prefix, std::move(inputs)));
    for (size_t i = first_; i < outputs.size(); ++i) {
      const auto* id = std::get_if<ValueId>(&outputs[i]);
      if (id == nullptr || !id->valid())
        return call_->error("output ", i, " of its body is no tensor and cannot be stacked");
      stacked_[i - first_].push_back(*id);
    }
    outputs.resize(first_);
    return outputs;
  }

  size_t stacks() const { return stacked_.size(); }

  /// Returns stacked output i of all runs, side by side along a new axis.
  Result<ValueId> stack(size_t i, int64_t axis, bool backwards) {
    std::vector<ValueId> parts = stacked_[i];
    const std::string name = call_->name + "/stack" + std::to_string(i);
    if (parts.empty()) return empty_stack(i, axis, name);
    if (backwards) std::ranges::reverse(parts);
    return side_by_side(call_->importer, std::move(parts), axis, name);
  }

 private:
  Rounds(const ConstructCall& call,
         const onnx::GraphProto* body,
         const NameScope* scope,
         size_t first)
      : call_(&call),
        body_(body),
        scope_(scope),
        first_(first),
        stacked_(static_cast<size_t>(body->output_size()) - first) {}

  // Returns the stack of no runs, with the type that the body declares.
  Result<ValueId> empty_stack(size_t i, int64_t axis, const std::string& name) {
    const onnx::ValueInfoProto& declared = body_->output(static_cast<int>(first_ + i));
    const onnx::TypeProto_Tensor& type = declared.type().tensor_type();
    const std::optional<DType> dtype = dtype_from_onnx(type.elem_type());
    bool known = dtype && type.has_shape();
    std::vector<int64_t> shape;
    for (const auto& dim : type.shape().dim()) {
      known = known && dim.has_dim_value() && dim.dim_value() >= 0;
      shape.push_back(dim.dim_value());
    }
    if (!known) {
      return call_->error(
          "it runs no round, and its body does not declare the shape of \"", declared.name(), "\"");
    }
    const int64_t rank = static_cast<int64_t>(shape.size()) + 1;
    const Result<int64_t> at = normal_axis(axis, rank);
    if (!at.ok()) return call_->error(at.error().message());
    shape.insert(shape.begin() + *at, 0);
    return call_->importer.add_constant(name, Tensor(*dtype, shape));
  }

  const ConstructCall* call_;
  const onnx::GraphProto* body_;
  const NameScope* scope_;
  size_t first_;
  std::vector<std::vector<ValueId>> stacked_;
  int64_t count_ = 0;
};

}  // namespace

// Inputs: the trip count and the condition, of which either may be left out, then what the rounds
// hand on. The body takes the round's number, the condition and what is handed on, and makes the
// next condition, what is handed on and what is stacked.
static Outputs add_loop(const ConstructCall& call) {
  int64_t trips = std::numeric_limits<int64_t>::max(), goes_on = 1;
  const bool conditional = call.has(1);
  if (call.has(0)) {
    TRY_ASSIGN(const ValueId id, call.tensor(0));
    TRY_ASSIGN(trips, call.known(id, "the trip count"));
  }
  if (conditional) {
    TRY_ASSIGN(const ValueId id, call.tensor(1));
    TRY_ASSIGN(goes_on, call.known(id, "the condition"));
  }
  std::vector<Entry> state(call.inputs.begin() + std::min<int64_t>(2, std::ssize(call.inputs)),
                           call.inputs.end());
  TRY_ASSIGN(Rounds rounds, Rounds::of(call, 2 + state.size(), 1 + state.size()));
  Importer& importer = call.importer;
  if (!conditional) TRY(importer.check_unfolded(trips));
  Tensor yes(DType::kBool, {});
  yes.set_int(0, 1);
  const ValueId truth = importer.add_constant(call.name + "/true", std::move(yes));
  for (int64_t round = 0; round < trips && goes_on != 0; ++round) {
    const ValueId number = importer.add_integer(call.name + "/round", round);
    std::vector<Entry> inputs{number, truth};
    inputs.insert(inputs.end(), state.begin(), state.end());
    TRY_ASSIGN(std::vector<Entry> outputs, rounds.run(std::move(inputs)));
    state.assign(outputs.begin() + 1, outputs.end());
    // The last round's condition decides nothing.
    if (!conditional || round + 1 == trips) continue;
    const auto* next = std::get_if<ValueId>(&outputs[0]);
    if (next == nullptr || !next->valid()) return call.error("its body makes no condition");
    const std::string what = "the condition after round " + std::to_string(round);
    TRY_ASSIGN(goes_on, call.known(*next, what.c_str()));
  }
  for (size_t i = 0; i < rounds.stacks(); ++i) {
    TRY_ASSIGN(const ValueId stacked, rounds.stack(i, 0, false));
    state.emplace_back(stacked);
  }
  return state;
}

// Returns element `at` of an axis; the axis goes.
static Result<ValueId> element(const ConstructCall& call, ValueId data, int64_t axis, int64_t at) {
  Importer& importer = call.importer;
  const std::string name = call.name + "/" + std::to_string(at);
  const auto constant = [&](int64_t value) {
    return importer.add_integers(name + "/slice", {{value}});
  };
  const ValueId axes = constant(axis), start = constant(at), end = constant(at + 1);
  TRY_ASSIGN(const auto slice, importer.add("Slice", {data, start, end, axes}, {}, name));
  TRY_ASSIGN(const auto made, importer.add("Squeeze", {slice[0], axes}, {}, name));
  return made[0];
}

namespace {

// An input of a Scan that its rounds go through, element by element.
struct Scanned {
  ValueId data;
  int64_t axis = 0;
  bool backwards = false;
};

}  // namespace

// Returns the inputs of a Scan from number `first` on; all have to be equally long.
static Result<std::vector<Scanned>> scanned_inputs(const ConstructCall& call, size_t first) {
  const std::vector<int64_t> axes = call.integers("scan_input_axes");
  std::vector<int64_t> directions = call.integers("scan_input_directions");
  if (directions.empty()) directions = call.integers("directions");  // in opset 8
  std::vector<Scanned> scanned;
  std::optional<int64_t> length;
  for (size_t i = first; i < call.inputs.size(); ++i) {
    TRY_ASSIGN(const ValueId data, call.tensor(i));
    const std::vector<int64_t>& shape = call.value(data).shape;
    const size_t n = i - first;
    const Result<int64_t> axis =
        normal_axis(n < axes.size() ? axes[n] : 0, static_cast<int64_t>(shape.size()));
    if (!axis.ok()) return call.error("input ", i, ": ", axis.error().message());
    const int64_t extent = shape[static_cast<size_t>(*axis)];
    if (length.value_or(extent) != extent)
      return call.error("scans inputs of the lengths ", *length, " and ", extent);
    length = extent;
    scanned.push_back({data, *axis, n < directions.size() && directions[n] != 0});
  }
  return scanned;
}

static Outputs scan(const ConstructCall& call) {
  const auto given = static_cast<int64_t>(call.inputs.size());
  const int64_t scans = call.integer("num_scan_inputs", 0);
  if (scans < 1 || scans > given)
    return call.error("num_scan_inputs is ", scans, " of ", given, " inputs");
  const auto states = static_cast<size_t>(given - scans);
  std::vector<Entry> state(call.inputs.begin(),
                           call.inputs.begin() + std::ssize(call.inputs) - scans);
  TRY_ASSIGN(const std::vector<Scanned> scanned, scanned_inputs(call, states));
  TRY_ASSIGN(Rounds rounds, Rounds::of(call, call.inputs.size(), states));
  const int64_t length = call.value(scanned[0].data).shape[static_cast<size_t>(scanned[0].axis)];
  TRY(call.importer.check_unfolded(length));
  for (int64_t round = 0; round < length; ++round) {
    std::vector<Entry> inputs = state;
    for (const Scanned& scan : scanned) {
      const int64_t at = scan.backwards ? length - 1 - round : round;
      TRY_ASSIGN(const ValueId part, element(call, scan.data, scan.axis, at));
      inputs.emplace_back(part);
    }
    TRY_ASSIGN(state, rounds.run(std::move(inputs)));
  }
  const std::vector<int64_t> axes = call.integers("scan_output_axes");
  const std::vector<int64_t> directions = call.integers("scan_output_directions");
  for (size_t i = 0; i < rounds.stacks(); ++i) {
    TRY_ASSIGN(const ValueId stacked,
               rounds.stack(
                   i, i < axes.size() ? axes[i] : 0, i < directions.size() && directions[i] != 0));
    state.emplace_back(stacked);
  }
  return state;
}

// Opset 8: input 0 has the lengths of the sequences, and the first axis of all others is the batch,
// of which each element is scanned by itself.
static Outputs add_scan(const ConstructCall& call) {
  if (call.scope.frame->opset >= 9) return scan(call);
  if (call.has(0)) return call.error("sequence_lens is not supported");
  TRY_ASSIGN(const ValueId first, call.tensor(1));
  const std::vector<int64_t> shape = call.value(first).shape;
  if (shape.empty() || shape[0] < 1) return call.error("input 1 has no batch");
  std::vector<std::vector<ValueId>> outputs;
  for (int64_t b = 0; b < shape[0]; ++b) {
    const std::string name = call.name + "/" + std::to_string(b);
    ConstructCall one{call.importer, call.proto, call.scope, name, {}};
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      TRY_ASSIGN(const ValueId data, call.tensor(i));
      TRY_ASSIGN(const ValueId part, element(one, data, 0, b));
      one.inputs.emplace_back(part);
    }
    TRY_ASSIGN(const std::vector<Entry> made, scan(one));
    outputs.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const auto* id = std::get_if<ValueId>(&made[i]);
      if (id == nullptr) return call.error("output ", i, " of its body is no tensor");
      outputs[i].push_back(*id);
    }
  }
  std::vector<Entry> batches;
  for (std::vector<ValueId>& parts : outputs) {
    TRY_ASSIGN(const ValueId all, side_by_side(call.importer, std::move(parts), 0, call.name));
    batches.emplace_back(all);
  }
  return batches;
}

// Runs its body for each element of the sequences; a tensor among its inputs is given to each.
static Outputs add_sequence_map(const ConstructCall& call) {
  TRY_ASSIGN(const std::vector<ValueId> first, call.sequence(0));
  TRY_ASSIGN(const auto body, call.graph("body"));
  const auto [graph, scope] = body;
  if (static_cast<size_t>(graph->input_size()) != call.inputs.size())
    return call.error(
        "its body takes ", graph->input_size(), " inputs, expected ", call.inputs.size());
  std::vector<std::vector<ValueId>> outputs(static_cast<size_t>(graph->output_size()));
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Entry> inputs;
    for (const Entry& entry : call.inputs) {
      const auto* sequence = std::get_if<std::vector<ValueId>>(&entry);
      if (sequence != nullptr && sequence->size() != first.size())
        return call.error(
            "maps sequences of ", first.size(), " and ", sequence->size(), " tensors");
      inputs.push_back(sequence != nullptr ? Entry((*sequence)[i]) : entry);
    }
    const std::string prefix = call.name + "/" + std::to_string(i) + "/";
    TRY_ASSIGN(const std::vector<Entry> made,
               call.importer.add_body(*graph, *scope, prefix, std::move(inputs)));
    for (size_t o = 0; o < made.size(); ++o) {
      const auto* id = std::get_if<ValueId>(&made[o]);
      if (id == nullptr) return call.error("output ", o, " of its body is no tensor");
      outputs[o].push_back(*id);
    }
  }
  return std::vector<Entry>(outputs.begin(), outputs.end());
}

static constexpr Construct kControlFlow[] = {
    {"If", add_if},
    {"Loop", add_loop},
    {"Scan", add_scan},
    {"SequenceMap", add_sequence_map},
};

std::span<const Construct> control_flow() { return kControlFlow; }

}  // namespace pruner
