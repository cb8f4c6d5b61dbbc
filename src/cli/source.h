// The source that a command works on: the network, operator or DAG of the options, as tasks.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "graph/partition.h"
#include "tensor/symbol.h"

namespace pruner {

/// `kTaskHelp` is the help text of --task.
inline constexpr const char* kTaskHelp = "a compute DAG as JSON";

/// Holds the options that name the source a command works on.
struct SourceOptions {
  /// Each source is empty unless given; read_source() takes exactly one source.
  std::string model_file, network;
  std::vector<std::string> ops;                                  // operators: each a task
  std::string task;                                              // a DAG file
  NetworkOptions sizes = {.batch_size = 0, .input_shapes = {}};  // each 0: not given
  std::string input_shapes;            // "name:1x3x224x224,...", of an ONNX file's dynamic dims
  std::vector<std::string> constants;  // "name=file.npy", "name=1,3": values of its inputs
  std::string precision = "f32";       // format that contractions multiply: f32, ..., auto
  std::string numerics = "onnx";       // rounding of its quantized operators: onnx or ort
  std::vector<std::string> dims;       // "seq=1..512@64,128", "batch=4": parse_symbol()
  std::string states;                  // "past.*=present.*,...": see mark_states()
  std::string decode;                  // second phase's input shapes or length; empty: one phase

  void add_to(CLI::App& app, const char* task_help = kTaskHelp);
  /// Adds all options but the network's name.
  void add_others_to(CLI::App& app, const char* task_help = kTaskHelp);
  /// Adds the options of a network alone; add_inputs_to() adds those of its inputs only.
  void add_network_to(CLI::App& app);
  void add_inputs_to(CLI::App& app);
  /// Adds --input-shapes, --dim and --constant.
  void add_shapes_to(CLI::App& app);
  bool named() const { return !ops.empty() || !(model_file + network + task).empty(); }
  /// Returns the source as it was given: "resnet_18", "matmul 64 64 64".
  std::string named_text() const;
};
/// Adds --batch-size, --image-size and --seq-len.
void add_sizes(CLI::App& app, NetworkOptions& sizes);
/// Adds --op.
void add_op(CLI::App& app, std::vector<std::string>& ops);
/// Returns an error if several operators are given: a module is of one operator.
Result<Unit> check_one_operator(const SourceOptions& options);

/// Holds the target that a command makes code for.
struct TargetOptions {
  std::string name = "llvm";  // text of --target: backend and attributes
  int threads = 0;            // threads of a kernel; 0: all cores
  std::string device;         // --psa: device whose numbers the analysis takes; empty: the target

  void add_to(CLI::App& app);  // without --psa
};
/// Adds --psa.
void add_psa(CLI::App& app, std::string& device);

/// Returns an error if an option is about another kind of source than the named one. Examples are a
/// built-in network's option for an ONNX file, or a network's for an operator. The error says what
/// to use instead. If nothing is named, every such option but --dim is an error.
Result<Unit> check_options(const SourceOptions& options);

/// Returns the target, with the numbers of the device of --psa.
Result<Target> read_target(const TargetOptions& options);
/// Reads what the options name: MODEL.onnx, --network, --op or --task; exactly one of them. An
/// operator's constants are still without values.
Result<Source> read_source(const SourceOptions& options, const Target& target);
/// Draws an operator's constants, which its module holds; a network has its constants. Returns an
/// error if there is no memory for the operator's inputs.
Result<Unit> draw_constants(Source& source, uint64_t seed);
/// Returns the sizes, shapes and constants of a network's inputs, each of one shape.
Result<NetworkOptions> network_options(const SourceOptions& options);
/// Returns the dimensions of --dim, in the order given.
Result<std::vector<Symbol>> read_symbols(const SourceOptions& options);
/// read_network() returns the network of MODEL.onnx or --network in its first phase, before the
/// graph passes; network_name() returns its name.
Result<Graph> read_network(const SourceOptions& options);
std::string network_name(const SourceOptions& options);
/// Adds --tasks, for keep_matching().
void add_tasks(CLI::App& app, std::string& tasks);
/// Adds --forms.
void add_forms(CLI::App& app, std::string& forms);
/// Splits the text of --forms into a list; the error names an unknown form.
Result<std::vector<std::string>> read_forms(const std::string& text);
/// Keeps the tasks whose name (its first 1000 characters) matches --tasks. Errors: no task matches,
/// or the pattern is longer than 1000 characters.
Result<Unit> keep_matching(const std::string& pattern, std::vector<WeightedTask>& tasks);

/// Makes a network of one group. The DAG's constants have no values; its other inputs stay inputs.
Partition single_group(ComputeDag dag, const std::string& name);

}  // namespace pruner
