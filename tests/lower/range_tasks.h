// Tasks over ranges of shapes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <regex>

#include "lower/task_range.h"
#include "space/operator_task.h"

namespace pruner {

/// The text with each "{name}" the symbol's extent.
inline std::string at_extents(std::string text,
                              std::span<const Symbol> symbols,
                              std::span<const int64_t> values) {
  for (size_t s = 0; s < symbols.size(); ++s) {
    const std::string place = "{" + symbols[s].name + "}";
    for (size_t at; (at = text.find(place)) != std::string::npos;)
      text.replace(at, place.size(), std::to_string(values[s]));
  }
  return text;
}

/// `op` at all extents of `symbols`, as "matmul {n} 24 40" is at those of n.
inline TaskRange task_range(const std::string& op,
                            const std::vector<Symbol>& symbols,
                            const Target& target = test_target()) {
  FormulaFinder finder(symbols, generic_points(box_of(symbols), 10));
  std::vector<ComputeDag> dags;
  std::vector<const ComputeDag*> list;
  for (const SymbolValues& point : finder.points())
    dags.push_back(operator_task(at_extents(op, symbols, point)).dag);
  for (const ComputeDag& dag : dags) list.push_back(&dag);
  Result<DagRange> range = DagRange::of(list, finder);
  EXPECT_TRUE(range.ok()) << op << ": " << range.error().message();
  return TaskRange(symbols, box_of(symbols), *std::move(range), target, op);
}

}  // namespace pruner
