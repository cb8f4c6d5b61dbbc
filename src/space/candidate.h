// A point of a task's schedule space, as plain data. Two equal candidates of one task are one
// program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/hash.h"
#include "support/id.h"

namespace pruner {

struct SketchTag {};
using SketchId = Id<SketchTag>;

/// A sketch with every decision made.
struct Candidate {
  SketchId sketch;
  std::vector<int32_t> decisions;  // the sketch's decisions, in its order
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Decisions in which two candidates of one sketch differ.
inline int differing_decisions(std::span<const int32_t> a, std::span<const int32_t> b) {
  int differing = 0;
  for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i];
  return differing;
}

struct CandidateHash {
  size_t operator()(const Candidate& c) const {
    return hash64({reinterpret_cast<const char*>(c.decisions.data()),
                   c.decisions.size() * sizeof(int32_t)}) ^
           (static_cast<size_t>(c.sketch.value) * 0x9e3779b97f4a7c15ULL);
  }
};

}  // namespace pruner
