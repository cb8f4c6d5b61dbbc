// The kernels of a task over a range of shapes: a few schedules, each one program for a part of the
// range, on one packing of the weights (DietCode's micro-kernels without padding).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deploy/module.h"
#include "lower/task_range.h"

namespace pruner {

/// A schedule's program and the shapes that it runs at.
struct RangeKernel {
  Program program;
  std::vector<SymbolBox> boxes;
  std::string sketch, precision;  // for profiles
  // The schedule of the program: a candidate of the task at a shape. Without a shape, the program
  // has one task, and each box is a shape at which it is that; or it is the plain program.
  SymbolValues origin = {};
  Candidate candidate = {};
};
inline constexpr size_t kMostRangeKernels = 4;

/// Whether a weight, argument `a` of a program, may be stored as the program reads it.
using PackingFits = std::function<bool(size_t a, const PackSpec& packing)>;

/// The kernels whose time, summed over some shapes as shares of the least that is known, is least:
/// of schedules that `choice` takes at these shapes and of those that need no search. Their time is
/// what `times` says of them there; else the draft's, corrected by what it is wrong by elsewhere.
/// Chosen one after the other, as long as one more lowers the sum by a share worth its code; parts
/// that they leave over, where schedules are other programs, have kernels of their own, and single
/// shapes too. All read weights packed alike. The error says which shapes none is for.
Result<std::vector<RangeKernel>> range_kernels(TaskRange& task,
                                               const ScheduleChoice& choice,
                                               const ScheduleTimes& times,
                                               const PackingFits& fits,
                                               const std::string& name);

/// The kernel of one shape of a task's range: of the schedule `chosen`, or of the one that needs no
/// search, or of the best by draft that reads its arguments as `fits` says.
Result<RangeKernel> shape_kernel(TaskRange& task,
                                 const SymbolValues& shape,
                                 const PackingFits& fits,
                                 const std::string& name,
                                 std::optional<Candidate> chosen = {});

inline constexpr std::string_view kPlain = "plain";  // RangeKernel::sketch
/// The kernel that is right at each of these shapes by how it is made (plain_program.h).
Result<RangeKernel> plain_kernel(const TaskRange& task,
                                 std::vector<SymbolBox> boxes,
                                 const std::vector<PackSpec>& packing,
                                 const std::string& name);

/// What to measure for range_kernels() to choose by time: at each of its shapes the fastest few by
/// what is known, those that were not measured there.
Result<std::vector<ShapeTrials>> contenders(TaskRange& task,
                                            const ScheduleChoice& choice,
                                            const ScheduleTimes& times);

/// Stores in the caches what a kernel makes: that it is faster past them was measured of the kernel
/// alone, where nobody reads it, and at one shape.
void store_in_caches(const Sketch& sketch, Candidate& candidate);

/// Adds a box of shapes. One behind the last box along the last symbol makes that longer.
void add_box(std::vector<SymbolBox>& boxes, const SymbolBox& box);

/// Shapes of a box that stand for it: those that matter, else some that grow by a factor; its ends.
std::vector<SymbolValues> representative_shapes(std::span<const Symbol> symbols,
                                                const SymbolBox& box);

}  // namespace pruner
