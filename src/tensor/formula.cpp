#include "tensor/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>
#include <set>

#include "support/check.h"
#include "support/rng.h"

namespace pruner {

// `kMostDivisor` bounds the extents of a tile, and so the divisors of quotients.
static constexpr int64_t kMostDivisor = 4096;
// `kMostUnrolled` bounds the rounds of a loop that is unrolled by a power of two.
static constexpr int64_t kMostUnrolled = 64;
// `kMostStride` bounds divisors of windows, such as strides of convolutions, which round sums with
// a constant.
static constexpr int64_t kMostStride = 8;
// `kMostDenominator` bounds the denominator of a part of a symbol, such as seven tenths.
static constexpr int64_t kMostDenominator = 64;
// `kMostForms` bounds the formulas whose quotients are tried, as for one window behind another.
static constexpr size_t kMostForms = 32;

// A formula is clipped from below and from above.
static constexpr int kMostClips = 2;

FormulaFinder::FormulaFinder(std::span<const Symbol> symbols,
                             std::vector<SymbolValues> points,
                             std::span<const int64_t> tiles,
                             std::span<const Expr> parts)
    : symbols_(symbols.begin(), symbols.end()),
      points_(std::move(points)),
      has_parts_(!parts.empty()) {
  const auto add_to = [&](std::vector<Factor>& factors, const Expr& form) {
    factors.push_back(factor_of(form));
  };
  std::vector<Expr> vars;
  for (size_t s = 0; s < symbols.size(); ++s)
    vars.push_back(make_var(VarId{static_cast<int32_t>(s)}, symbols[s].name));
  for (const Expr& var : vars) add_to(products_, var);
  for (size_t a = 0; a < vars.size(); ++a)
    for (size_t b = a; b < vars.size(); ++b) add_to(products_, vars[a] * vars[b]);
  for (size_t a = 0; a < vars.size(); ++a)
    for (size_t b = 0; b < vars.size(); ++b) add_to(products_, vars[a] * vars[b] * vars[b]);
  // Factors that are known to occur come before guessed ones: at few points both may fit.
  for (const Expr& part : parts) add_to(quotients_, part);
  for (const int64_t tile : tiles)
    for (const Expr& part : parts) add_to(quotients_, floor_div(part + Expr(tile - 1), Expr(tile)));
  // Tiles are counted rounded up, rounds of an unrolled loop down. If no point is a multiple, one
  // count is the other plus 1, so multiples alone are tried before multiples plus a constant.
  std::set<int64_t> divisors(tiles.begin(), tiles.end());
  for (int64_t d = 2; d <= kMostUnrolled; d *= 2) divisors.insert(d);
  for (const bool up : {true, false})
    for (const int64_t d : divisors)
      for (const Expr& var : vars)
        add_to(quotients_, floor_div(up ? var + Expr(d - 1) : var, Expr(d)));
}

FormulaFinder::Factor FormulaFinder::factor_of(Expr form) const {
  Factor factor{std::move(form), {}};
  for (const SymbolValues& point : points_)
    factor.values.push_back(evaluate_formula(factor.form, point));
  return factor;
}

std::optional<Expr> FormulaFinder::find(std::span<const int64_t> values) {
  CHECK(values.size() == points_.size());
  const bool constant = std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
  if (constant) return Expr(values[0]);
  const std::vector<int64_t> key(values.begin(), values.end());
  if (const auto known = found_.find(key); known != found_.end()) return known->second;
  // The simplest first.
  std::optional<Expr> formula = as_multiple_of(products_, values, false);
  if (!formula) formula = as_multiple_of(products_, values, true);
  for (const bool sum : {false, true})
    if (!formula) formula = as_multiple_of(quotients_, values, sum);
  for (const bool sum : {false, true}) {
    if (!formula) formula = as_product(values, sum);
    if (!formula) formula = as_quotient(values, sum);
  }
  if (!formula) formula = as_linear(values);
  if (!formula && !has_parts_) formula = as_combination(values);
  if (!formula && !has_parts_) formula = as_scaled(values);
  for (const bool sum : {false, true})
    if (!formula) formula = as_remainder(values, sum);
  if (!formula && !has_parts_ && clips_ < kMostClips) formula = as_clipped(values);
  if (formula && found_forms_.size() < kMostForms) found_forms_.push_back(factor_of(*formula));
  return found_[key] = formula;
}

std::optional<Expr> FormulaFinder::as_multiple_of(const std::vector<Factor>& factors,
                                                  std::span<const int64_t> values,
                                                  bool sum) const {
  for (const Factor& factor : factors)
    if (std::optional<Expr> formula = as_multiple(factor, values, sum)) return formula;
  return std::nullopt;
}

// a * factor, and + b in a `sum`.
std::optional<Expr> FormulaFinder::as_multiple(const Factor& factor,
                                               std::span<const int64_t> values,
                                               bool sum) const {
  const std::vector<int64_t>& f = factor.values;
  const auto [least, most] = std::ranges::minmax_element(f);
  const auto low = static_cast<size_t>(least - f.begin()),
             high = static_cast<size_t>(most - f.begin());
  int64_t run = 0, rise = 0, b = 0;
  if (__builtin_sub_overflow(*most, *least, &run) ||
      __builtin_sub_overflow(values[high], values[low], &rise))
    return std::nullopt;
  if (run == 0 || rise % run != 0) return std::nullopt;
  const int64_t a = rise / run;
  if (__builtin_mul_overflow(a, *least, &b) || __builtin_sub_overflow(values[low], b, &b))
    return std::nullopt;
  if (b != 0 && !sum) return std::nullopt;
  for (size_t p = 0; p < f.size(); ++p)
    if (values[p] != static_cast<__int128>(a) * f[p] + b) return std::nullopt;
  return factor.form * Expr(a) + Expr(b);
}

FormulaFinder::ThreePoints FormulaFinder::three_points(std::span<const int64_t> values) {
  std::vector<size_t> points(values.size());
  std::iota(points.begin(), points.end(), size_t{0});
  std::ranges::stable_sort(points, {}, [&](size_t p) { return values[p]; });
  ThreePoints three{{points.front(), points[points.size() / 2], points.back()}, {}};
  for (size_t i = 0; i < 3; ++i) three.values[i] = static_cast<double>(values[three.points[i]]);
  return three;
}

// Whether v = a * f, and + b in a `sum`, at three points; a and b are any numbers. Floats tell most
// numbers apart, and never take what fits for something else.
static bool may_be_multiple(
    const std::array<double, 3>& v, double f0, double f1, double f2, bool sum) {
  constexpr double kNear = 1e-9;  // relative: far above the rounding of floats
  const double scale =
      kNear * (std::abs(v[2]) + std::abs(v[0])) * (std::abs(f0) + std::abs(f1) + std::abs(f2));
  if (sum) return std::abs((v[1] - v[0]) * (f2 - f0) - (v[2] - v[0]) * (f1 - f0)) <= scale;
  return std::max(std::abs(v[0] * f1 - v[1] * f0), std::abs(v[0] * f2 - v[2] * f0)) <= scale;
}

// a * rounded, and + b in a `sum`, of a quotient that is rounded up or down. Where the divisor is
// as small as a stride, what is rounded may have a constant beside it.
std::optional<Expr> FormulaFinder::as_quotient(std::span<const int64_t> values, bool sum) {
  const ThreePoints at = three_points(values);
  std::optional<Expr> formula;
  for (int64_t d = 2; d <= kMostDivisor; ++d) {
    const auto rounded = [&](int64_t c) {
      return as_rounded(values, at, sum, d <= kMostStride, [&](auto v) {
        return floor_div(std::move(v) + decltype(v)(c), d);
      });
    };
    if ((formula = rounded(d - 1)) || (formula = rounded(0))) return formula;
    for (int64_t c = 1; d <= kMostStride && c < d - 1; ++c)
      if ((formula = rounded(c))) return formula;
  }
  return std::nullopt;
}

std::optional<Expr> FormulaFinder::as_remainder(std::span<const int64_t> values, bool sum) {
  const ThreePoints at = three_points(values);
  for (int64_t d = 2; d <= kMostDivisor; ++d) {
    const auto remainder = [&](auto v) { return floor_mod(std::move(v), d); };
    if (std::optional<Expr> formula = as_rounded(values, at, sum, false, remainder)) return formula;
  }
  return std::nullopt;
}

template <typename Round>
std::optional<Expr> FormulaFinder::as_rounded(std::span<const int64_t> values,
                                              const ThreePoints& at,
                                              bool sum,
                                              bool of_found,
                                              const Round& round) {
  const size_t products = products_.size(), bases = products + (of_found ? found_forms_.size() : 0);
  for (size_t i = 0; i < bases; ++i) {
    const Factor& product = i < products ? products_[i] : found_forms_[i - products];
    const auto rounded = [&](size_t p) {
      return static_cast<double>(round(product.values[at.points[p]]));
    };
    if (!may_be_multiple(at.values, rounded(0), rounded(1), rounded(2), sum)) continue;
    Factor factor{{}, {}};
    for (const int64_t v : product.values) factor.values.push_back(round(v));
    factor.form = Expr(0);
    if (!as_multiple(factor, values, sum)) continue;
    factor.form = round(product.form);
    quotients_.push_back(std::move(factor));
    return as_multiple(quotients_.back(), values, sum);
  }
  return std::nullopt;
}

// A multiple of the product of two or three of what was found: trip counts of fused loops. Most
// products are told from the values at three points; only the others are made.
std::optional<Expr> FormulaFinder::as_product(std::span<const int64_t> values, bool sum) const {
  std::vector<const Factor*> factors;
  for (const std::vector<Factor>* some : {&products_, &quotients_})
    for (const Factor& factor : *some) factors.push_back(&factor);
  const ThreePoints at = three_points(values);
  const std::array<double, 3>& v = at.values;
  std::array<std::vector<double>, 3> f;  // the factors at each point
  for (size_t i = 0; i < 3; ++i)
    for (const Factor* factor : factors)
      f[i].push_back(static_cast<double>(factor->values[at.points[i]]));
  // Nothing where the product is no 64-bit number.
  const auto formula_of = [&](std::initializer_list<size_t> some) -> std::optional<Expr> {
    Factor product{Expr(1), std::vector<int64_t>(values.size(), 1)};
    for (const size_t factor : some)
      for (size_t p = 0; p < values.size(); ++p)
        if (__builtin_mul_overflow(
                product.values[p], factors[factor]->values[p], &product.values[p]))
          return std::nullopt;
    if (!as_multiple(product, values, sum)) return std::nullopt;
    for (const size_t factor : some) product.form = product.form * factors[factor]->form;
    return as_multiple(product, values, sum);
  };
  const size_t count = factors.size();
  std::vector<uint8_t> fit(count);
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = a; b < count; ++b) {
      const double p0 = f[0][a] * f[0][b], p1 = f[1][a] * f[1][b], p2 = f[2][a] * f[2][b];
      if (may_be_multiple(v, p0, p1, p2, sum))
        if (std::optional<Expr> formula = formula_of({a, b})) return formula;
      int any = 0;  // without a branch, so that the loop is vectorized
      for (size_t c = b; c < count; ++c) {
        fit[c] = may_be_multiple(v, p0 * f[0][c], p1 * f[1][c], p2 * f[2][c], sum);
        any |= fit[c];
      }
      for (size_t c = b; any != 0 && c < count; ++c)
        if (fit[c] != 0)
          if (std::optional<Expr> formula = formula_of({a, b, c})) return formula;
    }
  }
  return std::nullopt;
}

