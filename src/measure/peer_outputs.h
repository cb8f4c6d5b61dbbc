// Keeps what one kernel of a task computed, for all others to be compared with: a sample of the
// elements misses errors of few elements.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/output_check.h"
#include "measure/shared_memory.h"

namespace pruner {

/// The outputs, whole, of a kernel that seemed right, for those after it to be compared with.
/// Processes that are forked share them.
class PeerOutputs {
 public:
  explicit PeerOutputs(std::span<const ExpectedOutput> outputs);

  /// Whether there was room for them.
  bool mapped() const { return memory_.mapped(); }
  /// Takes copies; `form_error` is of the kernel that made them.
  void hold(std::span<void* const> outputs, double form_error);
  bool held() const { return state()->held; }
  const std::byte* output(size_t i) const { return memory_.data() + places_[i].begin; }
  double form_error() const { return state()->form_error; }

 private:
  struct State {
    std::atomic<bool> held = false;
    double form_error = 0;
  };
  struct Place {
    int64_t begin, bytes;  // in the memory
  };
  static std::vector<Place> lay_out(std::span<const ExpectedOutput> outputs);
  State* state() const { return reinterpret_cast<State*>(memory_.data()); }

  std::vector<Place> places_;
  SharedMemory memory_;
};

}  // namespace pruner
