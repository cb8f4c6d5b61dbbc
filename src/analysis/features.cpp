#include "analysis/features.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/access_features.h"
#include "analysis/dataflow.h"
#include "analysis/gpu_limits.h"

namespace pruner {
namespace {

constexpr size_t kBlocks = 5, kBlockFeatures = 18, kCurve = 10;

// log2(1 + x), odd.
float slog(float x) { return x < 0 ? -std::log2(1 - x) : std::log2(x + 1); }

// The loops of one kind around a statement.
struct Annotated {
  int number = 0;
  float product = 0, innermost = 0;  // extents
};

// A row in the making: its last store, and what earlier stores to the buffer leave behind.
struct Row {
  StageId buffer;
  const Statement* last = nullptr;
  Annotated vectorized, unrolled, parallel;
  std::vector<AccessFeatures> accesses;
  std::array<float, kCurve> curve{};
};

void set_annotated(Annotated& a, std::span<const StatementLoop> loops, LoopRole role) {
  float product = 1;
  a.number = 0;
  a.innermost = 0;
  for (const StatementLoop& loop : loops) {
    if (loop.role != role) continue;
    ++a.number;
    a.innermost = static_cast<float>(loop.extent);
    product *= a.innermost;
  }
  if (a.number > 0)
    a.product = product;  // else an earlier store's is kept (reference.md, products)
}

// Operations by byte over the loops from the innermost outwards, at ten places (reference.md,
// intensity).
std::array<float, kCurve> intensity_curve(const Statement& s,
                                          std::span<const StatementLoop> loops,
                                          const std::vector<float>& log_bytes,
                                          std::vector<float>& log_operations) {
  std::array<float, kCurve> curve{};
  double operations = s.counts.float_operations();
  if (operations <= 0 || loops.empty()) return curve;
  log_operations.clear();
  for (size_t i = loops.size(); i-- > 0;) {
    operations *= static_cast<double>(loops[i].extent);
    log_operations.push_back(static_cast<float>(std::log2(operations)));
  }
  const auto intensity = [&](size_t p) {
    return log_bytes[p] > 0 ? log_operations[p] / log_bytes[p] : 0;
  };
  size_t p = 0;
  for (size_t j = 0; j < kCurve; ++j) {
    const float x = log_operations.back() * static_cast<float>(j + 1) / 10.0f;
    while (p + 1 < loops.size() && log_operations[p] < x - 1e-4f) ++p;
    if (p == 0) {
      curve[j] = intensity(0);
      continue;
    }
    const float step = log_operations[p] - log_operations[p - 1];
    const float slope = step > 0 ? (intensity(p) - intensity(p - 1)) / step : 0;
    curve[j] = intensity(p - 1) + slope * (x - log_operations[p - 1]);
  }
  return curve;
}

class RowWriter {
 public:
  RowWriter(const Statements& program, bool compat, std::vector<float>& out)
      : program_(program), compat_(compat), out_(out) {}

  void write(Row& row, const TaskFlags& flags) {
    const Statement& s = *row.last;
    for (const int count : s.counts.of)
      out_.push_back(slog(s.iterations * static_cast<float>(count)));
    for (const Annotated* a : {&row.vectorized, &row.unrolled, &row.parallel}) write(*a);
    write_bindings(s);
    write_blocks(row);
    out_.insert(out_.end(), row.curve.begin(), row.curve.end());
    const StatementBuffer& buffer = program_.buffer(row.buffer);
    const auto elements = static_cast<float>(buffer.allocated);
    const auto outside = static_cast<float>(buffer.realize_iterations);
    out_.push_back(slog(elements * static_cast<float>(buffer.element_bytes)));
    out_.push_back(slog(elements * outside));
    out_.push_back(slog(outside));
    out_.push_back(slog(s.iterations / outside));
    out_.push_back(slog(s.iterations));
    out_.push_back(slog(static_cast<float>(s.loops)));
    out_.push_back(slog(static_cast<float>(s.unroll_steps)));
    out_.insert(out_.end(), flags.begin(), flags.end());
    write(compat_ ? UnitUse{} : s.unit);
  }

 private:
  void write(const Annotated& a) {
    constexpr size_t kPositions = 8;  // none; five that the reference never gives; mixed
    out_.push_back(slog(static_cast<float>(a.number)));
    out_.push_back(slog(a.product));
    out_.push_back(slog(a.innermost));
    for (size_t i = 0; i < kPositions; ++i)
      out_.push_back(i == (a.number > 0 ? kPositions - 1 : 0) ? 1.0f : 0.0f);
  }

  void write(const UnitUse& use) {
    if (!use.used()) {
      out_.resize(out_.size() + kUnitFeatures + kWarpFeatures + kGroupFeatures, 0.0f);
      return;
    }
    for (int unit = 0; unit < kUnits; ++unit) out_.push_back(use.unit == unit ? 1.0f : 0.0f);
    out_.push_back(slog(static_cast<float>(use.factor_bits)));
    out_.push_back(slog(static_cast<float>(use.sum_bits)));
    out_.push_back(use.useful);
    out_.push_back(slog(use.instructions));
    out_.push_back(use.loads());
    out_.push_back(slog(use.rows));
    out_.push_back(slog(use.columns));
    write_warps(use);
  }

