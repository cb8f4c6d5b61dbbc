#include "cli/option_table.h"

#include <charconv>
#include <optional>

#include "support/match.h"

namespace pruner {

namespace {

constexpr uint32_t kInput = kInputOptions;

const OptionRow kOptions[] = {
    {"model", &Options::model_file, kInput, "the network: an ONNX file"},
    {"--network",
     &Options::network,
     kInput | kMakeOptions,
     "a built-in network (`pruner networks` lists them)"},
    {"--op", &Options::op, kInput | kMakeOptions, "an operator, e.g. 'matmul 512 512 512 +relu' (`pruner ops`)"},
    {"--task", &Options::task, kInput, "a compute DAG as JSON; with --print: the number of a task"},
    {"--batch-size", &Options::batch_size, kInput | kNameArgument | kMakeOptions, "of a built-in network", 1},
    {"--image-size", &Options::image_size, kInput | kNameArgument | kMakeOptions, "of a built-in network", 1},
    {"--seq-len", &Options::sequence_length, kInput | kNameArgument | kMakeOptions, "of a built-in network", 1},
    {"--input-shapes", &Options::input_shapes, kInput, "for dynamic dims: name:1x3x224x224,..."},

    {"--target",
     &Options::target,
     kTargetOptions,
     "e.g. 'llvm -mcpu=haswell', 'cuda --model=a100'; default: this machine"},
    {"--threads",
     &Options::threads,
     kTargetOptions | kThreadsOption,
     "threads of a kernel; 0: all cores"},
    {"--psa",
     &Options::device_abstraction,
     kSearchOptions | kFeaturesOptions,
     "device whose numbers the analysis takes: a name (`pruner devices`) or FILE.json"},
    {"--psa-form",
     &Options::psa_form,
     kFeaturesOptions,
     "of the draft score on a GPU: release (as published with Pruner; 1/ms), paper or ours"},
    {"--compat",
     &Options::compat,
     kFeaturesOptions,
     "no data flow where the reference has none: on CPUs"},
    {"--seed", &Options::seed, kSearchOptions | kMakeOptions, "of every random choice (0)"},
    {"--forms",
     &Options::forms,
     kSearchOptions,
     "forms of a task to use: direct, split-k, winograd-2x2, winograd-4x4; default: all"},
    {"--jobs",
     &Options::jobs,
     kSearchOptions | kCheckOptions | kMakeOptions,
     "threads that search, build, check or read; 0: all cores"},

    {"--n-trials",
     &Options::trials,
     kExplorerOptions,
     "candidates to measure, resumed runs included (1000); of `compare`: in each mode",
     1},
    {"--n-trials",
     &Options::trials,
     kCompileOptions,
     "0: nothing is measured here; `pruner tune` does it"},
    {"--budget",
     &Options::budget,
     kTuneOptions,
     "time to tune, resumed runs included: 30s, 10m, 1h"},
    {"--early-stopping",
     &Options::early_stopping,
     kTuneOptions,
     "end after so many trials without gain"},
    {"--task-early-stopping",
     &Options::task_early_stopping,
     kTuneOptions,
     "the same for each task"},
    {"--num-measures-per-round,--num-measure-per-iter",
     &Options::round_size,
     kExplorerOptions,
     "trials a round (10)",
     1},
    {"--cost-model,--model",
     &Options::cost_model,
     kTuneOptions,
     "how candidates are found and ranked: pam (pruner), pam-siamese-update (moa-pruner), mlp "
     "(ansor), mlp-no-update (tenset-mlp), tlp-no-update (tlp), xgb (ansor-xgb), draft-only, "
     "random, ..."},
    {"--load-model",
     &Options::load_model,
     kTuneOptions | kFeaturesOptions,
     "weights of a learned cost model: .pkl, .pth, safetensors, or xgboost's JSON"},
    {"--modes",
     &Options::modes,
     kCompareOptions,
     "two or more cost models of `tune`, e.g. ansor,pruner,pruner-without-dataflow; the first is "
     "the measure"},
    {"--seeds", &Options::seeds, kCompareOptions, "runs of each mode, from --seed on (3)", 1},
    {"--load-model",
     &Options::weights,
     kCompareOptions,
     "MODE=FILE, once a mode: its weights; FILE alone: of the modes that need some"},
    {"--policy",
     &Options::policy,
     kTuneOptions,
     "pruner (draft, then verify), ansor, or uniform (no model)"},
    {"--train",
     &Options::training,
     kExplorerOptions,
     "as-published: refit from scratch after every round"},
    {"--population", &Options::population, kExplorerOptions, "candidates a generation (1536)"},
    {"--islands", &Options::islands, kExplorerOptions, "parts of it that evolve alone (4)"},
    {"--draft-generations",
     &Options::draft_generations,
     kExplorerOptions,
     "generations by the draft (2)"},
    {"--draft-size", &Options::draft_size, kExplorerOptions, "drafts that are verified (512)"},
    {"--redraft-every",
     &Options::redraft_every,
     kExplorerOptions,
     "rounds of a task verified from the same drafts (2)"},
    {"--verify-generations",
     &Options::verify_generations,
     kExplorerOptions,
     "generations by the learned model (1)"},
    {"--eps-greedy",
     &Options::eps_greedy,
     kExplorerOptions,
     "share of a batch that is drawn at random (0.1)"},
    {"--eps-greedy",
     &Options::eps_greedy,
     kCollectOptions,
     "share of the programs that is drawn uniformly; the rest are mutations of drawn ones (0.5)"},
    {"--programs-per-task",
     &Options::programs_per_task,
     kCollectOptions,
     "programs to measure, resumed runs included (1000)",
     1},
    {"--momentum-period",
     &Options::momentum_period,
     kExplorerOptions,
     "rounds between trainings of pam-siamese-update (4)"},
    {"--tasks",
     &Options::tasks_regex,
     kExplorerOptions | kCollectOptions,
     "only the tasks whose name matches"},
    {"--work-dir",
     &Options::work_dir,
     kExplorerOptions,
     "folder of the run; `tune` in the same again resumes"},
    {"--fresh", &Options::fresh, kTuneOptions, "set the folder's records aside and start anew"},
    {"--continue-tuning",
     &Options::continue_tuning,
     kTuneOptions,
     "go on even if no record there is of this model"},
    {"--resume",
     &Options::resume,
     kTuneOptions,
     "the default: earlier records of the folder are used"},
    {"--dry-run", &Options::dry_run, kTuneOptions, "print the tasks and what would be done"},

    {"--records,--logs,--log-file",
     &Options::records,
     kRecordsOption,
     "records to take the best schedules from"},
    {"--records,--logs",
     &Options::records,
     kMakeOptions,
     "record files, patterns or folders; packed or not",
     0,
     true},
    {"--dags",
     &Options::dags,
     kMakeOptions,
     "files of compute DAGs, for keys that are a hash, and of networks' tasks",
     0,
     true},
    {"--target",
     &Options::targets,
     kMakeOptions,
     "only records of this device: 'cuda --model=k80', llvm; several: of all of them",
     0,
     true},
    {"--mixed-targets", &Options::mixed_targets, kMakeOptions, "take records of any device"},
    {"--hold-out",
     &Options::hold_out,
     kMakeOptions,
     "leave out the tasks of networks: all_five, resnet-50, or names with commas between them"},
    {"--preset",
     &Options::preset,
     kMakeOptions,
     "only the tasks of networks: batch-size-1, or names with commas between them"},
    {"--sample-in-files", &Options::sample_in_files, kMakeOptions, "so many files, drawn at random"},
    {"--min-sample-size",
     &Options::min_sample_size,
     kMakeOptions,
     "leave out tasks with fewer programs (48)"},
    {"--n-task", &Options::max_tasks, kMakeOptions, "only the first so many tasks"},
    {"--failed", &Options::failed, kMakeOptions, "failed trials: keep (the default) or drop"},
    {"--duplicates",
     &Options::duplicates,
     kMakeOptions,
     "of a program measured more than once: best (the default) or last"},
    {"--pam",
     &Options::pam,
     kMakeOptions,
     "of make_dataset.py; the file has the features of every model"},
    {"files", &Options::files, kFilesArgument, "record files"},
    {"--dags", &Options::dags, kCheckOptions, "files of compute DAGs, for keys that are a hash"},
    {"name", &Options::name, kNameArgument, "a built-in network"},
    {"name", &Options::name, kDeviceArgument, "a device (`pruner devices`) or its FILE.json"},
    {"-o,--out-file", &Options::out_file, kOutOption, "the file to write"},
    {"--module", &Options::module, kModuleOption, "the module (made by `pruner compile`)"},
    {"--inputs", &Options::inputs, kArraysOptions, "an .npz file with the inputs by name"},
    {"--outputs", &Options::outputs, kArraysOptions, "the .npz file to write"},

    {"--min-time", &Options::min_time_s, kBenchOptions, "seconds to measure for"},
    {"--profile", &Options::profile, kBenchOptions, "time each kernel"},
    {"--print",
     &Options::print,
     kPrintOptions,
     "dag, sketches, candidate, nest, draft, program, llvm, asm, cuda, opencl or ptx"},
    {"--json", &Options::json, ~0u, "the result as JSON on standard output"},
    {"--verbose", &Options::verbose, ~0u, "say more on standard error"},
};

/// The whole text as a number.
template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::span<const OptionRow> option_table() { return kOptions; }

Result<Unit> assign(const OptionRow& row,
                    const std::string& flag,
                    const std::vector<std::string>& values,
                    Options& options) {
  const std::string& value = values.back();
  const auto number = [&]<typename T>(T Options::*field, const char* kind) -> Result<Unit> {
    const std::optional<T> parsed = parse_number<T>(value);
    if (!parsed) return Error(flag, ": \"", value, "\" is not ", kind);
    if (*parsed < static_cast<T>(row.least))
      return Error(flag, ": ", value, " is less than ", row.least);
    options.*field = *parsed;
    return Unit{};
  };
  return match(
      row.field,  //
      [&](bool Options::*field) -> Result<Unit> {
        options.*field = true;
        return Unit{};
      },
      [&](int64_t Options::*field) { return number(field, "a whole number"); },
      [&](double Options::*field) { return number(field, "a number"); },
      [&](std::string Options::*field) -> Result<Unit> {
        options.*field = value;
        return Unit{};
      },
      [&](std::vector<std::string> Options::*field) -> Result<Unit> {
        options.*field = values;
        return Unit{};
      });
}

}  // namespace pruner
