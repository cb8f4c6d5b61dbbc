#include "tensor/symbol.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "support/rng.h"

namespace pruner {

bool SymbolBox::contains(std::span<const int64_t> values) const {
  for (size_t s = 0; s < min.size(); ++s)
    if (values[s] < min[s] || values[s] > max[s]) return false;
  return true;
}

SymbolBox box_of(std::span<const Symbol> symbols) {
  SymbolBox box;
  for (const Symbol& symbol : symbols) {
    box.min.push_back(symbol.min);
    box.max.push_back(symbol.max);
  }
  return box;
}

namespace {

/// Numbers from the begin of a text on.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool read(int64_t& number) {
    const auto [next, code] = std::from_chars(at_, end_, number);
    if (code != std::errc() || number < 1 || number > INT32_MAX) return false;
    at_ = next;
    return true;
  }
  bool read(std::string_view text) {
    if (!std::string_view(at_, end_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool done() const { return at_ == end_; }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

Result<Symbol> parse_symbol(std::string_view text) {
  const Error error("\"",
                    text,
                    "\" is not NAME=1..512, NAME=1..512@64,128 (where it matters most) or NAME=4, "
                    "of extents from 1 to ",
                    kMostSymbolExtent);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return error;
  Symbol symbol{std::string(text.substr(0, equals)), 1, 1, {}};
  Numbers numbers(text.substr(equals + 1));
  if (!numbers.read(symbol.min)) return error;
  symbol.max = symbol.min;
  if (numbers.read("..") && !numbers.read(symbol.max)) return error;
  if (symbol.max < symbol.min)
    return Error("\"", text, "\": the range ends at ", symbol.max, ", before it begins");
  if (symbol.max > kMostSymbolExtent)
    return Error("\"", text, "\": a dimension is at most ", kMostSymbolExtent, " long");
  if (numbers.read("@")) {
    do {
      int64_t extent = 0;
      if (!numbers.read(extent)) return error;
      if (extent < symbol.min || extent > symbol.max)
        return Error("\"", text, "\": ", extent, " lies outside of the range");
      symbol.matters.push_back(extent);
    } while (numbers.read(","));
  }
  if (!numbers.done()) return error;
  std::ranges::sort(symbol.matters);
  const auto twice = std::ranges::unique(symbol.matters);
  symbol.matters.erase(twice.begin(), twice.end());
  return symbol;
}

std::string print(const Symbol& symbol) {
  return symbol.min == symbol.max ? fmt::format("{}={}", symbol.name, symbol.min)
                                  : fmt::format("{}={}..{}", symbol.name, symbol.min, symbol.max);
}

std::string print(std::span<const Symbol> symbols, std::span<const int64_t> values) {
  std::string text;
  for (size_t s = 0; s < symbols.size(); ++s)
    text += fmt::format("{}{}={}", s == 0 ? "" : ", ", symbols[s].name, values[s]);
  return text;
}

bool is_generic(int64_t extent) {
  for (int64_t d = 2; d * d <= extent; ++d)
    if (extent % d == 0) return false;
  return extent > 1;
}

namespace {

/// The least prime of a range; nullopt: there is none.
std::optional<int64_t> first_prime(int64_t min, int64_t max) {
  for (int64_t n = min; n <= max; ++n)
    if (is_generic(n)) return n;
  return std::nullopt;
}

int64_t last_prime(int64_t max) {
  while (!is_generic(max)) --max;
  return max;
}

/// Primes of a range that grow by about the same factor, the least and the greatest among them.
std::vector<int64_t> spread_primes(int64_t min, int64_t max, int most) {
  std::vector<int64_t> primes;
  for (std::optional<int64_t> next = first_prime(min, max); next && std::ssize(primes) <= most;
       next = first_prime(*next + 1, max))
    primes.push_back(*next);
  if (std::ssize(primes) <= most) return primes;
  const int64_t least = primes.front(), greatest = last_prime(max);
  const double ratio = static_cast<double>(greatest) / static_cast<double>(least);
  std::vector<int64_t> spread;
  for (int i = 0; i < most; ++i) {
    const double wanted =
        static_cast<double>(least) * std::pow(ratio, i / static_cast<double>(most - 1));
    std::optional<int64_t> at = first_prime(std::llround(wanted), greatest).value_or(greatest);
    if (!spread.empty() && *at <= spread.back()) at = first_prime(spread.back() + 1, greatest);
    if (at) spread.push_back(*at);
  }
  return spread;
}

}  // namespace

int64_t SymbolBox::num_shapes() const {
  int64_t count = 1;
  for (size_t s = 0; s < min.size(); ++s)
    if (__builtin_mul_overflow(count, max[s] - min[s] + 1, &count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

std::vector<SymbolValues> generic_points(const SymbolBox& box, int most) {
  std::vector<std::vector<int64_t>> extents;
  size_t longest = 0;
  for (size_t s = 0; s < box.min.size(); ++s) {
    const bool fixed = box.min[s] == box.max[s];
    extents.push_back(fixed ? std::vector{box.min[s]}
                            : spread_primes(box.min[s], box.max[s], most));
    if (extents.back().empty()) return {};
    longest = std::max(longest, extents.back().size());
  }
  // Each symbol goes through its extents at a pace of its own, so that none follows another.
  std::vector<SymbolValues> points;
  const size_t count = box.min.size() > 1 ? 2 * longest : longest;
  for (size_t i = 0; i < count; ++i) {
    SymbolValues point;
    for (size_t s = 0; s < extents.size(); ++s) {
      const std::vector<int64_t>& of = extents[s];
      const size_t turn = i / longest;
      point.push_back(of[(turn == 0 ? i : i * (s + 2) + s) % of.size()]);
    }
    if (std::ranges::find(points, point) == points.end()) points.push_back(std::move(point));
  }
  std::ranges::sort(points);
  return points;
}

static SymbolValues draw_shape(const SymbolBox& box, Rng& rng) {
  SymbolValues shape;
  for (size_t s = 0; s < box.min.size(); ++s)
    shape.push_back(box.min[s] + rng.below(box.max[s] - box.min[s] + 1));
  return shape;
}

std::vector<SymbolValues> drawn_shapes(const SymbolBox& box) {
  constexpr size_t kDrawn = 4;
  std::set<SymbolValues> shapes = {box.min, box.max};
  Rng rng(4);
  for (size_t i = 0; i < kDrawn; ++i) shapes.insert(draw_shape(box, rng));
  return {shapes.begin(), shapes.end()};
}

}  // namespace pruner
