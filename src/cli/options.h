// Every command-line option, in one table for all commands, and what a command line says.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "support/result.h"

namespace pruner {

/// What a command line says: a field an option, its default where it is not given.
struct Options {
  // What is compiled or tuned.
  std::string model_file, network, op;
  std::vector<std::string> models;  // of a command that takes several networks
  std::string network_set;          // ... a file of them
  std::string task;                 // a DAG file; with --print: the number of a task
  int64_t batch_size = 1, image_size = 0, sequence_length = 0;
  std::string input_shapes;
  // What for.
  std::string target = "llvm";
  int64_t threads = 0, jobs = 0;  // 0: all cores
  int64_t seed = 0;
  std::string forms, device_abstraction, psa_form;
  // Tuning.
  int64_t trials = 0;   // 0: 1000, or what the budget allows
  std::string devices;  // of the target's backend; empty: the first
  bool flush_l2 = false;
  std::string budget;
  int64_t early_stopping = 0, task_early_stopping = 0, round_size = 10;
  std::string cost_model = "pam", load_model, policy, search, training;
  bool allow_untrained = false;
  int64_t population = 0, islands = 0, draft_generations = 0, draft_size = 0, redraft_every = 0;
  int64_t verify_generations = 0, momentum_period = 0;  // 0: the default of each
  double eps_greedy = -1;                               // < 0: the default
  std::string modes;                                    // that are compared
  int64_t seeds = 3;
  std::vector<std::string> weights;  // FILE or MODE=FILE
  std::string tasks_regex, work_dir;
  int64_t programs_per_task = 1000;
  // A file of features.
  std::vector<std::string> targets;
  std::string hold_out, preset, failed = "keep", duplicates = "best";
  int64_t sample_in_files = 0, min_sample_size = -1, max_tasks = 0, pam = 1;
  bool mixed_targets = false;
  // Transfer.
  std::vector<std::string> pool;  // records of tuned networks
  std::string source;             // of the pool: auto or a file
  int64_t verify = 0;             // of a task's offers, those to measure; 0: all
  std::string experiment;         // a set of networks
  bool minute_check = false;
  bool no_shipped_records = false;
  int64_t stops = 30;  // at which a search is looked at
  // Going on.
  bool fresh = false, continue_tuning = false, resume = false, dry_run = false;
  // Learning from feature files.
  std::vector<std::string> datasets;
  std::string split_scheme = "within_task", save_path;
  double train_ratio = 0.9, share = 1, learning_rate = 0;
  int64_t folds = 1, epochs = 0, file_count = 0, unused = 0;
  bool all = false, new_tasks = false, use_gpu = false;
  // Files.
  std::vector<std::string> records, files, dags;
  std::string out_file, name, module, inputs, outputs;
  // Records.
  int64_t top_k = 1;
  std::string by, order;
  bool strict = false;
  // Timing and showing.
  double min_time_s = 1;
  bool compat = false, profile = false, json = false, verbose = false;
  std::string print;
  std::string command_line;  // as given, for reports
};

/// A command line that was understood: a command to run, or a text that it asked for.
struct CommandLine {
  const Command* command = nullptr;
  Options options;
  std::string text;  // --help, --version
};

/// Reads a command line. Errors name the command or flag that is not known, or the value that does
/// not fit, and say where help is.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace pruner
