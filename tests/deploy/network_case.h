// Small networks with inputs and what the interpreter makes of them.
#pragma once

#include <vector>

#include "deploy/module.h"

namespace pruner {

struct Case {
  Graph graph;
  std::vector<Tensor> inputs, expected;
};

/// Conv with norm, relu, residual, strided and depthwise convs, pool, classifier, softmax; the
/// residual's sum is an output too.
Graph small_convolutional();

/// A convolution's result made larger in three ways, joined, mixed, and made smaller.
Graph small_upsampling();

/// Layers that join all before them, each joined value normed before it is read; then branches that
/// are joined, one of them of two parts.
Graph small_dense();

/// A residual block of convolutions of volumes, pooled in both ways, and a classifier.
Graph small_video();

/// Mish before a classifier, whose scores are taken in an order that a second input has.
Graph small_gathering();

/// The largest of each column, made to sum up to 1 and put back where they were; and the places.
Graph small_sorting();

/// A part of an input that has no elements: as it is, its sums, and joined with the input.
Graph small_empty();

/// Returns a network of an input and constants of the type. The outputs are the sum, the larger
/// element cast to every other type and, for floats, a product of matrices.
Graph small_casts(DType dtype);

Result<Case> make_case(Result<Graph> graph);

/// Each output to `tolerance` of its largest element.
void expect_close(const std::vector<Tensor>& found,
                  const std::vector<Tensor>& expected,
                  double tolerance = 1e-4);

/// Builds the graph with `choice` and compares what the module gives with the interpreter.
void expect_right(const Case& c,
                  const Target& target,
                  const ScheduleChoice& choice = nullptr,
                  Precision precision = Precision::kFloat32,
                  double tolerance = 1e-4);

}  // namespace pruner
