#include "model/trained_on.h"

#include "golden.h"
#include "support/hash.h"

namespace pruner {
namespace {

TEST(TrainedOn, SurvivesBeingWritten) {
  const TrainedOn seen{
      {"train, within_task 0.9"}, {3, 500, UINT64_MAX}, {hash64("[\"a\"]")}, false};
  const Result<TrainedOn> read = parse_trained_on(print_trained_on(seen));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, seen);
  EXPECT_TRUE(read->has_program(500));
  EXPECT_FALSE(read->has_program(501));
  EXPECT_TRUE(read->has_workload("[\"a\"]"));
  EXPECT_FALSE(read->has_workload("[\"b\"]"));
}

TEST(TrainedOn, AddsUpOverTrainings) {
  TrainedOn seen{{"train"}, {1, 3}, {7}};
  seen.add({{"fine-tune"}, {2, 3}, {7, 9}});
  EXPECT_EQ(seen, (TrainedOn{{"train", "fine-tune"}, {1, 2, 3}, {7, 9}, true}));
  seen.add({.complete = false});
  EXPECT_FALSE(seen.complete);
}

TEST(TrainedOn, RefusesWhatIsDamaged) {
  const std::string text = print_trained_on({{}, {3, 500}, {}});
  std::string odd = text, disorder = text, letters = text;
  odd.replace(odd.find("01f4"), 4, "01f");
  disorder.replace(disorder.find("01f4"), 4, "0001");
  letters.replace(letters.find("01f4"), 4, "zzzz");
  for (const std::string& damaged : {odd, disorder, letters})
    EXPECT_ERROR(parse_trained_on(damaged), "programs: not ");
  EXPECT_ERROR(parse_trained_on("{}"), "missing key \"steps\"");
}

}  // namespace
}  // namespace pruner
