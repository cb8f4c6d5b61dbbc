// Work dirs of tune -> the page of a run.
#pragma once

#include <string>
#include <vector>

#include "report/html/run_folder.h"

namespace pruner {

struct RunPageOptions {
  std::vector<Peer> peers = {};
  int refresh_s = 0;  // seconds between refreshes while the run goes on; 0: never
  int jobs = 1;
};

struct RunPage {
  std::string html;
  std::string status;     // status of the first run, as in run.json
  Comparison comparison;  // all runs; empty if the only run has no curve yet
};

/// Makes the page of the run at the first path, with the curves of all runs. Errors are those of
/// read_run_folder() and compare_runs().
Result<RunPage> make_run_page(const std::vector<std::string>& paths,
                              const RunPageOptions& options,
                              KnownTasks& known);

}  // namespace pruner
