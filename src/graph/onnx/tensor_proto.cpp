#include "graph/onnx/tensor_proto.h"

#include <cstring>
#include <numeric>

namespace pruner {

using onnx::TensorProto;

static constexpr int64_t kMostElements = int64_t{1} << 36;  // elements of one tensor

std::optional<DType> dtype_from_onnx(int type) {
  for (const DTypeRow& row : kDTypes)
    if (row.onnx == type) return row.dtype;
  return std::nullopt;
}

int dtype_to_onnx(DType dtype) { return row_of(dtype).onnx; }

// Types that are newer than the protobuf classes that we are built with.
static constexpr const char* kNewerTypes[] = {"FLOAT8E4M3FN",
                                              "FLOAT8E4M3FNUZ",
                                              "FLOAT8E5M2",
                                              "FLOAT8E5M2FNUZ",
                                              "UINT4",
                                              "INT4",
                                              "FLOAT4E2M1",
                                              "FLOAT8E8M0",
                                              "UINT2",
                                              "INT2",
                                              "FLOAT6E2M3",
                                              "FLOAT6E3M2"};

std::string onnx_type_name(int type) {
  const int newer = type - TensorProto::BFLOAT16 - 1;
  if (newer >= 0 && newer < static_cast<int>(std::size(kNewerTypes))) return kNewerTypes[newer];
  if (!onnx::TensorProto_DataType_IsValid(type)) return "number " + std::to_string(type);
  return onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type));
}

// Bytes that ONNX stores for n elements: those of less than a byte stand side by side, the first in
// the lowest bits.
static int64_t packed_bytes(DType dtype, int64_t n) { return (n * row_of(dtype).bits + 7) / 8; }

static void copy_raw(const char* bytes, int64_t n, Tensor& tensor) {
  if (n == 0) return;  // there may be no bytes
  const int bits = row_of(tensor.dtype()).bits;
  if (bits >= 8 && tensor.dtype() != DType::kBool) {
    std::memcpy(tensor.data(), bytes, static_cast<size_t>(tensor.bytes()));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = i * bits;
    const auto byte = static_cast<unsigned char>(bytes[at / 8]);
    tensor.set_int(i, byte >> (at % 8));
  }
}

// The typed fields: which one holds a type is ONNX's rule. Sixteen-bit floats are stored as bits,
// codes and packed integers as bytes.
static Result<Unit> copy_typed(const TensorProto& proto, int64_t n, Tensor& tensor) {
  const int type = proto.data_type();
  const auto short_of = [&](int found) { return Error("has ", found, " elements, its shape ", n); };
  const auto all = [&](const auto& field, auto set) -> Result<Unit> {
    if (field.size() != n) return short_of(field.size());
    for (int64_t i = 0; i < n; ++i) set(i, field.Get(static_cast<int>(i)));
    return Unit{};
  };
  const auto real = [&](int64_t i, auto v) { tensor.set(i, v); };
  const auto integer = [&](int64_t i, auto v) { tensor.set_int(i, static_cast<int64_t>(v)); };
  switch (type) {
    case TensorProto::FLOAT: return all(proto.float_data(), real);
    case TensorProto::DOUBLE: return all(proto.double_data(), real);
    case TensorProto::INT64: return all(proto.int64_data(), integer);
    case TensorProto::UINT32:
    case TensorProto::UINT64: return all(proto.uint64_data(), integer);
    default: break;
  }
  const DType dtype = tensor.dtype();
  if (!is_float(dtype) && !is_only_moved(dtype)) return all(proto.int32_data(), integer);
  if (is_only_moved(dtype)) {
    std::string bytes;
    for (const int32_t byte : proto.int32_data()) bytes.push_back(static_cast<char>(byte));
    if (static_cast<int64_t>(bytes.size()) != packed_bytes(dtype, n))
      return short_of(proto.int32_data_size());
    copy_raw(bytes.data(), n, tensor);
    return Unit{};
  }
  std::vector<uint16_t> bits(static_cast<size_t>(n));
  TRY(all(proto.int32_data(), [&](int64_t i, int32_t v) { bits[i] = static_cast<uint16_t>(v); }));
  copy_raw(reinterpret_cast<const char*>(bits.data()), n, tensor);
  return Unit{};
}

