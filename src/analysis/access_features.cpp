#include "analysis/access_features.h"

#include <algorithm>
#include <cmath>

namespace pruner {

constexpr float kLineBytes = 64;

AccessAnalysis::AccessAnalysis(const Statements& program)
    : program_(program),
      touched_(static_cast<size_t>(program.identities) * program.buffers.size()),
      totals_(static_cast<size_t>(program.identities)) {}

void AccessAnalysis::touch(const Statement& s) {
  const auto loops = program_.loops_of(s);
  log_bytes_.clear();
  for (size_t i = loops.size(); i-- > 0;) {
    const auto identity = static_cast<size_t>(loops[i].identity);
    double sum = 0;
    for (const StatementAccess& a : program_.accesses_of(s)) {
      double elements = 1;
      for (const int64_t size : program_.region(a, static_cast<int>(i)))
        elements *= static_cast<double>(size);
      const double element_bytes = program_.buffer(a.buffer).element_bytes;
      Touched& entry =
          touched_[identity * program_.buffers.size() + static_cast<size_t>(a.buffer.value)];
      if (entry.entries++ == 0) entry.first = entry.least = elements;
      entry.least = std::min(entry.least, elements);
      Total& total = totals_[identity];
      total.bytes += elements * element_bytes;
      total.element_bytes += element_bytes;
      if (a.kind == AccessKind::kRead) total.read_bytes += elements * element_bytes;
      sum += elements * element_bytes;
    }
    log_bytes_.push_back(static_cast<float>(std::log2(sum)));
  }
}

void AccessAnalysis::set_lines(const Statement& s,
                               const StatementAccess& a,
                               AccessFeatures& f) const {
  const auto loops = program_.loops_of(s);
  if (loops.empty()) return;
  const auto uses = program_.uses_of(s, a);
  const auto element_bytes = static_cast<float>(program_.buffer(a.buffer).element_bytes);
  size_t skipped = 0;
  while (skipped < loops.size() && uses[loops.size() - 1 - skipped].stride == 0) ++skipped;
  float stride = 0, repeats = 1;
  if (skipped < loops.size()) stride = static_cast<float>(uses[loops.size() - 1 - skipped].stride);
  // Each skipped loop counts with the innermost's extent (reference.md, lines).
  for (size_t i = 0; i < skipped; ++i) repeats *= static_cast<float>(loops.back().extent);
  f.lines =
      std::max(1.0f, s.iterations / repeats * std::min(1.0f, stride * element_bytes / kLineBytes));
  if (skipped == 0) f.stride = stride;
  // Runs of neighbours, by the region of the stored buffer (reference.md, lines).
  const auto stored = program_.region(program_.accesses_of(s).back(), 0);
  const auto shape = program_.shape_of(a.buffer);
  float run = element_bytes;
  for (size_t d = std::min(stored.size(), shape.size()); d-- > 0;) {
    if (stored[d] != shape[d]) continue;
    run *= static_cast<float>(stored[d]);
    break;
  }
  f.unique_lines = std::max(1.0f, f.unique_bytes / std::min(run, kLineBytes));
}

void AccessAnalysis::set_reuse(const Statement& s,
                               const StatementAccess& a,
                               AccessFeatures& f) const {
  const auto loops = program_.loops_of(s);
  const auto uses = program_.uses_of(s, a);
  float iterations = 1, bytes = -1, count = 1;
  bool moving = true;  // every loop from the innermost to here moves the access
  const auto found = [&](Reuse reuse) {
    f.reuse = reuse;
    f.distance_iterations = iterations;
    f.distance_bytes = bytes;
    f.count = count;
  };
  for (size_t i = loops.size(); i-- > 0;) {
    const auto extent = static_cast<float>(loops[i].extent);
    const Total& total = totals_[loops[i].identity];
    if (moving && uses[i].used) {
      iterations *= extent;
      bytes = static_cast<float>(total.bytes);
    } else if (moving) {
      if (bytes < 0) bytes = static_cast<float>(total.element_bytes);
      moving = false;
      count *= extent;
    } else {
      if (uses[i].used) return found(Reuse::kLoopMultipleRead);
      count *= extent;
    }
    const Touched& own = touched(loops[i], a.buffer);
    if (own.entries <= 1) continue;
    count = 1;
    for (size_t j = 0; j <= i; ++j) count *= static_cast<float>(loops[j].extent);
    iterations = static_cast<float>(own.least) / extent;
    bytes = static_cast<float>(total.read_bytes) / extent;
    return found(Reuse::kSerialMultipleReadWrite);
  }
  if (!moving) found(Reuse::kLoopMultipleRead);
}

const std::vector<AccessFeatures>& AccessAnalysis::of(const Statement& s) {
  touch(s);
  const auto loops = program_.loops_of(s);
  features_.clear();
  for (const StatementAccess& a : program_.accesses_of(s)) {
    AccessFeatures f;
    f.buffer = a.buffer;
    f.kind = a.kind;
    const auto element_bytes = static_cast<float>(program_.buffer(a.buffer).element_bytes);
    f.bytes = s.iterations * element_bytes;
    f.unique_bytes = element_bytes;
    if (!loops.empty())
      f.unique_bytes = static_cast<float>(touched(loops[0], a.buffer).first) * element_bytes;
    set_lines(s, a, f);
    set_reuse(s, a, f);
    features_.push_back(f);
  }
  return features_;
}

}  // namespace pruner
