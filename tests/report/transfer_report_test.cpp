#include "report/transfer_report.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace pruner {
namespace {

TransferTarget target(const std::string& network, double tuned_ms) {
  TransferTarget t{.network = network,
                   .untuned_ms = 12,
                   .tuned_ms = tuned_ms,
                   .published_choice_ms = 15,
                   .tuned_trials = 1000,
                   .tuned_s = 100};
  t.one_to_one = {{"a", 50, 5, 3, 9}, {"b", 60, 6, 3, 13}};
  t.pool = {"pool", 100, 10, 3, 8};
  t.rivals = {{"ansor", 14, 60, true, 40, 400}, {"pruner", 10, 50, false, 75, 700}};
  t.warm_start = {1000, true, 200, 20};
  return t;
}

TEST(TransferReport, GivesTheShareOfWhatTuningGains) {
  const TransferTarget t = target("net", 8);
  EXPECT_DOUBLE_EQ(*t.share_of_gain(8), 1);
  EXPECT_DOUBLE_EQ(*t.share_of_gain(12), 0);
  EXPECT_DOUBLE_EQ(*t.share_of_gain(9.6), 0.5);
  EXPECT_LT(*t.share_of_gain(t.published_choice_ms), 0);
  EXPECT_DOUBLE_EQ(t.kept_ms(t.one_to_one[1]), 12);
  EXPECT_EQ(target("net", 11.5).share_of_gain(9), std::nullopt);  // tuning gains less than 1.1
}

TEST(TransferReport, IsReadBack) {
  const TransferTarget written = target("net", 8);
  const Result<TransferTarget> read = transfer_target_from_json(to_json(written));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, written);
  Json bad = to_json(written);
  bad["chosen"] = 2;
  EXPECT_ERROR(transfer_target_from_json(bad), "\"chosen\" names no source");
  bad.erase("pool");
  bad["chosen"] = 0;
  EXPECT_ERROR(transfer_target_from_json(bad), "missing key \"pool\"");
}

TEST(TransferReport, TakesMediansOverWhatTuningGainsBy) {
  const std::string table =
      print_transfer_table({target("first", 8), target("second", 6), target("third", 11.5)});
  const std::string last = table.substr(table.rfind("| median"));
  // (12/9 - 1) / (12/8 - 1) = 67 % and (12/9 - 1) / (12/6 - 1) = 33 %
  EXPECT_NE(last.find("50 %"), std::string::npos) << table;
  EXPECT_NE(table.find("> 15.0"), std::string::npos) << table;  // 75 s of 5 s, never as fast
  EXPECT_NE(table.find("200 of 1000"), std::string::npos) << table;
}

TEST(TransferReport, DrawsABarForTheTransferAndEachRival) {
  for (const std::string& svg : {speedup_svg({target("first", 8), target("second", 6)}),
                                 search_time_svg({target("x", 8)})}) {
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    EXPECT_NE(svg.find(">ansor</text>"), std::string::npos);
  }
  const std::string svg = speedup_svg({target("first", 8), target("second", 6)});
  size_t bars = 0;
  for (size_t at = svg.find("width=\"34\""); at != std::string::npos;
       at = svg.find("width=\"34\"", at + 1))
    ++bars;
  EXPECT_EQ(bars, 6u);
  EXPECT_EQ(transfer_tsv({target("x", 8)}).find("network\tsource"), 0u);
}

}  // namespace
}  // namespace pruner
