#include "tensor/symbol.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace pruner {
namespace {

TEST(Symbol, IsReadWithItsRangeAndWhatMatters) {
  const Result<Symbol> seq = parse_symbol("seq=1..512@384,64,64");
  ASSERT_TRUE(seq.ok()) << seq.error().message();
  EXPECT_EQ(seq->name, "seq");
  EXPECT_EQ(seq->min, 1);
  EXPECT_EQ(seq->max, 512);
  EXPECT_EQ(seq->matters, (std::vector<int64_t>{64, 384}));
  EXPECT_EQ(print(*seq), "seq=1..512");
  const Result<Symbol> batch = parse_symbol("batch=4");
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(print(*batch), "batch=4");
}

TEST(Symbol, SaysWhatIsWrongWithAText) {
  for (const char* text :
       {"", "seq", "=3", "seq=", "seq=a", "seq=1..", "seq=1..4@", "seq=1..4x", "seq=0"})
    EXPECT_ERROR(parse_symbol(text), "is not NAME=1..512") << text;
  EXPECT_ERROR(parse_symbol("seq=9..4"), "the range ends at 4, before it begins");
  EXPECT_ERROR(parse_symbol("seq=1..1048577"), "a dimension is at most 1048576 long");
  EXPECT_ERROR(parse_symbol("seq=1..4@8"), "8 lies outside of the range");
}

TEST(Symbol, HasGenericPointsFromEndToEnd) {
  const SymbolBox box{{1}, {512}};
  const std::vector<SymbolValues> points = generic_points(box, 8);
  EXPECT_EQ(points.front(), SymbolValues{2});
  EXPECT_EQ(points.back(), SymbolValues{509});
  for (const SymbolValues& point : points) EXPECT_TRUE(is_generic(point[0])) << point[0];
  EXPECT_TRUE(generic_points({{8}, {10}}, 8).empty()) << "there is no prime";
}

}  // namespace
}  // namespace pruner
