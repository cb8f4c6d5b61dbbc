// The expected intervals come from an enumeration of all resamples, and the expected p from an
// enumeration of all signs, both in Python: median over itertools.product(values, repeat=n), and
// the share of itertools.product((0, 1), repeat=n) whose rank sums are as extreme.
#include "report/statistics.h"

#include <limits>

#include "golden.h"

namespace pruner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(EstimateMedian, IsThePercentileBootstrapOverAllResamples) {
  const auto expect = [](std::vector<double> values, double median, double low, double high) {
    const Estimate found = *estimate_median(values);
    EXPECT_EQ(found.median, median);
    EXPECT_EQ(found.low, low);
    EXPECT_EQ(found.high, high);
  };
  expect({3, 1, 9, 4, 7}, 4, 1, 9);
  expect({1, 2, 4, 8}, 3, 1, 8);
  expect({5, 1, 2, 8, 3, 9}, 4, 1.5, 8.5);
  expect({2, 2, 2, 5, 6, 7, 1}, 2, 2, 6);
  expect({4, 2}, 3, 2, 4);
  expect({6}, 6, 6, 6);
  EXPECT_FALSE(estimate_median(std::vector<double>()).has_value());
}

TEST(EstimateMedian, CountsARunThatNeverGotThereAsInfinite) {
  const Estimate one = *estimate_median({10, 12, 11, kNever, 13});
  EXPECT_EQ(one.median, 12);
  EXPECT_EQ(one.low, 10);
  EXPECT_EQ(one.high, kNever);
  EXPECT_EQ(estimate_median({1, kNever, 3, kNever})->median, kNever);
  EXPECT_EQ(print(one, 0), "12 (10 to never)");
  EXPECT_EQ(print(Estimate{kNever, kNever, kNever}, 0), "never");
  EXPECT_EQ(print(Estimate{0.002, 0.001, 0.004}, 1, 1e-3), "2.0 (1.0 to 4.0)");
  EXPECT_EQ(print(Estimate{5, 5, 5}, 0), "5");
  EXPECT_TRUE(to_json(std::optional(one))["high"].is_null());
  EXPECT_EQ(to_json(std::optional(one))["low"], 10);
}

TEST(EstimateMedian, OfGroupsAlsoDrawsGroups) {
  using Groups = std::vector<std::vector<double>>;
  const Groups one = {{3, 1, 9, 4, 7}, {}};
  EXPECT_EQ(estimate_median(one)->high, 9) << "one group is a plain bootstrap";
  // Within a group nothing varies: the interval is that of the groups' medians. A resample has the
  // first group's value as its median if it draws that group twice or more: 7 of 27 times.
  const Estimate apart = *estimate_median(Groups{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}});
  EXPECT_EQ(apart.median, 2);
  EXPECT_EQ(apart.low, 1);
  EXPECT_EQ(apart.high, 3);
  EXPECT_FALSE(estimate_median(Groups{{}, {}}).has_value());
  const Groups many = {{0.5, 0.6, 0.7, 0.8, 0.9}, {0.55, 0.65, 0.75, 0.85, 0.95}};
  EXPECT_DOUBLE_EQ(estimate_median(many)->median, 0.725);
  EXPECT_FALSE(estimate_median(many)->holds(1));
  EXPECT_EQ(estimate_median(many)->low, estimate_median(many)->low) << "the seed is fixed";
}

TEST(SignedRankP, IsTheShareOfSignsThatAreAsExtreme) {
  const auto p = [](std::vector<double> ratios) { return signed_rank_p(ratios); };
  EXPECT_DOUBLE_EQ(p({.5, .6, .7, .8, .9}), 0.0625);
  EXPECT_DOUBLE_EQ(p({.5, .6, 1.2, .8, .9, .95}), 0.15625);
  EXPECT_DOUBLE_EQ(p({.5, 2, .25, .5, 4, .125, .9}), 0.40625) << "equal ranks share their mean";
  EXPECT_DOUBLE_EQ(p({.5, 1, kNever, .7, kNever, .2, .3}), 0.9375) << "a ratio of 1 says nothing";
  EXPECT_DOUBLE_EQ(p({.9, .8, .7, .95, .85, .75, .65, 1.01}), 0.015625);
  EXPECT_DOUBLE_EQ(p({1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(p({}), 1);
}

TEST(PairedRatio, OfTwoRunsThatNeverGotThereIsOne) {
  EXPECT_EQ(paired_ratio(kNever, kNever), 1);
  EXPECT_EQ(paired_ratio(kNever, 3), kNever);
  EXPECT_EQ(paired_ratio(3, kNever), 0);
  EXPECT_EQ(paired_ratio(3, 4), 0.75);
}

}  // namespace
}  // namespace pruner
