// The end of the graph layer: a network cut into fused groups, each one compute DAG, in an order in
// which they can run. Groups with equal keys are one task, whose weight is their number.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/passes.h"
#include "tensor/task.h"

namespace pruner {

struct Routine;        // graph/ops/op.h
struct NetworkRanges;  // graph/partition_range.h
struct ImportCache;    // graph/import_cache.h
struct Pipeline;       // graph/pipeline/pipeline.h
struct FoundExtents;   // graph/found_values.h

/// A fused group: its DAG's inputs, in the order of dag.inputs(), are these values.
struct Group {
  std::string name;      // e.g. "conv2d 1x56x56x64 3x3 -> 64 +bias +relu"
  ComputeDag dag;        // one output stage
  std::string key;       // workload_key(dag)
  bool complex = false;  // has a reduction (Ansor: only these are tuned)
  std::vector<ValueId> inputs;
  ValueId output;
  const Routine* routine = nullptr;  // function that runs instead of a kernel; the DAG is empty
  int64_t workspace_bytes = 0;       // size of the routine's workspace
  std::vector<int64_t> index_extents = {};  // IndexInput::extents of a routine; empty: it has none
  std::vector<std::string> nodes = {};      // names of the graph's nodes that it computes
  std::vector<size_t> node_numbers = {};    // places of the same nodes in Partition::graph
};

/// The key of a group that a routine runs: a text that is equal for those that do the same.
std::string routine_key(const Routine& routine,
                        std::span<const int64_t> parameters,
                        std::span<const int64_t> index_extents);

/// A value as the executor sees it: the output of a reshape is another view of `alias_of`'s bytes,
/// and a part that is joined in place is a slice of the whole.
struct PlannedValue {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::optional<Tensor> constant;
  ValueId alias_of;                  // invalid: has bytes of its own, or is a slice
  std::optional<Slice> slice = {};   // part of another value's bytes
  std::vector<ValueId> joined = {};  // parts, if no group makes the value
};

/// The place of a value's elements: row-major in a tensor of `shape`, from element `first` on.
struct Storage {
  ValueId owner;               // value with bytes of its own
  std::vector<int64_t> shape;  // the owner's if the value is a slice of the owner, else the value's
  int64_t first = 0;
};

/// A network cut into groups. A value has the number that it has in the graph.
struct Partition {
  std::string network;
  std::vector<PlannedValue> values;
  std::vector<Group> groups;    // in execution order
  std::vector<ValueId> inputs;  // in the model's own layout (NCHW as imported)
  std::vector<ValueId> outputs;
  std::vector<State> states = {};
  Numerics numerics = Numerics::kOnnx;  // numerics of the quantized operators
  /// The graph that was cut, after the passes, which the groups have to compute. Null if the
  /// partition is an operator, not a network.
  std::shared_ptr<const Graph> graph = {};

  const PlannedValue& operator[](ValueId id) const { return values[id.value]; }
  Storage storage_of(ValueId id) const;
};

/// Runs the graph passes (kGraphPasses: fold constants, batch norm into convolution, dead code,
/// layout, fuse) for a target and cuts the graph.
Result<Partition> partition(Graph graph,
                            const Target& target,
                            Precision precision = Precision::kFloat32,
                            Numerics numerics = Numerics::kOnnx);

struct WeightedTask {
  Task task;
  int weight = 0;  // number of groups
};

/// A network that a module can run. Several phases are forms of one network that share weights, and
/// states by their names, such as the prefill and the decoding of a language model.
struct Phase {
  std::string name;
  Partition partition;                               // at the greatest shape
  std::shared_ptr<const NetworkRanges> ranges = {};  // null: it has one shape
  /// Makes the graph anew from what the user gave, before any pass, at extents of the symbols: what
  /// the module has to compute. Missing: the partition's graph, or of an operator its DAG, says it.
  std::function<Result<Graph>(const std::vector<int64_t>& extents)> graph_at = {};
  /// The pipeline whose stages are all phases, in the first phase. Null: each phase can run alone.
  std::shared_ptr<const Pipeline> pipeline = {};
};

/// A network, or one operator or DAG, to tune and compile. Several operators are tuned only.
struct Source {
  std::string name;           // name in file names: "resnet_50", "matmul_512_512_512"
  bool network = false;       // false: one operator or DAG
  std::vector<Phase> phases;  // at least one; several operators have the first one's, of one group
  std::vector<WeightedTask> tasks = {};  // tasks of all phases

