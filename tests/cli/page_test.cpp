// label: codegen
// Every command of the pages in `pages()` is run, and has to print what the page shows.
// PRUNER_GOLDEN=write in the environment writes the pages anew.
#include "cli/page.h"

#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

// Returns the places of the pages in docs/.
std::vector<std::string> pages() {
  return {"inside/tour.md",
          "research/moa.md",
          "research/modes.md",
          "research/offline.md",
          "research/online.md",
          "research/tensorcore.md",
          "research/transfer.md",
          "start/first_steps.md",
          "start/tune.md"};
}

struct Pages : testing::TestWithParam<std::string> {};

TEST_P(Pages, ShowsWhatItsCommandsPrint) {
  const Result<std::string> page = read_file(test_path("../docs/" + GetParam()));
  ASSERT_TRUE(page.ok()) << page.error().message();
  if (page->find("<!-- needs LibTorch -->") != std::string::npos && !can_train())
    GTEST_SKIP() << "built without LibTorch: no model is trained";
  const char* golden = std::getenv("PRUNER_GOLDEN");
  const std::string folder = own_path("page");
  const PageRun run = run_page(*page, folder, golden != nullptr);
  fs::remove_all(folder);
  for (const std::string& fault : run.faults) ADD_FAILURE() << fault;
  EXPECT_NE(page->find("```sh"), std::string::npos);
  if (run.faults.empty()) {
    EXPECT_GOLDEN("../../docs/" + GetParam(), run.text);
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return fs::path(info.param).stem();
}

INSTANTIATE_TEST_SUITE_P(Docs, Pages, testing::ValuesIn(pages()), name_of);

std::string again(const std::string& shown,
                  const std::string& printed,
                  bool measured,
                  size_t faults) {
  std::vector<std::string> found;
  const std::string text = shown_again(shown, printed, measured, found);
  EXPECT_EQ(found.size(), faults) << testing::PrintToString(found);
  return text;
}

TEST(ShownAgain, TakesLinesWithOtherNumbersWhereTheyWereMeasured) {
  const std::string printed = "start\n|  0 | 1.25 ms |\n|  1 | 10.5 ms |\n-----\nend 7\n";
  EXPECT_EQ(again("...\n| 0 | 2.5 ms |\n...\nend 8\n", printed, true, 0),
            "...\n|  0 | 1.25 ms |\n...\nend 7\n");
  again("...\n| 0 | 2.5 ms |\n...\nend 8\n", printed, false, 1);
  again("...\n| 0 | 2.5 s |\n...\n", printed, true, 1);
}

TEST(ShownAgain, LeavesOutWhatALineLeavesOut) {
  EXPECT_EQ(again("task ...: 2 ok, ... 5 s\n", "task 7: conv: 2 ok, 0 failed, 5 s\n", false, 0),
            "task ...: 2 ok, ... 5 s\n");
  again("task ...: 3 ok, ... 5 s\n", "task 7: conv: 2 ok, 0 failed, 5 s\n", false, 1);
  again("task ...\n", "a task 7\n", false, 1);
  again("... ok 7\n", "2 ok 78\n", false, 1);
  EXPECT_EQ(again("... ok 7\n", "2 ok 78\n", true, 0), "... ok 78\n");
  EXPECT_EQ(again("a ... 7 (x) ... b\n", "a b c  8 (x) c b\n", true, 0), "a ... 8 (x) ... b\n");
}

TEST(ShownAgain, LeavesOutLinesOnlyWhereThePageSaysSo) {
  EXPECT_EQ(again("a\n...\nc\n", "a\nb\nc\n", false, 0), "a\n...\nc\n");
  EXPECT_EQ(again("...\nb\n...\n", "a\nb\nc\n", false, 0), "...\nb\n...\n");
  again("a\nc\n", "a\nb\nc\n", false, 1);
  again("a\nb\n", "a\nb\nc\n", false, 1);
  again("b\nc\n", "a\nb\nc\n", false, 1);
  again("...\nc\n...\na\n", "a\nb\nc\n", false, 1);
}

TEST(RunPage, WritesBlocksAnew) {
  const std::string folder = own_path("page_anew");
  const std::string commands = "```sh\necho one 1; echo two 2; echo three\n```\n```\n";
  const std::string page = commands + "one 5\n```\n" + commands + "...\ntwo 5\n...\n```\n";
  EXPECT_EQ(run_page(page, folder, false).faults.size(), 2u);
  fs::remove_all(folder);
  const PageRun run = run_page(page, folder, true);
  fs::remove_all(folder);
  EXPECT_TRUE(run.faults.empty()) << testing::PrintToString(run.faults);
  EXPECT_EQ(run.text,
            commands + "one 1\ntwo 2\nthree\n```\n" + commands + "...\ntwo 2\n...\n```\n");
}

TEST(RunPage, NamesTheCommandThatFailed) {
  const std::string folder = own_path("failing_page");
  const PageRun run = run_page("```sh\necho one\nexit 3\n```\n```\none\n```\n", folder, false);
  fs::remove_all(folder);
  ASSERT_EQ(run.faults.size(), 1u);
  EXPECT_NE(run.faults[0].find("exit 3"), std::string::npos);
}

TEST(RunPage, RunsCommandsInOneFolderWithTheTree) {
  const std::string folder = own_path("page_of_files");
  const std::string page =
      "```sh\npruner --help > help\n```\n```sh\nwc -l < README.md; test -s help; ls help\n```\n"
      "<!-- measured -->\n```\n1\nhelp\n```\n";
  const PageRun run = run_page(page, folder, false);
  fs::remove_all(folder);
  EXPECT_TRUE(run.faults.empty()) << testing::PrintToString(run.faults);
  EXPECT_EQ(run.text, page);
}

}  // namespace
}  // namespace pruner