// The unknowns of linear equations, each a row of factors and then the value, by elimination;
// nullopt where they do not say all of them.
static std::optional<std::vector<double>> solve(std::vector<std::vector<double>> rows) {
  const size_t unknowns = rows[0].size() - 1;
  for (size_t column = 0; column < unknowns; ++column) {
    const auto size = [&](const std::vector<double>& row) { return std::abs(row[column]); };
    std::ranges::swap(rows[column],
                      *std::ranges::max_element(rows.begin() + column, rows.end(), {}, size));
    const std::vector<double> pivot = rows[column];
    if (!(size(pivot) > 1e-6)) return std::nullopt;
    for (size_t r = 0; r < rows.size(); ++r) {
      const double times = r == column ? 0 : rows[r][column] / pivot[column];
      for (size_t c = column; c <= unknowns; ++c) rows[r][c] -= times * pivot[c];
    }
  }
  std::vector<double> solution;
  for (size_t u = 0; u < unknowns; ++u) solution.push_back(rows[u][unknowns] / rows[u][u]);
  return solution;
}

// A sum of multiples of the symbols and their products, and a constant: what parts of a joined axis
// have. The multiples solve linear equations, one a point; what is solved in floats is right if it
// gives every value.
std::optional<Expr> FormulaFinder::as_linear(std::span<const int64_t> values) const {
  constexpr double kMost = 1e17;  // a term: sums of a few are 64-bit numbers
  const size_t symbols = points_[0].size(), points = points_.size();
  // The first products are the symbols alone.
  for (const size_t terms : {symbols, symbols + symbols * (symbols + 1) / 2}) {
    if (symbols < 2 || points < (all_ ? 1 : 2) * (terms + 1)) return std::nullopt;
    std::vector<std::vector<double>> rows(points);
    for (size_t p = 0; p < points; ++p) {
      for (size_t t = 0; t < terms; ++t)
        rows[p].push_back(static_cast<double>(products_[t].values[p]));
      rows[p].push_back(1);
      rows[p].push_back(static_cast<double>(values[p]));
    }
    const std::optional<std::vector<double>> solution = solve(std::move(rows));
    if (!solution) continue;
    bool small = std::abs(solution->back()) < kMost;
    for (size_t t = 0; t < terms; ++t)
      for (const int64_t value : products_[t].values)
        small = small && std::abs((*solution)[t] * static_cast<double>(value)) < kMost;
    if (!small) return std::nullopt;
    Expr form(static_cast<int64_t>(std::llround(solution->back())));
    for (size_t t = terms; t-- > 0;)
      form = products_[t].form * Expr(static_cast<int64_t>(std::llround((*solution)[t]))) + form;
    if (fits(form, values)) return form;
  }
  return std::nullopt;
}

