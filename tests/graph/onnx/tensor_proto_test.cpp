#include "graph/onnx/tensor_proto.h"

#include <gtest/gtest.h>

#include <cstring>

#include "golden.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using onnx::TensorProto;
using V = std::vector<double>;

TensorProto proto(int type, const std::vector<int64_t>& shape) {
  TensorProto p;
  p.set_name("t");
  p.set_data_type(type);
  for (const int64_t extent : shape) p.add_dims(extent);
  return p;
}

template <typename T>
TensorProto raw(int type, const std::vector<T>& values) {
  TensorProto p = proto(type, {static_cast<int64_t>(values.size())});
  p.set_raw_data(values.data(), values.size() * sizeof(T));
  return p;
}

Result<Tensor> read(const TensorProto& p) {
  ExternalData none;
  return tensor_from_proto(p, none);
}

void expect_tensor(const TensorProto& p, DType dtype, const V& values) {
  const Result<Tensor> tensor = read(p);
  ASSERT_TRUE(tensor.ok()) << tensor.error().message();
  EXPECT_EQ(tensor->dtype(), dtype);
  EXPECT_EQ(values_of(*tensor), values);
}

TEST(TensorFromProto, ReadsNoElementsOfAnyType) {
  for (const DTypeRow& row : kDTypes) expect_tensor(proto(row.onnx, {2, 0}), row.dtype, {});
}

TEST(TensorFromProto, ReadsRawBytesOfEveryType) {
  expect_tensor(raw<float>(TensorProto::FLOAT, {1.5f, -2}), DType::kFloat32, {1.5, -2});
  expect_tensor(raw<double>(TensorProto::DOUBLE, {1.5, -2}), DType::kFloat64, {1.5, -2});
  expect_tensor(raw<uint16_t>(TensorProto::FLOAT16, {0x3c00, 0xc000}), DType::kFloat16, {1, -2});
  expect_tensor(raw<uint16_t>(TensorProto::BFLOAT16, {0x3f80, 0xc000}), DType::kBFloat16, {1, -2});
  expect_tensor(raw<int64_t>(TensorProto::INT64, {1, -2}), DType::kInt64, {1, -2});
  expect_tensor(raw<int32_t>(TensorProto::INT32, {1, -2}), DType::kInt32, {1, -2});
  expect_tensor(raw<int16_t>(TensorProto::INT16, {1, -2}), DType::kInt16, {1, -2});
  expect_tensor(raw<int8_t>(TensorProto::INT8, {1, -2}), DType::kInt8, {1, -2});
  expect_tensor(raw<uint8_t>(TensorProto::UINT8, {1, 254}), DType::kUInt8, {1, 254});
  expect_tensor(raw<uint16_t>(TensorProto::UINT16, {1, 65534}), DType::kUInt16, {1, 65534});
  expect_tensor(
      raw<uint32_t>(TensorProto::UINT32, {1, 4294967294u}), DType::kUInt32, {1, 4294967294.0});
  expect_tensor(
      raw<uint64_t>(TensorProto::UINT64, {1, ~uint64_t{0} << 60}), DType::kUInt64, {1, 0x1.ep63});
  expect_tensor(raw<uint8_t>(TensorProto::BOOL, {1, 0}), DType::kBool, {1, 0});
}

TEST(TensorFromProto, ReadsTypedFields) {
  TensorProto p = proto(TensorProto::FLOAT, {2, 1});
  p.add_float_data(1.5);
  p.add_float_data(-2);
  expect_tensor(p, DType::kFloat32, {1.5, -2});
  p = proto(TensorProto::INT64, {1});
  p.add_int64_data(-7);
  expect_tensor(p, DType::kInt64, {-7});
  p = proto(TensorProto::FLOAT16, {1});
  p.add_int32_data(0x3c00);
  expect_tensor(p, DType::kFloat16, {1});
  p = proto(TensorProto::BFLOAT16, {2});
  p.add_int32_data(0x3f80);
  p.add_int32_data(0xc000);
  expect_tensor(p, DType::kBFloat16, {1, -2});
  p = proto(TensorProto::UINT8, {1});
  p.add_int32_data(254);
  expect_tensor(p, DType::kUInt8, {254});
  p = proto(TensorProto::BOOL, {2});
  p.add_int32_data(1);
  p.add_int32_data(0);
  expect_tensor(p, DType::kBool, {1, 0});
  p = proto(TensorProto::UINT64, {1});
  p.add_uint64_data(9);
  expect_tensor(p, DType::kUInt64, {9});
  p = proto(TensorProto::DOUBLE, {});
  p.add_double_data(2.5);
  expect_tensor(p, DType::kFloat64, {2.5});
  expect_tensor(proto(TensorProto::FLOAT, {0}), DType::kFloat32, {});
}

