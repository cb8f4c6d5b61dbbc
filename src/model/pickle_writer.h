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
/// Pickles an integer, which must fit in 32 bits.
Pickled pickled_integer(int64_t value);
Pickled pickled_float(double value);
Pickled pickled_text(std::string_view text);
Pickled pickled_bytes(std::string_view bytes);
Pickled pickled_tuple(const std::vector<Pickled>& values);
Pickled pickled_list(const std::vector<Pickled>& values);
Pickled pickled_dict(const PickledItems& items);
/// Pickles a class or function, which `name` gives as "module name".
Pickled pickled_global(std::string_view name);
/// Pickles the result of a call: the class or function `name`, applied to the arguments.
Pickled pickled_call(std::string_view name, const std::vector<Pickled>& arguments);
Pickled pickled_ordered_dict(const PickledItems& items);
/// Pickles an object of the class `name` with these attributes.
Pickled pickled_object(std::string_view name, const PickledItems& attributes);
/// Pickles a reference to an object that is stored outside of the stream under this name.
Pickled pickled_persistent(const Pickled& name);

/// Returns the stream that holds one value.
std::string print_pickle(const Pickled& value);

}  // namespace pruner
