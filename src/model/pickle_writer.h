// Python objects -> pickles: each value is the opcodes that make it, so larger values are made of
// smaller ones. Protocol 3, as Python 3.7 and later read it; nothing is shared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pruner {

using Pickled = std::string;  // opcodes that leave one value
using PickledItems = std::vector<std::pair<std::string, Pickled>>;

Pickled pickled_none();
Pickled pickled_bool(bool value);
/// Of 32 bits.
Pickled pickled_integer(int64_t value);
Pickled pickled_float(double value);
Pickled pickled_text(std::string_view text);
Pickled pickled_bytes(std::string_view bytes);
Pickled pickled_tuple(const std::vector<Pickled>& values);
Pickled pickled_list(const std::vector<Pickled>& values);
Pickled pickled_dict(const PickledItems& items);
/// A class or function, by "module name".
Pickled pickled_global(std::string_view name);
/// What it gives for the arguments.
Pickled pickled_call(std::string_view name, const std::vector<Pickled>& arguments);
Pickled pickled_ordered_dict(const PickledItems& items);
/// An object of a class with these attributes.
Pickled pickled_object(std::string_view name, const PickledItems& attributes);
/// What stands outside of the stream under this name.
Pickled pickled_persistent(const Pickled& name);

/// A stream of one value.
std::string print_pickle(const Pickled& value);

}  // namespace pruner
