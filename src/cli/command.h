// A subcommand: its name, what it takes, what it runs. One row in kCommands (commands.h) each.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/result.h"

namespace pruner {

struct Options;

/// Options that commands take, in groups.
enum OptionGroup : uint64_t {
  kInputOptions = 1 << 0,   // operator or DAG, sizes of a network
  kTargetOptions = 1 << 1,  // target, threads
  kTuneOptions = 1 << 2,    // limits, the mode, resuming
  kRecordsOption = 1 << 3,
  kOutOption = 1 << 4,
  kPrintOptions = 1 << 5,
  kModuleOption = 1 << 6,
  kArraysOptions = 1 << 7,  // .npz files
  kBenchOptions = 1 << 8,
  kNameArgument = 1 << 9,
  kFilesArgument = 1 << 10,
  kSearchOptions = 1 << 11,  // seed, forms, jobs
  kThreadsOption = 1 << 12,
  kDeviceArgument = 1 << 13,
  kCheckOptions = 1 << 14,  // DAGs, jobs
  kCompileOptions = 1 << 15,
  kFeaturesOptions = 1 << 16,  // what scores and shows programs
  kExplorerOptions = 1 << 17,  // trials, work dir, training, the explorer's constants
  kCompareOptions = 1 << 18,
  kCollectOptions = 1 << 19,
  kStatOptions = 1 << 20,
  kTopOption = 1 << 21,
  kMergeOptions = 1 << 22,
  kSplitOptions = 1 << 23,
  kConvertOptions = 1 << 24,
  kSimulateOptions = 1 << 25,
  kMakeOptions = 1 << 26,     // a file of features
  kDatasetsOption = 1 << 27,  // feature files
  kPretrainOptions = 1 << 28,
  kFineTuneOptions = 1 << 29,
  kEvalOptions = 1 << 30,
  kPoolOptions = 1ull << 31,      // records that schedules are taken from
  kTransferOptions = 1ull << 32,  // which of them, and how many are measured
  kMeasureOptions = 1ull << 33,   // on which GPUs, and how
  kOneNetwork = 1ull << 34,       // MODEL.onnx or --network
  kReportOptions = 1ull << 35,    // finished runs
};

enum ExitCode : int { kDone = 0, kInternalError = 1, kUserError = 2, kInterrupted = 130 };

struct Command {
  std::string_view name;  // "tune", "networks export"; "networks" alone is a row too
  std::string_view help;
  uint64_t options;                            // OptionGroups
  Result<int> (*run)(const Options& options);  // the exit code; an error is the user's to mend
  bool hidden = false;
};

}  // namespace pruner
