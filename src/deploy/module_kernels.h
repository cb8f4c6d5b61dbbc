// The kernels of a module: compiled, each distinct one once, and checked before the module is
// written.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/gpu_routine.h"
#include "codegen/index_check.h"
#include "deploy/check_kernels.h"
#include "deploy/module.h"
#include "deploy/weights.h"
#include "graph/partition_range.h"
#include "lower/task_range.h"

namespace pruner {

/// Compiled code, and what the plan says of it.
struct ModuleKernel {
  Artifact artifact;
  std::string sketch;                 // its name, for profiles
  std::string precision;              // precision_of(); empty: a routine
  std::vector<SymbolBox> boxes = {};  // shapes that the kernel is for; none: all
  Candidate candidate = {};           // its schedule
  SymbolValues origin = {};           // shape that `candidate` is a schedule of, in a range
};
/// `GroupKernels` holds a group's kernels: one, or several over a range with like arguments.
using GroupKernels = std::vector<ModuleKernel>;

/// Compiles the groups of networks, one network after the other, and keeps the kernels. Later
/// networks read the weights as the first one packs them, where a schedule does.
class ModuleKernels {
 public:
  /// The caller owns all arguments; they outlive the object.
  ModuleKernels(const Target& target,
                const ScheduleChoice& choice,
                const ModuleOptions& options,
                Weights& weights);

  /// Compiles and checks the kernels that a network's groups need and that are not made yet;
  /// returns the number of each group's kernels. `range` is null if the network has one shape. A
  /// kernel that computes wrong values is replaced, with a warning, by a kernel of another
  /// schedule. Over a range, which may lack such a program, the plain kernel replaces it. Errors: a
  /// group cannot be compiled, or all its schedules are wrong; kernels are wrong at shapes of a
  /// range (with node and extent).
  Result<std::vector<size_t>> add(const Partition& partition,
                                  const NetworkRanges* network,
                                  const PartitionRange* range);

  /// Compiles the kernel of a GPU that checks a tensor of indices, unless it is made already;
  /// returns the number of the kernels.
  Result<size_t> add_index_check(const IndexCheck& check);

  const std::vector<GroupKernels>& made() const { return made_; }
  /// Return how many kernels were run and right, and how many others were replaced.
  int checked() const { return checked_; }
  int replaced() const { return replaced_; }

 private:
  /// `Key` is equal for groups that run the same kernel.
  struct Key {
    std::string group;   // its key
    std::string ranged;  // DagRange::key() of a range of shapes; empty: there is one shape
    SymbolBox range;
    std::vector<std::vector<int64_t>> boxes;  // boxes_of() the group
    bool read_from_cache = false;  // whether other kernels find its output in the last cache
    auto tied() const {
      return std::tie(group, ranged, range.min, range.max, boxes, read_from_cache);
    }
    bool operator<(const Key& other) const { return tied() < other.tied(); }
  };
  /// A network that is added, with the numbers of the groups whose kernels are new.
  struct Network {
    const Partition& partition;
    const NetworkRanges* network;
    const PartitionRange* range;  // null: one shape
    std::vector<size_t> fresh = {};
    std::vector<bool> read_from_cache = {};             // whether each fresh group's output is
    size_t first = 0;                                   // number of the first fresh group's kernels
    std::vector<std::vector<Candidate>> rejected = {};  // wrong schedules of each fresh group
  };

  std::string symbol_of(size_t number) const;
  bool varies(const Network& network, size_t group) const;
  Result<GroupKernels> compile_fresh(const Network& network, size_t i);
  Result<ModuleKernel> compile_group(const Network& network, size_t i);
  Result<GroupKernels> compile_group_range(const Network& network, size_t i);
  /// Groups shapes, a box each, at which a program of one task may run. Shapes are together if its
  /// arguments lie in tensors of the same extents there.
  std::vector<std::vector<SymbolBox>> boxes_alike(const Network& network,
                                                  size_t i,
                                                  const std::vector<SymbolBox>& shapes);
  /// A name for finish() that no kernel has.
  std::string other_name();
  /// Makes `program` the kernel `name` of fresh group i, at the shapes of `boxes`. Names differ
  /// within a group.
  Result<ModuleKernel> finish(const Network& network,
                              size_t i,
                              Program program,
                              std::vector<SymbolBox> boxes,
                              std::string_view name);

  Result<Unit> check(Network& network);
  Result<Unit> check_one_shape(Network& network);
  Result<Unit> check_range(Network& network);
  /// Shapes of a range at which the kernels of a group are wrong, with the words.
  using WrongShapes = std::map<SymbolValues, std::string>;
  /// Holds a kernel that is to be run, and its fresh group.
  struct Use {
    size_t fresh;
    const ModuleKernel* kernel;
    PreparedKernel prepared;
  };
  /// Holds the plain kernel of a fresh group, with which the group's other kernels are compared.
  struct Reference {
    std::optional<ModuleKernel> kernel;  // nullopt: there is none
    PreparedKernel prepared;
    size_t every = 1;  // compares at every so many-th shape to save time
  };
  Result<std::vector<Use>> prepare_uses(const Network& network,
                                        const std::set<size_t>& among) const;
  Result<Unit> run_at(const Network& network,
                      const std::vector<Use>& uses,
                      std::span<const SymbolValues> shapes,
                      const std::vector<Partition>& at,
                      std::span<const Reference> references,
                      std::vector<WrongShapes>& wrong) const;
  /// Makes a reference for each fresh group in `among`; other groups have an empty entry.
  Result<std::vector<Reference>> make_references(const Network& network,
                                                 const std::vector<SymbolValues>& shapes,
                                                 const std::set<size_t>& among);
  /// Returns the wrong shapes of each fresh group. `among` are the numbers of the groups that run.
  Result<std::vector<WrongShapes>> find_wrong_shapes(const Network& network,
                                                     const std::vector<SymbolValues>& shapes,
                                                     std::span<const Reference> references,
                                                     const std::set<size_t>& among) const;
  Result<Unit> refit(Network& network, size_t i, const std::vector<SymbolValues>& shown);
  Result<Unit> replace(Network& network, size_t i, const WrongShapes& wrong, bool all_known);
  void report(const Network& network, size_t i, const std::string& wrong);

  const Target& target_;
  const ScheduleChoice& choice_;
  const ModuleOptions& options_;
  Weights& weights_;
  std::vector<GroupKernels> made_;
  std::map<Key, size_t> known_;  // numbers of the kernels
  std::map<IndexCheck, size_t> known_checks_;
  int checked_ = 0, replaced_ = 0;
  size_t others_ = 0;  // kernels made after the first ones of their groups: their names count them
};

/// Bytes of an argument as its kernel sees it.
int64_t bytes_of(const Artifact::Argument& argument);

}  // namespace pruner
