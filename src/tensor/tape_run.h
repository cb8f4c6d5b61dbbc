// Runs a tape: the values of a stage at a row of positions.
#pragma once

#include <span>

#include "tensor/tape.h"
#include "tensor/tensor.h"

namespace pruner {

/// Element values as bits: of a double for floats, of an int64 for the rest.
using Word = uint64_t;

/// `TapeMemory` holds the stored stages that a tape reads.
class TapeMemory {
 public:
  virtual ~TapeMemory() = default;
  /// The tensor that holds a placeholder; null for a compute stage.
  virtual const Tensor* tensor(StageId stage) const = 0;
  /// Elements of a compute stage, which may have to be computed first.
  virtual void fetch(StageId stage, std::span<const int64_t> positions, Word* words) = 0;
};

class TapeRun {
 public:
  TapeRun(const ComputeDag& dag, StageId stage, Tape tape, TapeMemory& memory);

  /// Values at positions first, first + 1, ...: along the last axis, at most kLanes. A tape whose
  /// lanes are not the last axis takes them one by one.
  void run(int64_t first, int count, Word* out);

  /// Returns the rough ns of run(), to choose among the tapes of a stage.
  double cost(int count) const;

 private:
  void run_block(int64_t first, int lanes, Word* out);
  void set_var(int var, int64_t value);
  void run_from(int level, int lanes);
  void run_node(const TapeNode& node, int lanes);
  void run_cast(const TapeNode& node, int n, double* real_out, int64_t* out);
  void run_load(const TapeNode& node, int lanes);
  void check_range(const TapeNode& node, int lanes) const;
  bool active(const TapeNode& node, int lane) const;
  template <typename T>
  void fold_loops(int lanes, Word* out);

  double* reals(int node) { return &reals_[slot(node)]; }
  int64_t* integers(int node) { return &integers_[slot(node)]; }
  const int64_t* integers(int node) const { return &integers_[slot(node)]; }
  size_t slot(int node) const { return static_cast<size_t>(tape_.nodes[node].slot); }

  const ComputeDag& dag_;
  const Stage& stage_;
  const Tape tape_;
  TapeMemory& memory_;
  std::vector<double> reals_;  // one pool a type, so that loops over lanes have one type each
  std::vector<int64_t> integers_;
};

}  // namespace pruner