// a * one + b * other + c, of two symbols or formulas that were found before: what is left of an
// axis when a part of it is cut off. Three points say which numbers these are; a and b are small.
std::optional<Expr> FormulaFinder::as_combination(std::span<const int64_t> values) const {
  constexpr int64_t kMost = 64, kMostConstant = int64_t{1} << 40;
  std::vector<const Factor*> factors;
  for (size_t s = 0; s < points_[0].size(); ++s) factors.push_back(&products_[s]);
  for (const Factor& form : found_forms_) factors.push_back(&form);
  if (points_.size() < (all_ ? 3 : 6)) return std::nullopt;
  const size_t last = points_.size() - 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t j = i + 1; j < factors.size(); ++j) {
      const std::vector<int64_t>&f = factors[i]->values, &g = factors[j]->values;
      // The points between the first and the last, until one tells the two apart.
      for (size_t p = 1; p < last; ++p) {
        const auto from_first = [](std::span<const int64_t> of, size_t at) {
          return static_cast<__int128>(of[at]) - of[0];
        };
        const __int128 f1 = from_first(f, p), f2 = from_first(f, last), g1 = from_first(g, p),
                       g2 = from_first(g, last), v1 = from_first(values, p),
                       v2 = from_first(values, last);
        const __int128 apart = f1 * g2 - f2 * g1;
        if (apart == 0) continue;
        const __int128 a = v1 * g2 - v2 * g1, b = f1 * v2 - f2 * v1;
        if (a % apart != 0 || b % apart != 0) break;
        const __int128 times = a / apart, more = b / apart;
        if (times < -kMost || times > kMost || more < -kMost || more > kMost) break;
        const __int128 c = values[0] - times * f[0] - more * g[0];
        const auto is_right = [&](size_t at) {
          return values[at] == times * f[at] + more * g[at] + c;
        };
        const bool fits =
            std::ranges::all_of(std::views::iota(size_t{0}, points_.size()), is_right);
        if (!fits || c < -kMostConstant || c > kMostConstant) break;
        return factors[i]->form * Expr(static_cast<int64_t>(times)) +
               factors[j]->form * Expr(static_cast<int64_t>(more)) + Expr(static_cast<int64_t>(c));
      }
    }
  }
  return std::nullopt;
}

