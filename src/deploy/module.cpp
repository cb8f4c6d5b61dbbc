#include "deploy/module.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "codegen/codegen.h"
#include "codegen/cpu_features.h"
#include "codegen/cuda/nvrtc.h"
#include "deploy/link_module.h"
#include "deploy/memory_plan.h"
#include "deploy/module_kernels.h"
#include "deploy/plan_formulas.h"
#include "deploy/range_kernels.h"
#include "deploy/range_trials.h"
#include "deploy/weights.h"
#include "graph/ops/op.h"
#include "graph/partition_range.h"
#include "lower/lower.h"
#include "runtime/module/plan.h"
#include "search/search.h"
#include "space/precision.h"
#include "support/file.h"
#include "support/output_file.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

/// Returns the bytes of a group's inputs and output.
int64_t routine_bytes(const ModuleKernel& kernel) {
  int64_t bytes = 0;
  for (const Artifact::Argument& argument : kernel.artifact.arguments) bytes += bytes_of(argument);
  return bytes;
}

std::vector<TensorSpec> specs_of(const Partition& partition, const std::vector<ValueId>& values) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : values)
    specs.push_back({partition[id].name, partition[id].dtype, partition[id].shape});
  return specs;
}

/// Returns the alignment of offsets in the arena and the weights.
int64_t alignment_of(const Target& target) {
  return target.is_gpu() ? int64_t{kPlanGpuAlignment} : kArenaAlignment;
}

/// Appends the launches of an artifact to `launches`, with the places of the arguments and the
/// workspace.
void place_launches(const Artifact& artifact,
                    size_t code,
                    const std::vector<ValuePlace>& args,
                    int64_t workspace,
                    std::vector<ModulePlan::Launch>& launches) {
  for (const Artifact::Launch& launch : artifact.launches) {
    ModulePlan::Launch& placed = launches.emplace_back();
    placed = {launch.kernel,
              code,
              launch.blocks,
              launch.threads,
              launch.shared_bytes,
              launch.dynamic_bytes,
              launch.early,
              {}};
    for (const int i : launch.arguments) {
      const auto a = static_cast<size_t>(i);
      placed.args.push_back({args[a], bytes_of(artifact.arguments[a])});
    }
    if (launch.workspace)
      placed.args.push_back({{Place::kArena, workspace}, artifact.workspace_bytes});
  }
}

/// Makes the numbers of the plan, which are formulas if there are several shapes.
class Sizes {
 public:
  Sizes(const Partition& partition, const PartitionRange* range, PlanFormulas& formulas)
      : partition_(partition), range_(range), formulas_(formulas) {}

  int64_t bytes(ValueId id) const {
    if (range_ == nullptr) return value_bytes(partition_[id]);
    Expr bytes(dtype_bytes(partition_[id].dtype));
    for (const Expr& extent : range_->shapes[id.value]) bytes = bytes * extent;
    return formulas_.number(bytes);
  }
  std::vector<int64_t> index_extents(size_t g) const {
    if (range_ == nullptr || !range_->index_extents.contains(g))
      return partition_.groups[g].index_extents;
    return numbers(range_->index_extents.at(g));
  }
  /// Returns the place of numbers that depend on the shapes, such as a routine's parameters;
  /// nullopt if the value holds no such numbers.
  std::optional<ValuePlace> parameters(ValueId id) const {
    if (range_ == nullptr || !range_->parameters.contains(id)) return std::nullopt;
    return ValuePlace{Place::kNumbers, formulas_.block(range_->parameters.at(id))};
  }
  std::vector<int64_t> read_at(size_t g, StageId id) const {
    if (range_ == nullptr) return partition_.groups[g].dag[id].read_at;
    return numbers(range_->dags[g].read_at(id));
  }

 private:
  std::vector<int64_t> numbers(std::span<const Expr> formulas) const {
    std::vector<int64_t> numbers;
    for (const Expr& formula : formulas) numbers.push_back(formulas_.number(formula));
    return numbers;
  }

  const Partition& partition_;
  const PartitionRange* range_;
  PlanFormulas& formulas_;
};

