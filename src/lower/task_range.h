// A task over a range of shapes, and the one program that a schedule of the task becomes for all or
// some of the shapes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lower/generalize.h"
#include "space/space.h"
#include "tensor/generalize.h"

namespace pruner {

/// `TaskRange` gives a task at each shape of a box of symbols. Not for several threads at once.
class TaskRange {
 public:
  /// `dag` is the task's; spaces draw from sketches of `forms` (make_space()).
  TaskRange(std::vector<Symbol> symbols,
            SymbolBox box,
            DagRange dag,
            const Target& target,
            std::string name,
            std::vector<std::string> forms = {});

  const std::vector<Symbol>& symbols() const { return symbols_; }
  const SymbolBox& box() const { return box_; }
  const DagRange& dag() const { return dag_; }
  const Target& target() const { return target_; }
  Task task_at(std::span<const int64_t> values) const;
  const Space& space_at(const SymbolValues& values);
  /// A schedule of one shape as it is at another shape, with a space that has the candidate and
  /// lives as long as the TaskRange. carry() returns nullopt if carry_over() gives no candidate.
  struct Carried {
    const Space* space;
    Candidate candidate;
  };
  std::optional<Carried> carry(const SymbolValues& from,
                               const Candidate& candidate,
                               const SymbolValues& to);

 private:
  std::vector<Symbol> symbols_;
  SymbolBox box_;
  DagRange dag_;
  Target target_;
  std::string name_;
  std::vector<std::string> forms_;
  std::map<SymbolValues, std::unique_ptr<Space>> spaces_, carried_;
};

/// One program for the shapes of a box.
struct RangeProgram {
  Program program;
  SymbolBox box;
};

/// Returns the program of a schedule, `candidate` of the task's space at `origin`, for as much of
/// the box `within` as one program covers. Shapes left out are at the small end, where a tile is
/// longer than its axis or a vector than its row. The program is made from programs of shapes.
/// `shown` adds shapes to these, e.g. where a program was wrong before. The error says why there is
/// no program.
Result<RangeProgram> lower_over_range(TaskRange& task,
                                      const SymbolValues& origin,
                                      const Candidate& candidate,
                                      const std::string& name,
                                      const SymbolBox& within,
                                      const std::vector<SymbolValues>& shown = {});

}  // namespace pruner
