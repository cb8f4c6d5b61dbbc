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

  /// The type that products are to be of, where the target multiplies it; none: float32.
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

Graph keep_codes(Graph graph);       // of weights of few bits, where few rows are multiplied
Graph simplify(Graph graph);         // many spellings to one: Squeeze to Reshape, Split to Slices
Graph fold_constants(Graph graph);   // nodes of constants become constants
Graph fuse_layernorm(Graph graph);   // and RMS norm: their nodes become one
Graph fold_batch_norm(Graph graph);  // into the convolution before it, else one multiply and add
Graph tabulate(Graph graph);         // functions of one byte that take long, into tables
Graph crop_kernels(Graph graph);     // to the taps that read data, not padding alone
Graph split_kernels(Graph graph);    // into taps, where much of what they read is padding
Graph combine_matmuls(Graph graph, const PassOptions& options);  // of one value, as in attention
Graph sink_transposes(Graph graph);                              // transposes move down and cancel
Graph channels_last(Graph graph, const PassOptions& options);    // windows, between two transposes
Graph fuse_attention(Graph graph, const PassOptions& options);   // of heads: one kernel
Graph run_quantized(Graph graph, const PassOptions& options);    // on integers, between bytes
Graph widen_floats(Graph graph, const PassOptions& options);     // those of 16 bits, to float32
Graph match_signs(Graph graph, const PassOptions& options);      // of bytes, for units
Graph join_taps(Graph graph, const PassOptions& options);        // of few channels, for units
Graph remove_dead(Graph graph);                                  // what no output needs
Graph update_states(Graph graph);                                // in place, row by row
Graph place_concats(Graph graph);                                // marks those that need no copy
Graph fuse(Graph graph, const PassOptions& options);             // numbers the groups
Graph narrow_floats(Graph graph, const PassOptions& options);    // what units read as bfloat16
Graph round_factors(Graph graph, const PassOptions& options);    // of float32, to tf32

inline constexpr GraphPass kGraphPasses[] = {
    {"run_quantized", run_quantized},
    {"keep_codes", always<keep_codes>, true, true},
    {"simplify", always<simplify>},
    {"fold_constants", always<fold_constants>},
    {"match_signs", match_signs, true},
    {"fuse_layernorm", always<fuse_layernorm>},
    {"fold_batch_norm", always<fold_batch_norm>},
    {"tabulate", always<tabulate>, true},
    {"crop_kernels", always<crop_kernels>, false, true},
    {"split_kernels", always<split_kernels>, true, true},
    {"combine_matmuls", combine_matmuls},
    {"channels_last", channels_last, false, true},
    {"sink_transposes", always<sink_transposes>, false, true},
    {"fuse_attention", fuse_attention, true, true},
    {"widen_floats", widen_floats},
    {"join_taps", join_taps},
    {"remove_dead", always<remove_dead>},
    {"update_states", always<update_states>, true},
    {"place_concats", always<place_concats>, true, true},
    {"fuse", fuse},
    {"narrow_floats", narrow_floats},
    {"round_factors", round_factors},
};

/// Runs those of the target's backend; `after` sees the graph after each (--print=graph
/// --after=<pass>).
Graph run_graph_passes(Graph graph,
                       const PassOptions& options = {},
                       const std::function<void(std::string_view, const Graph&)>& after = {});

}  // namespace pruner
