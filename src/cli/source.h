// What a command works on: the network, operator or DAG that the options name, as tasks.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "graph/partition.h"
#include "tensor/symbol.h"

namespace pruner {

/// What --task says of itself.
inline constexpr const char* kTaskHelp = "a compute DAG as JSON";

/// What to work on.
struct SourceOptions {
  /// Each empty unless it is given; read_source() takes exactly one.
  std::string model_file, network;
  std::vector<std::string> ops;                                  // operators: each a task
  std::string task;                                              // a DAG file
  NetworkOptions sizes = {.batch_size = 0, .input_shapes = {}};  // each 0: not given
  std::string input_shapes;            // "name:1x3x224x224,...", of an ONNX file's dynamic dims
  std::vector<std::string> constants;  // "name=file.npy", "name=1,3": values of its inputs
  std::string precision = "f32";       // of its contractions: f32, bf16 or auto
  std::string numerics = "onnx";       // its quantized operators round so: onnx or ort
  std::vector<std::string> dims;       // "seq=1..512@64,128", "batch=4": parse_symbol()
  std::string states;                  // "past.*=present.*,...": see mark_states()
  std::string decode;                  // what the second phase's inputs are like; empty: one phase

  void add_to(CLI::App& app, const char* task_help = kTaskHelp);
  /// All but the network's name.
  void add_others_to(CLI::App& app, const char* task_help = kTaskHelp);
  /// Those of a network alone, and of these those of its inputs.
  void add_network_to(CLI::App& app);
  void add_inputs_to(CLI::App& app);
  /// Those of an ONNX file's inputs alone: --input-shapes and --constant.
  void add_shapes_to(CLI::App& app);
  bool named() const { return !ops.empty() || !(model_file + network + task).empty(); }
  /// What is named, as it was given: "resnet_18", "matmul 64 64 64".
  std::string named_text() const;
};
/// Adds --batch-size, --image-size and --seq-len.
void add_sizes(CLI::App& app, NetworkOptions& sizes);
/// Adds --op.
void add_op(CLI::App& app, std::vector<std::string>& ops);
/// An error where several operators are given: a module is of one.
Result<Unit> check_one_operator(const SourceOptions& options);

/// What for.
struct TargetOptions {
  std::string name = "llvm";  // as --target has it: backend and attributes
  int threads = 0;            // of a kernel; 0: all cores
  std::string device;         // of --psa, whose numbers the analysis takes; empty: the target's own

  void add_to(CLI::App& app);  // without --psa
};
/// Adds --psa.
void add_psa(CLI::App& app, std::string& device);

/// An error where an option says something about a network of another kind than the one that is
/// named: about a built-in network for an ONNX file, about a network for an operator. The error
/// says what to use instead. Where nothing is named, an error for every such option but --dim.
Result<Unit> check_options(const SourceOptions& options);

/// The target, with the numbers of the device of --psa.
Result<Target> read_target(const TargetOptions& options);
/// Reads what the options name: MODEL.onnx, --network, --op or --task; exactly one of them. An
/// operator's constants are still without values.
Result<Source> read_source(const SourceOptions& options, const Target& target);
/// Draws an operator's constants, which its module holds; an error where there is no memory for its
/// inputs. A network has its constants.
Result<Unit> draw_constants(Source& source, uint64_t seed);
/// What the options say of a network's inputs, each of one shape.
Result<NetworkOptions> network_options(const SourceOptions& options);
/// --dim, in the order given.
Result<std::vector<Symbol>> read_symbols(const SourceOptions& options);
/// The network of MODEL.onnx or --network in its first phase, before the graph passes, and what it
/// is called.
Result<Graph> read_network(const SourceOptions& options);
std::string network_name(const SourceOptions& options);
/// Adds --tasks, for keep_matching().
void add_tasks(CLI::App& app, std::string& tasks);
/// Adds --forms.
void add_forms(CLI::App& app, std::string& forms);
/// --forms as a list; the error names a form that there is not.
Result<std::vector<std::string>> read_forms(const std::string& text);
/// Leaves the tasks whose name (its first 1000 characters) --tasks matches; an error where there is
/// none, and for a pattern of more characters.
Result<Unit> keep_matching(const std::string& pattern, std::vector<WeightedTask>& tasks);

/// A DAG as a network of one group: what is no constant is an input, constants are without values.
Partition single_group(ComputeDag dag, const std::string& name);

}  // namespace pruner
