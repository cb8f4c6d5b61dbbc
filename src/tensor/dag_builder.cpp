#include "tensor/dag_builder.h"

#include <algorithm>

#include "support/check.h"

namespace pruner {

std::string DagBuilder::unique_name(std::string name) const {
  const auto taken = [&](const std::string& text) {
    return std::any_of(
        dag_.stages.begin(), dag_.stages.end(), [&](const Stage& s) { return s.name == text; });
  };
  if (!taken(name)) return name;
  int suffix = 1;
  while (taken(name + "_" + std::to_string(suffix))) ++suffix;
  return name + "_" + std::to_string(suffix);
}

static std::vector<Iterator> make_axes(const std::vector<int64_t>& extents,
                                       std::span<const std::string> names,
                                       const std::string& prefix) {
  std::vector<Iterator> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    CHECK(extents[i] > 0) << "extent " << extents[i] << " of axis " << i;
    axes.push_back({i < names.size() ? names[i] : prefix + std::to_string(i), extents[i]});
  }
  return axes;
}

static std::vector<Expr> make_vars(const std::vector<Iterator>& axes, int first) {
  std::vector<Expr> vars;
  for (const Iterator& axis : axes) vars.push_back(make_var(VarId{first++}, axis.name));
  return vars;
}

static StageId add(ComputeDag& dag, Stage stage) {
  dag.stages.push_back(std::move(stage));
  return StageId{dag.size() - 1};
}

StageId DagBuilder::placeholder(std::string name,
                                std::vector<int64_t> shape,
                                DType dtype,
                                bool constant) {
  Stage stage;
  stage.name = unique_name(std::move(name));
  stage.dtype = dtype;
  stage.axes = make_axes(shape, {}, "ax");
  stage.constant = constant;
  return add(dag_, std::move(stage));
}

StageId DagBuilder::compute(std::string name,
                            std::vector<int64_t> shape,
                            const std::function<Expr(std::span<const Expr>)>& body,
                            std::string tag,
                            std::vector<std::string> axis_names) {
  Stage stage;
  stage.name = unique_name(std::move(name));
  stage.axes = make_axes(shape, axis_names, "ax");
  stage.body = body(make_vars(stage.axes, 0));
  stage.dtype = stage.body->dtype;
  stage.tag = std::move(tag);
  return add(dag_, std::move(stage));
}

StageId DagBuilder::reduce(
    std::string name,
    std::vector<int64_t> shape,
    std::vector<int64_t> reduce_extents,
    Combiner combiner,
    const std::function<Expr(std::span<const Expr>, std::span<const Expr>)>& body,
    std::string tag,
    std::vector<std::string> axis_names) {
  Stage stage;
  stage.name = unique_name(std::move(name));
  stage.combiner = combiner;
  stage.axes = make_axes(shape, axis_names, "ax");
  if (axis_names.size() <= shape.size() && reduce_extents.size() == 1) {
    stage.reduce_axes = make_axes(reduce_extents, std::vector<std::string>{"k"}, "k");
  } else {
    const size_t first = std::min(shape.size(), axis_names.size());
    stage.reduce_axes = make_axes(reduce_extents, std::span(axis_names).subspan(first), "k");
  }
  stage.body = body(make_vars(stage.axes, 0),
                    make_vars(stage.reduce_axes, static_cast<int>(stage.axes.size())));
  stage.dtype = stage.body->dtype;
  stage.tag = std::move(tag);
  return add(dag_, std::move(stage));
}

Expr DagBuilder::at(StageId tensor, std::vector<Expr> indices) const {
  const Stage& stage = dag_[tensor];
  CHECK(indices.size() == stage.axes.size())
      << stage.name << " has " << stage.axes.size() << " dims, read with " << indices.size();
  return load(tensor, std::move(indices), stage.dtype);
}

void DagBuilder::allow_repacking(StageId stage, StageId weight) {
  if (dag_[weight].constant) dag_[stage].layout_free.push_back(weight);
}

// Removes the computed stages that no output reads: a condition that is a constant leaves them.
// Placeholders stay, as they are the arguments of the DAG.
static void remove_unread(ComputeDag& dag) {
  std::vector<bool> read(dag.stages.size(), false);
  for (size_t s = dag.stages.size(); s-- > 0;) {
    const Stage& stage = dag.stages[s];
    read[s] = read[s] || stage.output || stage.is_placeholder();
    if (!read[s]) continue;
    for (const StageId producer : dag.producers(StageId{static_cast<int32_t>(s)}))
      read[static_cast<size_t>(producer.value)] = true;
  }
  if (std::ranges::find(read, false) == read.end()) return;
  std::vector<StageId> number;  // the new number of each stage
  std::vector<Stage> left;
  for (size_t s = 0; s < read.size(); ++s) {
    number.push_back(StageId{static_cast<int32_t>(left.size())});
    if (read[s]) left.push_back(std::move(dag.stages[s]));
  }
  const auto renumbered = [&](StageId id) { return number[static_cast<size_t>(id.value)]; };
  for (Stage& stage : left) {
    for (StageId& id : stage.layout_free) id = renumbered(id);
    if (stage.is_placeholder()) continue;
    stage.body = rewrite(stage.body, [&](const Expr& e) -> Expr {
      const Load* load_of = as<Load>(e);
      if (load_of == nullptr || renumbered(load_of->tensor) == load_of->tensor) return Expr();
      return load(renumbered(load_of->tensor), load_of->indices, e->dtype);
    });
  }
  dag.stages = std::move(left);
}

ComputeDag DagBuilder::finish(std::span<const StageId> outputs) {
  for (StageId id : outputs) dag_[id].output = true;
  remove_unread(dag_);
  return std::move(dag_);
}

}  // namespace pruner
