#include "deploy/weights.h"

#include <cstring>

#include "golden.h"
#include "support/file.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Tensor counted(std::vector<int64_t> shape) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

TEST(Weights, StoresEachPackedFormOnce) {
  Partition partition;
  const auto add = [&](PlannedValue value) {
    partition.values.push_back(std::move(value));
    return ValueId{static_cast<int32_t>(partition.values.size()) - 1};
  };
  const ValueId a = add({"a", DType::kFloat32, {3, 5}, counted({3, 5}), {}});
  const ValueId b = add({"b", DType::kFloat32, {20}, counted({20}), {}});
  const ValueId view = add({"view", DType::kFloat32, {15}, {}, a});
  const PackSpec blocks = {{0, 1}, {{1, 4}}};  // 3 x 2 x 4

  Weights weights;
  EXPECT_EQ(weights.offset_of(partition, a, blocks), 0);
  EXPECT_EQ(weights.offset_of(partition, b, {}), 128);
  EXPECT_EQ(weights.offset_of(partition, a, {}), 256);
  EXPECT_EQ(weights.offset_of(partition, view, {}), 256);
  EXPECT_EQ(weights.offset_of(partition, a, blocks), 0);
  EXPECT_EQ(weights.bytes(), 320);

  const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(write_file(folder->path("w"), "sixteen bytes..." + std::string(324, '\0')).ok());
  const Result<Unit> written = weights.write(folder->path("w"), 16, 2);
  ASSERT_TRUE(written.ok()) << written.error().message();
  const Result<std::string> bytes = read_file(folder->path("w"));
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(bytes->size(), 340u);
  EXPECT_EQ(bytes->substr(0, 16), "sixteen bytes...");
  const auto* at = reinterpret_cast<const float*>(bytes->data() + 16);
  const Tensor packed = pack(counted({3, 5}), blocks);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(at[i], packed.get(i));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(at[32 + i], i);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(at[64 + i], i);
  EXPECT_ERROR(weights.write("/nowhere/w", 0, 1), "/nowhere/w: cannot be written: No such file");
}

TEST(Weights, WritesWhatWasPackedBefore) {
  Partition partition;
  partition.values.push_back({"a", DType::kFloat32, {3, 5}, counted({3, 5}), {}});
  const ValueId a{0};
  const PackSpec blocks = {{0, 1}, {{1, 4}}};  // 3 x 2 x 4

  Weights weights;
  const auto before = weights.packed(partition, a, blocks);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(weights.bytes(), 0);
  EXPECT_EQ(weights.offset_of(partition, a, blocks), 0);
  const auto plain = weights.packed(partition, a, {});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(weights.offset_of(partition, a, {}), 128);
  EXPECT_EQ(*weights.packed(partition, a, blocks), *before);
  EXPECT_EQ(*weights.packed(partition, a, {}), *plain);
  ASSERT_EQ((*before)->bytes(), 96);
  ASSERT_EQ((*plain)->bytes(), 60);
  const Tensor packed = pack(counted({3, 5}), blocks);
  EXPECT_EQ(std::memcmp((*before)->data(), packed.data(), 96), 0);

  const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(write_file(folder->path("w"), "").ok());
  ASSERT_TRUE(weights.write(folder->path("w"), 0, 2).ok());
  const Result<std::string> bytes = read_file(folder->path("w"));
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(bytes->size(), 188u);
  EXPECT_EQ(std::memcmp(bytes->data(), packed.data(), 96), 0);
  EXPECT_EQ(std::memcmp(bytes->data() + 128, counted({3, 5}).data(), 60), 0);
}

// A phase has tensors of its own with the bytes of another's.
TEST(Weights, StoresEqualContentsOnceAndSaysHowTheyArePacked) {
  Partition first, second;
  first.values.push_back({"w", DType::kFloat32, {4, 8}, counted({4, 8}), {}});
  second.values.push_back({"other", DType::kFloat32, {8, 4}, counted({8, 4}), {}});
  second.values.push_back({"w", DType::kFloat32, {4, 8}, counted({4, 8}), {}});
  second.values.push_back({"shorter", DType::kFloat32, {4, 4}, counted({4, 4}), {}});
  const PackSpec blocks = {{0, 1}, {{1, 4}}};
  Weights weights;
  EXPECT_TRUE(weights.packs_of(second, ValueId{1}).empty());
  const int64_t at = weights.offset_of(first, ValueId{0}, blocks);
  EXPECT_EQ(weights.packs_of(second, ValueId{1}), std::vector{blocks});
  EXPECT_TRUE(weights.packs_of(second, ValueId{0}).empty());  // the shape differs
  EXPECT_TRUE(weights.packs_of(second, ValueId{2}).empty());
  EXPECT_EQ(weights.offset_of(second, ValueId{1}, blocks), at);
  EXPECT_EQ(weights.bytes(), 128);
  weights.offset_of(second, ValueId{1}, {});
  EXPECT_EQ(weights.packs_of(first, ValueId{0}).size(), 2u);
  EXPECT_EQ(weights.packs_of(second, ValueId{0}), std::vector{PackSpec()});
}

TEST(Weights, StoresEachTransformOnce) {
  Partition partition;
  partition.values.push_back({"w", DType::kFloat32, {3, 3, 2, 5}, counted({3, 3, 2, 5}), {}});
  const ValueId w{0};
  using enum Transform;
  const PackSpec two{{}, {}, kWinograd2}, blocks{{0, 1, 2}, {{2, 4}}, kWinograd2},
      four{{}, {}, kWinograd4};

  Weights weights;
  EXPECT_EQ(weights.offset_of(partition, w, two), 0);        // 16 x 2 x 5
  EXPECT_EQ(weights.offset_of(partition, w, four), 640);     // 36 x 2 x 5
  EXPECT_EQ(weights.offset_of(partition, w, blocks), 2112);  // 16 x 2 x 2 x 4
  EXPECT_EQ(weights.offset_of(partition, w, {}), 3136);
  EXPECT_EQ(weights.offset_of(partition, w, four), 640);

  const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(write_file(folder->path("w"), "").ok());
  ASSERT_TRUE(weights.write(folder->path("w"), 0, 2).ok());
  const Result<std::string> bytes = read_file(folder->path("w"));
  ASSERT_TRUE(bytes.ok());
  for (const auto& [spec, offset] : {std::pair{two, 0}, {four, 640}, {blocks, 2112}}) {
    const Tensor packed = pack(counted({3, 3, 2, 5}), spec);
    const auto* at = reinterpret_cast<const float*>(bytes->data() + offset);
    for (int64_t i = 0; i < packed.num_elements(); ++i) ASSERT_EQ(at[i], packed.get(i)) << offset;
  }
}

}  // namespace
}  // namespace pruner
