#include "tensor/pack.h"

#include "golden.h"
#include "naive.h"

namespace pruner {
namespace {

Tensor counting(std::vector<int64_t> shape) {
  Tensor t(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, static_cast<double>(i + 1));
  return t;
}

TEST(Pack, WithoutAnOrderKeepsTheTensor) {
  const Tensor t = counting({2, 3});
  EXPECT_EQ(pack(t, {}).data(), t.data());
}

TEST(Pack, Transposes) {
  const Tensor packed = pack(counting({2, 3}), {{1, 0}, {}});
  EXPECT_EQ(packed.shape(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values_of(packed), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(Pack, PadsTheLastBlockWithZeros) {
  // [2, 3] by blocks of two columns: two blocks a row, the second half empty.
  const Tensor packed = pack(counting({2, 3}), {{1, 0}, {{1, 2}}});
  EXPECT_EQ(packed.shape(), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(values_of(packed), (std::vector<double>{1, 2, 4, 5, 3, 0, 6, 0}));
}

TEST(Pack, SplitsOneDimTwice) {
  const Tensor packed = pack(counting({8}), {{0}, {{0, 2}, {0, 2}}});
  EXPECT_EQ(packed.shape(), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(values_of(packed), values_of(counting({8})));
}

TEST(Pack, MovesEveryElementOfAnOddWeight) {
  const Tensor weight = counting({3, 5, 7});
  const PackSpec spec{{2, 0, 1}, {{1, 4}, {2, 3}}};
  const Tensor packed = pack(weight, spec);
  ASSERT_EQ(packed.shape(), (std::vector<int64_t>{3, 3, 2, 4, 3}));
  const std::vector<double> values = values_of(packed);
  size_t at = 0;
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t a = 0; a < 3; ++a)
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t bi = 0; bi < 4; ++bi)
          for (int64_t ci = 0; ci < 3; ++ci, ++at) {
            const int64_t j = b * 4 + bi, k = c * 3 + ci;
            EXPECT_EQ(values[at], j < 5 && k < 7 ? weight.get((a * 5 + j) * 7 + k) : 0);
          }
}

TEST(PackSpec, ReadsBackFromJson) {
  const PackSpec spec{{2, 0, 1}, {{1, 4}, {2, 3}}};
  const Result<PackSpec> read = pack_spec_from_json(to_json(spec));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, spec);
}

TEST(PackSpec, NamesWhatIsWrong) {
  const auto read = [](const char* text) { return pack_spec_from_json(*parse_json(text)); };
  EXPECT_ERROR(read("{}"), "missing key \"order\"");
  EXPECT_ERROR(read(R"({"order": [0, 0], "blocks": []})"), "dim 0 is not one of 0 to 1, each once");
  EXPECT_ERROR(read(R"({"order": [0], "blocks": [[1, 4]]})"), "[1, 4] is not a dim below 1");
  EXPECT_ERROR(read(R"({"order": [0], "blocks": [[0, 0]]})"), "[0, 0] is not a dim below 1");
}

}  // namespace
}  // namespace pruner
