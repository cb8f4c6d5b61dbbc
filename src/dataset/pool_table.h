// A pool of recorded programs -> the table that a model is judged by, and the scores of the draft
// beside it: the same programs and ids as in a file of features that is made of the records.
#pragma once

#include <vector>

#include "dataset/program_pool.h"
#include "dataset/program_table.h"

namespace pruner {

struct PoolTable {
  ProgramTable table;
  std::vector<float> draft_scores;  // of the table's programs; 0 where there is no draft
};

/// Tasks of fewer programs than `least` are left out.
PoolTable table_of(ProgramPool&& pool, int64_t least);

}  // namespace pruner