/// Holds an input of a group whose elements are indices that the group reads at.
struct IndexInput {
  size_t input = 0;
  std::vector<int64_t> extents;  // in turn, each index must be a place of one of these
  bool from_end = false;         // an index below 0 counts from the end
};

/// Returns a group's inputs of indices. Constant indices were checked by the importer.
std::vector<IndexInput> index_inputs(const Partition& partition, size_t g, const Sizes& sizes) {
  const Group& group = partition.groups[g];
  std::vector<IndexInput> inputs;
  const auto add = [&](size_t i, std::vector<int64_t> extents, bool from_end) {
    const bool constant =
        partition[partition.storage_of(group.inputs[i]).owner].constant.has_value();
    if (!constant || sizes.parameters(group.inputs[i]))
      inputs.push_back({i, std::move(extents), from_end});
  };
  if (!group.index_extents.empty()) {
    const Node& node = partition.graph->nodes[group.node_numbers[0]];
    const auto at = std::ranges::find(group.inputs, indices_of(node));
    add(static_cast<size_t>(at - group.inputs.begin()),
        sizes.index_extents(g),
        find_graph_op(node.op)->indices->from_end);
  }
  const std::vector<StageId> placeholders = group.dag.inputs();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const Stage& stage = group.dag[placeholders[i]];
    if (!stage.read_at.empty()) add(i, sizes.read_at(g, placeholders[i]), stage.reads_from_end);
  }
  return inputs;
}

/// Returns the bytes behind a GPU's workspace where the checked copies of a group's indices lie.
int64_t checked_bytes(const Partition& partition, size_t g, const Sizes& sizes) {
  int64_t bytes = 0;
  for (const IndexInput& read : index_inputs(partition, g, sizes))
    bytes += aligned(sizes.bytes(partition.groups[g].inputs[read.input]), kPlanGpuAlignment);
  return bytes;
}

/// Holds the states of all phases, each once, by name, and their places for every phase.
struct States {
  std::vector<ModulePlan::State> all;
  std::vector<StateMemory> of_phase;
};

Result<States> place_states(std::span<const Phase> phases, int64_t alignment) {
  States states;
  int64_t bytes = 0;
  for (const Phase& phase : phases) {
    StateMemory& memory = states.of_phase.emplace_back();
    for (const State& state : phase.partition.states) {
      const PlannedValue& value = phase.partition[phase.partition.inputs[state.input]];
      const TensorSpec spec{value.name, value.dtype, value.shape};
      auto known = std::ranges::find(
          states.all, spec.name, [](const ModulePlan::State& s) { return s.spec.name; });
      if (known == states.all.end()) {
        states.all.push_back({spec, bytes, value_bytes(value)});
        known = states.all.end() - 1;
        bytes += aligned(known->bytes, alignment);
      }
      if (known->spec.dtype != spec.dtype || known->spec.shape != spec.shape)
        return Error(phase.name, ": state ", print(spec), " is ", print(known->spec), " before");
      memory.offsets.push_back(known->offset);
    }
  }
  for (StateMemory& memory : states.of_phase) memory.bytes = bytes;
  return states;
}

/// Returns the model's inputs or outputs, without the states.
std::vector<ValueId> callers(const Partition& partition,
                             const std::vector<ValueId>& values,
                             int State::*place) {
  std::vector<ValueId> left;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto is_state = [&](const State& s) { return s.*place == static_cast<int>(i); };
    if (std::ranges::none_of(partition.states, is_state)) left.push_back(values[i]);
  }
  return left;
}

/// Returns the facts about all kernels of a group that the memory plan needs.
KernelMemory memory_of(const GroupKernels& kernels) {
  KernelMemory memory;
  for (const ModuleKernel& kernel : kernels) {
    memory.workspace_bytes = std::max(memory.workspace_bytes, kernel.artifact.workspace_bytes);
    memory.rewrites = memory.rewrites || kernel.artifact.rewrites;
  }
  return memory;
}

