#include "report/network_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>

#include "support/file.h"

namespace pruner {

namespace {

constexpr double kAgree = 0.05;  // share of the estimate that needs no word
constexpr double kCalm =
    0.1;  // standard deviation of an undisturbed module's runs, over their mean

/// Prints a shape like a Python tuple: a single element keeps its comma.
std::string tuple(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

int64_t batch_size(const Partition& partition) {
  const std::vector<std::vector<int64_t>> shapes = input_shapes(partition);
  return shapes.empty() || shapes.front().empty() ? 1 : shapes.front().front();
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<std::vector<int64_t>> input_shapes(const Partition& partition) {
  std::vector<std::vector<int64_t>> shapes;
  for (const ValueId id : partition.inputs) shapes.push_back(partition[id].shape);
  return shapes;
}

std::string print_network(const std::string& name,
                          const std::vector<std::vector<int64_t>>& input_shapes) {
  std::vector<std::string> tuples;
  for (const std::vector<int64_t>& shape : input_shapes) tuples.push_back(tuple(shape));
  return fmt::format("('{}', [{}])", name, fmt::join(tuples, ", "));
}

Result<Unit> append_result(const std::string& path,
                           const Target& target,
                           const Partition& partition,
                           const NetworkTime& time) {
  return append_file(
      path,
      fmt::format("{}\t{}\tnetwork\t{}.B{}\tours\t{}\t{{'costs': '{:.6f}'}}\t{:.6f}\n",
                  backend_name(target.backend),
                  target.is_gpu() ? "gpu" : "cpu",
                  time.network,
                  batch_size(partition),
                  time.mode,
                  time.mean_ms,
                  unix_seconds()));
}

std::string explain_estimate(std::optional<double> estimated_ms,
                             double mean_ms,
                             double std_ms,
                             const CoreTime& busy) {
  if (!estimated_ms || *estimated_ms <= 0) return "";
  const double ratio = mean_ms / *estimated_ms;
  if (std::abs(ratio - 1) <= kAgree) return "";
  std::string text = fmt::format("That is {:.2f} x the estimate: {}", ratio, kEstimateAndTime);
  if (const std::string others = print_busy(busy); !others.empty())
    text += ", while which " + others;
  else if (std_ms > kCalm * mean_ms)
    text += fmt::format(", and its runs vary by {:.0f} %: other programs may have run beside it",
                        100 * std_ms / mean_ms);
  return text + "\n";
}

}  // namespace pruner
