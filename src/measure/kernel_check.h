// The judge of one candidate, run after run: that it wrote what it should, everywhere, each time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "measure/kernel_arguments.h"
#include "support/rng.h"

namespace pruner {

class KernelCheck {
 public:
  /// kRefilled fills the outputs before all runs but the first, which kUnwritten fills. An
  /// element that is the same after both runs was written.
  static constexpr std::byte kRefilled{0x5a};

  /// `fresh` draws the elements that are looked at of this candidate alone.
  KernelCheck(const Workload& workload,
              const Artifact& artifact,
              const KernelArguments& arguments,
              Rng fresh);

  /// After the first run: the first thing that is wrong with what the kernel left in memory. Looks
  /// at the sampled elements, at some others, and at all beside the peer's. Where it and the peer
  /// differ the interpreter says which is right. Without a peer, or with one that was wrong, it
  /// becomes the peer.
  std::optional<std::string> find_wrong();
  /// After a run that began with refilled outputs. Only what differs from the first run's is looked
  /// at.
  std::optional<std::string> find_wrong_again();
  /// Fills the outputs with kRefilled.
  void refill() const;
  /// Whether the peer was wrong that kernels before were compared with.
  bool refuted() const { return refuted_; }

 private:
  std::span<void* const> outputs() const;
  std::string name(size_t output) const;
  uint64_t fingerprint() const;
  std::optional<std::string> find_written_outside() const;
  std::optional<std::string> find_wrong_elements();
  std::optional<std::string> find_wrong_in(size_t output);
  std::optional<std::string> compare_with_peer(size_t output);

  const Workload& workload_;
  const Artifact& artifact_;
  const KernelArguments& arguments_;
  Rng rng_;
  double form_error_ = 0;
  uint64_t first_ = 0;  // fingerprint() after the first run
  bool refuted_ = false;
};

/// Returns how much the form of the task that a kernel computes may round off (its weights tell).
double form_error(const Artifact& artifact);

}  // namespace pruner
