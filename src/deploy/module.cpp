#include "deploy/module.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/codegen.h"
#include "codegen/cpu_features.h"
#include "codegen/cuda/nvrtc.h"
#include "deploy/link_module.h"
#include "deploy/memory_plan.h"
#include "deploy/weights.h"
#include "graph/ops/op.h"
#include "lower/lower.h"
#include "runtime/module/plan.h"
#include "search/search.h"
#include "space/precision.h"
#include "support/file.h"
#include "support/output_file.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

struct Kernel {
  Artifact artifact;
  std::string sketch;     // its name, for profiles
  std::string precision;  // precision_of(); empty: a routine
};

/// The kernels of a partition: groups of one key share one.
struct Kernels {
  std::vector<size_t> first_group;  // of each kernel
  std::vector<size_t> of_group;     // the number of its kernel, by group
  std::vector<Kernel> made;
};

/// For each argument of a group's kernel the tensor that it is a slice of; empty where it is whole.
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

Kernels distinct_kernels(const Partition& partition) {
  Kernels kernels;
  std::map<std::pair<std::string, std::vector<std::vector<int64_t>>>, size_t> known;
  for (size_t g = 0; g < partition.groups.size(); ++g) {
    const Group& group = partition.groups[g];
    const auto [at, is_new] =
        known.try_emplace({group.key, boxes_of(partition, group)}, kernels.first_group.size());
    if (is_new) kernels.first_group.push_back(g);
    kernels.of_group.push_back(at->second);
  }
  return kernels;
}

int64_t bytes_of(const Artifact::Argument& argument) {
  int64_t bytes = dtype_bytes(argument.dtype);
  for (const int64_t extent : argument.shape) bytes *= extent;
  return bytes;
}

/// What a group that a routine runs needs of the module, whose runtime has the code.
Kernel routine_kernel(const Partition& partition, const Group& group) {
  Kernel kernel;
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

/// Bytes that a group's inputs and output have.
int64_t routine_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Artifact::Argument& argument : kernel.artifact.arguments) bytes += bytes_of(argument);
  return bytes;
}

Result<Kernel> compile_group(const Partition& partition,
                             const Group& group,
                             const Target& target,
                             const ScheduleChoice& choice,
                             std::span<const std::string> forms,
                             const std::string& symbol) {
  if (group.routine != nullptr) return routine_kernel(partition, group);
  const Task task = make_task(group.dag, target, group.name);
  const Space space = make_space(task, forms);
  const Candidate candidate = chosen_schedule(task, space, choice);
  TRY_ASSIGN(Program program, lower(space, candidate, symbol));
  std::vector<std::vector<int64_t>> boxes = boxes_of(partition, group);
  for (size_t a = 0; a < boxes.size(); ++a)
    // After lowering: a schedule is of the task, whose tensors are whole.
    program.buffers[program.args[a].value].box_of = std::move(boxes[a]);
  TRY_ASSIGN(Artifact artifact, compile(program, target, symbol));
  const Sketch& sketch = space[candidate.sketch];
  return Kernel{std::move(artifact), sketch.name, std::string(precision_of(sketch))};
}

Result<Kernels> compile_kernels(const Partition& partition,
                                const Target& target,
                                const ScheduleChoice& choice,
                                const ModuleOptions& options) {
  Kernels kernels = distinct_kernels(partition);
  const size_t n = kernels.first_group.size();
  std::vector<std::optional<Result<Kernel>>> compiled(n);
  parallel_for(static_cast<int64_t>(n), options.jobs, [&](int64_t i) {
    const auto k = static_cast<size_t>(i);
    const Group& group = partition.groups[kernels.first_group[k]];
    // A GPU's kernels are programs of their own: under one name they are found in the cubin cache.
    const std::string symbol = target.is_gpu() ? "kernel" : fmt::format("pruner_kernel_{}", k);
    compiled[k] = compile_group(partition, group, target, choice, options.forms, symbol);
  });
  for (size_t k = 0; k < n; ++k) {
    if (!compiled[k]->ok()) {
      return Error(
          partition.groups[kernels.first_group[k]].name, ": ", compiled[k]->error().message());
    }
    kernels.made.push_back(**std::move(compiled[k]));
  }
  return kernels;
}

std::vector<TensorSpec> specs_of(const Partition& partition, const std::vector<ValueId>& values) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : values)
    specs.push_back({partition[id].name, partition[id].dtype, partition[id].shape});
  return specs;
}

/// What offsets in the arena and the weights are multiples of.
int64_t alignment_of(const Target& target) {
  return target.is_gpu() ? int64_t{kPlanGpuAlignment} : kArenaAlignment;
}

/// A GPU's launches of a step, given where its arguments and its workspace are.
std::vector<ModulePlan::Launch> place_launches(const Artifact& artifact,
                                               size_t code,
                                               const ModulePlan::Step& step) {
  std::vector<ModulePlan::Launch> launches;
  for (const Artifact::Launch& launch : artifact.launches) {
    ModulePlan::Launch& placed = launches.emplace_back();
    placed = {launch.kernel,
              code,
              launch.blocks,
              launch.threads,
              launch.shared_bytes,
              launch.dynamic_bytes,
              {}};
    for (const int i : launch.arguments) {
      const auto a = static_cast<size_t>(i);
      placed.args.push_back({step.args[a], bytes_of(artifact.arguments[a])});
    }
    if (launch.workspace)
      placed.args.push_back({{Place::kArena, step.workspace}, artifact.workspace_bytes});
  }
  return launches;
}

