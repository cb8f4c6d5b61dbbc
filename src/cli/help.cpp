#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace pruner {

namespace {

constexpr size_t kWidth = 80, kHelpColumn = 30;

constexpr std::string_view kOptionTitles[] = {
    "Input", "Target", "Budget", "Search", "Cost model", "Measuring", "Fleet", "Files", "Output"};
constexpr std::string_view kCommandTitles[] = {"Tune and search",
                                               "Networks and modules",
                                               "Records and cost models",
                                               "Devices",
                                               "Fleet",
                                               "Other",
                                               ""};

/// A name with what it is for beside it, or below where the name is long.
std::string row(const std::string& name, const std::string& help) {
  std::string text = "  " + name;
  const std::string beside = wrap(help, kWidth - kHelpColumn, kHelpColumn);
  if (beside.empty()) return text + "\n";
  if (text.size() + 2 > kHelpColumn) {
    text += "\n" + std::string(kHelpColumn, ' ');
  } else {
    text.resize(kHelpColumn, ' ');
  }
  return text + beside + "\n";
}

std::string option_row(const CLI::Option& option) {
  const bool positional = option.get_positional();
  std::string name;
  for (const char c : option.get_name(positional, !positional)) {
    name += c;
    if (c == ',') name += ' ';
  }
  if (!positional && !option.get_type_name().empty()) name += " " + option.get_type_name();
  return row(name, option.get_description());
}

/// The options of a group, arguments by their place first.
std::string option_rows(const CLI::App& app, std::string_view group) {
  std::string positional, named;
  for (const CLI::Option* option : app.get_options())
    if (option->get_group() == group)
      (option->get_positional() ? positional : named) += option_row(*option);
  return positional + named;
}

std::string command_rows(const CLI::App& app, std::string_view group) {
  std::string rows;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_group() == group) rows += row(command->get_name(), command->get_description());
  return rows;
}

std::string section(std::string_view name, const std::string& rows) {
  return rows.empty() ? "" : "\n" + std::string(name) + ":\n" + rows;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = "Usage: " + name;
  const auto all = [](const CLI::App* command) { return !command->get_group().empty(); };
  if (!app.get_subcommands(all).empty()) text += " COMMAND";
  text += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional())
      text +=
          " [" + option->get_single_name() + "]" + (option->get_expected_max() > 1 ? "..." : "");
  return text + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string text = wrap(app->get_description(), kWidth, 0) + "\n" + usage(*app, name);
    for (const std::string_view group : kCommandTitles)
      if (!group.empty()) text += section(group, command_rows(*app, group));
    for (const std::string_view group : kOptionTitles)
      text += section(group, option_rows(*app, group));
    const std::string others = option_rows(*app, "Options");
    text += section("Help", others);
    if (!app->get_footer().empty()) text += "\n" + app->get_footer();
    return text;
  }
};

}  // namespace

std::string_view title(OptionGroup group) { return kOptionTitles[static_cast<size_t>(group)]; }
std::string_view title(CommandGroup group) { return kCommandTitles[static_cast<size_t>(group)]; }

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string wrap(std::string_view text, size_t width, size_t indent) {
  std::istringstream in{std::string(text)};
  std::string out;
  size_t column = 0;
  for (std::string word; in >> word;) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ';
    column += (column > 0) + word.size();
    out += word;
  }
  return out;
}

}  // namespace pruner
