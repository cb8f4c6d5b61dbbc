// Records of our own candidates on a CPU, whose times are what the draft says.
#pragma once

#include <string>

#include "analysis/draft.h"
#include "record/record.h"
#include "support/rng.h"
#include "tensor/operators.h"

namespace pruner {

/// Lines of so many candidates of the operator, drawn.
inline std::string cpu_records(const std::string& op, int programs) {
  const Target target = *parse_target("llvm -mcpu=haswell", 2);
  const Task task = make_task(*parse_operator(op), target, op);
  const Space space = make_space(task);
  Rng rng(1);
  std::string lines;
  for (int i = 0; i < programs; ++i) {
    const Candidate candidate = sample(space, rng);
    MeasureResult result;
    result.costs_s = {draft_latency_s(make_loop_nest(space, candidate), target)};
    lines += print_line(make_record(task, space, candidate, result)) + "\n";
  }
  return lines;
}

}  // namespace pruner
