#include "model/pickle_writer.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "support/check.h"

namespace pruner {
namespace {

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string with_length(char opcode, std::string_view bytes) {
  CHECK(bytes.size() <= std::numeric_limits<uint32_t>::max());
  return opcode + little_endian(static_cast<uint32_t>(bytes.size())) + std::string(bytes);
}

/// SETITEMS.
Pickled with_items(Pickled dict, const PickledItems& items) {
  if (items.empty()) return dict;
  dict += '(';
  for (const auto& [key, value] : items) dict += pickled_text(key) + value;
  return dict + 'u';
}

Pickled joined(const std::vector<Pickled>& values) {
  Pickled all;
  for (const Pickled& value : values) all += value;
  return all;
}

}  // namespace

Pickled pickled_none() { return "N"; }

Pickled pickled_bool(bool value) { return value ? "\x88" : "\x89"; }

Pickled pickled_integer(int64_t value) {
  CHECK(value == static_cast<int32_t>(value)) << value;
  return 'J' + little_endian(static_cast<uint32_t>(value));
}

Pickled pickled_float(double value) {
  std::string bytes = little_endian(std::bit_cast<uint64_t>(value));
  std::ranges::reverse(bytes);
  return 'G' + bytes;
}

Pickled pickled_text(std::string_view text) { return with_length('X', text); }

Pickled pickled_bytes(std::string_view bytes) { return with_length('B', bytes); }

Pickled pickled_tuple(const std::vector<Pickled>& values) { return '(' + joined(values) + 't'; }

Pickled pickled_list(const std::vector<Pickled>& values) { return "](" + joined(values) + 'e'; }

Pickled pickled_dict(const PickledItems& items) { return with_items("}", items); }

Pickled pickled_global(std::string_view name) {
  std::string lines = 'c' + std::string(name) + '\n';
  std::ranges::replace(lines, ' ', '\n');
  return lines;
}

Pickled pickled_call(std::string_view name, const std::vector<Pickled>& arguments) {
  return pickled_global(name) + pickled_tuple(arguments) + 'R';
}

Pickled pickled_ordered_dict(const PickledItems& items) {
  return with_items(pickled_call("collections OrderedDict", {}), items);
}

Pickled pickled_object(std::string_view name, const PickledItems& attributes) {
  return pickled_global(name) + ")\x81" + pickled_dict(attributes) + 'b';
}

Pickled pickled_persistent(const Pickled& name) { return name + 'Q'; }

std::string print_pickle(const Pickled& value) { return "\x80\x03" + value + '.'; }

}  // namespace pruner
