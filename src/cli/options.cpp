// The door to CLI11, which splits the command line; values are read and judged by option_table.cpp.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>

#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/version.h"

namespace pruner {

namespace {

/// Help for the first words that run nothing by themselves; without one they are hidden.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"dataset", "Make data sets for cost models."},
    {"device", "Look at one device."},
    {"records", "Look into record files, and make others of them."},
};

/// The CLI11 side of the two tables.
class Parser {
 public:
  Parser()
      : app_("Pruner: tunes and compiles neural networks for the machine they run on.", "pruner") {
    app_.set_version_flag("--version", std::string("pruner ") + kVersion);
    app_.require_subcommand(0, 1);
    app_.failure_message(nullptr);
    for (const Command& command : kCommands) add(command);
  }

  Result<CommandLine> parse(int argc, const char* const* argv);

 private:
  CLI::App* node(const std::string& name);
  void add(const Command& command);
  void add(CLI::App* app, const OptionRow& row);
  const Command* chosen() const;
  Error unexpected(const std::string& argument) const;
  std::vector<std::string> known_words(const std::string& like) const;

  CLI::App app_;
  std::map<std::string, CLI::App*> nodes_;
  CommandLine line_;
  std::optional<Error> error_;  // the first value that does not fit
};

CLI::App* Parser::node(const std::string& name) {
  if (const auto found = nodes_.find(name); found != nodes_.end()) return found->second;
  const size_t space = name.find(' ');
  CLI::App* parent = space == std::string::npos ? &app_ : node(name.substr(0, space));
  CLI::App* app = parent->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1));
  parent->require_subcommand(0, 1);
  const auto group = std::ranges::find(kGroups, name, [](const auto& row) { return row.first; });
  if (group != std::end(kGroups)) app->description(std::string(group->second));
  if (name == "worker") app->group("");
  return nodes_[name] = app;
}

void Parser::add(const Command& command) {
  CLI::App* app = node(std::string(command.name));
  app->description(std::string(command.help));
  if (command.hidden) app->group("");
  for (const OptionRow& row : option_table()) {
    if (row.of(command)) add(app, row);
  }
}

void Parser::add(CLI::App* app, const OptionRow& row) {
  const auto set = [this, &row](const std::string& flag, const std::vector<std::string>& values) {
    const Result<Unit> assigned = assign(row, flag, values, line_.options);
    if (!assigned.ok() && !error_) error_ = assigned.error();
  };
  const std::string all(row.flags);
  const std::string flag = all[0] == '-' ? all.substr(0, all.find(',')) : all;
  if (std::holds_alternative<bool Options::*>(row.field)) {
    app->add_flag_callback(
        all, [set, flag] { set(flag, {"true"}); }, row.help);
    return;
  }
  CLI::Option* option = app->add_option_function<std::vector<std::string>>(
      all, [set, flag](const std::vector<std::string>& values) { set(flag, values); }, row.help);
  option->type_name("");
  const bool list = std::holds_alternative<std::vector<std::string> Options::*>(row.field);
  const bool positional = all[0] != '-';
  if (list && positional) return;
  option->expected(1)->allow_extra_args(row.many);
  option->multi_option_policy(list ? CLI::MultiOptionPolicy::TakeAll
                                   : CLI::MultiOptionPolicy::TakeLast);
}

const Command* Parser::chosen() const {
  for (const Command& command : kCommands) {
    const CLI::App* app = nodes_.at(std::string(command.name));
    if (app->parsed() && app->get_subcommands().empty()) return &command;
  }
  return nullptr;
}

std::vector<std::string> Parser::known_words(const std::string& like) const {
  std::vector<std::string> words;
  if (like[0] != '-') {
    for (const Command& command : kCommands) {
      if (!command.hidden) words.emplace_back(command.name);
    }
    return words;
  }
  const Command* command = chosen();
  for (const OptionRow& row : option_table()) {
    if (command && row.of(*command)) {
      for (const std::string& flag : CLI::detail::split(row.flags, ',')) words.push_back(flag);
    }
  }
  return words;
}

/// Letters to change, add or drop to make one word of the other.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

Error Parser::unexpected(const std::string& argument) const {
  const std::string word = argument.substr(0, argument.find('='));
  const Command* command = chosen();
  const std::string help =
      command ? fmt::format("pruner {} --help", command->name) : "pruner --help";
  std::string hint;
  const std::vector<std::string> words = known_words(word);
  const auto nearest = std::ranges::min_element(
      words, {}, [&](const std::string& w) { return edit_distance(w, word); });
  if (nearest != words.end() && edit_distance(*nearest, word) <= 2)
    hint = fmt::format("did you mean {}? ", *nearest);
  if (word[0] == '-') return Error(word, ": unknown option; ", hint, "see ", help);
  if (!command) return Error(word, ": unknown command; ", hint, "see ", help);
  return Error(word, ": nothing is expected here; see ", help);
}

Result<CommandLine> Parser::parse(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line_.text = app_.help();
    return std::move(line_);
  } catch (const CLI::CallForVersion& version) {
    line_.text = std::string(version.what()) + "\n";
    return std::move(line_);
  } catch (const CLI::ExtrasError&) {
    return unexpected(app_.remaining(true).front());
  } catch (const CLI::ArgumentMismatch& mismatch) {
    const std::string what = mismatch.what();
    return Error(what.substr(0, what.find(':')), ": a value is missing");
  } catch (const CLI::ParseError& error) {
    return Error(error.what());
  }
  if (error_) return *error_;
  line_.command = chosen();
  if (line_.command) return std::move(line_);
  if (!app_.get_subcommands().empty()) {
    const std::string name = app_.get_subcommands().front()->get_name();
    return Error(name, ": a second word is missing; see pruner ", name, " --help");
  }
  line_.text = app_.help();
  return std::move(line_);
}

/// The name of an option with hyphens for underscores, which the reference's scripts mix; a value
/// after `=` stays as it is.
std::string with_hyphens(std::string word) {
  if (!word.starts_with("--")) return word;
  std::replace(word.begin(),
               word.begin() + static_cast<ptrdiff_t>(std::min(word.find('='), word.size())),
               '_',
               '-');
  return word;
}

/// As a shell reads it back.
std::string quote(const std::string& argument) {
  const bool plain =
      !argument.empty() && argument.find_first_of(" '\"$&|;<>()*?#~`\\") == std::string::npos;
  return plain ? argument : "'" + argument + "'";
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  std::string arguments = "pruner";
  std::vector<std::string> words(argv, argv + argc);
  for (int i = 1; i < argc; ++i) {
    arguments += " " + quote(argv[i]);
    words[static_cast<size_t>(i)] = with_hyphens(argv[i]);
  }
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  TRY_ASSIGN(CommandLine line, Parser().parse(argc, pointers.data()));
  line.options.command_line = std::move(arguments);
  return line;
}

}  // namespace pruner
