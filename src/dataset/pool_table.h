// Turns a pool of recorded programs into the table that judges a model, with the draft's scores.
// Programs and ids are the same as in a file of features that is made from the records.
#pragma once

#include <vector>

#include "dataset/program_pool.h"
#include "dataset/program_table.h"

namespace pruner {

struct PoolTable {
  ProgramTable table;
  std::vector<float> draft_scores;  // one per program of the table; 0 without a draft
};

/// Makes the table; tasks with fewer programs than `least` are left out.
PoolTable table_of(ProgramPool&& pool, int64_t least);

}  // namespace pruner
