// Measuring candidates on this machine: built by supervised compiler workers, then checked and
// timed one at a time. Those for a CPU run with nothing else going on, each in a child process of a
// small runner; those for a GPU in the worker process that holds the device's context.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/nvml.h"
#include "space/candidate.h"
#include "support/clock.h"
#include "support/result.h"
#include "target/core_watch.h"
#include "tensor/task.h"

namespace pruner {

/// Ansor's error numbers (record files carry them).
enum class MeasureError : int {
  kNone = 0,
  kInstantiation = 1,
  kCompileHost = 2,
  kCompileDevice = 3,
  kRuntimeDevice = 4,
  kWrongAnswer = 5,
  kBuildTimeout = 6,
  kRunTimeout = 7,
  kUnknown = 8,
};

/// The cost that stands for a failure, as in Ansor's records.
inline constexpr double kFailedCost = 1e10;

/// When a worker was at a trial.
struct WorkSpan {
  TimeSpan time;
  int worker = -1;  // its number among the builders, or the runners; -1: not known
};

/// MeasureResult says what became of one trial.
struct MeasureResult {
  std::vector<double> costs_s;  // seconds of each repeat; empty when it failed
  MeasureError error = MeasureError::kNone;
  std::string error_text;
  double build_s = 0;
  double run_s = 0;       // wall time in the runner
  int64_t timestamp = 0;  // Unix seconds
  bool cut_off = false;   // stopped after its first timing: much slower than the best
  bool later = false;     // built, or not, for others to measure: no time is known yet
  bool refuted = false;   // it showed that a kernel was wrong which others were compared with
  CoreTime busy = {};     // a CPU kernel's cores, while it was checked and timed
  std::optional<GpuClocks> clocks = {};  // a GPU's, when the last repeat had ended
  uint64_t delivery = 0;                 // message of a fleet that brought the result
  WorkSpan building = {}, running = {};  // in this process, not in records

  bool ok() const { return error == MeasureError::kNone; }
  /// The time that stands for the trial: the lower quartile of the repeats; 1e10 when it failed.
  double cost_s() const;
};

/// WeightsFrom says where a kernel finds its constants before each timed call, like in a network:
/// in memory, or in the last-level cache (the second level of a GPU).
enum class WeightsFrom : uint8_t { kMemory, kLastLevel };

struct MeasureOptions {
  int build_jobs = 2;
  double build_timeout_s = 15;
  double run_timeout_s = 10;
  double min_repeat_s = 50e-6;  // a repeat calls the kernel until this long has passed
  int max_repeats = 20;
  double time_budget_s = 0.15;  // no further repeat of a candidate is begun after this long
  WeightsFrom weights_from = WeightsFrom::kMemory;
  double cut_off_ratio = 2;  // slower than this x best: one timing is enough
  int check_elements = 1000;
  uint64_t seed = 0;
  std::function<bool()> stop;  // asked between candidates; true: measure() returns what it has
  int device = 0;              // number in list_gpus() of a GPU task's device
  bool flush_l2 = false;       // a GPU's second-level cache holds nothing before each call
};

/// Seconds spent since the measurer was made.
struct MeasureTimes {
  double build_s = 0;
  double run_s = 0;
  CoreTime busy = {};  // time of the cores of kernels that were timed
};

class Measurer {
 public:
  virtual ~Measurer() = default;
  /// Measures a batch; results in the same order (of the first few, if asked to stop). `best_s`:
  /// the task's best so far (1e10: none), for cut-off and for repeating near the best. Every
  /// candidate's outputs are compared with the interpreter's. Errors: there is no device (any more)
  /// to run on, which is no candidate's fault.
  virtual Result<std::vector<MeasureResult>> measure(const Task& task,
                                                     std::span<const Candidate> batch,
                                                     double best_s) = 0;
  /// These results of measure() are in the record file.
  virtual Result<Unit> recorded(std::span<const MeasureResult>) { return Unit{}; }
  /// In how many calls of measure() at once, from several threads, all that measures has work; 1:
  /// the calls follow each other.
  virtual int batches_at_once() const { return 1; }
  virtual MeasureTimes times() const = 0;
};

// The errors of the checks below say what this machine lacks.
/// Whether this machine makes code for `target`.
Result<Unit> check_buildable(const Target& target);
/// Whether this machine's devices of those numbers run code for `target` that is made already; a
/// CPU is number 0.
Result<Unit> check_runs(const Target& target, std::span<const int> devices);
/// Checks the target's instructions: the error is "this CPU lacks avx512f, which znver4 has".
Result<Unit> check_cpu_features(const Target& target);
/// Makes both checks; without `devices`, for the first device.
Result<Unit> check_measurable(const Target& target);
Result<Unit> check_measurable(const Target& target, std::span<const int> devices);

/// Entry points of the hidden commands `pruner worker build`, `run` and `device`; they speak over
/// standard input and output and return the exit code.
int run_build_worker();
int run_runner();
int run_device_worker();

/// GFLOP/s of fused multiply-adds on `threads` threads for about `seconds`: the machine's peak now.
double probe_fma_gflops(const Target& target, int threads, double seconds);
/// GB/s that `threads` threads read together of `bytes`, each its own share over and over: the best
/// timing of about `seconds`; 0 when there is no memory for it.
double probe_read_gbs(int64_t bytes, int threads, double seconds);

/// Returns where a network that touches so many bytes in a run (its weights and its arena) finds
/// its weights in the next run. The weights are in the last-level cache if reading as many bytes
/// over and over is as fast as reading bytes that surely lie there. Partly there counts as memory.
WeightsFrom probe_weights(const Target& target, int64_t bytes);

/// PeakRates is what the machine can do at most, as the probes find it; 0: not known.
struct PeakRates {
  double gflops = 0;         // fused multiply-adds of float32
  DotRates dots;             // rates of the units that were asked for
  double bandwidth_gbs = 0;  // memory: a buffer far larger than the last-level cache
  int threads = 1;           // 0 for a GPU
  TensorRates tensor = {};   // GFLOP/s of a GPU's tensor cores that were asked for
};

/// Probes on the target's threads, each rate for about `seconds`. The units are those that have a
/// rate in target.dots.
PeakRates probe_peaks(const Target& target, double seconds);
/// Probes a GPU in about `seconds`. The rates of tensor cores are those that
/// target.gpu.tensor_rates has. Errors: probe_gpu()'s.
Result<PeakRates> probe_gpu_peaks(const Target& target, double seconds);

}  // namespace pruner