/// Returns the same facts about a GPU's kernel. The pointers of a kernel are declared to share no
/// memory.
KernelMemory gpu_memory_of(const Partition& partition,
                           size_t g,
                           const Sizes& sizes,
                           const GroupKernels& kernels) {
  const int64_t workspace = memory_of(kernels).workspace_bytes;
  const int64_t checked = checked_bytes(partition, g, sizes);
  // Only the code of a routine is written for an output that is an input.
  const bool rewrites = partition.groups[g].routine == nullptr;
  return {checked == 0 ? workspace : aligned(workspace, kPlanGpuAlignment) + checked, rewrites};
}

/// Makes the launches of a GPU's step: a check of each tensor of indices, which leaves a copy
/// without errors, then the artifact's, which read the copies. Each launch has arguments of its
/// own, so the step keeps none.
Result<Unit> make_launches(const Artifact& artifact,
                           size_t code,
                           ModuleKernels& kernels,
                           ModulePlan::Step& step) {
  std::vector<ValuePlace> args = std::move(step.args);
  int64_t at = step.workspace + aligned(artifact.workspace_bytes, kPlanGpuAlignment);
  for (const ModulePlan::Indices& read : step.indices) {
    TRY_ASSIGN(const size_t check,
               kernels.add_index_check({read.range.bytes / read.element_bytes,
                                        read.element_bytes,
                                        read.extents,
                                        read.from_end}));
    const ValuePlace copy{Place::kArena, at};
    place_launches(kernels.made()[check].front().artifact,
                   check,
                   {read.range.at, copy, {Place::kFailures, 0}},
                   0,
                   step.launches);
    args[read.input] = copy;
    at += aligned(read.range.bytes, kPlanGpuAlignment);
  }
  place_launches(artifact, code, args, step.workspace, step.launches);
  step.args.clear();
  return Unit{};
}

/// Gives each check of indices a word of its own, in the order of the plan.
void place_words(ModulePlan& plan) {
  int64_t word = 0;
  for (ModulePlan::Phase& phase : plan.phases)
    for (ModulePlan::Shapes& shapes : phase.shapes)
      for (ModulePlan::Step& step : shapes.steps)
        for (ModulePlan::Launch& launch : step.launches)
          for (ModulePlan::Range& arg : launch.args)
            if (arg.at.place == Place::kFailures) arg.at.index = kPlanGpuAlignment * word++;
}

/// Returns a group's step without its arguments: the facts for profiles, and a CPU's code with the
/// shapes that the code is for.
ModulePlan::Step describe_step(const Group& group, const GroupKernels& made, const Target& target) {
  const ModuleKernel& kernel = made.front();
  const bool runs = group.routine != nullptr;
  ModulePlan::Step step{
      .name = group.name,
      .sketch = kernel.sketch,
      .flops = runs ? 0 : static_cast<int64_t>(flop_count(group.dag)),
      .bytes = runs ? routine_bytes(kernel) : static_cast<int64_t>(traffic_bytes(group.dag)),
      .kernels = {},
      .args = {},
      .precision = kernel.precision};
  if (target.is_gpu()) return step;
  for (const ModuleKernel& one : made) {
    if (one.boxes.empty()) step.kernels.push_back({one.artifact.symbol});
    for (const SymbolBox& box : one.boxes) step.kernels.push_back({one.artifact.symbol, box});
  }
  std::ranges::sort(step.kernels, {}, [](const auto& kernel) { return kernel.box.min; });
  return step;
}

