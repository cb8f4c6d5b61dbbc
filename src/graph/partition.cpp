#include "graph/partition.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/group_name.h"
#include "graph/ops/op.h"
#include "graph/ops/window.h"
#include "graph/passes.h"
#include "support/check.h"

namespace pruner {

// Returns the name that `--op` gives an input of this role, so that records of `--op` serve here.
static std::string placeholder_name(const OpCall& call, size_t i, bool in_epilogue) {
  static const std::map<std::string, std::vector<const char*>> kNames = {
      {"Conv", {"data", "weight", "bias"}},
      {"Gemm", {"data", "weight", "bias"}},
      {"LayerNormalization", {"data", "gamma", "beta"}},
      {"RMSNormalization", {"data", "gamma"}},
      {"AveragePool", {"data"}},
      {"MaxPool", {"data"}}};
  const std::string op = is_convolution(call.node) ? "Conv" : call.node.op;
  if (const auto it = kNames.find(op); it != kNames.end()) return it->second[i];
  if (!in_epilogue || op != "Add") return i == 0 ? "A" : i == 1 ? "B" : "C";
  return call.input(i).constant ? "bias" : "residual";
}

namespace {

// Lowers the nodes of one group into one DAG. The last anchor goes first, after what it reads, so
// that its operands are the first inputs whatever the order of an Add's.
class GroupLowering {
 public:
  GroupLowering(const Graph& graph, std::vector<const Node*> nodes)
      : graph_(graph), nodes_(std::move(nodes)), to_{dag_, [this](const OpCall& call, size_t i) {
                                                       return operand(call, i);
                                                     }} {
    for (const Node* node : nodes_) makers_.try_emplace(node->outputs[0], node);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (find_graph_op(nodes_[i]->op)->is_anchor()) anchor_ = static_cast<int>(i);
    }
  }

  Group run() {
    if (anchor_ >= 0) result(*nodes_[anchor_]);
    Group group;
    group.output = nodes_.back()->outputs[0];
    group.dag = dag_.finish({result(*nodes_.back())});
    group.inputs = std::move(inputs_);
    group.key = workload_key(group.dag);
    group.name = operator_name(group_name(graph_, nodes_), group.key);
    const std::vector<Stage>& stages = group.dag.stages;
    group.complex = std::any_of(
        stages.begin(), stages.end(), [](const Stage& stage) { return stage.is_reduction(); });
    return group;
  }

 private:
  // The stage of what a node of the group makes.
  StageId result(const Node& node) {
    const auto it = stages_.find(node.outputs[0]);
    if (it != stages_.end()) return it->second;
    const StageId made = find_graph_op(node.op)->lower({graph_, node}, to_);
    return stages_[node.outputs[0]] = made;
  }

  StageId operand(const OpCall& call, size_t i) {
    const ValueId id = call.node.inputs[i];
    if (const auto maker = makers_.find(id); maker != makers_.end()) return result(*maker->second);
    const auto [it, fresh] = stages_.try_emplace(id);
    if (!fresh) return it->second;
    const Value& value = graph_[id];
    if (value.constant && graph_.is_literal(value)) return it->second = literal(value);
    inputs_.push_back(id);
    return it->second = dag_.placeholder(placeholder_name(call, i, anchor_ >= 0),
                                         value.shape,
                                         value.dtype,
                                         value.constant.has_value());
  }

  // A few numbers in the code: one, or a choice by the place in row-major order.
  StageId literal(const Value& value) {
    const Tensor& tensor = *value.constant;
    return dag_.compute(
        "T_literal",
        value.shape,
        [&](std::span<const Expr> axes) {
          Expr place(0);
          for (size_t d = 0; d < axes.size(); ++d) place = place * Expr(value.shape[d]) + axes[d];
          Expr chosen = immediate_of(tensor, tensor.num_elements() - 1);
          for (int64_t i = tensor.num_elements() - 1; i-- > 0;)
            chosen = select(binary(BinaryOp::kEq, place, Expr(i)), immediate_of(tensor, i), chosen);
          return chosen;
        },
        "injective");
  }

