#include "tensor/pack.h"

#include <algorithm>
#include <cstring>

#include "support/ceil_div.h"
#include "support/check.h"

namespace pruner {

std::vector<int64_t> PackSpec::packed_shape(std::span<const int64_t> shape) const {
  if (transform != Transform::kNone)
    return PackSpec{order, blocks}.packed_shape(transformed_shape(shape, transform));
  if (order.empty()) return {shape.begin(), shape.end()};
  std::vector<int64_t> packed;
  for (int dim : order) {
    int64_t block = 1;
    for (const auto& [blocked, size] : blocks) block *= blocked == dim ? size : 1;
    packed.push_back(ceil_div(shape[dim], block));
  }
  for (const auto& [dim, size] : blocks) packed.push_back(size);
  return packed;
}

int64_t PackSpec::packed_bytes(DType type, std::span<const int64_t> shape) const {
  int64_t bytes = dtype_bytes(packed_type(type));
  for (const int64_t extent : packed_shape(shape)) bytes *= extent;
  return bytes;
}

// `PackedDim` describes one packed dim, which moves by `step` along the original dim `dim`.
struct PackedDim {
  size_t dim;
  int64_t extent, step;
};

// The first part of a dim has the product of the dim's blocks as step; the last block is innermost.
static std::vector<PackedDim> packed_dims(const PackSpec& spec, std::span<const int64_t> packed) {
  std::vector<PackedDim> dims(packed.size());
  std::vector<int64_t> step(spec.order.size(), 1);
  for (size_t p = packed.size(); p-- > 0;) {
    const bool is_block = p >= spec.order.size();
    const int dim = is_block ? spec.blocks[p - spec.order.size()].first : spec.order[p];
    const auto d = static_cast<size_t>(dim);
    dims[p] = {d, packed[p], step[d]};
    if (is_block) step[d] *= packed[p];
  }
  return dims;
}

template <typename T>
static void copy_strided(const std::byte* from, std::byte* to, int64_t stride, int64_t count) {
  const auto* source = reinterpret_cast<const T*>(from);
  auto* target = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
}

static void copy_strided(
    int64_t bytes, const std::byte* from, std::byte* to, int64_t stride, int64_t count) {
  if (bytes == 1) copy_strided<uint8_t>(from, to, stride, count);
  if (bytes == 2) copy_strided<uint16_t>(from, to, stride, count);
  if (bytes == 4) copy_strided<uint32_t>(from, to, stride, count);
  if (bytes == 8) copy_strided<uint64_t>(from, to, stride, count);
}

// Writes the elements in the order of `spec`, which has no transform, to `to`, where zeros are.
static void reorder(const Tensor& tensor, const PackSpec& spec, std::byte* to) {
  const std::vector<int64_t>& shape = tensor.shape();
  CHECK(spec.order.size() == shape.size()) << "a pack order names every dim once";
  const std::vector<int64_t> packed = spec.packed_shape(shape);
  const std::vector<PackedDim> dims = packed_dims(spec, packed);
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];

  // Row by row of the last packed dim, which steps evenly through the original.
  const PackedDim row = dims.back();
  const int64_t bytes = dtype_bytes(tensor.dtype());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  std::vector<int64_t> counter(dims.size(), 0), index(shape.size(), 0);
  const std::byte* const end = to + spec.packed_bytes(tensor.dtype(), shape);
  for (; to < end; to += row.extent * bytes) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < shape.size(); ++d) {
      offset += index[d] * stride[d];
      inside &= index[d] < shape[d];
    }
    if (inside) {
      // The part of a row beyond the original dim is padding and stays 0.
      const int64_t left = ceil_div(shape[row.dim] - index[row.dim], row.step);
      copy_strided(
          bytes, from + offset * bytes, to, row.step * stride[row.dim], std::min(left, row.extent));
    }
    for (size_t p = dims.size() - 1; p-- > 0;) {  // count up, the last of the other dims fastest
      index[dims[p].dim] += dims[p].step;
      if (++counter[p] < dims[p].extent) break;
      index[dims[p].dim] -= dims[p].extent * dims[p].step;
      counter[p] = 0;
    }
  }
}

Tensor pack(const Tensor& tensor, const PackSpec& spec) {
  const Tensor made = transformed(tensor, spec.transform);
  if (spec.order.empty()) return made;
  const PackSpec order{spec.order, spec.blocks};
  Tensor packed(made.dtype(), order.packed_shape(made.shape()));
  reorder(made, order, static_cast<std::byte*>(packed.data()));
  return packed;
}

void pack_into(const Tensor& tensor, const PackSpec& spec, std::byte* to) {
  const Tensor made = transformed(tensor, spec.transform);
  if (!spec.order.empty()) return reorder(made, {spec.order, spec.blocks}, to);
  if (made.bytes() > 0) std::memcpy(to, made.data(), static_cast<size_t>(made.bytes()));
}

static Tensor as_float32(const Tensor& narrow) {
  Tensor wide(DType::kFloat32, narrow.shape());
  std::ranges::transform(
      narrow.values<uint16_t>(), wide.values<float>().begin(), [&](uint16_t bits) {
        return static_cast<float>(decode_float(narrow.dtype(), bits));
      });
  return wide;
}

Tensor rounded_to(DType type, const Tensor& tensor) {
  if (type == tensor.dtype()) return tensor;
  const Tensor wide = tensor.dtype() == DType::kFloat32 ? tensor : as_float32(tensor);
  if (type == DType::kFloat32) return wide;
  Tensor narrow(type, tensor.shape());
  std::ranges::transform(wide.values<float>(), narrow.values<uint16_t>().begin(), [&](float value) {
    return static_cast<uint16_t>(encode_float(type, value));
  });
  return narrow;
}

Json to_json(const PackSpec& spec) {
  Json json = {{"order", spec.order}, {"blocks", spec.blocks}};
  if (spec.transform != Transform::kNone) json["transform"] = transform_name(spec.transform);
  return json;
}

Result<PackSpec> pack_spec_from_json(const Json& json) {
  PackSpec spec;
  TRY_ASSIGN(spec.order, json_get<std::vector<int>>(json, "order"));
  using Blocks = std::vector<std::pair<int, int64_t>>;
  TRY_ASSIGN(spec.blocks, json_get<Blocks>(json, "blocks"));
  if (json.contains("winograd")) return Error("pack winograd: of an older version");
  if (json.contains("transform")) {
    TRY_ASSIGN(const std::string name, json_get<std::string>(json, "transform"));
    const std::optional<Transform> transform = find_transform(name);
    if (!transform) return Error("pack transform: \"", name, "\" is none");
    spec.transform = *transform;
  }
  const auto rank = static_cast<int>(spec.order.size());
  std::vector<int> seen(spec.order.size(), 0);
  for (int dim : spec.order) {
    if (dim < 0 || dim >= rank || seen[dim]++) {
      return Error("pack order: dim ", dim, " is not one of 0 to ", rank - 1, ", each once");
    }
  }
  for (const auto& [dim, size] : spec.blocks) {
    if (dim < 0 || dim >= rank || size < 1) {
      return Error("pack blocks: [", dim, ", ", size, "] is not a dim below ", rank, " and a size");
    }
  }
  return spec;
}

}  // namespace pruner
