#include "graph/functions/packed_codes.h"

#include "graph/small_graph.h"

namespace pruner {
namespace {

TEST(PackedCodes, BeginEachRowInAByteOfItsOwn) {
  const Tensor bytes = integers({2, 2}, {0x21, 0xf3, 0x54, 0xf6}, DType::kUInt8);
  EXPECT_EQ(values_of(unpacked(bytes, 4, 2, 3)), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(unpacked(integers({1}, {0b11100100}, DType::kUInt8), 2, 1, 4)),
            (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(values_of(unpacked(bytes, 8, 1, 4)), (std::vector<double>{0x21, 0xf3, 0x54, 0xf6}));
  EXPECT_EQ(packed_bytes(3, 4), 2);
}

}  // namespace
}  // namespace pruner
