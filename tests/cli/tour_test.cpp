// label: codegen
// docs/tour.md shows what --print says of a matmul at each stage: each of its blocks below a line
// <!-- --print=STAGE --> is that text, or of assembly where the loop that multiplies begins.
// PRUNER_GOLDEN=write writes them anew.
#include "cli/stages.h"

#include <sstream>

#include "golden.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

constexpr int kShownLines = 20;

// The innermost loop that holds `instruction`: the first lines from its label on.
std::string loop_around(const std::string& assembly, const std::string& instruction) {
  std::istringstream lines(assembly);
  std::string line, loop;
  bool found = false;
  for (int shown = 0; std::getline(lines, line); ++shown) {
    if (line.starts_with(".LBB")) {
      loop.clear();
      shown = 0;
    }
    loop += line.substr(0, line.find('#')) + "\n";
    found = found || line.find(instruction) != std::string::npos;
    if (found && shown >= kShownLines) return loop + "\t...\n";
  }
  return "";
}

std::string printed(const std::string& stage) {
  const Task task =
      make_task(*parse_operator("matmul 256 256 256"), *parse_target("llvm -mcpu=haswell", 4), "");
  const Result<std::string> text = print_stage(stage, task, {}, {});
  EXPECT_TRUE(text.ok()) << text.error().message();
  return stage == "asm" ? loop_around(*text, "vfmadd") : *text;
}

// The page with each block as it is printed today.
std::string refreshed(const std::string& page) {
  constexpr std::string_view kMark = "<!-- --print=";
  std::istringstream lines(page);
  std::string line, text;
  while (std::getline(lines, line)) {
    text += line + "\n";
    if (!line.starts_with(kMark)) continue;
    const std::string stage =
        line.substr(kMark.size(), line.find(' ', kMark.size()) - kMark.size());
    text += "```\n" + printed(stage) + "```\n";
    for (int fences = 0; fences < 2 && std::getline(lines, line);) fences += line == "```";
  }
  return text;
}

TEST(Tour, ShowsWhatIsPrinted) {
  const Result<std::string> page = read_file(test_path("../docs/tour.md"));
  ASSERT_TRUE(page.ok()) << page.error().message();
  const std::string text = refreshed(*page);
  EXPECT_NE(text.find("vfmadd"), std::string::npos);
  EXPECT_GOLDEN("../../docs/tour.md", text);
}

}  // namespace
}  // namespace pruner
