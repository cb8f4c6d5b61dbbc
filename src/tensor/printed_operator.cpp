#include "tensor/printed_operator.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>

namespace pruner {

namespace {

constexpr int64_t kMostExtent = 1'000'000'000;  // the limit for words of --op

bool has_zero(const std::vector<int64_t>& extents) {
  return std::ranges::find(extents, 0) != extents.end();
}

/// "1x56x56x64"; nullopt for anything else. A single extent is no shape here: "relu 64".
std::optional<std::vector<int64_t>> read_shape(std::string_view text, size_t least = 2) {
  std::vector<int64_t> shape;
  while (true) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), extent);
    if (error != std::errc() || extent < 0 || extent > kMostExtent) return std::nullopt;
    shape.push_back(extent);
    if (end == text.end()) break;
    if (*end != 'x') return std::nullopt;
    text = text.substr(static_cast<size_t>(end - text.begin()) + 1);
  }
  if (shape.size() < least) return std::nullopt;
  return shape;
}

std::string join(std::span<const int64_t> values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

/// The words of the anchor as they are read one after the other.
class Words {
 public:
  explicit Words(std::span<const std::string> words) : words_(words) {}

  bool empty() const { return words_.empty(); }
  /// A shape that is next.
  std::optional<std::vector<int64_t>> shape(size_t least = 2) {
    if (empty()) return std::nullopt;
    const auto read = read_shape(words_.front(), least);
    if (read) words_ = words_.subspan(1);
    return read;
  }
  /// The extents of "s2", "p1x1x0x0" that is next.
  std::optional<std::vector<int64_t>> lettered(char letter) {
    if (empty() || words_.front()[0] != letter) return std::nullopt;
    const auto read = read_shape(std::string_view(words_.front()).substr(1), 1);
    if (read) words_ = words_.subspan(1);
    return read;
  }
  bool word(std::string_view expected) {
    if (empty() || words_.front() != expected) return false;
    words_ = words_.subspan(1);
    return true;
  }
  std::optional<int64_t> number() {
    const auto read = shape(1);
    if (!read || read->size() != 1) return std::nullopt;
    return read->front();
  }

 private:
  std::span<const std::string> words_;
};

using Read = std::optional<PrintedOperator>;

// "1x56x56x64 3x3 s1 p1 d2 g4 -> 64": of pools and of depthwise convolutions without "-> C".
Read read_window(const std::string& name, Words in) {
  const bool channels_first = name.ends_with("_nchw"), depthwise = name.starts_with("depthwise");
  const bool pool = name.find("_pool") != std::string::npos;
  const bool transposed = name.find("_transpose") != std::string::npos;
  PrintedOperator out{.words = {name}};
  const auto data = in.shape();
  const auto kernel = in.shape();
  const auto stride = in.lettered('s');
  if (!data || !kernel || !stride || data->size() != kernel->size() + 2) return std::nullopt;
  const size_t rank = kernel->size();
  const auto padding = in.lettered('p').value_or(std::vector<int64_t>{0});
  const auto dilation = in.lettered('d').value_or(std::vector<int64_t>{1});
  const int64_t groups = in.lettered('g').value_or(std::vector<int64_t>{1})[0];
  std::optional<int64_t> made;
  if (in.word("->")) made = in.number();
  if (!in.empty() || made.has_value() == pool) return std::nullopt;
  if (has_zero(*data) || has_zero(*stride)) return std::nullopt;

  const int64_t channels = channels_first ? (*data)[1] : data->back();
  static constexpr const char* kDims[] = {"D", "H", "W"};
  const auto add = [&](const std::string& key, int64_t value) {
    out.words.push_back(key + "=" + std::to_string(value));
  };
  add("N", data->front());
  const bool one_channel_count = pool || depthwise;
  add(one_channel_count ? "C" : "CI", channels);
  if (!one_channel_count) add("CO", *made);
  if (depthwise && *made != channels) add("multiplier", *made / channels);
  const auto of = [](const std::vector<int64_t>& values, size_t d) {
    return values[d % values.size()];
  };
  for (size_t d = 0; d < rank; ++d) {
    const std::string dim = rank <= 3 ? kDims[3 - rank + d] : "";
    const int64_t in_extent = (*data)[d + (channels_first ? 2 : 1)];
    const int64_t pads = of(padding, d) + of(padding, padding.size() == 2 * rank ? rank + d : d);
    const int64_t reach = of(dilation, d) * ((*kernel)[d] - 1) + 1;
    const int64_t extent = transposed ? (in_extent - 1) * of(*stride, d) - pads + reach
                                      : (in_extent + pads - reach) / of(*stride, d) + 1;
    add(dim + "O", extent);
    add("K" + dim, (*kernel)[d]);
  }
  out.words.push_back("stride=" + join(*stride));
  out.words.push_back("padding=" + join(padding));
  if (dilation != std::vector<int64_t>{1}) out.words.push_back("dilation=" + join(dilation));
  if (groups != 1) add("groups", groups);
  out.data = *data;
  return out;
}

// "1x2048 -> 1000"; "-> N of 8 bits in 32" of weights in codes.
Read read_dense(const std::string& name, Words in) {
  const auto data = in.shape();
  if (!data || data->size() != 2 || !in.word("->")) return std::nullopt;
  const auto made = in.number();
  if (!made) return std::nullopt;
  PrintedOperator out{
      .words = {
          name, std::to_string((*data)[0]), std::to_string(*made), std::to_string((*data)[1])}};
  if (in.word("of")) {
    const auto bits = in.number();
    if (!bits || !in.word("bits") || !in.word("in")) return std::nullopt;
    const auto block = in.number();
    if (!block) return std::nullopt;
    out.words.push_back("bits=" + std::to_string(*bits));
    out.words.push_back("block=" + std::to_string(*block));
  }
  return in.empty() ? Read(out) : std::nullopt;
}

// "64x32 32x16", stacks of as many matrices, or a stack by one that is constant: "1x64x32 32x16".
Read read_matmul(Words in) {
  const auto lhs = in.shape(), rhs = in.shape();
  if (!lhs || !rhs || !in.empty()) return std::nullopt;
  const size_t rank = lhs->size();
  const bool by_one = rank == 3 && rhs->size() == 2;
  if (rank > 3 || (!by_one && rhs->size() != rank)) return std::nullopt;
  if ((*lhs)[rank - 1] != (*rhs)[rhs->size() - 2]) return std::nullopt;
  if (rank == 3 && !by_one && lhs->front() != rhs->front()) return std::nullopt;
  PrintedOperator out{.words = {rank == 3 ? "batch_matmul" : "matmul"}};
  if (rank == 3) out.words.push_back(std::to_string(lhs->front()));
  for (const int64_t extent : {(*lhs)[rank - 2], rhs->back(), lhs->back()})
    out.words.push_back(std::to_string(extent));
  if (by_one) out.words.push_back("weights=1");
  return out;
}

// "softmax 1x12x128x128".
Read read_shaped(const std::string& name, Words in) {
  const auto shape = in.shape();
  if (!shape || !in.empty()) return std::nullopt;
  PrintedOperator out{.words = {name}};
  for (const int64_t extent : *shape) out.words.push_back(std::to_string(extent));
  return out;
}

}  // namespace

bool is_printed(const std::vector<std::string>& words) {
  return words.size() > 1 && read_shape(words[1].substr(0, words[1].find('T'))).has_value();
}

std::optional<PrintedOperator> read_printed(const std::vector<std::string>& words) {
  const std::string& name = words[0];
  const auto rest = std::find_if(
      words.begin() + 1, words.end(), [](const std::string& w) { return w.starts_with('+'); });
  std::vector<std::string> anchor(words.begin() + 1, rest), options;
  std::erase_if(anchor, [&](const std::string& word) {
    const bool option = word.find('=') != std::string::npos;
    if (option) options.push_back(word);
    return option;
  });
  const Words in(anchor);
  Read read;
  if (name.find("conv") != std::string::npos || name.find("_pool2d") != std::string::npos) {
    read = read_window(name, in);
  } else if (name == "dense" || name == "coded_matmul") {
    read = read_dense(name, in);
  } else if (name == "matmul") {
    read = read_matmul(in);
  } else {
    read = read_shaped(name, in);
  }
  if (!read) return std::nullopt;
  read->words.insert(read->words.end(), options.begin(), options.end());
  read->words.insert(read->words.end(), rest, words.end());
  return read;
}

}  // namespace pruner