/// The tensors of a group's inputs, other than constants, whose elements it reads at.
std::vector<ModulePlan::Indices> indices_of(const Partition& partition,
                                            const Group& group,
                                            const ModulePlan::Step& step) {
  std::vector<ModulePlan::Indices> indices;
  const std::vector<StageId> placeholders = group.dag.inputs();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const Stage& stage = group.dag[placeholders[i]];
    if (stage.read_at.empty() || step.args[i].place == Place::kConstant) continue;
    const int64_t bytes = dtype_bytes(stage.dtype);
    indices.push_back({{step.args[i], bytes * stage.num_elements()},
                       bytes,
                       partition[group.inputs[i]].name,
                       stage.read_at});
  }
  return indices;
}

/// What the module carries beside its code; constants are entered into `weights`.
ModulePlan make_plan(const Partition& partition,
                     const Target& target,
                     const Kernels& kernels,
                     Weights& weights) {
  std::vector<KernelMemory> needs;
  for (const size_t k : kernels.of_group) {
    const Artifact& artifact = kernels.made[k].artifact;
    // The pointers of a GPU's kernel are declared to share no memory.
    needs.push_back({artifact.workspace_bytes, artifact.rewrites || target.is_gpu()});
  }
  MemoryPlan memory = plan_memory(partition, needs, alignment_of(target));
  ModulePlan plan;
  plan.backend = target.backend;
  plan.isa = target.isa;
  plan.threads = target.threads;
  if (!target.is_gpu()) plan.cpu_features = cpu_features(target);
  plan.arena_bytes = memory.arena_bytes;
  plan.inputs = specs_of(partition, partition.inputs);
  plan.outputs = specs_of(partition, partition.outputs);
  for (size_t g = 0; g < partition.groups.size(); ++g) {
    const Group& group = partition.groups[g];
    const Kernel& kernel = kernels.made[kernels.of_group[g]];
    const Artifact& artifact = kernel.artifact;
    const bool runs = group.routine != nullptr;
    CHECK(artifact.arguments.size() == group.inputs.size() + 1) << group.name;
    ModulePlan::Step& step = plan.steps.emplace_back();
    step = {.name = group.name,
            .sketch = kernel.sketch,
            .flops = runs ? 0 : static_cast<int64_t>(flop_count(group.dag)),
            .bytes = runs ? routine_bytes(kernel) : static_cast<int64_t>(traffic_bytes(group.dag)),
            .symbol = target.is_gpu() ? "" : artifact.symbol,
            .args = {},
            .workspace = memory.workspaces[g],
            .precision = kernel.precision};
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      const ValueId input = group.inputs[i];
      ValuePlace place = memory.values[input.value];
      const PackSpec& pack = artifact.arguments[i].pack;
      CHECK(pack.identity() || place.place == Place::kConstant)
          << group.name << " packs an activation";
      if (place.place == Place::kConstant) place.index = weights.offset_of(input, pack);
      step.args.push_back(place);
    }
    step.indices = indices_of(partition, group, step);
    step.args.push_back(memory.values[group.output.value]);
    if (target.is_gpu()) {
      step.launches = place_launches(artifact, kernels.of_group[g], step);
      // A GPU's launches have them, each its own.
      step.args.clear();
    }
  }
  for (OutputCopy& copy : memory.copies) {
    if (copy.from.place == Place::kConstant) {
      copy.from.index = weights.offset_of(partition.outputs[copy.output], {});
    }
  }
  plan.copies = std::move(memory.copies);
  return plan;
}

}  // namespace

ScheduleChoice schedule_choice(const RecordedSchedules& schedules) {
  return [&schedules](const Task& task, const Space& space) { return schedules.best(task, space); };
}

ScheduleChoice schedule_choice(const Tuner& tuner) {
  return [&tuner](const Task& task, const Space&) -> std::optional<Candidate> {
    for (const TunedTask& tuned : tuner.tasks()) {
      const std::vector<Trial> trials = tuned.history.best(1);
      if (tuned.task->task.key == task.key && !trials.empty()) return trials.front().candidate;
    }
    return std::nullopt;
  };
}

Candidate chosen_schedule(const Task& task, const Space& space, const ScheduleChoice& choice) {
  if (choice) {
    if (std::optional<Candidate> chosen = choice(task, space)) return *std::move(chosen);
  }
  return default_schedule(task, space);
}

Result<ModuleSummary> build_module(const Partition& partition,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  // What cannot work is said before minutes of compiling.
  TRY(check_linkable(target.isa));
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(options.work_dir));
  TRY_ASSIGN(const OutputFile output, OutputFile::open(path));
  TRY_ASSIGN(const Kernels kernels, compile_kernels(partition, target, choice, options));

  Weights weights(partition, alignment_of(target));
  ModulePlan plan = make_plan(partition, target, kernels, weights);
  plan.weight_bytes = weights.bytes();
  if (row_of(target.backend).has_arch) {
    TRY_ASSIGN(plan.gpu_arch, cuda_arch(target));
  }
  std::vector<std::string_view> objects;
  for (const Kernel& kernel : kernels.made) {
    if (target.is_gpu()) {
      plan.code_files.push_back(folder.path(fmt::format("code_{}.bin", plan.code_files.size())));
      TRY(write_file(plan.code_files.back(), kernel.artifact.object));
    } else if (!kernel.artifact.object.empty()) {
      objects.push_back(kernel.artifact.object);
    }
  }
  TRY_ASSIGN(const int64_t place, link_module(plan, objects, folder, output.path()));
  TRY(weights.write(output.path(), place, options.jobs));
  TRY(add_checksum(output.path()));
  TRY(output.commit());

  ModuleSummary summary;
  summary.kernels = static_cast<int>(kernels.made.size());
  summary.weight_bytes = weights.bytes();
  summary.activation_bytes = plan.arena_bytes;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace pruner