// The first element in the lowest bits; typed fields hold a byte a number.
TEST(TensorFromProto, UnpacksWhatIsNarrowerThanAByte) {
  const auto packed = [](DType dtype, int64_t n, const std::vector<uint8_t>& bytes) {
    TensorProto p = proto(dtype_to_onnx(dtype), {n});
    TensorProto typed = p;
    p.set_raw_data(bytes.data(), bytes.size());
    for (const uint8_t byte : bytes) typed.add_int32_data(byte);
    const Result<Tensor> of_raw = read(p), of_field = read(typed);
    EXPECT_TRUE(of_raw.ok() && of_field.ok());
    EXPECT_EQ(values_of(*of_raw), values_of(*of_field));
    EXPECT_EQ(tensor_to_proto("t", *of_raw).raw_data(), p.raw_data());
    return values_of(*of_raw);
  };
  EXPECT_EQ(packed(DType::kInt4, 5, {0xe1, 0xc3, 0x05}), (V{1, -2, 3, -4, 5}));
  EXPECT_EQ(packed(DType::kUInt4, 3, {0xe1, 0x03}), (V{1, 14, 3}));
  EXPECT_EQ(packed(DType::kInt2, 5, {0x39, 0x01}), (V{1, -2, -1, 0, 1}));
  EXPECT_EQ(packed(DType::kUInt2, 5, {0x39, 0x01}), (V{1, 2, 3, 0, 1}));
  EXPECT_EQ(packed(DType::kFloat4E2M1, 2, {0x7f}), (V{15, 7}));
  EXPECT_EQ(packed(DType::kFloat8E5M2, 2, {0x7f, 0x80}), (V{127, 128}));
  TensorProto p = proto(dtype_to_onnx(DType::kInt4), {5});
  p.set_raw_data("ab");
  EXPECT_ERROR(read(p), "tensor \"t\" has 2 bytes, its shape 3");
}

TEST(TensorFromProto, NamesWhatDoesNotFit) {
  TensorProto p = proto(TensorProto::FLOAT, {3});
  p.add_float_data(1);
  EXPECT_ERROR(read(p), "tensor \"t\" has 1 elements, its shape 3");
  p = proto(TensorProto::FLOAT, {3});
  p.set_raw_data("abc");
  EXPECT_ERROR(read(p), "tensor \"t\" has 3 bytes, its shape 12");
  EXPECT_ERROR(read(proto(TensorProto::FLOAT, {-1})), "tensor \"t\" has the extent -1");
  EXPECT_ERROR(read(proto(TensorProto::FLOAT, {int64_t{1} << 40, int64_t{1} << 40})),
               "has the extent");
  EXPECT_ERROR(read(proto(TensorProto::STRING, {1})),
               "tensor \"t\" has the element type STRING, which is not supported");
  p.set_data_location(TensorProto::EXTERNAL);
  EXPECT_ERROR(read(p), "tensor \"t\" lies in another file, whose name is missing");
}

TEST(TensorToProto, IsReadBackTheSame) {
  for (const DTypeRow& row : kDTypes) {
    Tensor tensor(row.dtype, {2, 2});
    for (int64_t i = 0; i < 4; ++i) tensor.set_int(i, i % 2);
    expect_tensor(tensor_to_proto("t", tensor), row.dtype, {0, 1, 0, 1});
  }
}

}  // namespace
}  // namespace pruner