  const Partition& partition() const { return phases.front().partition; }
};

/// The distinct complex groups on `target`, in the reference's order: task 0 is the last layer, of
/// the first phase.
std::vector<WeightedTask> extract_tasks(std::span<const Phase> phases, const Target& target);
std::vector<WeightedTask> extract_tasks(const Partition& partition, const Target& target);

/// A value that the user gives an input (--constant): an array of a file, or numbers that take the
/// input's type and, where they fit, its shape.
struct GivenConstant {
  Tensor tensor;
  bool typed = true;  // false: numbers, a list of int64 or float32
};

/// The part of an ONNX file's network that lies between some of its values. Values in the graph of
/// an If are named after the node, as the import names them: "If_5/boxes".
struct ImportPart {
  struct Given {
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;
  };
  std::map<std::string, Given> given;  // values that are inputs, not computed
  std::set<std::string> wanted;        // values that are computed
  /// Whether each If, by its name, takes its first branch. The If's condition says the same and is
  /// not read.
  std::map<std::string, bool> branches = {};
};

/// Options of an import or a built-in network.
struct NetworkOptions {
  int64_t batch_size = 1;
  int64_t image_size = 0, sequence_length = 0;  // 0: the network's usual one
  int64_t cache_length = 0;        // positions that the states of a built-in decoder have room for
  bool weights_as_inputs = false;  // built-in networks: draws none, for shapes alone
  bool number_nodes = false;       // ONNX files: names the nodes of the main graph "#0", "#1", ...
  bool loops_over_steps = false;   // Graph::loops_over_steps
  std::map<std::string, std::vector<int64_t>> input_shapes;  // --input-shapes name:1x3x224x224,...
  std::map<std::string, int64_t> dims = {};  // --dim name=extent: an ONNX file's dim_params
  std::map<std::string, GivenConstant> constants = {};  // --constant name=...
  std::shared_ptr<ImportCache> cache = {};  // shared by a network's imports; null: not shared
  /// Extents that the data decide; null: only an output can have an extent that the data decide.
  std::shared_ptr<const FoundExtents> found = {};
  std::shared_ptr<const ImportPart> part = {};  // null: the whole network
};

/// Reads an .onnx file; errors name the file, the node, what was expected, and every unsupported
/// operator at once.
Result<Graph> import_onnx(const std::string& path, const NetworkOptions& options);

/// A node of a file's main graph that cannot be compiled.
struct UnsupportedNode {
  int64_t index = 0;  // in the file
  std::string name, op, reason;
};
struct NodeSurvey {
  int64_t num_nodes = 0;
  std::vector<UnsupportedNode> unsupported;
  std::vector<int64_t> found;  // nodes whose outputs have extents that the data say at run time
};
/// Returns every node that cannot be compiled, with the reason. The output of such a node is taken
/// to be as the file declares it; if the file does not declare the output, its readers cannot be
/// read either. Errors: of the file.
Result<NodeSurvey> survey_onnx(const std::string& path, const NetworkOptions& options);

/// A kernel of a file's network that was imported with `number_nodes`, and what is to be said of
/// it.
struct NotedKernel {
  std::vector<std::string> nodes;  // Group::nodes
  std::string note;                // "task 3: conv2d ..."
};
/// Writes the model of the file at `path` to `to` with the notes of the kernels that compute a node
/// in the node's doc_string, a line each; all else stays as it is. The doc_string of a node in
/// no kernel says so, or names the kernel into which the node was folded. Errors: tensors of the
/// model lie in files beside it, and `to` is in another folder.
Result<Unit> annotate_onnx(const std::string& path,
                           std::span<const NotedKernel> kernels,
                           const std::string& to);

/// Writes a graph that the passes have not changed, of at most 2 GB.
Result<Unit> export_onnx(const Graph& graph, const std::string& path);

/// A built-in network (kNetworks) with seeded weights; the error lists the names.
Result<Graph> build_network(std::string_view name, const NetworkOptions& options);
std::vector<std::string> network_names();

/// Runs the graph node by node through the reference interpreter (small
/// networks and constant folding; tests compare modules with it).
Result<std::vector<Tensor>> interpret_graph(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace pruner
