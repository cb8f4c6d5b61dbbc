// The graph passes, in the order they run. Each takes a graph and gives one that computes the same
// (passes_test interprets both); `fuse` says which nodes become one kernel.
#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"
#include "graph/numerics.h"
#include "graph/precision.h"
#include "target/target.h"

namespace pruner {

struct PassOptions {
  Target target = {};
  Precision precision = Precision::kFloat32;
  Numerics numerics = Numerics::kOnnx;

  /// Returns the type that products are to have, if the target multiplies it; nullopt: float32.
  std::optional<DType> narrow_type() const {
    const PrecisionRow& row = row_of(precision);
    const bool narrow = is_narrow_float(row.type) && row.support(target) != Support::kNone;
    return narrow ? std::optional(row.type) : std::nullopt;
  }
  /// Whether kernels are of float32 on a CPU: these take what follows them into their tiles.
  bool joins_in_tiles() const { return !target.is_gpu() && !narrow_type(); }
};

struct GraphPass {
  std::string_view name;
  Graph (*run)(Graph, const PassOptions&);
  bool cpu_only = false;
  bool by_extents = false;  // it decides by extents: left out under RangeHints::any_extents
};

template <Graph (*pass)(Graph)>
Graph always(Graph graph, const PassOptions&) {
  return pass(std::move(graph));
}

Graph keep_codes(Graph graph);      // keeps few-bit weights as codes if few rows are multiplied
Graph simplify(Graph graph);        // unifies spellings: Squeeze to Reshape, Split to Slices
Graph fold_constants(Graph graph);  // turns nodes of constants into constants
Graph widen_floats(Graph graph, const PassOptions& options);  // turns 16-bit floats to float32
Graph fuse_layernorm(Graph graph);   // turns the nodes of a layer norm or RMS norm into one
Graph fold_batch_norm(Graph graph);  // folds into the convolution, else one multiply and add
Graph tabulate(Graph graph);         // turns functions of one byte that take long into tables
Graph crop_kernels(Graph graph);     // keeps the taps that read data, not padding alone
Graph split_kernels(Graph graph);    // splits kernels into taps if much of the input is padding
Graph combine_matmuls(Graph graph, const PassOptions& options);  // joins products of a value (QKV)
Graph sink_transposes(Graph graph);                              // moves transposes down to cancel
Graph channels_last(Graph graph, const PassOptions& options);    // puts transposes around windows
Graph split_phases(Graph graph);  // computes transposed convolutions phase by phase
Graph fuse_attention(Graph graph, const PassOptions& options);  // fuses heads into one kernel
Graph run_quantized(Graph graph, const PassOptions& options);   // runs on integers between bytes
Graph match_signs(Graph graph, const PassOptions& options);     // matches bytes' signs for units
Graph join_taps(Graph graph, const PassOptions& options);       // joins few-channel taps for units
Graph remove_dead(Graph graph);                                 // drops nodes no output needs
Graph update_states(Graph graph);                               // updates in place, row by row
Graph place_concats(Graph graph);                               // marks Concats that need no copy
Graph repeat_norms(Graph graph, const PassOptions& options);    // gives each product its own norm
Graph fuse(Graph graph, const PassOptions& options);            // numbers the groups
Graph narrow_floats(Graph graph, const PassOptions& options);   // stores factors as bf16 or f16
Graph round_factors(Graph graph, const PassOptions& options);   // rounds float32 factors to tf32

inline constexpr GraphPass kGraphPasses[] = {
    {"run_quantized", run_quantized},
    {"keep_codes", always<keep_codes>, true, true},
    {"simplify", always<simplify>},
    {"fold_constants", always<fold_constants>},
    {"widen_floats", widen_floats},
    {"match_signs", match_signs, true},
    {"fuse_layernorm", always<fuse_layernorm>},
    {"fold_batch_norm", always<fold_batch_norm>},
    {"tabulate", always<tabulate>, true},
    {"crop_kernels", always<crop_kernels>, false, true},
    {"split_kernels", always<split_kernels>, true, true},
    {"combine_matmuls", combine_matmuls},
    {"channels_last", channels_last, false, true},
    {"sink_transposes", always<sink_transposes>, false, true},
    {"split_phases", always<split_phases>, true, true},
    {"fuse_attention", fuse_attention, false, true},
    {"join_taps", join_taps},
    {"remove_dead", always<remove_dead>},
    {"update_states", always<update_states>},
    {"place_concats", always<place_concats>, true, true},
    {"repeat_norms", repeat_norms, false, true},
    {"fuse", fuse},
    {"narrow_floats", narrow_floats},
    {"round_factors", round_factors},
};

/// Runs the passes of the target's backend; `after` sees the graph after each pass (--print=graph
/// --after=<pass>).
Graph run_graph_passes(Graph graph,
                       const PassOptions& options = {},
                       const std::function<void(std::string_view, const Graph&)>& after = {});

}  // namespace pruner
