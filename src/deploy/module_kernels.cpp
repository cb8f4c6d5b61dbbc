#include "deploy/module_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deploy/memory_plan.h"
#include "deploy/range_kernels.h"
#include "deploy/range_trials.h"
#include "graph/ops/op.h"
#include "lower/lower.h"
#include "search/search.h"
#include "space/precision.h"
#include "support/ceil_div.h"
#include "support/clock.h"
#include "support/file.h"
#include "support/log.h"
#include "support/mend.h"
#include "support/parallel_for.h"

namespace pruner {

int64_t bytes_of(const Artifact::Argument& argument) {
  int64_t bytes = dtype_bytes(argument.dtype);
  for (const int64_t extent : argument.shape) bytes *= extent;
  return bytes;
}

namespace {

constexpr int kMostSchedules = 6;        // schedules of a group that are tried until one is right
constexpr size_t kMostWrongShapes = 64;  // shapes that another kernel takes over, in a range
constexpr int64_t kBatch = 64;           // shapes whose kernels are run at once
constexpr double kMostFlops = 4e9;       // operations of all calls of a group's plain kernel
constexpr size_t kLookedAt = 8;          // shapes whose operations are counted for it
constexpr int kRefits = 4;               // times that programs over a range are made anew

/// Returns for each kernel argument of a group the shape that it is a slice of; empty if whole.
std::vector<std::vector<int64_t>> boxes_of(const Partition& partition, const Group& group) {
  std::vector<std::vector<int64_t>> boxes;
  const auto add = [&](ValueId id) {
    const bool whole = !partition[id].slice;
    boxes.push_back(whole ? std::vector<int64_t>() : partition.storage_of(id).shape);
  };
  for (const ValueId input : group.inputs) add(input);
  add(group.output);
  return boxes;
}

/// Whether the last-level cache holds a value and the other inputs of the kernels that read the
/// value. A value that fits into L2 is stored there in any case.
bool is_read_from_cache(const Partition& partition,
                        const std::set<ValueId>& read,
                        ValueId id,
                        const Target& target) {
  const int64_t bytes = value_bytes(partition[id]);
  return !target.is_gpu() && read.contains(partition.storage_of(id).owner) &&
         bytes >= target.l2_bytes && bytes <= target.l3_bytes / 2;
}

/// Returns the numbers that a group's routine takes as its last input.
std::vector<int64_t> parameters_of(const Partition& partition, const Group& group) {
  const Tensor& held = *partition[group.inputs.back()].constant;
  std::vector<int64_t> parameters;
  for (int64_t i = 0; i < held.num_elements(); ++i) parameters.push_back(held.get_int(i));
  return parameters;
}

/// Describes a group's routine as a kernel. Its code is made for a GPU; the runtime of a CPU's
/// module has the code.
Result<ModuleKernel> routine_kernel(const Partition& partition,
                                    const Group& group,
                                    const Target& target) {
  ModuleKernel kernel;
  if (target.is_gpu()) {
    const std::vector<int64_t> parameters = parameters_of(partition, group);
    TRY_ASSIGN(kernel.artifact, compile_gpu_routine(group.routine->symbol, parameters, target));
  }
  kernel.artifact.symbol = std::string(group.routine->symbol);
  kernel.artifact.workspace_bytes = group.workspace_bytes;
  kernel.sketch = "routine";
  const auto add = [&](ValueId id, bool output) {
    kernel.artifact.arguments.push_back({partition[id].dtype, partition[id].shape, output, {}});
  };
  for (const ValueId input : group.inputs) add(input, false);
  add(group.output, true);
  return kernel;
}

/// Turns formulas, whose variable i is symbol i, into expressions of a program.
std::vector<Expr> with_symbols(const Program& program, const std::vector<Expr>& formulas) {
  std::vector<Expr> of_symbol, made;
  for (const VarId symbol : program.symbols) of_symbol.push_back(program.var(symbol));
  for (const Expr& formula : formulas) made.push_back(substitute(formula, of_symbol));
  return made;
}

/// Whether argument `a` of a group may be stored so: kernels before it that read it as well decide.
bool packs_as_before(const Partition& partition,
                     const Group& group,
                     size_t a,
                     const PackSpec& packing,
                     Weights& weights) {
  if (a >= group.inputs.size()) return true;
  if (!partition[partition.storage_of(group.inputs[a]).owner].constant) return true;
  const std::vector<PackSpec> known = weights.packs_of(partition, group.inputs[a]);
  return known.empty() || std::ranges::find(known, packing) != known.end();
}

/// Whether a candidate reads each constant of its group packed as kernels before it do, if any
/// does, so that one copy serves all.
bool reads_packed_alike(const Partition& partition,
                        const Group& group,
                        const LoopNest& nest,
                        Weights& weights) {
  const std::vector<StageId> stages = nest.dag->inputs();
  CHECK(stages.size() == group.inputs.size()) << group.name;
  for (size_t i = 0; i < stages.size(); ++i)
    if (!packs_as_before(partition, group, i, stored_form(nest, stages[i]), weights)) return false;
  return true;
}

/// Returns how a kernel's arguments are stored.
std::vector<PackSpec> packing_of(const ModuleKernel& kernel) {
  std::vector<PackSpec> packing;
  for (const Artifact::Argument& argument : kernel.artifact.arguments)
    packing.push_back(argument.pack);
  return packing;
}

/// Returns a few boxes that hold the shapes of `box` except `shape`.
std::vector<SymbolBox> without(const SymbolBox& box, const SymbolValues& shape) {
  if (!box.contains(shape)) return {box};
  std::vector<SymbolBox> parts;
  SymbolBox left = box;  // the part with the shape's extents of the symbols so far
  for (size_t s = 0; s < shape.size(); ++s) {
    SymbolBox below = left, above = left;
    below.max[s] = shape[s] - 1;
    above.min[s] = shape[s] + 1;
    if (below.min[s] <= below.max[s]) parts.push_back(std::move(below));
    if (above.min[s] <= above.max[s]) parts.push_back(std::move(above));
    left.min[s] = left.max[s] = shape[s];
  }
  return parts;
}

}  // namespace

ModuleKernels::ModuleKernels(const Target& target,
                             const ScheduleChoice& choice,
                             const ModuleOptions& options,
                             Weights& weights)
    : target_(target), choice_(choice), options_(options), weights_(weights) {}

// A GPU's kernels are programs of their own; with one name for all, the cubin cache finds them.
std::string ModuleKernels::symbol_of(size_t number) const {
  return target_.is_gpu() ? "kernel" : fmt::format("pruner_kernel_{}", number);
}

std::string ModuleKernels::other_name() { return fmt::format("other_{}", others_++); }

bool ModuleKernels::varies(const Network& network, size_t group) const {
  return network.range != nullptr && network.partition.groups[group].routine == nullptr;
}

Result<ModuleKernel> ModuleKernels::compile_group(const Network& network, size_t i) {
  const Partition& partition = network.partition;
  const Group& group = partition.groups[network.fresh[i]];
  if (group.routine != nullptr) return routine_kernel(partition, group, target_);
  const Task task = make_task(group.dag, target_, group.name);
  const Space space = make_space(task, options_.forms);
  const std::vector<Candidate>& rejected = network.rejected[i];
  const auto as_stored = [&](Candidate candidate) {
    if (network.read_from_cache[i]) store_in_caches(space[candidate.sketch], candidate);
    return candidate;
  };
  const auto is_open = [&](const Candidate& candidate) {
    return std::ranges::find(rejected, as_stored(candidate)) == rejected.end();
  };
  const auto fits = [&](const Candidate& candidate) {
    return is_open(candidate) &&
           reads_packed_alike(partition, group, make_loop_nest(space, candidate), weights_);
  };
  // The chosen schedule is kept if it reads the weights as networks before have stored them.
  Candidate candidate = chosen_schedule(task, space, choice_);
  if ((weights_.bytes() > 0 || !rejected.empty()) && !fits(candidate)) {
    std::optional<Candidate> fitting = default_schedule_of(task, space, fits);
    if (!fitting && !is_open(candidate)) fitting = default_schedule_of(task, space, is_open);
    if (!fitting && !is_open(candidate)) return Error("no other schedule of it was found");
    if (fitting) candidate = *std::move(fitting);
  }
  candidate = as_stored(std::move(candidate));
  const Sketch& sketch = space[candidate.sketch];
  const std::string symbol = symbol_of(network.first + i);
  TRY_ASSIGN(Program program, lower(space, candidate, symbol));
  std::vector<std::vector<int64_t>> boxes = boxes_of(partition, group);
  for (size_t a = 0; a < boxes.size(); ++a)
    // After lowering: a schedule is of the task, whose tensors are whole.
    program.buffers[program.args[a].value].box_of = std::move(boxes[a]);
  TRY_ASSIGN(Artifact artifact, compile(program, target_, symbol));
  return ModuleKernel{std::move(artifact),
                      sketch.name,
                      std::string(precision_of(sketch)),
                      {},
                      std::move(candidate)};
}

Result<ModuleKernel> ModuleKernels::finish(const Network& network,
                                           size_t i,
                                           Program program,
                                           std::vector<SymbolBox> shapes,
                                           std::string_view name) {
  const PartitionRange& range = *network.range;
  const Partition& partition = network.partition;
  const Group& group = partition.groups[network.fresh[i]];
  const std::vector<std::vector<int64_t>> boxes = boxes_of(partition, group);
  for (size_t a = 0; a < boxes.size(); ++a) {
    Buffer& buffer = program.buffers[program.args[a].value];
    const ValueId id = a < group.inputs.size() ? group.inputs[a] : group.output;
    const ValueId owner = partition.storage_of(id).owner;
    if (!boxes[a].empty()) {
      const std::vector<Expr>& extents = range.shapes[owner.value];
      buffer.box_of = boxes[a];
      if (!program.symbols.empty()) {
        buffer.box_extents = with_symbols(program, extents);
      } else {
        for (size_t d = 0; d < extents.size(); ++d)
          buffer.box_of[d] = evaluate_formula(extents[d], shapes.front().min);
      }
    } else if (a < group.inputs.size() && partition[owner].constant &&
               (!buffer.extents.empty() ||
                (buffer.shape != partition[id].shape && is_in(Mend::kBoxesOfConstants)))) {
      // A constant is stored once, at its greatest: at every other shape a kernel, also one of a
      // single shape, reads a box of it.
      if (!buffer.pack.identity()) {
        if (buffer.extents.empty() && buffer.pack.packed_shape(partition[id].shape) == buffer.shape)
          continue;
        return Error("the kernel packs its constant \"",
                     partition[id].name,
                     "\", of which every shape uses another part; a module for one shape (--dim ",
                     print(network.network->symbols, range.box.max),
                     ") packs its own");
      }
      buffer.box_of = is_in(Mend::kBoxesOfConstants) ? partition[id].shape : buffer.shape;
    }
  }
  const std::string symbol = fmt::format("{}_{}", symbol_of(network.first + i), name);
  TRY_ASSIGN(Artifact artifact, compile(program, target_, symbol));
  return ModuleKernel{std::move(artifact), "", "", std::move(shapes)};
}

std::vector<std::vector<SymbolBox>> ModuleKernels::boxes_alike(
    const Network& network, size_t i, const std::vector<SymbolBox>& shapes) {
  const Partition& partition = network.partition;
  const Group& group = partition.groups[network.fresh[i]];
  const std::vector<std::vector<int64_t>> boxes = boxes_of(partition, group);
  std::map<std::vector<int64_t>, std::vector<SymbolBox>> alike;
  for (const SymbolBox& shape : shapes) {
    std::vector<int64_t> extents;
    for (size_t a = 0; a < boxes.size(); ++a) {
      if (boxes[a].empty()) continue;
      const ValueId id = a < group.inputs.size() ? group.inputs[a] : group.output;
      const std::vector<Expr>& formulas =
          network.range->shapes[partition.storage_of(id).owner.value];
      std::ranges::copy(evaluate_formulas(formulas, shape.min), std::back_inserter(extents));
    }
    add_box(alike[extents], shape);
  }
  std::vector<std::vector<SymbolBox>> groups;
  for (auto& [extents, boxes_of_them] : alike) groups.push_back(std::move(boxes_of_them));
  return groups;
}

Result<GroupKernels> ModuleKernels::compile_group_range(const Network& network, size_t i) {
  const size_t g = network.fresh[i];
  TaskRange task = task_range(*network.network, *network.range, g, target_, options_);
  const PackingFits fits = [&](size_t a, const PackSpec& packing) {
    return packs_as_before(network.partition, network.partition.groups[g], a, packing, weights_);
  };
  const double start_s = steady_s();
  TRY_ASSIGN(std::vector<RangeKernel> chosen,
             range_kernels(task, choice_, options_.times, fits, symbol_of(network.first + i)));
  log_detail("{}: {} kernels over {} shapes, chosen in {:.2f} s",
             network.partition.groups[g].name,
             chosen.size(),
             task.box().num_shapes(),
             steady_s() - start_s);
  GroupKernels kernels;
  for (const RangeKernel& kernel : chosen) {
    const bool of_task = kernel.program.symbols.empty();
    for (std::vector<SymbolBox>& boxes : of_task
                                             ? boxes_alike(network, i, kernel.boxes)
                                             : std::vector<std::vector<SymbolBox>>{kernel.boxes}) {
      const std::string name = fmt::format("{}", kernels.size());
      TRY_ASSIGN(ModuleKernel made, finish(network, i, kernel.program, std::move(boxes), name));
      made.sketch = kernel.sketch;
      made.precision = kernel.precision;
      made.origin = kernel.origin;
      made.candidate = kernel.candidate;
      kernels.push_back(std::move(made));
    }
  }
  return kernels;
}

Result<GroupKernels> ModuleKernels::compile_fresh(const Network& network, size_t i) {
  if (varies(network, network.fresh[i])) return compile_group_range(network, i);
  TRY_ASSIGN(ModuleKernel kernel, compile_group(network, i));
  GroupKernels kernels;
  kernels.push_back(std::move(kernel));
  return kernels;
}

Result<size_t> ModuleKernels::add_index_check(const IndexCheck& check) {
  const auto [at, is_new] = known_checks_.try_emplace(check, made_.size());
  if (!is_new) return at->second;
  TRY_ASSIGN(Artifact artifact, compile_index_check(check, target_));
  made_.emplace_back().push_back({std::move(artifact), "", ""});
  return at->second;
}

Result<std::vector<size_t>> ModuleKernels::add(const Partition& partition,
                                               const NetworkRanges* of,
                                               const PartitionRange* range) {
  Network network{partition, of, range};
  network.first = made_.size();
  std::vector<size_t> of_group;
  const std::set<ValueId> read = values_read(partition);
  for (size_t g = 0; g < partition.groups.size(); ++g) {
    const Group& group = partition.groups[g];
    const bool ranged = varies(network, g);
    const Key key{group.key,
                  ranged ? range->dags[g].key() : "",
                  ranged ? range->box : SymbolBox(),
                  boxes_of(partition, group),
                  is_read_from_cache(partition, read, group.output, target_)};
    const auto [at, is_new] = known_.try_emplace(key, network.first + network.fresh.size());
    if (is_new) {
      network.fresh.push_back(g);
      network.read_from_cache.push_back(key.read_from_cache);
    }
    of_group.push_back(at->second);
  }
  network.rejected.resize(network.fresh.size());
  std::vector<std::optional<Result<GroupKernels>>> compiled(network.fresh.size());
  parallel_for(std::ssize(network.fresh), options_.jobs, [&](int64_t i) {
    compiled[static_cast<size_t>(i)] = compile_fresh(network, static_cast<size_t>(i));
  });
  for (size_t i = 0; i < network.fresh.size(); ++i) {
    const Group& group = partition.groups[network.fresh[i]];
    if (!compiled[i]->ok()) return Error(group.name, ": ", compiled[i]->error().message());
    made_.push_back(**std::move(compiled[i]));
  }
  TRY(check(network));
  return of_group;
}

Result<Unit> ModuleKernels::check(Network& network) {
  if (!options_.check || network.fresh.empty() || !check_runnable(target_).ok()) return Unit{};
  return network.range != nullptr ? check_range(network) : check_one_shape(network);
}

// The warning for users, and a file for us: `pruner compile --task FILE` makes the kernel again.
void ModuleKernels::report(const Network& network, size_t i, const std::string& wrong) {
  const Group& group = network.partition.groups[network.fresh[i]];
  const std::vector<Candidate>& rejected = network.rejected[i];
  Json json = {{"kernel", group.name},
               {"nodes", group.nodes},
               {"target", print(target_)},
               {"problem", wrong},
               {"dag", dag_to_json(group.dag)}};
  if (!rejected.empty()) {
    const Space space = make_space(make_task(group.dag, target_, group.name), options_.forms);
    json["schedule"] = print(space, rejected.back());
  }
  const std::string path = fmt::format("{}.wrong_kernel_{}.json", options_.reports, replaced_);
  const bool written = !options_.reports.empty() && write_file(path, json.dump(1) + "\n").ok();
  log_warning(
      "kernel \"{}\" computes wrong values: {}. It is replaced by another one. This is a "
      "fault of pruner: please report it{}",
      group.name,
      wrong,
      written ? " with " + path : "");
  ++replaced_;
}

Result<Unit> ModuleKernels::check_one_shape(Network& network) {
  const Partition& partition = network.partition;
  std::vector<size_t> open;
  for (size_t i = 0; i < network.fresh.size(); ++i)
    if (partition.groups[network.fresh[i]].routine == nullptr) open.push_back(i);
  while (!open.empty()) {
    TRY_ASSIGN(const std::vector<Use> uses, prepare_uses(network, {open.begin(), open.end()}));
    std::vector<KernelCall> calls;
    for (const Use& use : uses)
      calls.push_back({&use.prepared, &partition, network.fresh[use.fresh]});
    TRY_ASSIGN(const std::vector<std::optional<std::string>> wrong,
               find_wrong_kernels(calls, target_, options_.jobs));
    std::vector<size_t> replaced;
    for (size_t n = 0; n < open.size(); ++n) {
      ModuleKernel& kernel = made_[network.first + open[n]].front();
      if (!wrong[n]) {
        ++checked_;
        continue;
      }
      const Group& group = partition.groups[network.fresh[open[n]]];
      std::vector<Candidate>& rejected = network.rejected[open[n]];
      rejected.push_back(kernel.candidate);
      report(network, open[n], *wrong[n]);
      if (rejected.size() == kMostSchedules)
        return Error("kernel \"",
                     group.name,
                     "\": ",
                     kMostSchedules,
                     " schedules of it compute wrong values: ",
                     *wrong[n]);
      Result<ModuleKernel> other = compile_group(network, open[n]);
      if (!other.ok())
        return Error("kernel \"",
                     group.name,
                     "\" computes wrong values: ",
                     *wrong[n],
                     "; ",
                     other.error().message());
      kernel = *std::move(other);
      replaced.push_back(open[n]);
    }
    open = std::move(replaced);
  }
  return Unit{};
}

Result<std::vector<ModuleKernels::Use>> ModuleKernels::prepare_uses(
    const Network& network, const std::set<size_t>& among) const {
  std::vector<Use> uses;
  for (const size_t i : among)
    for (const ModuleKernel& kernel : made_[network.first + i]) uses.push_back({i, &kernel, {}});
  std::vector<std::optional<Error>> failed(uses.size());
  parallel_for(std::ssize(uses), options_.jobs, [&](int64_t u) {
    Use& use = uses[static_cast<size_t>(u)];
    Result<PreparedKernel> made =
        prepare(use.kernel->artifact, network.partition, network.fresh[use.fresh], weights_);
    if (made.ok()) use.prepared = *std::move(made);
    if (!made.ok()) failed[static_cast<size_t>(u)] = made.error();
  });
  for (const std::optional<Error>& error : failed)
    if (error) return *error;
  return uses;
}

Result<Unit> ModuleKernels::run_at(const Network& network,
                                   const std::vector<Use>& uses,
                                   std::span<const SymbolValues> shapes,
                                   const std::vector<Partition>& at,
                                   std::span<const Reference> references,
                                   std::vector<WrongShapes>& wrong) const {
  std::vector<KernelCall> calls;
  std::vector<std::pair<size_t, const SymbolValues*>> of_call;
  for (size_t s = 0; s < shapes.size(); ++s) {
    for (const Use& use : uses) {
      const auto has = [&](const SymbolBox& box) { return box.contains(shapes[s]); };
      if (std::ranges::none_of(use.kernel->boxes, has)) continue;
      calls.push_back({&use.prepared, &at[s], network.fresh[use.fresh], shapes[s]});
      const Reference& reference = references[use.fresh];
      if (reference.kernel && use.kernel->sketch != kPlain && s % reference.every == 0)
        calls.back().other = &reference.prepared;
      of_call.emplace_back(use.fresh, &shapes[s]);
    }
  }
  TRY_ASSIGN(const std::vector<std::optional<std::string>> found,
             find_wrong_kernels(calls, target_, options_.jobs));
  for (size_t c = 0; c < calls.size(); ++c)
    if (found[c]) wrong[of_call[c].first].emplace(*of_call[c].second, *found[c]);
  return Unit{};
}

Result<std::vector<ModuleKernels::Reference>> ModuleKernels::make_references(
    const Network& network,
    const std::vector<SymbolValues>& shapes,
    const std::set<size_t>& among) {
  std::vector<Reference> references(network.fresh.size());
  for (const size_t i : among) {
    const GroupKernels& kernels = made_[network.first + i];
    if (std::ranges::all_of(kernels, [](const ModuleKernel& k) { return k.sketch == kPlain; }))
      continue;
    const TaskRange task =
        task_range(*network.network, *network.range, network.fresh[i], target_, options_);
    // The plain kernel does not read constants that are stored as other tensors.
    Result<RangeKernel> plain = plain_kernel(
        task, {network.range->box}, packing_of(kernels.front()), symbol_of(network.first + i));
    if (!plain.ok()) continue;
    Reference& reference = references[i];
    TRY_ASSIGN(reference.kernel,
               finish(network, i, std::move(plain->program), plain->boxes, other_name()));
    TRY_ASSIGN(reference.prepared,
               prepare(reference.kernel->artifact, network.partition, network.fresh[i], weights_));
    double flops = 0;
    const size_t step = ceil_div(shapes.size(), kLookedAt);
    for (size_t s = 0; s < shapes.size(); s += step)
      flops += static_cast<double>(step) * std::max(flop_count(task.dag().at(shapes[s])), 0.0);
    reference.every = static_cast<size_t>(std::ceil(std::max(flops / kMostFlops, 1.0)));
  }
  return references;
}

Result<std::vector<ModuleKernels::WrongShapes>> ModuleKernels::find_wrong_shapes(
    const Network& network,
    const std::vector<SymbolValues>& shapes,
    std::span<const Reference> references,
    const std::set<size_t>& among) const {
  TRY_ASSIGN(const std::vector<Use> uses, prepare_uses(network, among));
  std::vector<size_t> groups;
  for (const size_t i : among) groups.push_back(network.fresh[i]);
  std::vector<WrongShapes> wrong(network.fresh.size());
  for (size_t from = 0; from < shapes.size(); from += kBatch) {
    const std::span some =
        std::span(shapes).subspan(from, std::min<size_t>(kBatch, shapes.size() - from));
    std::vector<Partition> at(some.size());
    parallel_for(std::ssize(some), options_.jobs, [&](int64_t s) {
      const auto place = static_cast<size_t>(s);
      at[place] = partition_at(*network.range, groups, some[place]);
    });
    TRY(run_at(network, uses, some, at, references, wrong));
  }
  // At some shapes the expected values come from the file alone, not from formulas.
  if (network.network->at) {
    const std::vector<SymbolValues> drawn = drawn_shapes(network.range->box);
    std::vector<Partition> at;
    for (const SymbolValues& shape : drawn) {
      TRY_ASSIGN(Partition one, network.network->at(shape));
      at.push_back(std::move(one));
    }
    TRY(run_at(network, uses, drawn, at, references, wrong));
  }
  return wrong;
}

// Replaces wrong kernels by the plain kernel at the wrong shapes, or at all their shapes if wrong
// shapes are many or not all known. If there is no plain kernel, each of a few shapes gets a kernel
// of its own.
Result<Unit> ModuleKernels::replace(Network& network,
                                    size_t i,
                                    const WrongShapes& wrong,
                                    bool all_known) {
  const size_t g = network.fresh[i];
  const Group& group = network.partition.groups[g];
  const auto& [first, what] = *wrong.begin();
  const std::string where = fmt::format("kernel \"{}\"{} at {}",
                                        group.name,
                                        group.nodes.empty() || group.nodes.front().empty()
                                            ? ""
                                            : " (node \"" + group.nodes.front() + "\")",
                                        print(network.network->symbols, first));
  const bool single = all_known && wrong.size() <= kMostWrongShapes;
  GroupKernels& kernels = made_[network.first + i];
  const std::vector<PackSpec> packing = packing_of(kernels.front());
  std::vector<SymbolBox> taken;
  for (ModuleKernel& kernel : kernels) {
    const auto has = [&](const auto& shape) {
      return std::ranges::any_of(kernel.boxes,
                                 [&](const SymbolBox& box) { return box.contains(shape.first); });
    };
    if (std::ranges::none_of(wrong, has)) continue;
    if (kernel.sketch == kPlain)
      return Error(where, ": no kernel is right at each shape of the range: ", what);
    if (!single) std::ranges::move(std::exchange(kernel.boxes, {}), std::back_inserter(taken));
    for (const auto& [shape, text] : wrong) {
      std::vector<SymbolBox> left;
      for (const SymbolBox& box : kernel.boxes) {
        if (box.contains(shape)) taken.push_back({shape, shape});
        std::ranges::move(without(box, shape), std::back_inserter(left));
      }
      kernel.boxes = std::move(left);
    }
  }
  log_detail("{}: its program is no other shape's: {}. The plain program takes its place at {}",
             where,
             what,
             single ? fmt::format("{} shapes", wrong.size()) : "all of its shapes");
  TaskRange task = task_range(*network.network, *network.range, g, target_, options_);
  const std::string symbol = symbol_of(network.first + i);
  std::vector<RangeKernel> others;
  if (Result<RangeKernel> plain = plain_kernel(task, taken, packing, symbol); plain.ok()) {
    others.push_back(*std::move(plain));
  } else {  // a plain kernel reads no transformed weights
    if (!single) return Error(where, ": ", what, "; ", plain.error().message());
    const PackingFits fits = [&](size_t a, const PackSpec& pack) { return pack == packing[a]; };
    for (const SymbolBox& box : taken) {
      Result<RangeKernel> one = shape_kernel(task, box.min, fits, symbol);
      if (!one.ok()) return Error(where, ": ", what, "; ", one.error().message());
      others.push_back(*std::move(one));
    }
  }
  for (RangeKernel& other : others) {
    TRY_ASSIGN(ModuleKernel made,
               finish(network, i, std::move(other.program), other.boxes, other_name()));
    made.sketch = std::move(other.sketch);
    made.precision = std::move(other.precision);
    kernels.push_back(std::move(made));
    ++replaced_;
  }
  std::erase_if(kernels, [](const ModuleKernel& kernel) { return kernel.boxes.empty(); });
  return Unit{};
}

// Makes the programs of a group's schedules anew, with the shapes `shown` among those that the
// programs are made from.
Result<Unit> ModuleKernels::refit(Network& network,
                                  size_t i,
                                  const std::vector<SymbolValues>& shown) {
  TaskRange task =
      task_range(*network.network, *network.range, network.fresh[i], target_, options_);
  GroupKernels& kernels = made_[network.first + i];
  for (size_t k = 0; k < kernels.size(); ++k) {
    ModuleKernel& kernel = kernels[k];
    if (kernel.origin.empty()) continue;
    SymbolBox within = kernel.boxes.front();
    for (const SymbolBox& box : kernel.boxes) {
      for (size_t s = 0; s < within.min.size(); ++s) {
        within.min[s] = std::min(within.min[s], box.min[s]);
        within.max[s] = std::max(within.max[s], box.max[s]);
      }
    }
    const std::string symbol = symbol_of(network.first + i);
    TRY_ASSIGN(RangeProgram made,
               lower_over_range(task, kernel.origin, kernel.candidate, symbol, within, shown));
    if (made.box != within) return Error("its schedule is another program at other shapes");
    TRY_ASSIGN(ModuleKernel other,
               finish(network, i, std::move(made.program), kernel.boxes, other_name()));
    kernel.artifact = std::move(other.artifact);
  }
  return Unit{};
}

Result<Unit> ModuleKernels::check_range(Network& network) {
  const CheckedShapes every = checked_shapes(
      network.range->box, extents_of(*network.range), checked_counts(network.network->symbols));
  std::set<size_t> open;  // fresh groups whose kernels are to be run
  for (size_t i = 0; i < network.fresh.size(); ++i)
    if (varies(network, network.fresh[i])) open.insert(i);
  std::vector<std::set<SymbolValues>> shown(network.fresh.size());
  std::vector<SymbolValues> shapes = every.shapes;
  TRY_ASSIGN(const std::vector<Reference> references, make_references(network, shapes, open));
  for (int round = 0; !open.empty(); ++round) {
    TRY_ASSIGN(const std::vector<WrongShapes> wrong,
               find_wrong_shapes(network, shapes, references, open));
    for (size_t i = 0; i < wrong.size(); ++i) {
      if (wrong[i].empty()) {
        open.erase(i);
        continue;
      }
      // A program that is wrong at some shapes has a number that was taken for another formula's.
      const size_t known = shown[i].size();
      for (const auto& [at, text] : wrong[i]) shown[i].insert(at);
      if (round < kRefits && shown[i].size() > known &&
          refit(network, i, {shown[i].begin(), shown[i].end()}).ok())
        continue;
      // If not every shape is run, more shapes may be wrong than are known.
      TRY(replace(network, i, wrong[i], every.all));
    }
    shapes = every.shapes;
  }
  for (size_t i = 0; i < network.fresh.size(); ++i) {
    if (varies(network, network.fresh[i]))
      checked_ += static_cast<int>(made_[network.first + i].size());
  }
  return Unit{};
}

}  // namespace pruner
