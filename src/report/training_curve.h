// The epochs of a training -> a table for other programs, and a plot of each of its columns.
#pragma once

#include <span>
#include <string>

#include "dataset/pretrain.h"

namespace pruner {

/// A line an epoch (of trees, every tenth); what was not there is empty.
std::string training_tsv(std::span<const TrainingPoint> curve);
std::string training_svg(std::span<const TrainingPoint> curve, const std::string& title);

}  // namespace pruner
