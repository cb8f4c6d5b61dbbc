// Edits of a compute DAG that sketch rules are made of. Stage ids after the edited place shift by
// one.
#pragma once

#include <functional>

#include "tensor/compute_dag.h"

namespace pruner {

/// Inserts `stage` at position `at`: ids >= at shift. The stage's own loads use the new ids.
void insert_stage(ComputeDag& dag, int at, Stage stage);

/// Makes every consumer of `old` but `replacement` itself load `replacement` instead.
void redirect(ComputeDag& dag, StageId old, StageId replacement);

/// Substitutes `stage` into every consumer and removes it: ids > stage shift back.
void inline_stage(ComputeDag& dag, StageId stage);

/// Whether the readers stay of a reasonable size with `stage` inlined. Written out, a body that
/// reads a stage twice holds it twice, and so does what is made of the stages before: chains of
/// such stages are cut before they have grown to thousands of operations.
bool fits_readers(const ComputeDag& dag, StageId stage);

/// Calls `rewrite` for each stage, producers first, but for those that it inserts; it says whether
/// it rewrote the stage. Whether it did any.
bool rewrite_stages(ComputeDag& dag, const std::function<bool(StageId)>& rewrite);

/// Variables for all iterators of a stage, spatial then reduce.
std::vector<Expr> iterator_vars(const Stage& stage);

/// A stage of `source`'s shape that copies it element by element.
Stage copy_stage(const ComputeDag& dag, StageId source, std::string name);

}  // namespace pruner
