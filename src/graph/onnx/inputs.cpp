// The inputs of a model's main graph: their types, shapes that the user says, and those to which
// the user gives a value.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/evaluate.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/ops/op.h"
#include "support/log.h"

namespace pruner {

static constexpr int64_t kMostExtent = int64_t{1} << 31;  // greatest extent of an input's dimension

// Returns the options that name an input, with the names.
static std::vector<std::pair<const char*, std::string>> named_inputs(
    const NetworkOptions& options) {
  std::vector<std::pair<const char*, std::string>> names;
  for (const auto& [name, shape] : options.input_shapes) names.emplace_back("--input-shapes", name);
  for (const auto& [name, value] : options.constants) names.emplace_back("--constant", name);
  return names;
}

Result<Unit> Importer::check_named_inputs(const NameScope& scope) const {
  for (const auto& [option, name] : named_inputs(options_)) {
    std::string names;
    bool found = false;
    for (const auto& input : model_.graph().input()) {
      found |= input.name() == name;
      if (scope.find(input.name()) == nullptr)
        names += (names.empty() ? "\"" : ", \"") + input.name() + "\"";
    }
    if (!found) return Error(option, " names \"", name, "\"; the inputs are ", names);
  }
  return Unit{};
}

Result<Unit> Importer::check_named_dims() const {
  std::set<std::string> known;
  for (const auto& input : model_.graph().input())
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (!dim.dim_param().empty()) known.insert(dim.dim_param());
  for (const auto& [name, extent] : options_.dims) {
    if (known.contains(name)) continue;
    if (known.empty())
      return Error("--dim names \"", name, "\"; the file's inputs have no dimensions with a name");
    return Error(
        fmt::format("--dim names \"{}\"; the file's inputs have {}", name, fmt::join(known, ", ")));
  }
  return Unit{};
}

// Notes whether --input-shapes gives a dimension another size than the file does, and warns if it
// gives two sizes to dimensions of one name.
void Importer::note_given_shape(const onnx::ValueInfoProto& input,
                                const std::vector<int64_t>& given) {
  const auto& dims = input.type().tensor_type().shape().dim();
  for (int d = 0; d < dims.size(); ++d) {
    const int64_t size = given[static_cast<size_t>(d)];
    reshaped_ |= dims[d].has_dim_value() && dims[d].dim_value() != size;
    const std::string& name = dims[d].dim_param();
    if (name.empty()) continue;
    const auto [known, first] = named_sizes_.try_emplace(name, size, input.name());
    const auto& [known_size, known_input] = known->second;
    if (!first && known_size != size)
      log_warning("--input-shapes: {} is {} in \"{}\" and {} in \"{}\"",
                  name,
                  known_size,
                  known_input,
                  size,
                  input.name());
  }
}

// Returns an error if --input-shapes and --dim give a dimension two sizes.
static Result<Unit> check_given_dims(const onnx::ValueInfoProto& input,
                                     const std::vector<int64_t>& given,
                                     const std::map<std::string, int64_t>& named) {
  const auto& dims = input.type().tensor_type().shape().dim();
  for (int d = 0; d < dims.size(); ++d) {
    const auto found = named.find(dims[d].dim_param());
    const int64_t size = given[static_cast<size_t>(d)];
    if (found == named.end() || found->second == size) continue;
    return Error(fmt::format(
        "--input-shapes makes {0} {1} in \"{2}\", --dim makes it {3}; leave out one of them",
        found->first,
        size,
        input.name(),
        found->second));
  }
  return Unit{};
}

Result<std::vector<int64_t>> Importer::input_shape(const onnx::ValueInfoProto& input) {
  const auto given = options_.input_shapes.find(input.name());
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  std::vector<int64_t> shape;
  std::string text, example;
  bool open = !type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    const auto named = options_.dims.find(dim.dim_param());
    const bool given_name = named != options_.dims.end() && !dim.dim_param().empty();
    const bool known = given_name || (dim.has_dim_value() && dim.dim_value() >= 0);
    open |= !known;
    shape.push_back(given_name ? named->second : known ? dim.dim_value() : 1);
    const std::string name = dim.dim_param().empty() ? "?" : dim.dim_param();
    text += (text.empty() ? "" : "x") + (known ? std::to_string(shape.back()) : name);
    example += (example.empty() ? "" : "x") + std::to_string(shape.back());
  }
  if (given != options_.input_shapes.end()) {
    if (type.has_shape() && given->second.size() != shape.size()) {
      return Error("--input-shapes gives \"",
                   input.name(),
                   "\" ",
                   given->second.size(),
                   " dimensions, the file ",
                   shape.size(),
                   " (",
                   text,
                   ")");
    }
    TRY(check_given_dims(input, given->second, options_.dims));
    note_given_shape(input, given->second);
    shape = given->second;
  } else if (open) {
    const auto unnamed = std::ranges::find_if(type.shape().dim(), [&](const auto& dim) {
      return !dim.dim_param().empty() && !options_.dims.contains(dim.dim_param());
    });
    if (!options_.dims.empty() && unnamed != type.shape().dim().end())
      return Error("input \"",
                   input.name(),
                   "\" has the dimension ",
                   unnamed->dim_param(),
                   ", too; say what it is with --dim ",
                   unnamed->dim_param(),
                   "=1");
    return Error("input \"",
                 input.name(),
                 "\" has the dynamic shape ",
                 type.has_shape() ? text : "?",
                 "; say what it is with --input-shapes ",
                 input.name(),
                 ":",
                 example.empty() ? "1x3x224x224" : example);
  }
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMostExtent) {
      return Error("input \"", input.name(), "\" has the extent ", extent, ", expected 0 or more");
    }
  }
  if (!is_tensor_shape(shape))
    return Error("input \"", input.name(), "\" would have the shape ", print_shape(shape));
  return shape;
}

