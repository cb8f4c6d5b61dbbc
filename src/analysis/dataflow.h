// The data flow of a tiled contraction: eight accesses in the order in which a tile's data moves
// (Pruner, section 4.4; reference.md, data flow).
//
// On a GPU these are the accesses of the first run of statements that the reference's pattern fits:
// the accumulator's first value; two operands, each read from global and written to shared memory;
// the update's two operands and its accumulator. If there is no such run in a program of our own,
// the accesses of the first contraction by matrix instructions stand in its place.
//
// The reference knows no CPU. There the tile is that of the reduction with the most operations, and
// its records are: 0 the accumulator's first value; 1, 2 what the first operand that the program
// itself makes (a cached, padded or packed one) is read from and written to; 3, 4 the update's
// operands, the last loaded one first; 5 its accumulator; 6, 7 the accumulator read and the result
// written by the first statement after it. A record that a program has no access for is zero.
#pragma once

#include <array>
#include <vector>

#include "analysis/access_features.h"
#include "analysis/features.h"

namespace pruner {

class Dataflow {
 public:
  /// `compat`: no pattern for CPUs.
  Dataflow(const Statements& program, bool compat) : program_(program), compat_(compat) {}

  /// Call for each statement, in the program's order.
  void add(const Statement& s, const std::vector<AccessFeatures>& accesses);
  /// Returns the records: kDataflowSteps x kDataflowFeatures numbers.
  decltype(ProgramFeatures::dataflow) records() const;

 private:
  // Numbers in accesses_; -1: there is none.
  using Steps = std::array<int, kDataflowSteps>;
  Steps gpu_steps() const;
  Steps unit_steps() const;
  Steps cpu_steps() const;
  void write(int access, float* out) const;

  const Statements& program_;
  bool compat_;
  std::vector<AccessFeatures> accesses_;  // accesses of all statements
};

/// The numbers of an access that statement rows and data flow share: its kind, amounts, reuse,
/// stride (18, reference.md, regions).
void write_access(const AccessFeatures& f, float* out);

}  // namespace pruner