// floor((a * symbol + c) / d), of a symbol or what was found before: an axis that is resized by a
// fraction. Each d has one a; each point leaves d numbers that c may be.
std::optional<Expr> FormulaFinder::as_scaled(std::span<const int64_t> values) const {
  const size_t symbols = points_[0].size();
  for (size_t i = 0; i < symbols + found_forms_.size(); ++i) {
    const Factor& base = i < symbols ? products_[i] : found_forms_[i - symbols];
    const auto [least, most] = std::ranges::minmax_element(base.values);
    const auto low = static_cast<size_t>(least - base.values.begin()),
               high = static_cast<size_t>(most - base.values.begin());
    if (*least == *most) continue;
    const double slope = (static_cast<double>(values[high]) - static_cast<double>(values[low])) /
                         (static_cast<double>(*most) - static_cast<double>(*least));
    if (!(std::abs(slope) < 1e6)) continue;
    for (int64_t d = 2; d <= kMostDenominator; ++d) {
      const auto a = static_cast<int64_t>(std::llround(slope * static_cast<double>(d)));
      if (std::gcd(a, d) != 1) continue;
      __int128 from = std::numeric_limits<int64_t>::min(), to = std::numeric_limits<int64_t>::max();
      for (size_t p = 0; p < values.size(); ++p) {
        const __int128 at =
            static_cast<__int128>(d) * values[p] - static_cast<__int128>(a) * base.values[p];
        from = std::max(from, at);
        to = std::min(to, at + d - 1);
      }
      if (from > to) continue;
      const int64_t c = from <= 0 && to >= 0 ? 0 : static_cast<int64_t>(from);
      return floor_div(base.form * Expr(a) + Expr(c), Expr(d));
    }
  }
  return std::nullopt;
}