/// Returns the plan of some shapes without its code; enters the constants into `weights`.
Result<ModulePlan::Shapes> make_shapes(const Partition& partition,
                                       const Sizes& sizes,
                                       const Target& target,
                                       ModuleKernels& kernels,
                                       const std::vector<size_t>& of_group,
                                       const StateMemory& states,
                                       const PartitionRange* range,
                                       Weights& weights) {
  std::vector<KernelMemory> needs;
  for (size_t g = 0; g < of_group.size(); ++g) {
    const GroupKernels& made = kernels.made()[of_group[g]];
    needs.push_back(target.is_gpu() ? gpu_memory_of(partition, g, sizes, made) : memory_of(made));
  }
  MemoryPlan memory = plan_memory(partition, needs, alignment_of(target), states, range);
  ModulePlan::Shapes plan;
  plan.arena_bytes = memory.arena_bytes;
  for (size_t g = 0; g < partition.groups.size(); ++g) {
    const Group& group = partition.groups[g];
    const Artifact& artifact = kernels.made()[of_group[g]].front().artifact;
    CHECK(artifact.arguments.size() == group.inputs.size() + 1) << group.name;
    ModulePlan::Step& step = plan.steps.emplace_back();
    step = describe_step(group, kernels.made()[of_group[g]], target);
    step.workspace = memory.workspaces[g];
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      const ValueId input = group.inputs[i];
      if (const std::optional<ValuePlace> numbers = sizes.parameters(input)) {
        step.args.push_back(*numbers);
        continue;
      }
      ValuePlace place = memory.values[input.value];
      const PackSpec& pack = artifact.arguments[i].pack;
      CHECK(pack.identity() || place.place == Place::kConstant)
          << group.name << " packs an activation";
      if (place.place == Place::kConstant) place.index = weights.offset_of(partition, input, pack);
      step.args.push_back(place);
    }
    for (IndexInput& read : index_inputs(partition, g, sizes)) {
      const ValueId id = group.inputs[read.input];
      step.indices.push_back({{step.args[read.input], sizes.bytes(id)},
                              read.input,
                              dtype_bytes(partition[id].dtype),
                              partition[id].name,
                              std::move(read.extents),
                              read.from_end});
    }
    step.args.push_back(memory.values[group.output.value]);
    if (target.is_gpu()) TRY(make_launches(artifact, of_group[g], kernels, step));
  }
  for (PlannedCopy& copy : memory.copies) {
    copy.bytes = sizes.bytes(copy.value);
    if (copy.from.place != Place::kConstant) continue;
    const ValueId constant{static_cast<int32_t>(copy.from.index)};
    if (const std::optional<ValuePlace> numbers = sizes.parameters(constant)) {
      copy.from = *numbers;
    } else {
      copy.from.index = weights.offset_of(partition, constant, {});
    }
  }
  plan.copies = std::move(memory.copies);
  return plan;
}

/// Returns the dims of tensors, one after the other, as numbers of the plan.
std::vector<int64_t> dims_of(const std::vector<std::vector<Expr>>& shapes, PlanFormulas& formulas) {
  std::vector<int64_t> dims;
  for (const std::vector<Expr>& shape : shapes)
    for (const Expr& extent : shape) dims.push_back(formulas.number(extent));
  return dims;
}

}  // namespace

ScheduleChoice schedule_choice(const RecordedSchedules& schedules) {
  return [&schedules](const Task& task, const Space& space) { return schedules.best(task, space); };
}

ScheduleTimes schedule_times(const RecordedSchedules& schedules) {
  return [&schedules](const Task& task, const Space& space, const Candidate& candidate) {
    return schedules.cost_s(task, space, candidate);
  };
}

// Returns up to `count` of the fastest trials of a task, the fastest first.
static std::vector<Trial> fastest_trials(const Tuner& tuner, const Task& task, size_t count) {
  for (const TunedTask& tuned : tuner.tasks())
    if (tuned.task->task.key == task.key) return tuned.history.best(count);
  return {};
}

ScheduleChoice schedule_choice(const Tuner& tuner) {
  return [&tuner](const Task& task, const Space&) -> std::optional<Candidate> {
    const std::vector<Trial> best = fastest_trials(tuner, task, 1);
    return best.empty() ? std::nullopt : std::optional(best.front().candidate);
  };
}

ScheduleChoice runner_up_choice(const Tuner& tuner) {
  constexpr double kNearly = 1.1;
  return [&tuner](const Task& task, const Space&) -> std::optional<Candidate> {
    const std::vector<Trial> best = fastest_trials(tuner, task, 2);
    if (best.empty()) return std::nullopt;
    const bool near = best.back().cost_s <= kNearly * best.front().cost_s;
    return (near ? best.back() : best.front()).candidate;
  };
}

