#include "report/top_values.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pruner {

namespace {

constexpr size_t kShownRows = 10;

/// The place of row `number` in the axes but the last.
std::vector<int64_t> place_of(int64_t number, std::span<const int64_t> shape) {
  std::vector<int64_t> place(shape.empty() ? 0 : shape.size() - 1);
  for (size_t d = place.size(); d-- > 0; number /= shape[d]) place[d] = number % shape[d];
  return place;
}

}  // namespace

std::vector<TopRow> top_values(const Tensor& tensor, int64_t count) {
  const std::vector<int64_t>& shape = tensor.shape();
  const int64_t width = shape.empty() ? 1 : shape.back();
  if (width == 0) return {};
  count = std::min(count, width);
  std::vector<TopRow> rows;
  std::vector<int64_t> order(static_cast<size_t>(width));
  for (int64_t number = 0; number < tensor.num_elements() / width; ++number) {
    const auto value = [&](int64_t i) { return tensor.get(number * width + i); };
    const auto before = [&](int64_t a, int64_t b) {
      const double x = value(a), y = value(b);
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
      return x > y || (x == y && a < b);
    };
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + count;
    std::ranges::partial_sort(order, end, before);
    TopRow& row = rows.emplace_back(TopRow{place_of(number, shape), {order.begin(), end}, {}});
    for (const int64_t i : row.indices) row.values.push_back(value(i));
  }
  return rows;
}

std::string print_top(const TensorSpec& spec, std::span<const TopRow> rows) {
  std::string text = print(spec) + "\n";
  for (const TopRow& row : rows.first(std::min(rows.size(), kShownRows))) {
    std::vector<std::string> words;
    for (size_t i = 0; i < row.indices.size(); ++i)
      words.push_back(fmt::format("{} {:.5g}", row.indices[i], row.values[i]));
    text += fmt::format("  [{}]: {}\n", fmt::join(row.row, ","), fmt::join(words, ", "));
  }
  if (rows.size() > kShownRows)
    text += fmt::format("  and {} more rows\n", rows.size() - kShownRows);
  return text;
}

Json top_json(std::span<const TopRow> rows) {
  Json all = Json::array();
  for (const TopRow& row : rows)
    all.push_back({{"row", row.row}, {"indices", row.indices}, {"values", row.values}});
  return all;
}

}  // namespace pruner
