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

/// Holds a schedule's program and the shapes that it runs at.
struct RangeKernel {
  Program program;
  std::vector<SymbolBox> boxes;
  std::string sketch, precision;  // shown in profiles
  // The schedule of the program: a candidate of the task at a shape. Without a shape, the program
  // has one task, and each box is a shape at which it is that; or it is the plain program.
  SymbolValues origin = {};
  Candidate candidate = {};
};
inline constexpr size_t kMostRangeKernels = 4;

/// Whether a weight, argument `a` of a program, may be stored as the program reads it.
using PackingFits = std::function<bool(size_t a, const PackSpec& packing)>;

/// Returns the kernels with the least time, summed over some shapes as multiples of the least known
/// time. Their schedules are those that `choice` takes at these shapes, and those that need no
/// search. A schedule's time is the time that `times` knows; else the draft's, corrected by its
/// error elsewhere. Kernels are chosen one after the other, as long as one more lowers the sum by a
/// share worth its code. Parts of the range and single shapes that are left over have kernels of
/// their own. All kernels read weights packed alike. The error names the shapes without a kernel.
Result<std::vector<RangeKernel>> range_kernels(TaskRange& task,
                                               const ScheduleChoice& choice,
                                               const ScheduleTimes& times,
                                               const PackingFits& fits,
                                               const std::string& name);

/// Returns the kernel of one shape of a task's range. Its schedule is `chosen`, or needs no search,
/// or is the best by draft that reads its arguments as `fits` says.
Result<RangeKernel> shape_kernel(TaskRange& task,
                                 const SymbolValues& shape,
                                 const PackingFits& fits,
                                 const std::string& name,
                                 std::optional<Candidate> chosen = {});

inline constexpr std::string_view kPlain = "plain";  // RangeKernel::sketch
/// Makes the kernel that is right at each of these shapes by construction (plain_program.h).
Result<RangeKernel> plain_kernel(const TaskRange& task,
                                 std::vector<SymbolBox> boxes,
                                 const std::vector<PackSpec>& packing,
                                 const std::string& name);

/// Returns trials that let range_kernels() choose by time: at each shape, the fastest few
/// schedules by known times that were not measured there.
Result<std::vector<ShapeTrials>> contenders(TaskRange& task,
                                            const ScheduleChoice& choice,
                                            const ScheduleTimes& times);

/// Makes a kernel store its output in the caches. Stores past the caches were measured as
/// faster for a kernel alone, whose output nobody reads, and at one shape.
void store_in_caches(const Sketch& sketch, Candidate& candidate);

/// Adds a box of shapes. A box that continues the last box along the last symbol extends that box.
void add_box(std::vector<SymbolBox>& boxes, const SymbolBox& box);

/// Returns the shapes that stand for a box: its ends, those that matter, some in geometric growth.
std::vector<SymbolValues> representative_shapes(std::span<const Symbol> symbols,
                                                const SymbolBox& box);

}  // namespace pruner
