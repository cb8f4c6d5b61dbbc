#include "support/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "golden.h"
#include "support/check.h"
#include "support/id.h"
#include "support/match.h"

namespace pruner {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error("n is ", n, ", expected an even number");
  return n / 2;
}

Result<int> quarter(int n) {
  TRY_ASSIGN(const int once, half(n));
  TRY_ASSIGN(const int twice, half(once));
  return twice;
}

Result<Unit> check_even(int n) {
  TRY(half(n));
  return Unit{};
}

TEST(Result, HoldsAValue) {
  ASSERT_TRUE(half(6).ok());
  EXPECT_EQ(*half(6), 3);
}

TEST(Result, HoldsAnErrorWithItsParts) { EXPECT_ERROR(half(7), "n is 7, expected an even number"); }

TEST(Result, MovesAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 5);
}

TEST(Try, ReturnsTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_ERROR(quarter(6), "n is 3");
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_ERROR(check_even(1), "n is 1");
}

TEST(Check, AbortsWithPlaceAndMessage) {
  CHECK(true) << "is not evaluated";
  EXPECT_DEATH(CHECK(1 > 2) << "one is " << 1,
               "result_test.cpp:[0-9]+: check failed: 1 > 2 one is 1");
}

TEST(Id, IsInvalidUntilGivenOut) {
  using RowId = Id<struct Row>;
  EXPECT_FALSE(RowId{}.valid());
  EXPECT_TRUE(RowId{0}.valid());
  EXPECT_LT(RowId{0}, RowId{1});
}

TEST(Match, CallsTheHandlerOfTheAlternative) {
  const std::variant<int, std::string> number = 3;
  const std::variant<int, std::string> word = "three";
  const auto size = [](const auto& v) {
    return match(
        v,
        [](int n) { return n; },
        [](const std::string& s) { return static_cast<int>(s.size()); });
  };
  EXPECT_EQ(size(number), 3);
  EXPECT_EQ(size(word), 5);
}

}  // namespace
}  // namespace pruner
