// Reports how well a model orders measured programs, as a table, JSON and a plot that people read.
#pragma once

#include <span>
#include <string>

#include "dataset/pretrain.h"
#include "support/json.h"

namespace pruner {

/// Prints the metrics of Pruner's and TenSet's scripts, Top-k by both definitions, and the results
/// a random order has in these metrics.
std::string print(const Evaluation& evaluation);
Json to_json(const Evaluation& evaluation, const ProgramTable& table);

/// Plots the programs: across, the task's best latency over the program's; upwards, the score
/// between the task's least and highest. Tasks whose scores are all the same are left out. `scores`
/// has one score a program of `programs`.
std::string evaluation_svg(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const std::string& title);

/// "12 programs seen in training, 3 others of their tasks, 8 of other tasks".
std::string print(const SeenCount& seen);
/// Prints the programs of the table's files that the table leaves out; empty if there are none.
std::string print(const LeftOut& left_out);

/// "  3/12: loss 12.3400, validation 5.6700 (pairwise accuracy 0.8910), learning rate 7.00e-04;
/// 0:41, ETA 2:03".
std::string print(const PretrainProgress& progress);

}  // namespace pruner