  const Graph& graph_;
  std::vector<const Node*> nodes_;
  std::map<ValueId, const Node*> makers_;
  int anchor_ = -1;
  DagBuilder dag_;
  StageSink to_;
  std::map<ValueId, StageId> stages_;
  std::vector<ValueId> inputs_;
};

}  // namespace

std::string routine_key(const Routine& routine,
                        std::span<const int64_t> parameters,
                        std::span<const int64_t> index_extents) {
  return fmt::format(
      "{} {} below {}", routine.symbol, fmt::join(parameters, " "), fmt::join(index_extents, " "));
}

// A node that is a function of the runtime, and the constant that this takes as its last input.
static Group routine_group(const Graph& graph, const Node& node, Partition& p) {
  const OpCall call{graph, node};
  const Routine& routine = *find_graph_op(node.op)->routine;
  const Node* const nodes[] = {&node};
  Group group;
  group.name = group_name(graph, nodes);
  for (size_t i = 0; i < std::min(routine.tensors, node.inputs.size()); ++i) {
    if (node.inputs[i].valid()) group.inputs.push_back(node.inputs[i]);
  }
  const Tensor parameters = routine_parameters(routine, call);
  group.inputs.push_back(ValueId{static_cast<int32_t>(p.values.size())});
  p.values.push_back({call.output().name + "/parameters",
                      parameters.dtype(),
                      parameters.shape(),
                      parameters,
                      {},
                      {},
                      {}});
  group.output = node.outputs[0];
  group.routine = &routine;
  if (routine.workspace_bytes != nullptr) group.workspace_bytes = routine.workspace_bytes(call);
  if (indices_of(node).valid())
    group.index_extents = find_graph_op(node.op)->indices->extents(call);
  // Only its equals share what a kernel is made once for.
  group.key = routine_key(routine, parameters.values<int64_t>(), group.index_extents);
  return group;
}

static Partition cut(Graph passed) {
  Partition p;
  p.graph = std::make_shared<const Graph>(std::move(passed));
  const Graph& graph = *p.graph;
  p.network = graph.name;
  std::map<int, std::vector<const Node*>> members;
  for (const Value& value : graph.values) {
    p.values.push_back({value.name, value.dtype, value.shape, value.constant, {}, value.slice, {}});
  }
  for (const Node& node : graph.nodes) {
    if (node.group >= 0) {
      members[node.group].push_back(&node);
      continue;
    }
    if (node.in_place) {
      p.values[node.outputs[0].value].joined = node.inputs;
      continue;
    }
    CHECK(find_graph_op(node.op)->fusion == Fusion::kAlias) << node.op << " is in no group";
    const ValueId of =
        p[node.inputs[0]].alias_of.valid() ? p[node.inputs[0]].alias_of : node.inputs[0];
    p.values[node.outputs[0].value].alias_of = of;
  }
  for (auto& [id, nodes] : members) {
    const bool runs = find_graph_op(nodes[0]->op)->routine != nullptr;
    std::vector<std::string> names;
    std::vector<size_t> numbers;
    for (const Node* node : nodes) {
      names.push_back(node->name);
      numbers.push_back(static_cast<size_t>(node - graph.nodes.data()));
    }
    p.groups.push_back(runs ? routine_group(graph, *nodes[0], p)
                            : GroupLowering(graph, std::move(nodes)).run());
    p.groups.back().nodes = std::move(names);
    p.groups.back().node_numbers = std::move(numbers);
  }
  p.inputs = graph.inputs;
  p.outputs = graph.outputs;
  p.states = graph.states;
  return p;
}

Storage Partition::storage_of(ValueId id) const {
  while ((*this)[id].alias_of.valid()) id = (*this)[id].alias_of;
  // A slice may be of a slice: both starts count, in strides of the value that has the bytes.
  std::vector<Slice> slices;
  for (; (*this)[id].slice; id = slices.back().of) slices.push_back(*(*this)[id].slice);
  Storage storage{id, (*this)[id].shape, 0};
  for (const Slice& slice : slices) {
    int64_t stride = 1;
    for (size_t d = static_cast<size_t>(slice.axis) + 1; d < storage.shape.size(); ++d)
      stride *= storage.shape[d];
    storage.first += slice.start * stride;
  }
  return storage;
}

