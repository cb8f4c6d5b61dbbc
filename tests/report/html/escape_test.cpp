#include "report/html/escape.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(HtmlText, HasNoMarkup) {
  EXPECT_EQ(html_text("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(html_text("</script><img src=x onerror=alert(1)>"),
            "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;");
  EXPECT_EQ(html_text("conv 1×1 → 64"), "conv 1×1 → 64");
}

TEST(HtmlText, ShowsWhatWouldNotBeSeen) {
  EXPECT_EQ(html_text(std::string_view("a\0b\x1b\x7f", 5)), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(html_text("a\u202Eb\u2028c\u2069"), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(html_text("a\tb\nc\u2020"), "a\tb\nc\u2020");
  EXPECT_EQ(html_text("cut \xE2"), "cut \xE2");
}

TEST(JsonIsland, CannotEndItsScript) {
  const std::string island = json_island({{"name", "</script><!--&\u2028\u2029\xFF"}});
  for (const char c : island)
    EXPECT_TRUE(c > 0x1F && c < 0x7F && c != '<' && c != '>' && c != '&') << island;
  EXPECT_NE(island.find("\\u2028\\u2029\\ufffd"), std::string::npos) << island;
  EXPECT_EQ((*parse_json(json_island({{"name", "</script>&"}})))["name"], "</script>&");
}

TEST(Base64OfHex, IsThatOfTheBytes) {
  EXPECT_EQ(base64_of_hex(""), "");
  EXPECT_EQ(base64_of_hex("66"), "Zg==");
  EXPECT_EQ(base64_of_hex("666f"), "Zm8=");
  EXPECT_EQ(base64_of_hex("666f6f"), "Zm9v");
  EXPECT_EQ(base64_of_hex("666f6f626172ff"), "Zm9vYmFy/w==");
}

}  // namespace
}  // namespace pruner
