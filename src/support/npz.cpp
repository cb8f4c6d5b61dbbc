#include "support/npz.h"

#include <cstring>

#include "support/file.h"
#include "support/zip.h"

namespace pruner {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr int64_t kMaxBytes = int64_t{1} << 40;  // more is a damaged header

/// Returns the text behind `key` in the header, a Python dictionary.
std::string_view header_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = header.find_first_not_of(" ", at + key.size());
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

Result<std::vector<int64_t>> parse_shape(std::string_view text) {
  const size_t end = text.find(')');
  if (!text.starts_with("(") || end == std::string_view::npos)
    return Error("its header has no shape");
  std::vector<int64_t> shape;
  for (size_t i = 1; i < end; ++i) {
    if (text[i] == ',' || text[i] == ' ') continue;
    int64_t extent = 0;
    const size_t first = i;
    for (; i < end && text[i] >= '0' && text[i] <= '9' && extent < kMaxBytes; ++i) {
      extent = extent * 10 + (text[i] - '0');
    }
    if (i == first) return Error("its header has no shape");
    shape.push_back(extent);
  }
  return shape;
}

/// Bytes of one element of numpy's `type`; 0 for what has no plain little-endian bytes.
int64_t element_bytes(std::string_view type) {
  if (type.size() < 3 || (type[0] != '<' && type[0] != '|')) return 0;
  if (std::string_view("biufcV").find(type[1]) == std::string_view::npos) return 0;
  const int64_t bytes = std::atoll(std::string(type.substr(2)).c_str());
  return bytes > 0 && bytes <= 32 && (type[0] == '<' || bytes == 1 || type[1] == 'V') ? bytes : 0;
}

/// Column-major to row-major.
std::string turn_round(const std::string& from, std::span<const int64_t> shape, size_t element) {
  std::string to(from.size(), '\0');
  for (size_t i = 0; i < from.size() / element; ++i) {
    size_t rest = i;    // rest of the row-major position
    size_t source = 0;  // column-major position
    size_t stride = from.size() / element;
    for (size_t d = shape.size(); d-- > 0;) {
      const size_t extent = static_cast<size_t>(shape[d]);
      stride /= extent;
      source += rest % extent * stride;
      rest /= extent;
    }
    std::memcpy(to.data() + i * element, from.data() + source * element, element);
  }
  return to;
}

Result<NpyArray> parse_npy(std::string bytes) {
  const std::string_view text = bytes;
  if (text.size() < 12 || !text.starts_with(kMagic)) return Error("it is no .npy array");
  const bool wide = text[6] >= 2;  // versions 2 and 3: four bytes of length
  uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, wide ? 4 : 2);
  const size_t begin = (wide ? 12u : 10u) + size_t{length};
  if (begin > text.size()) return Error("truncated");
  const std::string_view header = text.substr(wide ? 12 : 10, length);

  NpyArray array;
  const std::string_view type = header_value(header, "'descr':");
  if (type.starts_with("'")) array.type = type.substr(1, type.find('\'', 1) - 1);
  const int64_t element = element_bytes(array.type);
  if (element == 0) {
    return Error(
        "its type ", type.substr(0, type.find(", '")), " has no plain little-endian bytes");
  }
  TRY_ASSIGN(array.shape, parse_shape(header_value(header, "'shape':")));
  int64_t size = element;
  for (const int64_t extent : array.shape) {
    size = extent <= kMaxBytes / std::max<int64_t>(size, 1) ? size * extent : kMaxBytes;
  }
  if (static_cast<size_t>(size) != text.size() - begin) {
    return Error("its shape needs ", size, " bytes, there are ", text.size() - begin);
  }
  const bool fortran = header_value(header, "'fortran_order':").starts_with("True");
  array.bytes = bytes.erase(0, begin);  // header ends here
  if (fortran) {
    array.bytes = turn_round(array.bytes, array.shape, static_cast<size_t>(element));
  }
  return array;
}

/// Everything of a version 1.0 .npy file before the elements, a multiple of 64 bytes.
std::string npy_header(const NpyArray& array) {
  std::string text = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.shape) text += std::to_string(extent) + ", ";
  if (array.shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  text.append(63 - (10 + text.size()) % 64, ' ') += '\n';
  std::string header(kMagic);
  header += {1, 0, static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace

Result<std::vector<NpyArray>> read_npz(const std::string& path) {
  TRY_ASSIGN(const ZipReader zip, ZipReader::open(path));
  std::vector<NpyArray> arrays;
  for (size_t i = 0; i < zip.names().size(); ++i) {
    std::string name = zip.names()[i];
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    Result<std::string> bytes = zip.read(i);
    if (!bytes.ok()) return Error(path, ": array \"", name, "\": ", bytes.error().message());
    Result<NpyArray> array = parse_npy(*std::move(bytes));
    if (!array.ok()) return Error(path, ": array \"", name, "\": ", array.error().message());
    array->name = std::move(name);
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<NpyArray> read_npy(const std::string& path) {
  TRY_ASSIGN(std::string bytes, read_file(path));
  Result<NpyArray> array = parse_npy(std::move(bytes));
  if (!array.ok()) return Error(path, ": ", array.error().message());
  return array;
}

Result<Unit> write_npz(const std::string& path, std::span<const NpyArray> arrays) {
  std::vector<ZipEntry> entries;
  for (const NpyArray& array : arrays)
    entries.push_back({array.name + ".npy", npy_header(array) + array.bytes});
  return write_zip(path, entries);
}

}  // namespace pruner
