// The one program of a task that is right at every shape of a range by how it is made: loops over
// the axes, whose extents are the task's own formulas. No number is found by looking at some
// shapes, as those of lower_over_range() are. It has no tiles, so it is slower: a kernel for the
// shapes that no schedule's program is for.
#pragma once

#include <string>
#include <vector>

#include "lower/program.h"
#include "lower/task_range.h"

namespace pruner {

/// Innermost is a vector along the last axis; outside of it are the loops of a reduction, which
/// sums up in registers; the axes outside are one parallel loop. `packing` says for each argument
/// how it is stored. Error: one is stored as another tensor.
Result<Program> plain_program(const TaskRange& task,
                              const std::vector<PackSpec>& packing,
                              std::string name);

}  // namespace pruner
