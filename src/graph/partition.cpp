#include "graph/partition.h"

#include <algorithm>
#include <set>

#include "graph/group_name.h"
#include "graph/ops/op.h"
#include "graph/passes.h"
#include "support/check.h"

namespace pruner {

// Lowers the nodes of one group into one DAG. The anchor goes first, so that its operands are the
// first inputs whatever the order of an Add's.
class GroupLowering {
 public:
  GroupLowering(const Graph& graph, std::vector<const Node*> nodes)
      : graph_(graph), nodes_(std::move(nodes)), to_{dag_, [this](ValueId id) {
                                                       return stage(id);
                                                     }} {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Fusion fusion = find_graph_op(nodes_[i]->op)->fusion;
      if (fusion >= Fusion::kReduce && fusion <= Fusion::kOpaque) anchor_ = static_cast<int>(i);
    }
  }

  Group run() {
    if (anchor_ >= 0) stage(nodes_[static_cast<size_t>(anchor_)]->outputs[0]);
    Group group;
    group.output = nodes_.back()->outputs[0];
    const StageId out = stage(group.output);
    group.dag = dag_.finish({out});
    group.inputs = std::move(inputs_);
    group.name = group_name(graph_, nodes_, anchor_);
    group.key = workload_key(group.dag);
    group.complex = std::any_of(group.dag.stages.begin(),
                                group.dag.stages.end(),
                                [](const Stage& s) { return s.is_reduction(); });
    return group;
  }

 private:
  StageId stage(ValueId id) {
    if (const auto it = stages_.find(id); it != stages_.end()) return it->second;
    const auto maker = std::find_if(
        nodes_.begin(), nodes_.end(), [&](const Node* node) { return node->outputs[0] == id; });
    if (maker != nodes_.end()) {
      return stages_[id] = find_graph_op((*maker)->op)->lower({graph_, **maker}, to_);
    }
    const Value& value = graph_[id];
    inputs_.push_back(id);
    const bool constant = value.constant.has_value();
    return stages_[id] = dag_.placeholder("placeholder", value.shape, value.dtype, constant);
  }

  const Graph& graph_;
  std::vector<const Node*> nodes_;
  int anchor_ = -1;
  DagBuilder dag_;
  Lowering to_;
  std::map<ValueId, StageId> stages_;
  std::vector<ValueId> inputs_;
};

static Partition cut(Graph graph) {
  Partition p;
  p.network = graph.name;
  std::map<int, std::vector<const Node*>> members;
  for (const Value& value : graph.values) {
    p.values.push_back({value.name, value.dtype, value.shape, value.constant, {}});
  }
  for (const Node& node : graph.nodes) {
    if (node.group >= 0) {
      members[node.group].push_back(&node);
      continue;
    }
    CHECK(find_graph_op(node.op)->fusion == Fusion::kAlias) << node.op << " is in no group";
    const ValueId of =
        p[node.inputs[0]].alias_of.valid() ? p[node.inputs[0]].alias_of : node.inputs[0];
    p.values[static_cast<size_t>(node.outputs[0].value)].alias_of = of;
  }
  for (auto& [id, nodes] : members)
    p.groups.push_back(GroupLowering(graph, std::move(nodes)).run());
  p.inputs = std::move(graph.inputs);
  p.outputs = std::move(graph.outputs);
  return p;
}

Result<Partition> partition(Graph graph, const Target&) {
  return cut(run_graph_passes(std::move(graph)));
}

std::vector<WeightedTask> extract_tasks(const Partition& partition, const Target& target) {
  std::map<ValueId, size_t> maker;
  for (size_t i = 0; i < partition.groups.size(); ++i) maker[partition.groups[i].output] = i;
  // Depth first from the outputs, a group before those that it reads, its anchor's data first.
  std::vector<size_t> order;
  std::set<size_t> seen;
  std::vector<ValueId> open(partition.outputs.rbegin(), partition.outputs.rend());
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const ValueId alias = partition[id].alias_of;
    const auto it = maker.find(alias.valid() ? alias : id);
    if (it == maker.end() || !seen.insert(it->second).second) continue;
    order.push_back(it->second);
    const std::vector<ValueId>& inputs = partition.groups[it->second].inputs;
    open.insert(open.end(), inputs.rbegin(), inputs.rend());
  }
  std::vector<WeightedTask> tasks;
  std::map<std::string, size_t> known;
  for (const size_t i : order) {
    const Group& group = partition.groups[i];
    if (!group.complex) continue;
    const auto [it, fresh] = known.try_emplace(group.key, tasks.size());
    if (fresh) tasks.push_back({make_task(group.dag, target, group.name), 0});
    ++tasks[it->second].weight;
  }
  return tasks;
}

}  // namespace pruner
