// Work dirs of tune -> the page of a run.
#pragma once

#include <string>
#include <vector>

#include "report/html/run_folder.h"

namespace pruner {

struct RunPageOptions {
  std::vector<Peer> peers = {};
  int refresh_s = 0;  // of a run that goes on; 0: never
  int jobs = 1;
};

struct RunPage {
  std::string html;
  std::string status;     // of the first run, as run.json has it
  Comparison comparison;  // of all; without a curve of a run that has none yet
};

/// The first path is the run that the page is of; the curves are of all. Errors: those of
/// read_run_folder() and compare_runs().
Result<RunPage> make_run_page(const std::vector<std::string>& paths,
                              const RunPageOptions& options,
                              KnownTasks& known);

}  // namespace pruner
