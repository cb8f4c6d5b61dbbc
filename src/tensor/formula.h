// Integers that were computed at several extents of the symbols, as formulas of the symbols.
//
// Shapes, strides and trip counts at one extent are numbers; which number is a multiple of which
// symbol is not written on them. It is found from a dozen extents: what fits them all is the
// formula (anti-unification, Plotkin 1970, of numbers in place of terms). Of a program each number
// is a constant, a multiple of a product of symbols and of rounded quotients of them, or such a
// multiple and a constant, or a sum of multiples of symbols, or a part of a symbol, rounded down (a
// resized image has it), or the lesser or greater of one of these and a constant. These are so few
// forms that a wrong one does not fit a dozen points. Those who make something of the formulas
// check it at further points. The simplest that fits is taken, so that on few points a product of
// two trip counts is not taken for a sum.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tensor/affine.h"
#include "tensor/symbol.h"

namespace pruner {

class FormulaFinder {
 public:
  /// Points as generic_points() gives them: each has an extent of each symbol. Formulas have
  /// variable i for symbol i.
  /// `parts`: formulas that are known to stand among the factors of others; `tiles`: what is known
  /// to divide extents and parts, rounded up. Where parts are known, the extents of axes are among
  /// them, and no number is taken for such a one by itself (as_scaled()).
  FormulaFinder(std::span<const Symbol> symbols,
                std::vector<SymbolValues> points,
                std::span<const int64_t> tiles = {},
                std::span<const Expr> parts = {});

  /// The points are all that there are: a formula that fits is right, however few they are.
  void note_all() { all_ = true; }

  /// The formula whose values these are, one a point; nullopt: none fits.
  std::optional<Expr> find(std::span<const int64_t> values);

  const std::vector<SymbolValues>& points() const { return points_; }

 private:
  struct Factor {
    Expr form;
    std::vector<int64_t> values;
  };
  /// The points of the least, the median and the greatest of some values, and these values.
  struct ThreePoints {
    std::array<size_t, 3> points;
    std::array<double, 3> values;
  };
  static ThreePoints three_points(std::span<const int64_t> values);
  Factor factor_of(Expr form) const;
  std::optional<Expr> as_multiple(const Factor& factor,
                                  std::span<const int64_t> values,
                                  bool sum) const;
  std::optional<Expr> as_multiple_of(const std::vector<Factor>& factors,
                                     std::span<const int64_t> values,
                                     bool sum) const;
  std::optional<Expr> as_remainder(std::span<const int64_t> values, bool sum);
  std::optional<Expr> as_quotient(std::span<const int64_t> values, bool sum);
  template <typename Round>
  std::optional<Expr> as_rounded(std::span<const int64_t> values,
                                 const ThreePoints& at,
                                 bool sum,
                                 bool of_found,
                                 const Round& round);
  std::optional<Expr> as_product(std::span<const int64_t> values, bool sum) const;
  std::optional<Expr> as_linear(std::span<const int64_t> values) const;
  std::optional<Expr> as_combination(std::span<const int64_t> values) const;
  std::optional<Expr> as_scaled(std::span<const int64_t> values) const;
  std::optional<Expr> as_clipped(std::span<const int64_t> values) const;
  bool fits(const Expr& form, std::span<const int64_t> values) const;

  std::vector<Symbol> symbols_;
  std::vector<SymbolValues> points_;
  bool all_ = false;  // the points are all that there are
  int clips_ = 0;     // clips of the formulas that this finder's formulas are a part of
  bool has_parts_;
  std::vector<Factor> products_;     // products of symbols
  std::vector<Factor> quotients_;    // quotients that are known, and quotients found so far
  std::vector<Factor> found_forms_;  // whole formulas that were found: windows of windows
  std::map<std::vector<int64_t>, std::optional<Expr>> found_;
};

/// Value of a formula whose variable i is values[i].
int64_t evaluate_formula(const Expr& formula, std::span<const int64_t> values);

/// The values of several such formulas, as of the extents of a shape.
std::vector<int64_t> evaluate_formulas(std::span<const Expr> formulas,
                                       std::span<const int64_t> values);

/// Bounds of a formula whose variable i is symbol i, which lies in the box.
Range bounds_in(const Expr& formula, const SymbolBox& box);

/// Shapes at which the form generalized over a box is compared with the form for one shape alone.
struct CheckedShapes {
  std::vector<SymbolValues> shapes;
  bool all = false;  // whether these are all shapes of the box
};
/// `CheckedCounts` says how many shapes of a box are compared.
struct CheckedCounts {
  int64_t all = 4096;       // a box of at most so many shapes: every shape
  int64_t sampled = 512;    // least number of shapes of a larger box
  int64_t remainders = 64;  // extents at either end of each symbol, which have all remainders by it
};
/// Returns the counts for a box of these symbols. Fewer shapes are compared if the data decide an
/// extent, as formulas then are those of a plain count.
CheckedCounts checked_counts(std::span<const Symbol> symbols);
/// All shapes of a small box. Else corners; the first and the last extents of each symbol; where
/// each of `extents` (formulas whose variable i is symbol i) changes to as many successive values
/// at either end, the shapes on both sides; others, drawn.
CheckedShapes checked_shapes(const SymbolBox& box,
                             const std::vector<Expr>& extents,
                             const CheckedCounts& counts = {});

}  // namespace pruner
