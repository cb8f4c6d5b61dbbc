// The innermost loops of a stage, whose results lie in registers: what one step of them asks of the
// core's FMA and load units.
#pragma once

#include "space/access.h"
#include "space/loop_nest.h"
#include "space/structure.h"
#include "target/target.h"

namespace pruner {

/// The unrolled and vectorised loops innermost in a stage.
struct RegisterTile {
  size_t begin = 0;      // first of its loops
  int vector_axis = -1;  // -1: none, or lanes that are folded
  double rows = 1, vectors = 1, lanes = 1;
  double terms = 1;                 // terms that one instruction adds to each lane's sum
  double tile_rows = 1, steps = 1;  // extents of a matrix instruction, which rows and vectors count
  const LoopStructure* structure = nullptr;  // structure of the stage
  bool is_matrix() const { return tile_rows > 1; }
  /// Whether a matrix instruction's tiles lie in vectors' registers.
  bool in_vectors() const { return structure->tile_vectors > 0; }
  double count() const { return rows * vectors; }
};

RegisterTile register_tile(const LoopNest& nest, const NestStage& stage);

/// Operations on its vectors that a core begins in a cycle.
double issued_per_cycle(const Target& target, const RegisterTile& tile);

/// Cycles that the matrix instructions of one step take, which does `rate` times the products of an
/// FMA at full size.
double matrix_cycles(const Target& target, const RegisterTile& tile, double rate);

/// Cycles that the loads of one step take, with those of vectors that no register keeps.
double load_cycles(const LoopNest& nest,
                   const Target& target,
                   const NestStage& stage,
                   const RegisterTile& tile);

/// Whether the last of several tiles of an accumulated stage reaches beyond its vector axis, and
/// nothing packs what it reads in whole blocks: each vector of each step asks for its mask then.
/// The mask of a tile that is alone is known.
bool is_masked(const LoopNest& nest, const NestStage& stage, const RegisterTile& tile);

/// The distinct loads of a nest's stage.
const std::vector<Access>& accesses_of(const LoopNest& nest, const NestStage& stage);

}  // namespace pruner
