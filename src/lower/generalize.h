// One program for a range of shapes, made of those that a schedule has at some of them. The range's
// programs are one text but for numbers (extents, strides, trip counts), each of which is a formula
// of the symbols; where a schedule's programs differ in more, as where a vector is no longer whole,
// they are not one program and the error says where.
#pragma once

#include <span>
#include <vector>

#include "lower/program.h"
#include "tensor/formula.h"

namespace pruner {

/// The program of which programs[i] is the one at finder.points()[i], for all shapes of `box`
/// (Plotkin's least general generalization). It is in the form of those at generic points: where a
/// tile divides an extent, it takes that shape's way of a tile that does not.
Result<Program> generalize(std::span<const Program> programs,
                           std::span<const Symbol> symbols,
                           const SymbolBox& box,
                           FormulaFinder& finder);

/// In what two programs differ beside numbers; empty: in nothing.
std::string difference_beside_numbers(const Program& a, const Program& b);

/// Gives the buffers of the workspace places one behind the other.
void lay_out_workspace(Program& program);

/// The program at one shape, without symbols.
Program at_shape(const Program& program, std::span<const int64_t> values);

}  // namespace pruner
