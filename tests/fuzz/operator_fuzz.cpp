// layer: tensor
// The text of --op -> its DAG, key and FLOPs.
#include "fuzz/fuzz_target.h"
#include "space/operator_task.h"

namespace pruner {

std::vector<std::string> seeds() {
  return {std::begin(kSmallOperators), std::end(kSmallOperators)};
}

bool read_input(std::string_view bytes) {
  const Result<ComputeDag> dag = parse_operator(bytes);
  if (!dag.ok()) return false;
  CHECK(!workload_key(*dag).empty() && !print(*dag).empty());
  (void)flop_count(*dag);
  return true;
}

}  // namespace pruner
