// --pool: records of tuned networks -> what their schedules offer to the tasks of another.
#pragma once

#include <vector>

#include "cli/source.h"
#include "transfer/pool.h"

namespace pruner {

/// Records of tuned networks that schedules are taken from.
struct OfferOptions {
  std::vector<std::string> pool, dags;  // record files, patterns, folders; files of compute DAGs
  std::string source = {};              // of the pool: auto, as-published or a file; empty: all

  void add_to(CLI::App& app);
};

/// An error where options that only say how the records of --pool are read are given without
/// --pool.
Result<Unit> check_offers(const OfferOptions& options);

/// The files of --pool as sources, without those that have no usable record; with --source auto
/// the one that has the most to give, with a FILE that one. Ansor's records become the nearest
/// candidates; what became of all records is printed, unless `quiet`. Errors: a file cannot be
/// read, or nothing is left.
Result<std::vector<TransferSource>> read_pool(const OfferOptions& options,
                                              std::span<const WeightedTask> tasks,
                                              int jobs,
                                              bool quiet);

/// Warns where the sources have no schedule for any of the tasks, and says what both are of.
void say_offers(std::span<const TransferSource> sources, std::span<const WeightedTask> tasks);

}  // namespace pruner