Candidate chosen_schedule(const Task& task, const Space& space, const ScheduleChoice& choice) {
  if (choice) {
    if (std::optional<Candidate> chosen = choice(task, space)) return *std::move(chosen);
  }
  return default_schedule(task, space);
}

// Writes the file: a shared library, or a static library with its header.
static Result<Unit> write_module(const ModulePlan& plan,
                                 const std::vector<std::string_view>& objects,
                                 const Weights& weights,
                                 const TemporaryFolder& folder,
                                 int jobs,
                                 const OutputFile& output,
                                 const std::string& path) {
  const std::string name = static_name(path);
  TRY_ASSIGN(const int64_t place,
             name.empty() ? link_module(plan, objects, folder, output.path())
                          : archive_module(plan, objects, name, output.path()));
  TRY(weights.write(output.path(), place, jobs));
  // A static library has no checksum, since nothing checks it when its program is loaded.
  if (name.empty()) TRY(add_checksum(output.path()));
  TRY(output.commit());
  if (name.empty()) return Unit{};
  const auto header = std::filesystem::path(path).parent_path() / (name + ".h");
  return write_file(header.string(), static_header(name));
}

// Adds a phase to the plan, with a plan for each range of shapes; returns the code of its formulas.
static Result<Artifact> add_phase(const Phase& phase,
                                  const Target& target,
                                  const StateMemory& states,
                                  Weights& weights,
                                  ModuleKernels& kernels,
                                  ModulePlan& plan) {
  const NetworkRanges* const network = phase.ranges.get();
  ModulePlan::Phase& made = plan.phases.emplace_back();
  if (network != nullptr) made.symbols = network->symbols;
  PlanFormulas formulas(made.symbols);
  const Partition& greatest = phase.partition;
  made.name = phase.name;
  made.inputs = specs_of(greatest, callers(greatest, greatest.inputs, &State::input));
  made.outputs = specs_of(greatest, callers(greatest, greatest.outputs, &State::output));
  const auto add = [&](const Partition& partition, const PartitionRange* range) -> Result<Unit> {
    const bool one = range == nullptr || range->is_one_shape();
    const PartitionRange* varies = one ? nullptr : range;
    TRY_ASSIGN(const std::vector<size_t> of_group, kernels.add(partition, network, varies));
    const Sizes sizes(partition, varies, formulas);
    TRY_ASSIGN(ModulePlan::Shapes shapes,
               make_shapes(partition, sizes, target, kernels, of_group, states, varies, weights));
    made.shapes.push_back(std::move(shapes));
    if (range == nullptr) return Unit{};
    std::vector<std::vector<Expr>> outputs;
    for (const ValueId id : partition.outputs) outputs.push_back(range->shapes[id.value]);
    made.shapes.back().box = range->box;
    made.shapes.back().output_dims = dims_of(outputs, formulas);
    return Unit{};
  };
  if (network == nullptr) {
    TRY(add(greatest, nullptr));
  } else {
    for (const PartitionRange& range : network->ranges) TRY(add(range.largest, &range));
    made.input_dims = dims_of(network->input_shapes, formulas);
  }
  plan.state_bytes = states.bytes;
  if (formulas.size() == 0) return Artifact{};
  made.num_formulas = formulas.size();
  const std::string number = plan.phases.size() == 1 ? "" : std::to_string(plan.phases.size() - 1);
  // Formulas run on the host of a GPU, which may be any CPU of the instruction set.
  const char* const any = target.isa == Isa::kX86 ? "llvm -mcpu=x86-64" : "llvm";
  TRY_ASSIGN(const Target host, target.is_gpu() ? parse_target(any, 1) : target);
  TRY_ASSIGN(Artifact code, compile(formulas.program(), host, "pruner_formulas" + number));
  made.formulas = code.symbol;
  return code;
}

