// A replayed record's loop nest -> the statements that learned models read.
#pragma once

#include "analysis/statements.h"

namespace pruner {

/// make_statements() without what only a draft reads: the transactions of a warp are left 0.
Statements make_model_statements(const ansor::ReplayNest& nest);

}  // namespace pruner
