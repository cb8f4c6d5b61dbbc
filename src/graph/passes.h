// The graph passes, in the order they run. Each takes a graph and gives one that computes the same
// (passes_test interprets both); the last says which nodes become one kernel.
#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"
#include "target/target.h"

namespace pruner {

struct GraphPass {
  std::string_view name;
  Graph (*run)(Graph);
  bool cpu_only = false;
};

Graph simplify(Graph graph);         // many spellings to one: Squeeze to Reshape, Split to Slices
Graph fold_constants(Graph graph);   // nodes of constants become constants
Graph fuse_layernorm(Graph graph);   // its eight nodes become one
Graph fold_batch_norm(Graph graph);  // into the convolution before it, else one multiply and add
Graph crop_kernels(Graph graph);     // to the taps that read data, not padding alone
Graph split_kernels(Graph graph);    // into taps, where much of what they read is padding
Graph combine_matmuls(Graph graph);  // of one value with several constants, as in attention
Graph channels_last(Graph graph);    // convolutions and pools between two transposes
Graph sink_transposes(Graph graph);  // transposes move down and cancel
Graph widen_floats(Graph graph);     // float16 and bfloat16 networks compute in float32
Graph remove_dead(Graph graph);      // what no output needs
Graph place_concats(Graph graph);    // marks those that need no copy
Graph fuse(Graph graph);             // numbers the groups

inline constexpr GraphPass kGraphPasses[] = {
    {"simplify", simplify},
    {"fold_constants", fold_constants},
    {"fuse_layernorm", fuse_layernorm},
    {"fold_batch_norm", fold_batch_norm},
    {"crop_kernels", crop_kernels},
    {"split_kernels", split_kernels, true},
    {"combine_matmuls", combine_matmuls},
    {"channels_last", channels_last},
    {"sink_transposes", sink_transposes},
    {"widen_floats", widen_floats, true},
    {"remove_dead", remove_dead},
    {"place_concats", place_concats, true},
    {"fuse", fuse},
};

/// Runs those of a backend; `after` sees the graph after each (--print=graph --after=<pass>).
Graph run_graph_passes(Graph graph,
                       Backend backend = {},
                       const std::function<void(std::string_view, const Graph&)>& after = {});

}  // namespace pruner
