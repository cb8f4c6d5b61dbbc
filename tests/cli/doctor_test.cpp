// label: slow
#include <gtest/gtest.h>

#include <map>

#include "run_program.h"
#include "support/json.h"

namespace pruner {
namespace {

std::map<std::string, Json> findings(const ProgramRun& run) {
  std::map<std::string, Json> found;
  for (const Json& row : Json::parse(run.out)) found[row["part"]] = row;
  return found;
}

TEST(Doctor, SaysWhatIsHereAndWhatIsMissing) {
  const ProgramRun run = run_program({"doctor", "--json", "--look-s", "0.1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::map<std::string, Json> found = findings(run);
  EXPECT_TRUE(found["CPU"]["found"]);
  EXPECT_EQ(found["code for CPUs"]["found"], PRUNER_LLVM != 0);
  EXPECT_EQ(found["training by LibTorch"]["found"], can_train());
  EXPECT_EQ(found.size(), 12u);
  for (const auto& [part, row] : found) {
    EXPECT_FALSE(row["text"].get<std::string>().empty()) << part;
    EXPECT_EQ(row.contains("gives"), !row["found"].get<bool>()) << part;
  }
}

TEST(Doctor, MissesAPlugInThatIsElsewhere) {
  const ProgramRun run = start_program({"doctor", "--json", "--look-s", "0.1"},
                                       {.environment = {"PRUNER_TORCH_PLUGIN=/nowhere"}})
                             .wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json row = findings(run)["training by LibTorch"];
  EXPECT_FALSE(row["found"]);
  EXPECT_NE(row["gives"].get<std::string>().find("default mode"), std::string::npos);
}

}  // namespace
}  // namespace pruner