namespace {

/// Computes the blocks of a pipeline's tensors in the arena, from the stage that makes a tensor to
/// the last stage that reads it. A block has its tensor's number; a part of a tensor lies in the
/// whole tensor's block.
class TensorBlocks {
 public:
  TensorBlocks(const Pipeline& pipeline, int64_t alignment) : pipeline_(pipeline) {
    const int end = static_cast<int>(pipeline.stages.size());
    for (const Pipeline::Tensor& tensor : pipeline.tensors) {
      const int64_t bytes = element_count(tensor.shape) * dtype_bytes(tensor.dtype);
      blocks_.push_back({tensor.part_of ? 0 : aligned(bytes, alignment), end, 0});
    }
    for (const size_t tensor : pipeline.inputs) blocks_[tensor].bytes = 0;
    for (int s = 0; s < end; ++s) {
      const Pipeline::Stage& stage = pipeline.stages[static_cast<size_t>(s)];
      for (const size_t tensor : stage.inputs) use(tensor, s, s);
      for (const size_t tensor : stage.outputs) use(tensor, s, s);
      use(stage.then, s, s);
    }
    for (const Pipeline::Loop& loop : pipeline.loops) use(loop);
    for (const size_t tensor : pipeline.outputs) use(tensor, end, end);
  }

  std::vector<ArenaBlock> take() { return std::move(blocks_); }

 private:
  void use(std::optional<size_t> tensor, int first, int last) {
    if (!tensor) return;
    ArenaBlock& block = blocks_[pipeline_.owner_of(*tensor)];
    block.first = std::min(block.first, first);
    block.last = std::max(block.last, last);
  }

  void use(const Pipeline::Parts& parts, int first, int last) {
    for (const Pipeline::Found& found : parts.found) {
      use(found.room, first, last);
      use(found.count, first, last);
      if (!found.room) blocks_[found.part].bytes = 0;
    }
    for (const Pipeline::Join& join : parts.joins) {
      use(join.whole, first, last);
      for (const size_t part : join.parts) use(part, first, last);
    }
  }

  // Tensors that a loop reads, or that its rounds make together, live in all of its rounds.
  void use(const Pipeline::Loop& loop) {
    const int first = static_cast<int>(loop.first), last = static_cast<int>(loop.last);
    for (const auto& tensor : {loop.trips, loop.condition, loop.next, loop.rounds})
      use(tensor, first, last);
    use(loop.round, first, last);
    for (const Pipeline::Loop::Carried& carried : loop.carried)
      for (const size_t tensor : {carried.init, carried.state, carried.next, carried.last})
        use(tensor, first, last);
    for (const Pipeline::Loop::Stack& stack : loop.stacks) {
      use(stack.init, first, last);
      use(stack.part, first, last);
      use(stack.whole, first, last);
    }
    use(loop.begin, first, last);
    use(loop.then, first, last);
    for (ArenaBlock& block : blocks_)
      if (block.first < first && block.last >= first) block.last = std::max(block.last, last);
  }

  const Pipeline& pipeline_;
  std::vector<ArenaBlock> blocks_;
};

}  // namespace

// Places the tensors that stages hand on.
static void place_tensors(const Pipeline& pipeline, int64_t alignment, ModulePlan& plan) {
  std::vector<ArenaBlock> blocks = TensorBlocks(pipeline, alignment).take();
  plan.tensor_bytes = place_blocks(blocks);
  for (size_t t = 0; t < blocks.size(); ++t) {
    const Pipeline::Tensor& tensor = pipeline.tensors[t];
    plan.tensors.push_back({.spec = {tensor.name, tensor.dtype, tensor.shape},
                            .offset = blocks[pipeline.owner_of(t)].offset});
  }
  for (size_t i = 0; i < pipeline.inputs.size(); ++i)
    plan.tensors[pipeline.inputs[i]].input = static_cast<int64_t>(i);
}

