// A workload is what all candidates of a task are run on: its inputs, made once from the seed, and
// what the outputs have to be.
#pragma once

#include <memory>
#include <vector>

#include "measure/measure.h"
#include "measure/output_check.h"
#include "measure/peer_outputs.h"
#include "runtime/guarded_buffer.h"

namespace pruner {

struct Workload {
  Task task;
  std::vector<Tensor> inputs;           // values of dag.inputs(), for packing
  std::vector<GuardedBuffer> buffers;   // the same, read-only, as unpacked arguments
  std::vector<bool> constant;           // whether each input is a constant
  std::vector<ExpectedOutput> outputs;  // one per output of dag.outputs()
  std::vector<std::byte> filling;       // content of all cores' own caches (CacheState); GPU: none
  std::unique_ptr<PeerOutputs> peer;    // outputs of the candidates that have run
  Rng fresh{0};                         // source of draws for one candidate, never the same
  /// `exact` is the same on whole_numbers(), whose outputs have to be exact. It is null for a GPU,
  /// and if the DAG is not exact on them.
  std::unique_ptr<Workload> exact = {};
};

/// Bytes that measuring takes at least: the inputs twice, for packing and as arguments, and the
/// outputs.
double workload_bytes(const ComputeDag& dag);

/// Gives small bytes of random inputs both signs: wrong signs are found where there are both.
void make_signed(const ComputeDag& dag, std::vector<Tensor>& inputs);

/// Draws the inputs, small bytes of both signs among them, and interprets a sample of the outputs.
Result<Workload> make_workload(Task task, const MeasureOptions& options);

}  // namespace pruner
