// The nests of loops that are one instruction on tiles (program.h).
#pragma once

#include <optional>

#include "lower/program.h"

namespace pruner {

/// kMatrix rows { kVectorize lanes { store } }; a store that adds lies inside of
/// kMatrix steps { kDot terms }; one step is no loop.
struct MatrixNest {
  const For* rows = nullptr;
  const For* lanes = nullptr;
  const For* steps = nullptr;
  const For* terms = nullptr;
  const Store* store = nullptr;

  bool adds() const { return terms != nullptr; }
};

/// Returns the nest around `rows`; none if its loops are others.
std::optional<MatrixNest> matrix_nest(const For& rows);

/// The tile that a nest sets, loads, stores or adds to; invalid: it touches none.
TensorId tile_of(const Program& program, const MatrixNest& nest);

}  // namespace pruner
