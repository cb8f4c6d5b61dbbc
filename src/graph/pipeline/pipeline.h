// A network with extents that the data decide, cut where they are decided. What NonZero and its
// like find has a symbol for its extent; each stage is a network over ranges of the symbols that
// its shapes depend on, and is run when the stages before it have said what they are.
#pragma once

#include <functional>
#include <optional>

#include "graph/partition.h"
#include "tensor/symbol.h"

namespace pruner {

/// Imports the network, or a part of it, at extents of what the data decide. Called from several
/// threads at once.
using ImportStage = std::function<Result<Graph>(const std::shared_ptr<const FoundExtents>& found,
                                                const std::shared_ptr<const ImportPart>& part)>;

/// Returns the import function of an ONNX file; all imports share their weights.
ImportStage import_from(const std::string& file, NetworkOptions options);

struct Pipeline {
  /// A tensor that one stage hands on to others, the caller to a stage, or a stage to the caller.
  struct Tensor {
    std::string name;
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;        // greatest shape that there is room for
    std::vector<size_t> symbols = {};  // symbols that the shape depends on
    /// The tensor that this tensor is the used part of, in the same bytes; nullopt: it has its own.
    std::optional<size_t> part_of = {};
  };
  /// The part of a tensor that is used becomes a tensor of its own, in the same place.
  struct Found {
    std::optional<size_t> room;  // a tensor; nullopt: the part has no elements that anybody reads
    size_t part, count;          // tensors; the count has one element
    int64_t axis = 0;
    size_t symbol = 0;  // the count becomes its extent
  };
  /// Tensors one after the other along an axis become one.
  struct Join {
    std::vector<size_t> parts;
    size_t whole = 0;
    int64_t axis = 0;
    size_t symbol = 0;  // the extent of the whole
  };
  /// The parts and joins that are made of tensors between stages.
  struct Parts {
    std::vector<Found> found = {};
    std::vector<Join> joins = {};
  };
  /// A part of the network that is run at a time.
  struct Stage {
    std::vector<size_t> symbols;                    // symbols that the shapes depend on, ascending
    std::vector<size_t> inputs = {}, outputs = {};  // tensors, in the order of their names
    /// Values of other stages whose shapes are known and whose elements are not read.
    std::map<std::string, ImportPart::Given> shapes = {};
    Parts then = {};  // parts made when the stage has run
  };

  /// Stages that are run again and again, one after the other; the nodes around them are those of
  /// graph/ops/loop.cpp.
  struct Loop {
    size_t first = 0, last = 0;  // stages
    // Tensors of one element:
    std::optional<size_t> trips;      // how many rounds there are; nullopt: as many as it takes
    std::optional<size_t> condition;  // before the first round; nullopt: it is true
    std::optional<size_t> next;       // after each round; nullopt: it is true
    std::optional<size_t> rounds;     // becomes the number of those that were run
    size_t round = 0;                 // the number of the round, from 0
    /// A value that a round hands on to the next round.
    struct Carried {
      size_t init, state, next, last;  // tensors: before, in and after a round, and after all
    };
    std::vector<Carried> carried = {};
    struct Stack {
      std::optional<size_t> init;  // tensor that the whole begins with
      size_t part, whole;          // tensors: the part of a round, and the whole of all rounds
    };
    std::vector<Stack> stacks = {};
    std::vector<size_t> symbols = {};  // symbols whose extents each round finds
    Parts begin = {};                  // parts made when a round begins
    Parts then = {};                   // parts made when all rounds have been run
  };

  std::vector<Symbol> symbols;                          // 0 to what there is room for
  std::map<std::string, std::string> joined;            // FoundExtents::joined
  std::map<std::string, int64_t> limits = {};           // FoundExtents::limits
  std::map<std::string, bool> branches = {};            // Graph::branches
  std::map<std::string, RunTimeNumbers> expanded = {};  // FoundExtents::expanded
  std::vector<Tensor> tensors;
  std::vector<Stage> stages;            // in an order in which they can be run
  std::vector<Loop> loops = {};         // in the order of their stages; none lies in another
  std::vector<size_t> inputs, outputs;  // the network's

  /// The tensor whose bytes a tensor has.
  size_t owner_of(size_t tensor) const { return tensors[tensor].part_of.value_or(tensor); }
};

/// Returns the extents that an import takes for all that there is room for.
std::shared_ptr<FoundExtents> greatest_extents(const Pipeline& pipeline);

/// Cuts a network that reads what the data find; nullopt: it reads nothing of that kind. Errors: of
/// the import; a network that is another one at other extents, with the extent.
Result<std::optional<Pipeline>> cut_into_stages(const ImportStage& import);

/// The graph of a stage, made from the network's file alone, where its inputs have these shapes;
/// its inputs and outputs are in the stage's order.
Result<Graph> stage_graph(const Pipeline& pipeline,
                          size_t stage,
                          const std::vector<std::vector<int64_t>>& input_shapes,
                          const ImportStage& import);

/// Cuts the graph of a stage into kernels.
using CutStage = std::function<Result<Partition>(Graph graph)>;

/// Cuts a network into stages, and gives each as a phase over the ranges of its symbols, in order;
/// nullopt: it reads nothing that the data find. The error names the stage.
Result<std::optional<std::vector<Phase>>> stage_phases(const ImportStage& import,
                                                       const CutStage& cut);

}  // namespace pruner