static Result<std::vector<int64_t>> shape_of(const TensorProto& proto) {
  std::vector<int64_t> shape;
  int64_t n = 1;
  for (const int64_t extent : proto.dims()) {
    if (extent < 0 || (extent > 0 && n > kMostElements / extent)) {
      return Error("has the extent ", extent);
    }
    n *= extent;
    shape.push_back(extent);
  }
  return shape;
}

// Little-endian elements, in the file or in another one.
static Tensor from_raw(DType dtype, std::vector<int64_t> shape, std::string_view bytes) {
  Tensor tensor(dtype, std::move(shape));
  copy_raw(bytes.data(), tensor.num_elements(), tensor);
  return tensor;
}

static Result<Tensor> read_tensor(const TensorProto& proto,
                                  ExternalData& files,
                                  const std::shared_ptr<const void>& owner) {
  const int type = proto.data_type();
  const std::optional<DType> dtype = dtype_from_onnx(type);
  if (!dtype || proto.has_segment()) {
    return Error("has the element type ", onnx_type_name(type), ", which is not supported");
  }
  TRY_ASSIGN(const std::vector<int64_t> shape, shape_of(proto));
  const int64_t n = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const int64_t expected = packed_bytes(*dtype, n);
  // Bytes are used where they lie, but for those that stand for several elements, and a bool's,
  // which may be others than 0 and 1.
  const auto tensor_of = [&](std::string_view bytes, const std::shared_ptr<const void>& keeper) {
    const bool ours = row_of(*dtype).bits >= 8 && *dtype != DType::kBool && !bytes.empty();
    const bool viewed = keeper != nullptr && ours && Tensor::is_aligned(*dtype, bytes.data());
    return viewed ? Tensor::view(*dtype, shape, keeper, bytes.data())
                  : from_raw(*dtype, shape, bytes);
  };
  if (proto.data_location() == TensorProto::EXTERNAL) {
    TRY_ASSIGN(const MappedBytes mapped, files.read(proto, expected));
    return tensor_of(mapped.bytes, mapped.file);
  }
  if (proto.has_raw_data()) {
    const auto found = static_cast<int64_t>(proto.raw_data().size());
    if (found != expected) return Error("has ", found, " bytes, its shape ", expected);
    return tensor_of(proto.raw_data(), owner);
  }
  // Memory only for what the file holds: a damaged shape must not ask for terabytes.
  const int64_t stored = int64_t{proto.float_data_size()} + proto.double_data_size() +
                         proto.int32_data_size() + proto.int64_data_size() +
                         proto.uint64_data_size();
  const int64_t values = is_only_moved(*dtype) ? packed_bytes(*dtype, n) : n;
  if (stored != values) return Error("has ", stored, " elements, its shape ", values);
  Tensor tensor(*dtype, shape);
  TRY(copy_typed(proto, n, tensor));
  return tensor;
}

Result<Tensor> tensor_from_proto(const TensorProto& proto,
                                 ExternalData& files,
                                 const std::shared_ptr<const void>& owner) {
  Result<Tensor> tensor = read_tensor(proto, files, owner);
  if (tensor.ok()) return tensor;
  return Error("tensor \"", proto.name(), "\" ", tensor.error().message());
}

TensorProto tensor_to_proto(const std::string& name, const Tensor& tensor) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(dtype_to_onnx(tensor.dtype()));
  for (const int64_t extent : tensor.shape()) proto.add_dims(extent);
  const int bits = row_of(tensor.dtype()).bits;
  if (bits >= 8) {
    proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
    return proto;
  }
  std::string packed(static_cast<size_t>(packed_bytes(tensor.dtype(), tensor.num_elements())), 0);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto value = static_cast<unsigned>(tensor.get_int(i)) & ((1u << bits) - 1);
    packed[static_cast<size_t>(i * bits / 8)] |= static_cast<char>(value << (i * bits % 8));
  }
  proto.set_raw_data(packed);
  return proto;
}

}  // namespace pruner
