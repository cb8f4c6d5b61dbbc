// The reference interpreter: the meaning of a compute DAG. Evaluates any chosen output elements on
// demand, in double precision (rounded to the stage's dtype where a stage is stored), pulling just
// the elements of the producers that they need; stages with a reduction are computed once an
// element. Expressions are flattened to a tape that runs over blocks of the innermost reduce axis.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "support/rng.h"
#include "tensor/compute_dag.h"
#include "tensor/tape_run.h"
#include "tensor/tensor.h"

namespace pruner {

/// Gives elements of a DAG's input `i`, the i-th of dag.inputs(), at row-major positions.
using InputElements =
    std::function<void(size_t i, std::span<const int64_t> positions, Word* words)>;

/// Evaluates elements of a DAG's stages whose inputs are themselves computed on demand. Elements of
/// stages with a reduction are kept, so that each is computed once.
class ElementInterpreter {
 public:
  /// The DAG and the tensors outlive the interpreter. tensors[i] holds input i; where it is null
  /// `inputs` is asked, from evaluate() alone.
  ElementInterpreter(const ComputeDag& dag,
                     std::span<const Tensor* const> tensors,
                     InputElements inputs);
  ~ElementInterpreter();
  void evaluate(StageId stage, std::span<const int64_t> positions, Word* words);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// An element as a number, of a stage or a value of that type.
double number_of(DType dtype, Word word);
/// Element `position` of a tensor as a word.
Word word_of(const Tensor& tensor, int64_t position);

/// Values of `elements` (row-major positions) of stage `stage`; inputs in the order of
/// dag.inputs().
std::vector<double> interpret_elements(const ComputeDag& dag,
                                       std::span<const Tensor> inputs,
                                       StageId stage,
                                       std::span<const int64_t> elements);

/// Every output of the DAG, whole, on `jobs` threads.
std::vector<Tensor> interpret(const ComputeDag& dag, std::span<const Tensor> inputs, int jobs = 1);

/// At least `count` distinct positions (or all) of a tensor: all corners and edges' ends of every
/// axis (first, last, and both sides of the middle), the rest drawn by rng. Sorted.
std::vector<int64_t> sample_elements(std::span<const int64_t> shape, int64_t count, Rng& rng);

/// Seeded inputs for a DAG: floats in [-1, 1), or [0.5, 1.5) for denominators' sake where the DAG
/// divides by or takes a root or logarithm of a load; integers below their index_bound (or 16).
std::vector<Tensor> random_inputs(const ComputeDag& dag, Rng& rng);
/// The same, quick for large inputs: of each at most `most` elements, as a row, which repeat()
/// takes for the whole. Inputs that `skipped` names have no elements.
std::vector<Tensor> random_inputs(const ComputeDag& dag,
                                  Rng& rng,
                                  int64_t most,
                                  const std::vector<bool>& skipped);
/// Fills `all` with copies of `drawn`, the last one cut off where `all` ends.
void repeat(const Tensor& drawn, std::span<std::byte> all);

}  // namespace pruner
