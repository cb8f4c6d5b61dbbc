// The kernels of a module: compiled, each distinct one once, and checked before the module is
// written.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/codegen.h"
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
  std::vector<SymbolBox> boxes = {};  // of the shapes that it is for; none: all
  Candidate candidate = {};           // its schedule
  SymbolValues origin = {};           // the shape that this is for, where it is one of a range's
};
/// What a group is computed by: one kernel, or some over a range of shapes, with like arguments.
using GroupKernels = std::vector<ModuleKernel>;

/// Compiles the groups of networks, one network after the other, and keeps the kernels. Later
/// networks read the weights as the first one packs them, where a schedule does.
class ModuleKernels {
 public:
  /// All but the kernels are the caller's, and outlive this.
  ModuleKernels(const Target& target,
                const ScheduleChoice& choice,
                const ModuleOptions& options,
                Weights& weights);

  /// Compiles and checks what a network's groups need and is not there yet; gives the number of
  /// each group's kernels. `range`: null where the network has one shape. A kernel that computes
  /// wrong values is replaced by one of another schedule, with a warning; over a range, where it
  /// may be no program of some shapes, by the plain one. Errors: what keeps a group from being
  /// compiled; a group of which every schedule is wrong; a range with shapes at which kernels are
  /// wrong, with the node and the extent.
  Result<std::vector<size_t>> add(const Partition& partition,
                                  const NetworkRanges* network,
                                  const PartitionRange* range);

  const std::vector<GroupKernels>& made() const { return made_; }
  /// How many kernels were run and right, and how many others were replaced.
  int checked() const { return checked_; }
  int replaced() const { return replaced_; }

 private:
  /// What makes two groups run one kernel.
  struct Key {
    std::string group;   // its key
    std::string ranged;  // DagRange::key() of a range of shapes; empty: there is one shape
    SymbolBox range;
    std::vector<std::vector<int64_t>> boxes;  // boxes_of() it
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
    std::vector<bool> read_from_cache = {};             // whether each one's output is
    size_t first = 0;                                   // number of the first one's kernels
    std::vector<std::vector<Candidate>> rejected = {};  // the wrong schedules of each one
  };

  std::string symbol_of(size_t number) const;
  bool varies(const Network& network, size_t group) const;
  Result<GroupKernels> compile_fresh(const Network& network, size_t i);
  Result<ModuleKernel> compile_group(const Network& network, size_t i);
  Result<GroupKernels> compile_group_range(const Network& network, size_t i);
  /// Shapes, of which each is a box, that a program of one task may run at: those at which its
  /// arguments lie in tensors of the same extents are together.
  std::vector<std::vector<SymbolBox>> boxes_alike(const Network& network,
                                                  size_t i,
                                                  const std::vector<SymbolBox>& shapes);
  /// A name for finish() that no kernel has.
  std::string other_name();
  /// `program` as the kernel `name` of fresh group i, at the shapes of `boxes`. Names differ within
  /// a group.
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
  /// A kernel that is to be run, and the fresh group that it is of.
  struct Use {
    size_t fresh;
    const ModuleKernel* kernel;
    PreparedKernel prepared;
  };
  /// The plain kernel of a fresh group, with which its others are compared.
  struct Reference {
    std::optional<ModuleKernel> kernel;  // nullopt: there is none
    PreparedKernel prepared;
    size_t every = 1;  // at so many shapes one is compared: more would take too long
  };
  Result<std::vector<Use>> prepare_uses(const Network& network,
                                        const std::set<size_t>& among) const;
  Result<Unit> run_at(const Network& network,
                      const std::vector<Use>& uses,
                      std::span<const SymbolValues> shapes,
                      const std::vector<Partition>& at,
                      std::span<const Reference> references,
                      std::vector<WrongShapes>& wrong) const;
  /// One entry a fresh group; those not in `among` have none.
  Result<std::vector<Reference>> make_references(const Network& network,
                                                 const std::vector<SymbolValues>& shapes,
                                                 const std::set<size_t>& among);
  /// One entry a fresh group. `among` are numbers of those that are run.
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
  std::map<Key, size_t> known_;  // their numbers
  int checked_ = 0, replaced_ = 0;
  size_t others_ = 0;  // kernels made after the first ones of their groups: their names count them
};

/// Bytes of an argument as its kernel sees it.
int64_t bytes_of(const Artifact::Argument& argument);

}  // namespace pruner