// Marks the value that a computed view shows in another shape as computed, too: a kernel makes it.
static void compute_sources(Graph& graph) {
  if (graph.hints == nullptr || graph.hints->computed.empty()) return;
  RangeHints hints = *graph.hints;
  std::set<ValueId> made;
  for (const Node& node : graph.nodes) made.insert(node.outputs.begin(), node.outputs.end());
  for (const Node& node : graph.nodes | std::views::reverse) {
    const GraphOp* op = find_graph_op(node.op);
    if (op != nullptr && op->fusion == Fusion::kAlias && made.contains(node.inputs[0]) &&
        hints.computed.contains(graph[node.outputs[0]].name))
      hints.computed.insert(graph[node.inputs[0]].name);
  }
  graph.hints = std::make_shared<const RangeHints>(std::move(hints));
}

Result<Partition> partition(Graph graph,
                            const Target& target,
                            Precision precision,
                            Numerics numerics) {
  // Before the passes, which drop the Shape of such a value for the extents that it has room for.
  FoundValues found;
  for (const Node& node : graph.nodes)
    if (!graph.is_stage) TRY(found.add(graph, node));
  compute_sources(graph);
  for (Value& value : graph.values)
    if (graph.is_computed(value)) value.constant.reset();
  graph = run_graph_passes(std::move(graph), {target, precision, numerics});
  for (const Node& node : graph.nodes) {
    if (node.group < 0 && !node.in_place && find_graph_op(node.op)->fusion != Fusion::kAlias)
      return Error(node_label(graph, node), ": ", node.op, " differs from shape to shape");
    const Routine* const routine = find_graph_op(node.op)->routine;
    if (!target.is_gpu() || routine == nullptr || routine->on_gpus) continue;
    return Error(node_label(graph, node),
                 ": ",
                 node.op,
                 " runs on CPUs only, the target is ",
                 backend_name(target.backend));
  }
  Partition parts = cut(std::move(graph));
  parts.numerics = numerics;
  return parts;
}

// The groups of a partition, each before those that it reads, its anchor's data first.
static std::vector<const Group*> groups_from_outputs(const Partition& partition) {
  std::map<ValueId, size_t> maker;
  for (size_t i = 0; i < partition.groups.size(); ++i) maker[partition.groups[i].output] = i;
  std::vector<const Group*> order;
  std::set<size_t> seen;
  std::vector<ValueId> open(partition.outputs.rbegin(), partition.outputs.rend());
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const std::vector<ValueId>& joined = partition[id].joined;
    open.insert(open.end(), joined.rbegin(), joined.rend());
    const ValueId alias = partition[id].alias_of;
    const auto it = maker.find(alias.valid() ? alias : id);
    if (it == maker.end() || !seen.insert(it->second).second) continue;
    order.push_back(&partition.groups[it->second]);
    const std::vector<ValueId>& inputs = partition.groups[it->second].inputs;
    open.insert(open.end(), inputs.rbegin(), inputs.rend());
  }
  return order;
}

static void add_tasks(const Partition& partition,
                      const Target& target,
                      std::map<std::string, size_t>& known,
                      std::vector<WeightedTask>& tasks) {
  for (const Group* group : groups_from_outputs(partition)) {
    if (!group->complex) continue;
    const auto [it, fresh] = known.try_emplace(group->key, tasks.size());
    if (fresh) tasks.push_back({make_task(group->dag, target, group->name), 0});
    ++tasks[it->second].weight;
  }
}

std::vector<WeightedTask> extract_tasks(std::span<const Phase> phases, const Target& target) {
  std::vector<WeightedTask> tasks;
  std::map<std::string, size_t> known;
  for (const Phase& phase : phases) add_tasks(phase.partition, target, known, tasks);
  return tasks;
}

std::vector<WeightedTask> extract_tasks(const Partition& partition, const Target& target) {
  std::vector<WeightedTask> tasks;
  std::map<std::string, size_t> known;
  add_tasks(partition, target, known, tasks);
  return tasks;
}

}  // namespace pruner