// Reports what cannot work before minutes of compiling.
static Result<Unit> check_buildable(std::span<const Phase> phases,
                                    bool staged,
                                    const States& states,
                                    const Target& target) {
  TRY(check_linkable(target.isa));
  if (target.is_gpu() && staged)
    return Error("extents that the data decide are for CPUs only; the target is ",
                 backend_name(target.backend));
  if (target.backend == Backend::kOpenCl && !states.all.empty())
    return Error("states are for CPUs and CUDA; the target is ", backend_name(target.backend));
  const NetworkRanges* const ranges = phases[0].ranges.get();
  if (target.is_gpu() && ranges != nullptr &&
      !std::ranges::all_of(ranges->ranges, &PartitionRange::is_one_shape))
    return Error("a kernel for GPUs is for one shape; the target is ",
                 backend_name(target.backend));
  const bool varies =
      std::ranges::any_of(phases, [](const Phase& phase) { return phase.ranges != nullptr; });
  if (varies && ((phases.size() > 1 && !staged) || !states.all.empty()))
    return Error("a module of several shapes has one phase, and keeps nothing from run to run");
  return Unit{};
}

// pruner_module_checked() of the module.
static std::string how_checked(const ModuleOptions& options, const Target& target) {
  if (!options.check) return "not checked: --no-check";
  const Result<Unit> runnable = check_runnable(target);
  return runnable.ok() ? "checked" : "not checked: " + runnable.error().message();
}

Result<ModuleSummary> build_module(std::span<const Phase> phases,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  TRY_ASSIGN(const States states, place_states(phases, alignment_of(target)));
  TRY(check_buildable(phases, phases.front().pipeline != nullptr, states, target));
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(options.work_dir));
  TRY_ASSIGN(const OutputFile output, OutputFile::open(path));

  Weights weights(alignment_of(target));
  ModuleOptions checked = options;
  if (checked.reports.empty()) checked.reports = path;
  ModuleKernels kernels(target, choice, checked, weights);
  ModulePlan plan;
  plan.backend = target.backend;
  plan.isa = target.isa;
  plan.threads = target.threads;
  plan.flushes_denormals = options.flushes_denormals;
  plan.checked = how_checked(options, target);
  plan.numerics = numerics_name(phases.front().partition.numerics);
  if (!target.is_gpu()) plan.cpu_features = cpu_features(target);
  std::vector<Artifact> formulas;  // code
  for (size_t p = 0; p < phases.size(); ++p) {
    TRY_ASSIGN(Artifact code,
               add_phase(phases[p], target, states.of_phase[p], weights, kernels, plan));
    if (!code.object.empty()) formulas.push_back(std::move(code));
  }
  place_words(plan);
  plan.pipeline = phases.front().pipeline;
  if (plan.pipeline != nullptr) place_tensors(*plan.pipeline, alignment_of(target), plan);
  plan.states = states.all;
  plan.weight_bytes = weights.bytes();
  if (row_of(target.backend).has_arch) {
    TRY_ASSIGN(plan.gpu_arch, cuda_arch(target));
  }
  ModuleSummary summary;
  std::vector<std::string_view> objects;
  for (const GroupKernels& group : kernels.made()) {
    for (const ModuleKernel& kernel : group) {
      if (target.is_gpu()) {
        plan.code_files.push_back(folder.path(fmt::format("code_{}.bin", plan.code_files.size())));
        TRY(write_file(plan.code_files.back(), kernel.artifact.object));
      } else if (!kernel.artifact.object.empty()) {
        objects.push_back(kernel.artifact.object);
      }
      ++summary.kernels;
    }
  }
  for (const Artifact& code : formulas) objects.push_back(code.object);
  TRY(write_module(plan, objects, weights, folder, options.jobs, output, path));

  summary.checked_kernels = kernels.checked();
  summary.replaced_kernels = kernels.replaced();
  summary.checked = plan.checked;
  summary.numerics = plan.numerics;
  summary.weight_bytes = weights.bytes();
  summary.state_bytes = plan.state_bytes;
  summary.activation_bytes = plan.arena_bytes() - plan.state_bytes;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

Result<ModuleSummary> build_module(const Partition& partition,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path) {
  const Phase phase{"main", partition};
  return build_module(std::span(&phase, 1), target, choice, options, path);
}

}  // namespace pruner
