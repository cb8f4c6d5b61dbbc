// label: codegen
// Checks what a run shows on a terminal: a pseudoterminal of a given width.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "cli/run_program.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

/// Returns what the program writes to a terminal of `columns` columns until the program ends.
std::string on_terminal(unsigned short columns,
                        const std::vector<std::string>& arguments,
                        const std::vector<std::string>& environment) {
  winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  std::vector<std::string> words = {"env", "TERM=xterm"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.emplace_back(PRUNER_BINARY);
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (!can_train()) words.emplace_back("--allow-untrained");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  if (pid < 0) return "";
  std::string text;
  char part[4096];
  for (ssize_t read_bytes = 0; (read_bytes = read(terminal, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(read_bytes));
  int status = 0;
  waitpid(pid, &status, 0);
  close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

/// The text's lines as a terminal shows them; of the run's end on, tables are as wide as they are.
std::vector<std::string> lines_of(const std::string& text) {
  const std::string shown = std::regex_replace(
      text.substr(0, text.find("[ Task Scheduler ]")), std::regex("\x1b\\[[0-9;]*[A-Za-z]"), "");
  std::vector<std::string> lines;
  std::string line;
  for (const char c : shown) {
    if (c != '\n' && c != '\r') {
      line += c;
      continue;
    }
    if (!line.empty()) lines.push_back(std::exchange(line, ""));
  }
  // Warnings are whole, and of the table stands its rule before its title.
  std::erase_if(lines, [](const std::string& l) {
    return l.starts_with("-----") || l.starts_with("pruner: warning: ");
  });
  return lines;
}

struct Terminal : testing::Test {
  Terminal() { fs::remove_all(dir); }
  ~Terminal() override { fs::remove_all(dir); }

  void SetUp() override {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) GTEST_SKIP() << "no pseudoterminals here";
    close(terminal);
  }

  std::vector<std::string> tune() const {
    return {"tune",
            "--op",
            "conv2d 1 32 14 14 32 3 3 padding=1 +bias +relu",
            "--op",
            "matmul 48 48 48",
            "--cost-model",
            "draft-only",
            "--n-trials",
            "30",
            "--work-dir",
            dir};
  }
  std::string dir = (fs::temp_directory_path() / ("pruner_terminal_" + std::to_string(getpid())));
};

TEST_F(Terminal, NoLineIsWiderThanIt) {
  for (const unsigned short columns : {80, 40}) {
    fs::remove_all(dir);
    const std::string text = on_terminal(columns, tune(), {});
    const std::vector<std::string> lines = lines_of(text);
    EXPECT_GT(lines.size(), 5u) << text;
    for (const std::string& line : lines) EXPECT_LT(line.size(), columns) << line;
    // The words that a user waits for are there at any width.
    EXPECT_NE(text.find("/30] total "), std::string::npos) << text;
    EXPECT_NE(text.find(", ETA "), std::string::npos) << text;
    EXPECT_NE(text.find("\x1b[J"), std::string::npos) << "lines stay in their place";
  }
}

TEST_F(Terminal, SaysWhatIsDoneBeforeTheFirstRound) {
  const std::vector<std::string> lines = lines_of(on_terminal(100, tune(), {}));
  ASSERT_GE(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("reading ")) << lines[0];
  EXPECT_NE(lines[1].find("2 tasks, 30 trials"), std::string::npos) << lines[1];
}

TEST_F(Terminal, HasColoursUnlessNoColorOrADumbTerminal) {
  const std::regex colour("\x1b\\[[0-9]+m");
  EXPECT_TRUE(std::regex_search(on_terminal(80, tune(), {}), colour));
  fs::remove_all(dir);
  const std::string plain = on_terminal(80, tune(), {"NO_COLOR=1"});
  EXPECT_FALSE(std::regex_search(plain, colour));
  EXPECT_NE(plain.find("\x1b[J"), std::string::npos);
  fs::remove_all(dir);
  EXPECT_EQ(on_terminal(80, tune(), {"TERM=dumb"}).find('\x1b'), std::string::npos);
}

TEST_F(Terminal, QuietShowsTheResultAlone) {
  std::vector<std::string> words = tune();
  words.emplace_back("--quiet");
  const std::string text = on_terminal(80, words, {});
  EXPECT_TRUE(text.starts_with("-----")) << text;
}

TEST_F(Terminal, AWarningStaysStanding) {
  std::vector<std::string> words = tune();
  // A model's weights that the mode has no use for.
  words.insert(words.end(), {"--load-model", "none.pkl"});
  const std::string text = on_terminal(80, words, {});
  EXPECT_NE(text.find("pruner: warning: --load-model none.pkl"), std::string::npos) << text;
}

}  // namespace
}  // namespace pruner
