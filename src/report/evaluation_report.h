// How well a model orders measured programs -> the table, the JSON and the plot that
// people read.
#pragma once

#include <span>
#include <string>

#include "dataset/pretrain.h"
#include "support/json.h"

namespace pruner {

/// The metrics of Pruner's and TenSet's scripts, Top-k by both definitions, and what a random order
/// gives beside them.
std::string print(const Evaluation& evaluation);
Json to_json(const Evaluation& evaluation, const ProgramTable& table);

/// A scatter of the programs: across, how fast each was measured beside its task's best; upwards,
/// where its score lies between the task's least and highest. Tasks whose scores are all one are
/// left out. `scores`: one a program of `programs`.
std::string evaluation_svg(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const std::string& title);

/// "12 programs seen in training, 3 others of their tasks, 8 of other tasks".
std::string print(const SeenCount& seen);
/// What the table's files had and it has not; empty where that is nothing.
std::string print(const LeftOut& left_out);

/// "  3/12: loss 12.3400, validation 5.6700 (pairwise accuracy 0.8910), learning rate 7.00e-04;
/// 0:41, ETA 2:03".
std::string print(const PretrainProgress& progress);

}  // namespace pruner
