// How one access of a statement reuses what it touches (Pruner, section 4.3; reference.md,
// Features). The buffer blocks of statement rows and the records of the data flow share this.
#pragma once

#include <vector>

#include "analysis/statements.h"

namespace pruner {

enum class Reuse : uint8_t { kLoopMultipleRead, kSerialMultipleReadWrite, kNone };

struct AccessFeatures {
  StageId buffer;
  AccessKind kind = AccessKind::kRead;
  Reuse reuse = Reuse::kNone;
  float bytes = 0, unique_bytes = 0;                             // over all loops; distinct
  float lines = 1, unique_lines = 1;                             // lines of 64 bytes
  float distance_iterations = 0, distance_bytes = 0, count = 0;  // distance and count of the reuse
  float stride = 0;  // elements by which the innermost loop moves the access

  /// Returns bytes, unique_bytes, lines or unique_lines per reuse.
  float per_reuse(float amount) const { return count > 0.5f ? amount / count : 2 * amount; }
};

/// Goes through a program's statements in order; what a loop touches is kept for all that it holds.
class AccessAnalysis {
 public:
  explicit AccessAnalysis(const Statements& program);

  /// Returns the features of a statement's accesses, in the order of the accesses. The caller goes
  /// through the statements in the program's order. The result is valid until the next call.
  const std::vector<AccessFeatures>& of(const Statement& s);
  /// Returns log2 of the bytes that each loop of the last statement and the loops inside it touch,
  /// inner to outer.
  const std::vector<float>& log_bytes() const { return log_bytes_; }

 private:
  // Entries of one buffer in what a loop touches.
  struct Touched {
    int entries = 0;
    double first = 0, least = 0;  // elements
  };
  // All entries of a loop.
  struct Total {
    double bytes = 0;          // elements x their bytes
    double element_bytes = 0;  // each entry's element counted once
    double read_bytes = 0;     // bytes of entries that only read
  };

  void touch(const Statement& s);
  void set_lines(const Statement& s, const StatementAccess& a, AccessFeatures& f) const;
  void set_reuse(const Statement& s, const StatementAccess& a, AccessFeatures& f) const;
  const Touched& touched(const StatementLoop& loop, StageId buffer) const {
    return touched_[static_cast<size_t>(loop.identity) * program_.buffers.size() +
                    static_cast<size_t>(buffer.value)];
  }

  const Statements& program_;
  std::vector<Touched> touched_;  // one per loop identity and buffer
  std::vector<Total> totals_;     // one per loop identity
  std::vector<float> log_bytes_;
  std::vector<AccessFeatures> features_;
};

}  // namespace pruner
