// layer: lower
// A DAG file -> its DAG; of a small one a candidate's program computes what the DAG does.
#include "fuzz/fuzz_target.h"
#include "fuzz/json_mutator.h"
#include "lower/meaning.h"
#include "space/operator_task.h"
#include "tensor/check_accesses.h"

namespace pruner {
namespace {

/// Whether a few milliseconds are enough for all of its elements.
bool is_small(const ComputeDag& dag) {
  double terms = 0;
  for (const Stage& stage : dag.stages) {
    double here = 1;
    for (const Iterator& axis : stage.axes) here *= static_cast<double>(axis.extent);
    for (const Iterator& axis : stage.reduce_axes) here *= static_cast<double>(axis.extent);
    terms = terms * here > 0 ? terms * here : here;  // a producer may be evaluated for each term
    if (terms > 1e5) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const char* op : kSmallOperators) {
    if (const Json dag = dag_to_json(operator_task(op).dag); dag.dump().size() < 4096)
      texts.push_back(dag.dump());
  }
  return texts;
}

bool read_input(std::string_view bytes) {
  const Result<Json> json = parse_json(bytes);
  if (!json.ok()) return false;
  const Result<ComputeDag> dag = dag_from_json(*json);
  if (!dag.ok()) return false;
  const std::string key = workload_key(*dag);
  const Json printed = dag_to_json(*dag);
  const Result<ComputeDag> again = dag_from_json(printed);
  CHECK(again.ok() && workload_key(*again) == key) << printed;
  (void)flop_count(*dag);
  (void)traffic_bytes(*dag);
  if (!check_accesses(*dag).ok()) return false;  // readers of files ask this, too
  if (!is_small(*dag)) return true;
  Rng rng(1);
  const Task task = make_task(*dag, test_target(), "fuzzed");
  const Space space = make_space(task);
  (void)interpret(*dag, random_inputs(*dag, rng));
  CHECK(lower(space, sample(space, rng), "k").ok());
  return true;
}

}  // namespace pruner
