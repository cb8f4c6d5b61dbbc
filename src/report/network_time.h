// The measured time of a whole network: its line of results.tsv, as in the reference's scripts, and
// its relation to the estimate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/partition.h"
#include "target/core_watch.h"

namespace pruner {

/// `kEstimateAndTime` explains the two numbers of a network.
inline constexpr const char* kEstimateAndTime =
    "the estimate adds up the tuned kernels' best times, each measured alone, times how often each "
    "is called; the end-to-end time is that of the whole module";

struct NetworkTime {
  std::string network, mode;
  double mean_ms = 0;  // mean time of a run of the whole module
};

/// Returns the shapes of the inputs, in the model's own layout.
std::vector<std::vector<int64_t>> input_shapes(const Partition& partition);
/// "('resnet_50', [(1, 3, 224, 224)])", as the reference names a network.
std::string print_network(const std::string& name,
                          const std::vector<std::vector<int64_t>>& input_shapes);

/// Appends a line of eight columns: device, backend, workload type and name, library, algorithm
/// (the mode), the time in milliseconds, and when:
/// "cuda\tgpu\tnetwork\tresnet_50.B1\tours\tpam\t{'costs': '1.689705'}\t1706264028.724187".
Result<Unit> append_result(const std::string& path,
                           const Target& target,
                           const Partition& partition,
                           const NetworkTime& time);

/// Explains in a line why the estimate and the measured time differ. Empty if the two agree within
/// 5 %, or there is no estimate. `busy` says who had the cores during the measurement.
std::string explain_estimate(std::optional<double> estimated_ms,
                             double mean_ms,
                             double std_ms,
                             const CoreTime& busy);

}  // namespace pruner
