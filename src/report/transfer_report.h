// Reports the Transfer-Tuning experiment (reference.md, experiment): each network's gain from the
// schedules of the others, and a search's time for the same gain. The forms are a table, TSV, JSON,
// and the paper's two plots.
#pragma once

#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"
#include "transfer/experiment.h"

namespace pruner {

Json to_json(const TransferTarget& target);
/// Reads the JSON of to_json(); the error names the field that is missing or has another type.
Result<TransferTarget> transfer_target_from_json(const Json& json);

/// Prints a row a network, and the medians.
std::string print_transfer_table(const std::vector<TransferTarget>& targets);
/// Prints a line for each network and source.
std::string transfer_tsv(const std::vector<TransferTarget>& targets);
/// Plots figure 5a: speed-ups over the untuned module, of transfer and of each rival in its time.
std::string speedup_svg(const std::vector<TransferTarget>& targets);
/// Plots figure 5b: search time, of the transfer and of each rival to match the transfer.
std::string search_time_svg(const std::vector<TransferTarget>& targets);

}  // namespace pruner
