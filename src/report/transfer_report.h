// The Transfer-Tuning experiment (reference.md, experiment): what each network gains from the
// schedules of the others, and what a search needs for as much -> a table, TSV, JSON, and the
// paper's two plots.
#pragma once

#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"
#include "transfer/experiment.h"

namespace pruner {

Json to_json(const TransferTarget& target);
/// What to_json() wrote; the error names the field that is missing or of another type.
Result<TransferTarget> transfer_target_from_json(const Json& json);

/// A row a network, and the medians.
std::string print_transfer_table(const std::vector<TransferTarget>& targets);
/// A line a network and source.
std::string transfer_tsv(const std::vector<TransferTarget>& targets);
/// Figure 5a: speed-ups over the untuned module, of the transfer and of each rival in its time.
std::string speedup_svg(const std::vector<TransferTarget>& targets);
/// Figure 5b: search time, of the transfer and of each rival to match it.
std::string search_time_svg(const std::vector<TransferTarget>& targets);

}  // namespace pruner
