#include "support/json.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace pruner {
namespace {

TEST(ParseJson, SaysWhereTheTextStopsBeingJson) {
  EXPECT_ERROR(parse_json("{\"a\": 1,}"), "not JSON at byte 9");
  EXPECT_ERROR(parse_json(""), "not JSON at byte 1");
  EXPECT_ERROR(parse_json("[1e999]"), "a number that no double holds");
}

TEST(ParseJson, RefusesWhatWouldExhaustTheStack) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(parse_json(nested(500)).ok());
  EXPECT_ERROR(parse_json(nested(501)), "more than 500 brackets in one another at byte 500");
  EXPECT_ERROR(parse_json(nested(100'000)), "more than 500 brackets");
  // Brackets of a string and those that are closed count for nothing.
  EXPECT_TRUE(parse_json("[\"\\\"" + std::string(1000, '[') + "\"]").ok());
  std::string flat = "[[]";
  for (int i = 0; i < 1000; ++i) flat += ",{}";
  EXPECT_TRUE(parse_json(flat + "]").ok());
}

TEST(ParseJson, ReadsNumbersExactly) {
  const Result<Json> json = parse_json("[0.1, 1e-7, 9007199254740993]");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->at(0).get<double>(), 0.1);
  EXPECT_EQ(json->at(1).get<double>(), 1e-7);
  EXPECT_EQ(json->at(2).get<int64_t>(), 9007199254740993);
}

TEST(PrintJson, WritesPythonsSeparatorsAndKeepsTheOrderOfKeys) {
  const std::string text =
      R"({"r": [[0.0012], 0, 1.5], "i": [["k\n", "t"], [[], {}]], "v": "v0.6"})";
  EXPECT_EQ(print_json(*parse_json(text)), text);
}

TEST(PrintJson, IsStableOverParseAndPrint) {
  for (const char* text : {"null", "true", "-3", "1e+100", "\"\\u0001\"", "[1, [2, [3]]]"}) {
    const std::string once = print_json(*parse_json(text));
    EXPECT_EQ(print_json(*parse_json(once)), once);
  }
}

TEST(JsonGet, NamesTheKeyThatIsMissingOrOfAnotherType) {
  const Json object = {{"threads", 2}};
  EXPECT_EQ(*json_get<int>(object, "threads"), 2);
  EXPECT_ERROR(json_get<int>(object, "device"), "missing key \"device\"");
  EXPECT_ERROR(json_get<std::string>(object, "threads"),
               "key \"threads\" has a value of the wrong");
  EXPECT_ERROR(json_get<int>(Json(3), "threads"), "missing key");
}

TEST(JsonGet, GivesNoOtherNumberThanStandsThere) {
  const Json object = *parse_json(
      R"({"far": 1e300, "wide": 4294967297, "list": [1, -1e19], "unsigned": 18446744073709551615,
          "least": -9223372036854775808, "half": 2.5})");
  EXPECT_ERROR(json_get<int64_t>(object, "far"), "key \"far\" has a number that is out of range");
  EXPECT_ERROR(json_get<int>(object, "wide"), "key \"wide\" has a number that is out of range");
  EXPECT_ERROR(json_get<std::vector<int64_t>>(object, "list"), "out of range");
  EXPECT_ERROR(json_get<int64_t>(object, "unsigned"), "out of range");
  EXPECT_EQ(*json_get<int64_t>(object, "wide"), 4294967297);
  EXPECT_EQ(*json_get<int64_t>(object, "least"), INT64_MIN);
  EXPECT_EQ(*json_get<int>(object, "half"), 2);
  EXPECT_EQ(*json_get<double>(object, "far"), 1e300);
}

}  // namespace
}  // namespace pruner
