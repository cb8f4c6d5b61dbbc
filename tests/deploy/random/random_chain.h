// Random ONNX models whose inputs have open dimensions, for tests of modules over ranges: one to
// six steps, each of which takes what the one before gave. A tensor between two steps has the shape
// [batch, channels, length]; the length, and in some models the batch, follows from the symbols.
#pragma once

#include <string>
#include <vector>

#include "tensor/symbol.h"

namespace pruner {

struct RandomChain {
  uint64_t seed = 0;
  std::vector<uint64_t> steps;  // a seed for each step
  std::vector<Symbol> symbols;  // "n", and in some models "m"
  std::string model;            // the bytes of the file
  std::string text;             // the operators, and their attributes
};

/// Draws a model that can be imported where the symbols have their least and their greatest values.
/// About 300 shapes are in the box of the symbols.
RandomChain random_chain(uint64_t seed);

/// The same model without one of its steps, for each step.
std::vector<RandomChain> shorter_chains(const RandomChain& chain);

}  // namespace pruner
