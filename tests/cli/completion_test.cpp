// label: slow
// Shells and man get every command and option that help shows. tests/install has a shell use the
// completion.
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "run_program.h"

namespace pruner {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Completion, HasEveryCommandAndItsOptions) {
  const ProgramRun run = run_program({"completion"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const Command& command : kCommands)
    EXPECT_EQ(has(run.out, "\"" + std::string(command.name) + " \"*) words=\""), !command.hidden());
  EXPECT_TRUE(has(run.out, "--budget"));
  EXPECT_FALSE(has(run.out, "worker build"));
}

TEST(Manual, HasEveryCommandAndItsOptions) {
  const ProgramRun run = run_program({"manual"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const Command& command : kCommands) {
    std::string name(command.name);
    for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
      name.insert(at, "\\");
    EXPECT_EQ(has(run.out, ".SS " + name + "\n"), !command.hidden()) << name;
  }
  EXPECT_TRUE(has(run.out, ".B \\-\\-budget \\fITIME\\fR\ntime to tune"));
  EXPECT_TRUE(has(run.out, ".PP\n.B Budget\n"));
  EXPECT_TRUE(has(run.out, "Examples:\n  pruner tune \\-\\-network resnet_18"));
}

}  // namespace
}  // namespace pruner
