// label: slow
// --dim: a network of several shapes, tuned, run at some of them, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Dims : testing::Test, RunsCommands {
  Dims() : dir(own_path("dims_test")) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Dims() override { fs::remove_all(dir); }

  static std::string refused(const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
  }

  std::string dir;
};

TEST_F(Dims, AreTunedAtWhatMattersAndRunAtAllOfTheirRange) {
  const Json tasks = json({"tasks", "--network", "bert_tiny", "--dim", "seq=3..9@4,8"});
  EXPECT_EQ(std::ranges::count_if(
                tasks, [](const Json& t) { return t["name"] == "layernorm 1x4x512 ..."; }),
            1);
  EXPECT_EQ(std::ranges::count_if(
                tasks, [](const Json& t) { return t["name"] == "layernorm 1x8x512 ..."; }),
            1);
  out({"tune",
       "--network",
       "bert_tiny",
       "--dim",
       "seq=3..9@4,8",
       "--n-trials",
       "16",
       "--cost-model",
       "draft-only",
       "--work-dir",
       dir + "/run"});
  const std::string module = dir + "/run/bert_tiny.so";
  const Json run =
      json({"run", "--module", module, "--fill", "random", "--dim", "seq=5", "--top", "1"});
  EXPECT_EQ(run["outputs"]["last_hidden_state"], Json({1, 5, 512}));
  EXPECT_EQ(json({"bench", "--module", module, "--dim", "seq=7", "--runs", "3"})["runs"], 3);
  EXPECT_NE(refused({"bench", "--module", module, "--dim", "seq=10"})
                .find("seq is 10; the module was compiled for 3 to 9"),
            std::string::npos);
  EXPECT_NE(
      refused({"bench", "--module", module, "--dim", "batch=2"}).find("the module has seq=3..9"),
      std::string::npos);
  EXPECT_NE(
      refused({"bench", "--module", module, "--dim", "seq=3..5"}).find("one extent at a time"),
      std::string::npos);
}

TEST_F(Dims, ThatCannotBeAreSaid) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"compile", "--network", "bert_tiny", "--dim", "seq=9..3"}, "the range ends at 3"},
      {{"compile", "--network", "bert_tiny", "--dim", "seq=x"}, "is not NAME=1..512"},
      {{"compile", "--network", "bert_tiny", "--dim", "depth=1..4"},
       "a built-in network has batch, seq and size"},
      {{"compile", "--network", "bert_tiny", "--dim", "seq=2", "--dim", "seq=3"},
       "--dim names \"seq\" twice"},
      {{"compile", "--op", "matmul 4 4 4", "--dim", "seq=1..4"}, "--dim is of networks"},
      {{"compile", "--network", "bert_tiny", "--dim", "seq=500..600"}, "--dim: at seq=600"},
  };
  for (const auto& [arguments, words] : cases)
    EXPECT_NE(refused(arguments).find(words), std::string::npos) << refused(arguments);
}

}  // namespace
}  // namespace pruner