  void write_warps(const UnitUse& use) {
    if (use.mma == nullptr) {
      out_.resize(out_.size() + kWarpFeatures + kGroupFeatures, 0.0f);
      return;
    }
    const int shape = shape_number(*use.mma);
    const auto one_hot = [&](int first, int end) {
      for (int s = first; s < end; ++s) out_.push_back(s == shape ? 1.0f : 0.0f);
    };
    one_hot(0, kWarpShapes);
    const auto stages = static_cast<float>(use.stages);
    for (const float amount : {stages,
                               use.steps,
                               use.warps,
                               use.stage_bytes,
                               use.stage_bytes * (stages - 1),
                               use.epilogue_bytes})
      out_.push_back(slog(amount));
    one_hot(kWarpShapes, kMmaShapes);
  }

  // is_gpu, then blockIdx and threadIdx by x, y, z; virtual threads.
  void write_bindings(const Statement& s) {
    const Bindings bound = bindings_of(program_.loops_of(s));
    out_.push_back(s.gpu ? 1.0f : 0.0f);
    for (const size_t place : {0, 2, 4, 1, 3, 5}) out_.push_back(slog(bound.extents[place]));
    out_.push_back(slog(bound.vthreads));
  }

  void write_blocks(Row& row) {
    const auto order = [](const AccessFeatures& f) {
      return std::tuple(f.distance_bytes, f.unique_bytes, f.unique_lines, f.kind);
    };
    std::ranges::stable_sort(row.accesses, {}, order);
    const size_t kept = std::min(kBlocks, row.accesses.size());
    for (size_t i = 0; i < kept; ++i) {
      std::array<float, kBlockFeatures> block;
      write_access(row.accesses[i], block.data());
      out_.insert(out_.end(), block.begin(), block.end());
    }
    out_.resize(out_.size() + (kBlocks - kept) * kBlockFeatures, 0.0f);
  }

  const Statements& program_;
  const bool compat_;
  std::vector<float>& out_;
};

}  // namespace

void write_access(const AccessFeatures& f, float* out) {
  for (int kind = 0; kind < 3; ++kind) *out++ = static_cast<int>(f.kind) == kind ? 1.0f : 0.0f;
  const float amounts[] = {f.bytes, f.unique_bytes, f.lines, f.unique_lines};
  for (const float amount : amounts) *out++ = slog(amount);
  for (int reuse = 0; reuse < 3; ++reuse) *out++ = static_cast<int>(f.reuse) == reuse ? 1.0f : 0.0f;
  *out++ = slog(f.distance_iterations);
  *out++ = slog(f.distance_bytes);
  *out++ = slog(f.count);
  for (const float amount : amounts) *out++ = slog(f.per_reuse(amount));
  *out = slog(f.stride);
}

TaskFlags task_flags(const ComputeDag& task) {
  static constexpr const char* kWords[] = {"max",
                                           "min",
                                           "add",
                                           "Conv2dOutput",
                                           "conv2d_winograd",
                                           "DepthwiseConv2d",
                                           "dense",
                                           "softmax",
                                           "compute(b, i, j)"};
  const std::string text = print(task);
  TaskFlags flags{};
  for (size_t i = 0; i < std::size(kWords); ++i)
    flags[i] = text.find(kWords[i]) != std::string::npos ? 1.0f : 0.0f;
  return flags;
}

ProgramFeatures features(const Statements& program, const TaskFlags& flags, bool compat) {
  ProgramFeatures out;
  AccessAnalysis analysis(program);
  Dataflow dataflow(program, compat);
  std::vector<Row> rows;
  std::vector<float> log_operations;
  for (const Statement& s : program.statements) {
    const std::vector<AccessFeatures>& accesses = analysis.of(s);
    const auto loops = program.loops_of(s);
    dataflow.add(s, accesses);
    auto row = std::ranges::find(rows, s.buffer, &Row::buffer);
    if (row == rows.end()) {
      rows.emplace_back().buffer = s.buffer;
      row = rows.end() - 1;
    }
    row->last = &s;
    set_annotated(row->vectorized, loops, LoopRole::kVectorize);
    set_annotated(row->unrolled, loops, LoopRole::kUnroll);
    set_annotated(row->parallel, loops, LoopRole::kParallel);
    row->accesses = accesses;
    row->curve = intensity_curve(s, loops, analysis.log_bytes(), log_operations);
  }
  out.rows.reserve(rows.size() * kRowFeatures);
  RowWriter writer(program, compat, out.rows);
  for (Row& row : rows) writer.write(row, flags);
  out.dataflow = dataflow.records();
  return out;
}

}  // namespace pruner