Result<Unit> Importer::add_inputs(NameScope& scope) {
  TRY(check_named_inputs(scope));
  TRY(check_named_dims());
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    // Up to IR 3 the weights are listed too.
    if (scope.find(input.name()) == nullptr) TRY(add_input(input, scope));
  }
  return Unit{};
}

// An input without elements is fine, a cache of nothing, say, unless no output has elements.
Result<Unit> Importer::check_computes() const {
  const auto empty = [&](ValueId id) { return element_count(graph_[id].shape) == 0; };
  const auto input = std::ranges::find_if(graph_.inputs, empty);
  if (input == graph_.inputs.end() || !std::ranges::all_of(graph_.outputs, empty)) return Unit{};
  const Value& value = graph_[*input];
  std::vector<int64_t> example = value.shape;
  std::ranges::replace(example, 0, 1);
  return Error("input \"",
               value.name,
               "\" has the shape ",
               print_shape(value.shape),
               ", which holds no elements; say what it is with --input-shapes ",
               value.name,
               ":",
               print_shape(example));
}

// Returns the kind of an input that is no tensor.
static const char* kind_of(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "a sequence";
  if (type.has_optional_type()) return "an optional";
  if (type.has_map_type()) return "a map";
  return type.has_sparse_tensor_type() ? "a sparse tensor" : "of no type";
}

Result<Unit> Importer::add_input(const onnx::ValueInfoProto& input, NameScope& scope) {
  if (!input.type().has_tensor_type()) {
    return Error(
        "input \"", input.name(), "\" is ", kind_of(input.type()), "; only tensors can be inputs");
  }
  const int type = input.type().tensor_type().elem_type();
  if (!dtype_from_onnx(type)) {
    std::string ours;
    for (const DTypeRow& row : kDTypes)
      ours += (ours.empty() ? "" : ", ") + onnx_type_name(row.onnx);
    return Error("input \"",
                 input.name(),
                 "\" has the element type ",
                 onnx_type_name(type),
                 "; supported are ",
                 ours);
  }
  const DType dtype = *dtype_from_onnx(type);
  if (options_.constants.contains(input.name())) {
    TRY_ASSIGN(Tensor tensor, given_constant(input, dtype));
    TRY_ASSIGN(const ValueId id, define(input.name(), scope));
    graph_[id] = {input.name(), dtype, tensor.shape(), tensor};
    return Unit{};
  }
  TRY_ASSIGN(const std::vector<int64_t> shape, input_shape(input));
  TRY_ASSIGN(const ValueId id, define(input.name(), scope));
  graph_[id].dtype = dtype;
  graph_[id].shape = shape;
  if (element_count(shape) == 0) graph_[id].constant = Tensor(dtype, shape);
  graph_.inputs.push_back(id);
  return Unit{};
}

// Returns the numbers in the input's type; an error if the type cannot hold a number.
static Result<Tensor> in_type(const Tensor& numbers, DType dtype) {
  if (!is_float(dtype) && is_float(numbers.dtype()))
    return Error("is not of whole numbers, expected ", dtype_name(dtype));
  Tensor tensor(dtype, numbers.shape());
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    if (is_float(dtype)) {
      tensor.set(i, numbers.get(i));
      continue;
    }
    const int64_t value = numbers.get_int(i);
    tensor.set_int(i, value);
    if (tensor.get_int(i) != value)
      return Error("holds ", value, ", which ", dtype_name(dtype), " does not");
  }
  return tensor;
}

// Returns the value of --constant, which has to fit the type and the shape that the file declares.
// Numbers are a list if the file declares no shape.
Result<Tensor> Importer::given_constant(const onnx::ValueInfoProto& input, DType dtype) {
  const GivenConstant& given = options_.constants.at(input.name());
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  const auto error = [&](const auto&... why) {
    return Error("--constant ", input.name(), " ", why...);
  };
  Tensor tensor = given.tensor;
  if (given.typed && tensor.dtype() != dtype)
    return error("is ", dtype_name(tensor.dtype()), ", expected ", dtype_name(dtype));
  if (!given.typed) {
    Result<Tensor> numbers = in_type(tensor, dtype);
    if (!numbers.ok()) return error(numbers.error().message());
    tensor = *std::move(numbers);
  }
  if (!type.has_shape()) return tensor;
  // Numbers have no shape: they take the file's, and one open dimension takes what is left.
  std::vector<int64_t> shape = tensor.shape();
  if (!given.typed) shape.assign(static_cast<size_t>(type.shape().dim_size()), 1);
  bool fits = static_cast<int>(shape.size()) == type.shape().dim_size();
  std::string text;
  int open = -1;
  for (int d = 0; d < type.shape().dim_size(); ++d) {
    const auto& dim = type.shape().dim(d);
    text += (d == 0 ? "" : "x") + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?");
    if (!given.typed && dim.has_dim_value()) shape[static_cast<size_t>(d)] = dim.dim_value();
    if (!given.typed && !dim.has_dim_value()) open = d;
    fits = fits && (!dim.has_dim_value() || dim.dim_value() == shape[static_cast<size_t>(d)]);
  }
  if (!given.typed && open >= 0 && element_count(shape) > 0) {
    shape[static_cast<size_t>(open)] = tensor.num_elements() / element_count(shape);
  }
  if (!fits || element_count(shape) != tensor.num_elements()) {
    return error("has the shape ",
                 print_shape(tensor.shape()),
                 ", expected ",
                 text.empty() ? "scalar" : text);
  }
  return tensor.reshaped(shape);
}

}  // namespace pruner
