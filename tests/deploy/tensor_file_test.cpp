#include "deploy/tensor_file.h"

#include <filesystem>

#include "golden.h"
#include "support/file.h"
#include "support/npz.h"

namespace pruner {
namespace {

Tensor filled(DType dtype, std::vector<int64_t> shape) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_int(i, i % 2);
  return tensor;
}

TEST(WriteTensors, AreReadBackInEveryDtype) {
  const std::string path = testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_all.npz";
  std::vector<NamedTensor> tensors;
  for (const DTypeRow& row : kDTypes)
    tensors.push_back({std::string(row.name), filled(row.dtype, {2, 3})});
  ASSERT_TRUE(write_tensors(path, tensors).ok());
  const Result<std::vector<NamedTensor>> read = read_tensors(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = (*read)[i];
    EXPECT_EQ(name, tensors[i].name);
    if (!is_only_moved(tensors[i].tensor.dtype())) {  // those are bytes
      ASSERT_EQ(tensor.dtype(), tensors[i].tensor.dtype());
    }
    ASSERT_EQ(tensor.shape(), tensors[i].tensor.shape());
    for (int64_t e = 0; e < tensor.num_elements(); ++e) EXPECT_EQ(tensor.get_int(e), e % 2);
    const TensorSpec spec{name, tensors[i].tensor.dtype(), {2, 3}};
    const Result<std::vector<Tensor>> matched = match_tensors({{spec}}, {{name, tensor}});
    ASSERT_TRUE(matched.ok()) << matched.error().message();
    EXPECT_EQ((*matched)[0].dtype(), spec.dtype);
  }
}

// Without ml_dtypes, which names the type, numpy saves a bfloat16 that it has read like this.
TEST(ReadTensors, TakesTwoBytesOfAnythingForBFloat16) {
  const std::string path = testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_void.npz";
  const NpyArray arrays[] = {{"x", "|V2", {1}, std::string("\xc0\x3f", 2)}};
  ASSERT_TRUE(write_npz(path, arrays).ok());
  const Result<std::vector<NamedTensor>> read = read_tensors(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ((*read)[0].tensor.dtype(), DType::kBFloat16);
  EXPECT_EQ((*read)[0].tensor.get(0), 1.5);
}

// numpy makes float64 if no type is said.
TEST(ReadTensors, MakesDoublesFloatsWhereFloatsAreWanted) {
  const std::string path = testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_c.npz";
  const NpyArray arrays[] = {{"x", "<c8", {1}, std::string(8, '\0')}};
  ASSERT_TRUE(write_npz(path, arrays).ok());
  const Result<std::vector<NamedTensor>> read = read_tensors(path);
  std::filesystem::remove(path);
  EXPECT_ERROR(read, "array \"x\" has numpy's type <c8; known are float32, float16, int64");
  const Result<std::vector<NamedTensor>> doubles =
      read_tensors(test_path("deploy/data/float64.npz"));
  ASSERT_TRUE(doubles.ok()) << doubles.error().message();
  const auto& [name, tensor] = (*doubles)[0];
  EXPECT_EQ(tensor.dtype(), DType::kFloat64);
  for (const DType wanted : {DType::kFloat32, DType::kFloat64}) {
    const TensorSpec spec{name, wanted, tensor.shape()};
    const Result<std::vector<Tensor>> matched = match_tensors({{spec}}, *doubles);
    ASSERT_TRUE(matched.ok()) << matched.error().message();
    EXPECT_EQ((*matched)[0].dtype(), wanted);
    EXPECT_EQ((*matched)[0].get(1), 2.5);
  }
}

// A file as np.save(path, np.array([3, 224], "<i8")) writes it.
TEST(ReadTensor, ReadsOneArray) {
  const std::string path = testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_one.npy";
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  header += '\n';
  const int64_t values[] = {3, 224};
  const std::string bytes(reinterpret_cast<const char*>(values), sizeof(values));
  const std::string magic("\x93NUMPY\x01\x00\x76\x00", 10);  // version 1, 118 bytes of header
  ASSERT_TRUE(write_file(path, magic + header + bytes).ok());
  const Result<Tensor> tensor = read_tensor(path);
  ASSERT_TRUE(tensor.ok()) << tensor.error().message();
  EXPECT_EQ(tensor->dtype(), DType::kInt64);
  EXPECT_EQ(tensor->shape(), std::vector<int64_t>{2});
  EXPECT_EQ(tensor->get_int(1), 224);
  ASSERT_TRUE(write_file(path, magic + header).ok());
  EXPECT_ERROR(read_tensor(path), "_one.npy: its shape needs 16 bytes, there are 0");
  std::filesystem::remove(path);
}

TEST(MatchTensors, GoesByNameOrByPosition) {
  const std::vector<TensorSpec> specs = {{"a", DType::kFloat32, {2}}, {"b", DType::kInt64, {}}};
  const Tensor a = filled(DType::kFloat32, {2}), b = filled(DType::kInt64, {});
  const Result<std::vector<Tensor>> named = match_tensors(specs, {{"b", b}, {"more", b}, {"a", a}});
  ASSERT_TRUE(named.ok()) << named.error().message();
  EXPECT_EQ((*named)[0].data(), a.data());
  EXPECT_EQ((*named)[1].data(), b.data());
  const Result<std::vector<Tensor>> counted = match_tensors(specs, {{"arr_0", a}, {"arr_1", b}});
  ASSERT_TRUE(counted.ok()) << counted.error().message();
  EXPECT_EQ((*counted)[1].data(), b.data());
}

TEST(MatchTensors, SaysWhatDoesNotFit) {
  const std::vector<TensorSpec> specs = {{"x", DType::kFloat32, {1, 3}}};
  EXPECT_ERROR(
      match_tensors(specs,
                    {{"y", filled(DType::kFloat32, {1, 3})}, {"z", filled(DType::kBool, {})}}),
      "input x float32 1x3 is missing; there are: y, z");
  EXPECT_ERROR(match_tensors(specs, {{"x", filled(DType::kFloat32, {3, 1})}}),
               "expected x float32 1x3, found x float32 3x1");
  EXPECT_ERROR(match_tensors(specs, {{"x", filled(DType::kInt32, {1, 3})}}),
               "expected x float32 1x3, found x int32 1x3");
}

}  // namespace
}  // namespace pruner
