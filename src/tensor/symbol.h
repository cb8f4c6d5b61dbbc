// Dimensions that differ from run to run, as a batch or the length of a sequence, and the shapes
// that they may have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

/// No dimension that differs is longer: the product of three of them is a 64-bit number.
constexpr int64_t kMostSymbolExtent = 1 << 20;

/// A dimension without a fixed extent.
struct Symbol {
  std::string name;              // "seq"
  int64_t min = 1, max = 1;      // least and greatest extent, both included
  std::vector<int64_t> matters;  // extents that are to be fast, ascending; empty: all alike
  bool found = false;            // the data decide the extent, and not the caller
};

/// An extent for each of some symbols.
using SymbolValues = std::vector<int64_t>;

/// A range for each of some symbols, both ends included.
struct SymbolBox {
  SymbolValues min, max;
  bool contains(std::span<const int64_t> values) const;
  /// How many shapes it has, or the greatest int64_t where they are more.
  int64_t num_shapes() const;
  friend bool operator==(const SymbolBox&, const SymbolBox&) = default;
};
SymbolBox box_of(std::span<const Symbol> symbols);

/// "seq=1..512@64,128,384": the range, and after @ the extents that matter; "batch=4" is one
/// extent. Error: no such text, and what is longer than kMostSymbolExtent.
Result<Symbol> parse_symbol(std::string_view text);
/// "seq=1..512".
std::string print(const Symbol& symbol);
/// "batch=2, seq=77".
std::string print(std::span<const Symbol> symbols, std::span<const int64_t> values);

/// A few shapes of a box: its two ends and some that are drawn.
std::vector<SymbolValues> drawn_shapes(const SymbolBox& box);

/// Extents at which programs of a box show what they are like at all of its extents but for a few:
/// no tile of theirs divides them, and one symbol differs from the other. Ascending, the least and
/// the greatest of that kind among them; at most so many a symbol.
std::vector<SymbolValues> generic_points(const SymbolBox& box, int most);
/// Whether it is no multiple of a tile: a prime.
bool is_generic(int64_t extent);

}  // namespace pruner
