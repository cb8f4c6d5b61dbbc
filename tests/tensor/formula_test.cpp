#include "tensor/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "support/rng.h"

namespace pruner {
namespace {

const std::vector<Symbol> kOne = {{"n", 1, 512, {}}};
const std::vector<Symbol> kTwo = {{"b", 1, 16, {}}, {"s", 1, 512, {}}};

/// Formulas that are found of their values are those of all shapes.
void expect_found(const std::vector<Symbol>& symbols,
                  const std::function<int64_t(const SymbolValues&)>& value,
                  const std::vector<int64_t>& tiles = {}) {
  FormulaFinder finder(symbols, generic_points(box_of(symbols), 10), tiles);
  std::vector<int64_t> values;
  for (const SymbolValues& point : finder.points()) values.push_back(value(point));
  const std::optional<Expr> formula = finder.find(values);
  ASSERT_TRUE(formula);
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    SymbolValues shape;
    for (const Symbol& symbol : symbols) shape.push_back(16 + rng.below(symbol.max - 15));
    EXPECT_EQ(evaluate_formula(*formula, shape), value(shape)) << print(symbols, shape);
  }
}

TEST(FormulaFinder, FindsWhatNumbersOfProgramsAre) {
  expect_found(kOne, [](const SymbolValues&) { return 7; });
  expect_found(kOne, [](const SymbolValues& n) { return 768 * n[0]; });
  expect_found(kOne, [](const SymbolValues& n) { return n[0] - 14; });
  expect_found(kOne, [](const SymbolValues& n) { return 12 * n[0] * n[0]; });
  expect_found(kOne, [](const SymbolValues& n) { return 3 * ((n[0] + 15) / 16); });
  expect_found(kOne, [](const SymbolValues& n) { return n[0] / 6; });
  expect_found(kOne, [](const SymbolValues& n) { return n[0] % 6; });
  expect_found(kOne, [](const SymbolValues& n) { return (n[0] - 1) / 2 + 1; });
  expect_found(kTwo, [](const SymbolValues& n) { return 64 * n[0] * n[1]; });
  expect_found(kTwo, [](const SymbolValues& n) { return n[0] * ((n[1] + 7) / 8); }, {8});
  expect_found(kTwo, [](const SymbolValues& n) { return n[0] * n[1] * n[1]; });
}

TEST(FormulaFinder, FindsTheLesserAndTheGreaterOfAFormulaAndAConstant) {
  expect_found(kOne, [](const SymbolValues& n) { return std::min<int64_t>(n[0], 200); });
  expect_found(kOne, [](const SymbolValues& n) { return std::max<int64_t>(3 * n[0], 90); });
  expect_found(kOne, [](const SymbolValues& n) { return std::min<int64_t>(n[0] / 2 + 1, 100); });
}

TEST(FormulaFinder, FindsSumsOfSymbolsAndPartsOfThem) {
  expect_found(kTwo, [](const SymbolValues& n) { return n[0] + n[1]; });
  expect_found(kTwo, [](const SymbolValues& n) { return 64 * n[0] - 3 * n[1] + 5; });
  expect_found(kTwo, [](const SymbolValues& n) { return n[0] * n[1] + 2 * n[1]; });
  expect_found(kOne, [](const SymbolValues& n) { return 3 * n[0] / 2; });
  expect_found(kOne, [](const SymbolValues& n) { return 7 * n[0] / 10; });
  expect_found(kOne, [](const SymbolValues& n) { return (5 * n[0] + 2) / 4; });
}

TEST(FormulaFinder, FindsNoneOfNumbersWithoutOne) {
  FormulaFinder finder(kOne, generic_points(box_of(kOne), 10));
  Rng rng(6);
  std::vector<int64_t> values;
  for (size_t i = 0; i < finder.points().size(); ++i) values.push_back(rng.below(1000));
  EXPECT_FALSE(finder.find(values));
}

TEST(FormulaFinder, KnowsTilesByWhatItIsTold) {
  // At two lengths alone a trip count of tiles of 24 is that of tiles of 23, too.
  const std::vector<int64_t> tiles = {24};
  FormulaFinder finder(kOne, {{29}, {61}}, tiles);
  const std::optional<Expr> formula = finder.find(std::vector<int64_t>{2, 3});
  ASSERT_TRUE(formula);
  EXPECT_EQ(evaluate_formula(*formula, SymbolValues{48}), 2);
}

}  // namespace
}  // namespace pruner
