// Checks what `pruner --help` and the help of each command show.
#include "cli/help.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <utility>

#include "cli/commands.h"
#include "golden.h"
#include "graph/partition.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

using Words = std::vector<std::string>;

Result<CommandLine> parse(Words words) {
  words.insert(words.begin(), "pruner");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return parse_command_line(kCommands, static_cast<int>(arguments.size()), arguments.data());
}

std::vector<const Command*> shown_commands() {
  std::vector<const Command*> shown;
  for (const Command& command : kCommands)
    if (!command.hidden()) shown.push_back(&command);
  return shown;
}

Words split(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string help_of(std::string_view command) {
  Words words = split(std::string(command));
  words.emplace_back("--help");
  return parse(words)->text;
}

/// The words that a shell gives to the program: up to `>` or `|`, quoted ones whole.
Words shell_words(std::string_view line) {
  Words words;
  bool quoted = false, open = false;
  for (const char c : line) {
    if (!quoted && (c == '>' || c == '|')) break;
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) words.emplace_back();
    if (c != '\'') words.back() += c;
  }
  return words;
}

TEST(Help, ShowsTwoExamplesThatAreReal) {
  for (const Command* command : shown_commands()) {
    const std::string help = help_of(command->name);
    for (const std::string_view example : command->examples) {
      EXPECT_NE(help.find("\n  " + std::string(example) + "\n"), std::string::npos) << help;
      Words words = shell_words(example);
      ASSERT_FALSE(words.empty()) << command->name;
      EXPECT_EQ(words[0], "pruner");
      words.erase(words.begin());
      const Result<CommandLine> line = parse(words);
      ASSERT_TRUE(line.ok()) << example << ": " << line.error().message();
      EXPECT_EQ(line->command, command) << example;
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& value = words[i + 1];
        EXPECT_TRUE(words[i] != "--op" || parse_operator(value).ok()) << example;
        EXPECT_TRUE(words[i] != "--network" || std::ranges::count(network_names(), value) == 1)
            << example;
      }
    }
    EXPECT_NE(command->examples[0], command->examples[1]);
  }
}

TEST(Help, FitsEightyColumns) {
  std::vector<std::string> texts = {parse({"--help"})->text};
  for (const Command* command : shown_commands()) {
    // A command line is not broken.
    const std::string help = help_of(command->name);
    texts.push_back(help.substr(0, help.find("\nExamples:\n")));
  }
  for (const std::string& text : texts) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

// An option that needs a value says what the value is, and a switch shows none. No option is
// outside the groups, and defaults are given in one form.
TEST(Help, SaysWhatEachOptionTakes) {
  const std::regex with_value(R"(\n  (-o, )?--[^ ]+( --[^ ]+)* ([A-Z][A-Z=]*)(\s))");
  const std::string tune = help_of("tune");
  EXPECT_TRUE(std::regex_search(tune, with_value));
  EXPECT_NE(tune.find("\n  --budget TIME "), std::string::npos) << tune;
  EXPECT_TRUE(std::regex_search(tune, std::regex("\n  --fresh  +set"))) << tune;
  for (const Command* command : shown_commands()) {
    const std::string help = help_of(command->name);
    EXPECT_FALSE(std::regex_search(help, std::regex("[^\\[]default:"))) << help;
    EXPECT_EQ(help.find("the default)"), std::string::npos) << help;
    EXPECT_NE(help.find("\nHelp:\n  -h, --help"), std::string::npos) << help;
    // Only --help is in no group of ours.
    const size_t other = help.find("\nHelp:\n");
    const std::string rest = help.substr(other + 7, help.find("\nExamples:") - other - 7);
    EXPECT_EQ(std::ranges::count(rest, '\n'), 1) << help;
  }
}

TEST(Help, HasNoWordsOfAnotherCommand) {
  const std::regex other("of `[a-z-]+`");
  for (const Command* command : shown_commands())
    EXPECT_FALSE(std::regex_search(help_of(command->name), other)) << help_of(command->name);
  EXPECT_EQ(help_of("tune").find("--print"), std::string::npos);
  EXPECT_EQ(help_of("tune").find("each mode"), std::string::npos);
  EXPECT_NE(help_of("compile").find("with --print: the number"), std::string::npos);
}

TEST(Help, ListsCommandsInGroups) {
  EXPECT_GOLDEN("cli/help.txt", parse({"--help"})->text);
  EXPECT_EQ(parse({})->text, parse({"--help"})->text);
  EXPECT_GOLDEN("cli/help_records_best.txt", help_of("records best"));
}

TEST(Wrap, BreaksBetweenWords) {
  EXPECT_EQ(wrap("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrap("a long-long-word b", 5, 1), "a\n long-long-word\n b");
  EXPECT_EQ(wrap("", 5, 1), "");
}

}  // namespace
}  // namespace pruner
