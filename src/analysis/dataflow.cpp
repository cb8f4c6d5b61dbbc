#include "analysis/dataflow.h"

#include <algorithm>
#include <cmath>

namespace pruner {

// The memory of the access's buffer at each step of the GPU's pattern.
using enum BufferScope;
static constexpr BufferScope kGpuPattern[] = {
    kLocal, kGlobal, kShared, kGlobal, kShared, kShared, kShared, kLocal};

void Dataflow::add(const Statement&, const std::vector<AccessFeatures>& accesses) {
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
}

Dataflow::Steps Dataflow::gpu_steps() const {
  Steps steps;
  steps.fill(-1);
  const auto at = std::ranges::search(accesses_, kGpuPattern, {}, [&](const AccessFeatures& f) {
    return program_.buffer(f.buffer).scope;
  });
  if (at.empty()) return steps;
  const auto first = static_cast<int>(at.begin() - accesses_.begin());
  for (int i = 0; i < kDataflowSteps; ++i) steps[i] = first + i;
  return steps;
}

// A kernel with two contractions does not follow the pattern: what stands between their statements
// is left out for the first one.
Dataflow::Steps Dataflow::unit_steps() const {
  Steps steps;
  steps.fill(-1);
  const auto update = std::ranges::find_if(program_.statements, [](const Statement& s) {
    return s.unit.mma != nullptr && s.accesses == 3;
  });
  if (update == program_.statements.end()) return steps;
  const auto accesses = program_.accesses_of(*update);
  for (const Statement& s : program_.statements) {
    const int last = s.first_access + s.accesses - 1;
    if (&s < &*update && s.buffer == update->buffer) steps[0] = last;
    for (int operand = 0; operand < 2; ++operand) {
      if (s.buffer != accesses[static_cast<size_t>(operand)].buffer) continue;
      steps[1 + 2 * operand] = s.first_access;
      steps[2 + 2 * operand] = last;
    }
  }
  for (int i = 0; i < update->accesses; ++i) steps[5 + i] = update->first_access + i;
  return steps;
}

// A statement's accesses stand in accesses_ at its own numbers: all statements are added.
Dataflow::Steps Dataflow::cpu_steps() const {
  Steps steps;
  steps.fill(-1);
  const Statement* update = nullptr;
  double most = 0;
  for (const Statement& s : program_.statements) {
    if (s.gpu) return steps;
    if (program_.accesses_of(s).back().kind != AccessKind::kReadWrite) continue;
    const double operations = s.counts.float_operations() * static_cast<double>(s.iterations);
    if (operations <= most) continue;
    most = operations;
    update = &s;
  }
  if (update == nullptr) return steps;
  const auto last_of = [](const Statement& s) { return s.first_access + s.accesses - 1; };
  steps[5] = last_of(*update);
  for (int i = 0; i < std::min(2, update->accesses - 1); ++i)
    steps[3 + i] = update->first_access + i;
  for (const Statement& s : program_.statements) {
    const auto reads = program_.accesses_of(s).first(static_cast<size_t>(s.accesses) - 1);
    const bool before = &s < update;
    if (before && s.buffer == update->buffer) steps[0] = last_of(s);
    const bool makes_operand =
        std::ranges::any_of(program_.accesses_of(*update), [&](const StatementAccess& a) {
          return a.kind == AccessKind::kRead && a.buffer == s.buffer;
        });
    if (before && makes_operand && steps[2] < 0) {
      if (!reads.empty()) steps[1] = s.first_access;
      steps[2] = last_of(s);
    }
    const auto read = std::ranges::find(reads, update->buffer, &StatementAccess::buffer);
    if (!before && read != reads.end() && steps[7] < 0) {
      steps[6] = s.first_access + static_cast<int>(read - reads.begin());
      steps[7] = last_of(s);
    }
  }
  return steps;
}

void Dataflow::write(int access, float* out) const {
  const auto holds = [&](const Statement& s) {
    return access >= s.first_access && access < s.first_access + s.accesses;
  };
  const Statement& s = *std::ranges::find_if(program_.statements, holds);
  const AccessFeatures& f = accesses_[access];
  const StatementBuffer& buffer = program_.buffer(f.buffer);
  const auto slog = [](double x) { return std::log2(static_cast<float>(x) + 1); };
  const double iterations = s.iterations;
  // The loops count twice (reference.md, data flow).
  *out++ = slog(s.counts.float_operations() * iterations * iterations);
  for (int scope = 0; scope < 3; ++scope)
    *out++ = static_cast<int>(buffer.scope) == scope ? 1.0f : 0.0f;
  write_access(f, out);
  out[18] = slog(buffer.allocated * buffer.element_bytes);
}

decltype(ProgramFeatures::dataflow) Dataflow::records() const {
  decltype(ProgramFeatures::dataflow) records{};
  Steps steps = gpu_steps();
  if (steps[0] < 0 && !compat_) steps = unit_steps();
  if (steps[0] < 0 && !compat_) steps = cpu_steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] >= 0) write(steps[i], records.data() + i * kDataflowFeatures);
  }
  return records;
}

}  // namespace pruner