// The lesser of a formula and a constant, as of the k greatest of n, or the greater: the constant
// is what several points have, and the others have the formula.
std::optional<Expr> FormulaFinder::as_clipped(std::span<const int64_t> values) const {
  // With the formula's own value; of the constant one less.
  const size_t fewest = all_ ? 2 : 3;
  const auto [least, most] = std::ranges::minmax_element(values);
  for (const bool lesser : {true, false}) {
    const int64_t limit = lesser ? *most : *least;
    std::vector<SymbolValues> points;
    std::vector<int64_t> inside;
    for (size_t p = 0; p < values.size(); ++p) {
      if (values[p] == limit) continue;
      points.push_back(points_[p]);
      inside.push_back(values[p]);
    }
    if (inside.size() < fewest || values.size() - inside.size() < fewest - 1) continue;
    // A constant would say nothing of the points between the two.
    FormulaFinder finder(symbols_, std::move(points));
    finder.all_ = all_;
    finder.clips_ = clips_ + 1;
    const std::optional<Expr> formula = finder.find(inside);
    if (!formula || as_int(*formula) != nullptr) continue;
    Expr clipped = lesser ? min(*formula, Expr(limit)) : max(*formula, Expr(limit));
    if (fits(clipped, values)) return clipped;
  }
  return std::nullopt;
}

bool FormulaFinder::fits(const Expr& form, std::span<const int64_t> values) const {
  for (size_t p = 0; p < points_.size(); ++p)
    if (evaluate_formula(form, points_[p]) != values[p]) return false;
  return true;
}

std::vector<int64_t> evaluate_formulas(std::span<const Expr> formulas,
                                       std::span<const int64_t> values) {
  std::vector<int64_t> made;
  for (const Expr& formula : formulas) made.push_back(evaluate_formula(formula, values));
  return made;
}

