// The subcommands of the program: one file in commands/ and one row here each.
#pragma once

#include "cli/command.h"

namespace pruner {

Result<int> run_tune(const Options& options);
Result<int> run_compare(const Options& options);
Result<int> run_report(const Options& options);
Result<int> run_transfer(const Options& options);
/// `transfer --experiment`.
Result<int> run_transfer_experiment(const Options& options);
Result<int> run_tasks(const Options& options);
Result<int> run_ops(const Options& options);
Result<int> run_networks_list(const Options& options);
Result<int> run_networks_export(const Options& options);
Result<int> run_compile(const Options& options);
Result<int> run_run(const Options& options);
Result<int> run_bench(const Options& options);
Result<int> run_devices_list(const Options& options);
Result<int> run_devices_host(const Options& options);
Result<int> run_device_show(const Options& options);
Result<int> run_device_probe(const Options& options);
Result<int> run_records_stat(const Options& options);
Result<int> run_records_best(const Options& options);
Result<int> run_records_distill(const Options& options);
Result<int> run_records_merge(const Options& options);
Result<int> run_records_split(const Options& options);
Result<int> run_records_convert(const Options& options);
Result<int> run_records_check(const Options& options);
Result<int> run_features(const Options& options);
Result<int> run_simulate(const Options& options);
Result<int> run_dataset_collect(const Options& options);
Result<int> run_dataset_make(const Options& options);
Result<int> run_train(const Options& options);
Result<int> run_fine_tune(const Options& options);
Result<int> run_eval(const Options& options);
Result<int> run_worker_build(const Options& options);
Result<int> run_worker_run(const Options& options);
Result<int> run_worker_device(const Options& options);

inline constexpr uint64_t kNetworkOptions = kOneNetwork | kInputOptions | kTargetOptions;

inline constexpr Command kCommands[] = {
    {"tune",
     "Search the schedules of a network or operator, measured on this machine.",
     kNetworkOptions | kSearchOptions | kMeasureOptions | kExplorerOptions | kTuneOptions |
         kPoolOptions | kOutOption,
     run_tune},
    {"compare",
     "Tune in several modes under equal conditions, in turns; show what each needs to reach what.",
     kInputOptions | kTargetOptions | kSearchOptions | kMeasureOptions | kExplorerOptions |
         kCompareOptions,
     run_compare},
    {"report",
     "Show finished runs of `tune` side by side, and their curves over one another.",
     kReportOptions | kOutOption,
     run_report},
    {"transfer",
     "Measure the schedules of other tuned networks on this one; no search.",
     kNetworkOptions | kSearchOptions | kMeasureOptions | kPoolOptions | kTransferOptions |
         kOutOption,
     run_transfer},
    {"compile",
     "Make a module of a network or operator, with the best records or without any.",
     kNetworkOptions | kSearchOptions | kRecordsOption | kOutOption | kPrintOptions |
         kCompileOptions,
     run_compile},
    {"run",
     "Run a module on the arrays of an .npz file.",
     kModuleOption | kThreadsOption | kArraysOptions,
     run_run},
    {"bench", "Time a module.", kModuleOption | kThreadsOption | kBenchOptions, run_bench},
    {"tasks", "List what would be tuned.", kNetworkOptions, run_tasks},
    {"ops", "List the operators that --op takes.", 0, run_ops},
    {"networks", "List the built-in networks.", 0, run_networks_list},
    {"networks list", "List the built-in networks.", 0, run_networks_list},
    {"networks export",
     "Write a built-in network as an ONNX file.",
     kNameArgument | kOutOption,
     run_networks_export},
    {"devices",
     "List what code can be made for: what is here, and known devices.",
     0,
     run_devices_list},
    {"devices list",
     "List what code can be made for: what is here, and known devices.",
     0,
     run_devices_list},
    {"devices host", "Describe this machine.", kThreadsOption, run_devices_host},
    {"device show", "Show the numbers of a device.", kDeviceArgument, run_device_show},
    {"device probe",
     "Measure this machine: peak, bandwidth of each memory level, launch cost.",
     kTargetOptions | kBenchOptions | kOutOption,
     run_device_probe},
    {"records stat",
     "Count what record files hold, by task or by file.",
     kFilesArgument | kStatOptions,
     run_records_stat},
    {"records best",
     "Show the fastest records of each task; with -o, write them.",
     kFilesArgument | kTopOption | kOutOption,
     run_records_best},
    {"records distill",
     "Write a file of the fastest records of each task.",
     kFilesArgument | kTopOption | kOutOption,
     run_records_distill},
    {"records merge",
     "Write the records of several files to one, without copies.",
     kFilesArgument | kMergeOptions | kOutOption,
     run_records_merge},
    {"records split",
     "Write a folder of record files: by task, by target, or to train and to test.",
     kFilesArgument | kSplitOptions | kOutOption,
     run_records_split},
    {"records convert",
     "Write records of any version as v0.6, packed or not by the name.",
     kFilesArgument | kConvertOptions | kOutOption,
     run_records_convert},
    {"records check",
     "Replay the steps of Ansor's records to loop nests; count which do.",
     kFilesArgument | kCheckOptions,
     run_records_check},
    {"features",
     "Show what the analysis and the models see of recorded programs.",
     kNetworkOptions | kRecordsOption | kCheckOptions | kFeaturesOptions,
     run_features},
    {"simulate",
     "Tune in several modes on a log: what is measured is looked up; show what each needs to find "
     "the log's best.",
     kNetworkOptions | kRecordsOption | kCheckOptions | kSimulateOptions,
     run_simulate},
    {"dataset collect",
     "Measure programs that no model chose, into a file of records.",
     kNetworkOptions | kSearchOptions | kMeasureOptions | kOutOption | kCollectOptions,
     run_dataset_collect},
    {"dataset make",
     "Make a file of features of recorded programs, for cost models to learn from.",
     kMakeOptions | kOutOption,
     run_dataset_make},
    {"train",
     "Train a cost model on feature files, and judge it by programs that it has not seen.",
     kDatasetsOption | kPretrainOptions | kOutOption,
     run_train},
    {"fine-tune",
     "Go on training a cost model, on records of another device.",
     kDatasetsOption | kPretrainOptions | kFineTuneOptions | kOutOption,
     run_fine_tune},
    {"eval",
     "Judge a cost model or the draft by measured programs, a model by those it has not seen.",
     kDatasetsOption | kEvalOptions,
     run_eval},
    {"worker build", "Build what standard input asks for.", 0, run_worker_build, true},
    {"worker run", "Run what standard input asks for.", 0, run_worker_run, true},
    {"worker device", "Run what standard input asks for on a GPU.", 0, run_worker_device, true},
};

}  // namespace pruner
