// ONNX Runtime on the same CPU and inputs, in a process of Python that measures when it is asked
// and is stopped in between: threads that spin while they wait would take the cores from whoever is
// next.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "deploy/run_times.h"
#include "deploy/tensor_file.h"
#include "support/temporary_folder.h"

namespace pruner {

class PeerRuntime {
 public:
  /// A session of the network in the file at `model`, of so many threads, with these inputs and the
  /// setting that was the fastest of a few. It is run by $PRUNER_PYTHON, or python3. Errors: there
  /// is no such program, or what it lacks; what ONNX Runtime says of the file or the inputs.
  static Result<PeerRuntime> start(const std::string& model,
                                   std::span<const NamedTensor> inputs,
                                   int threads);
  PeerRuntime(PeerRuntime&& other) noexcept;
  PeerRuntime& operator=(PeerRuntime&&) = delete;
  ~PeerRuntime();

  /// "onnxruntime 1.23.0, threads that spin".
  const std::string& name() const { return name_; }
  /// Returns the outputs that ONNX Runtime computed from the inputs.
  Result<std::vector<NamedTensor>> outputs() const;
  /// Seconds of each timed run.
  Result<std::vector<double>> run(const BenchOptions& options);

 private:
  explicit PeerRuntime(TemporaryFolder folder) : folder_(std::move(folder)) {}
  Result<Unit> spawn(const std::string& model, int threads);
  /// Returns the next line that the process answers.
  Result<std::string> answer();

  TemporaryFolder folder_;  // folder of its script and its tensors
  std::string name_;
  pid_t pid_ = -1;
  int fd_ = -1;  // socket of its standard input and output
};

/// Whether the error of PeerRuntime::start() is that of Python, or of what it lacks.
bool lacks_peer(std::string_view message);

}  // namespace pruner
