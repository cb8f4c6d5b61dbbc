// The plan that a module carries (runtime/module/plan.h) as assembly text, so that its pointers to
// kernels and weights become ordinary relocations.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "deploy/memory_plan.h"
#include "deploy/tensor_file.h"
#include "graph/pipeline/pipeline.h"
#include "tensor/symbol.h"

namespace pruner {

/// PrunerPlan, before its labels and addresses are known. Offsets and sizes are in bytes; a size
/// may be a formula's number.
struct ModulePlan {
  /// An argument of a GPU's kernel.
  struct Range {
    ValuePlace at;
    int64_t bytes = 0;
  };
  /// Holds a tensor of indices, which must, in turn, lie in [-extent, extent) for one of `extents`.
  struct Indices {
    Range range;
    size_t input = 0;  // number of the kernel's argument
    int64_t element_bytes = 0;
    std::string name;
    std::vector<int64_t> extents;
    bool from_end = true;  // an index below 0 counts from the end
  };
  /// A kernel of a GPU.
  struct Launch {
    std::string kernel;
    size_t code = 0;  // index of its file in code_files
    int64_t blocks = 0, threads = 0, shared_bytes = 0, dynamic_bytes = 0;
    bool early = false;
    std::vector<Range> args;
  };
  /// Holds a CPU's code for the shapes of a box; a box without symbols means all shapes.
  struct Kernel {
    std::string symbol;
    SymbolBox box = {};
  };
  /// A group's kernel, in the order they run.
  struct Step {
    std::string name, sketch;  // shown in profiles, like flops and bytes
    int64_t flops = 0, bytes = 0;
    std::vector<Kernel> kernels;        // a CPU's; the first that is for a shape runs
    std::vector<ValuePlace> args;       // kConstant: index is a byte offset among the weights
    int64_t workspace = 0;              // offset in the arena
    std::vector<Launch> launches = {};  // a GPU's launches
    std::vector<Indices> indices = {};  // checked before the kernel runs: on a GPU by a launch each
    std::string precision = {};         // format of the products, for profiles; empty: not known
  };
  /// Holds the steps and copies that run at the shapes of a box.
  struct Shapes {
    SymbolBox box = {};
    std::vector<Step> steps = {};
    std::vector<PlannedCopy> copies = {};
    int64_t arena_bytes = 0;                // size of the arena, with the states
    std::vector<int64_t> output_dims = {};  // one output after the other, if there are symbols
  };
  /// Holds the plan of one run. The states are neither among its inputs nor its outputs.
  struct Phase {
    std::string name;
    std::vector<TensorSpec> inputs, outputs;  // at the greatest shape
    std::vector<Shapes> shapes;               // the first has the greatest
    std::vector<int64_t> input_dims = {};     // like output_dims
    std::vector<Symbol> symbols = {};
    size_t num_formulas = 0;
    std::string formulas = {};  // symbol of the formulas' code
    size_t num_values() const { return symbols.size() + num_formulas; }
  };
  /// A tensor of a pipeline.
  struct Tensor {
    TensorSpec spec;
    int64_t input = -1;  // number of the same tensor of the caller; -1: none
    int64_t offset = 0;  // behind the arena of the phases
  };
  struct State {
    TensorSpec spec;
    int64_t offset = 0, bytes = 0;  // in the arena
  };

  Backend backend = {};
  Isa isa = kHostIsa;  // instruction set, also of a GPU's host
  int threads = 1;
  bool flushes_denormals = true;        // a CPU's kernels take subnormal numbers for zeros
  std::string cpu_features;             // "avx512f fma ..."
  std::string gpu_arch;                 // "sm_80"
  std::vector<std::string> code_files;  // a GPU's code: cubins, or OpenCL C
  int64_t weight_bytes = 0;             // size of the constants, for which the module has a place
  int64_t state_bytes = 0;              // size of the states, the arena's first bytes
  std::vector<Phase> phases;
  std::vector<State> states;
  std::shared_ptr<const Pipeline> pipeline = {};  // the phases are its stages; null: none
  std::vector<Tensor> tensors = {};               // tensors of the pipeline
  int64_t tensor_bytes = 0;                       // bytes of the arena for the tensors
  std::string checked = {};                       // pruner_module_checked()
  std::string numerics = {};                      // pruner_module_numerics()

  int64_t phase_bytes() const {
    int64_t most = 0;
    for (const Phase& phase : phases)
      for (const Shapes& shapes : phase.shapes) most = std::max(most, shapes.arena_bytes);
    return most;
  }
  /// Returns the offset in the arena where the tensors of the pipeline begin.
  int64_t first_tensor() const { return aligned(phase_bytes(), kArenaAlignment); }
  int64_t arena_bytes() const {
    return tensor_bytes > 0 ? first_tensor() + tensor_bytes : phase_bytes();
  }
};

/// `kWeightsSymbol` is the symbol of the constants' place, which the text leaves as zeros.
inline constexpr char kWeightsSymbol[] = "pruner_weights";

/// GNU syntax, for assemble(); defines pruner_plan, refers to the kernels' symbols. The object has
/// the constants' place `inside` itself, or leaves it to the linker, which never sees so many
/// bytes.
std::string plan_text(const ModulePlan& plan, bool inside = false);

}  // namespace pruner
