// --pool: records of tuned networks -> what their schedules offer to the tasks of another.
#pragma once

#include <vector>

#include "cli/source.h"
#include "transfer/pool.h"

namespace pruner {

/// Records of tuned networks that schedules are taken from.
struct OfferOptions {
  std::vector<std::string> pool, dags;  // record files, patterns, folders; files of compute DAGs
  std::string source = {};              // auto, as-published or a file of the pool; empty: all

  void add_to(CLI::App& app);
};

/// Returns an error if options that only say how the records of --pool are read are given without
/// --pool.
Result<Unit> check_offers(const OfferOptions& options);

/// Reads the files of --pool as sources, without those that have no usable record. With --source
/// auto only the source with the most to give is left, with --source FILE only that file. Ansor's
/// records become the nearest candidates. Unless `quiet`, prints the outcome of all records.
/// Errors: a file cannot be read, or no source is left.
Result<std::vector<TransferSource>> read_pool(const OfferOptions& options,
                                              std::span<const WeightedTask> tasks,
                                              int jobs,
                                              bool quiet);

/// Warns if the sources have no schedule for any of the tasks, and says which classes both have.
void say_offers(std::span<const TransferSource> sources, std::span<const WeightedTask> tasks);

}  // namespace pruner