int64_t evaluate_formula(const Expr& formula, std::span<const int64_t> values) {
  if (const int64_t* constant = as_int(formula)) return *constant;
  if (const Var* var = as<Var>(formula)) return values[static_cast<size_t>(var->id.value)];
  const Binary* n = as<Binary>(formula);
  CHECK(n != nullptr) << "no formula";
  const int64_t a = evaluate_formula(n->a, values), b = evaluate_formula(n->b, values);
  switch (n->op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kFloorDiv: return floor_div(a, b);
    case BinaryOp::kFloorMod: return floor_mod(a, b);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    default: CHECK(false) << "no formula"; return 0;
  }
}

Range bounds_in(const Expr& formula, const SymbolBox& box) {
  std::vector<Range> ranges;
  for (size_t s = 0; s < box.min.size(); ++s) ranges.emplace_back(box.min[s], box.max[s]);
  return bounds(formula, ranges);
}

// Both sides of the first and the last places along symbol `s` where the formula changes, the other
// symbols at their greatest.
static void add_changes(const Expr& extent,
                        const SymbolBox& box,
                        size_t s,
                        int64_t most,
                        std::set<SymbolValues>& chosen) {
  for (const bool down : {false, true}) {
    SymbolValues at = box.max;
    at[s] = down ? box.max[s] : box.min[s];
    int64_t before = evaluate_formula(extent, at), changes = 0;
    while (changes < most && at[s] != (down ? box.min[s] : box.max[s])) {
      SymbolValues next = at;
      next[s] += down ? -1 : 1;
      const int64_t value = evaluate_formula(extent, next);
      if (value != before) {
        ++changes;
        chosen.insert(at);
        chosen.insert(next);
      }
      before = value;
      at = std::move(next);
    }
  }
}

CheckedCounts checked_counts(std::span<const Symbol> symbols) {
  const bool found = std::ranges::any_of(symbols, [](const Symbol& s) { return s.found; });
  return found ? CheckedCounts{96, 64, 16} : CheckedCounts{};
}

CheckedShapes checked_shapes(const SymbolBox& box,
                             const std::vector<Expr>& extents,
                             const CheckedCounts& counts) {
  const size_t symbols = box.min.size();
  const auto length = [&](size_t s) { return box.max[s] - box.min[s] + 1; };
  const int64_t count = box.num_shapes();
  std::vector<SymbolValues> shapes;
  if (count <= counts.all) {
    for (int64_t i = 0; i < count; ++i) {
      SymbolValues& shape = shapes.emplace_back(box.min);
      int64_t left = i;
      for (size_t s = symbols; s-- > 0; left /= length(s)) shape[s] += left % length(s);
    }
    return {std::move(shapes), true};
  }
  std::set<SymbolValues> chosen;
  for (size_t corner = 0; corner < size_t{1} << std::min<size_t>(symbols, 5); ++corner) {
    SymbolValues shape = box.max;
    for (size_t s = 0; s < symbols; ++s)
      if ((corner >> s & 1) == 0) shape[s] = box.min[s];
    chosen.insert(std::move(shape));
  }
  Rng rng(3);
  // Each shape has an extent of every symbol: those of one symbol in turn, in an order of its own.
  for (int64_t i = 0; i < 2 * counts.remainders; ++i) {
    SymbolValues shape;
    for (size_t s = 0; s < symbols; ++s) {
      const int64_t at = (i * (2 * static_cast<int64_t>(s) + 1)) % (2 * counts.remainders);
      const int64_t step = std::min(at % counts.remainders, length(s) - 1);
      shape.push_back(at < counts.remainders ? box.min[s] + step : box.max[s] - step);
    }
    chosen.insert(std::move(shape));
  }
  for (const Expr& extent : extents)
    for (size_t s = 0; s < symbols; ++s) add_changes(extent, box, s, counts.remainders, chosen);
  while (std::ssize(chosen) < counts.sampled) {
    SymbolValues shape;
    for (size_t s = 0; s < symbols; ++s) shape.push_back(box.min[s] + rng.below(length(s)));
    chosen.insert(std::move(shape));
  }
  return {{chosen.begin(), chosen.end()}, false};
}

}  // namespace pruner
