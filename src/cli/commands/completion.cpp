// pruner completion, pruner manual: the command line itself, for shells and for man. Both are made
// of the commands and options that CLI11 knows; packages install them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace pruner {

namespace {

const CLI::App& root_of(const CLI::App& app) {
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  return *root;
}

// The subcommands that help shows.
std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) commands.push_back(command);
  return commands;
}

// Returns the words that may follow a command: the names of its subcommands and options.
std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : shown_commands(app)) words += command->get_name() + " ";
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  return words;
}

void add_cases(const CLI::App& app, const std::string& path, std::string& out) {
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = path + command->get_name();
    add_cases(*command, name + " ", out);
    out += fmt::format("    \"{} \"*) words=\"{}\" ;;\n", name, words_of(*command));
  }
}

std::string bash_completion(const CLI::App& root) {
  std::string cases;
  add_cases(root, "", cases);
  return "# Completion of pruner for bash; for zsh after `autoload -U bashcompinit && "
         "bashcompinit`.\n"
         "_pruner() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words\n"
         "  case \"${COMP_WORDS[*]:1:COMP_CWORD-1} \" in\n" +
         cases + fmt::format("    *) words=\"{}\" ;;\n", words_of(root)) +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _pruner pruner\n";
}

// Text as roff shows it.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

void add_options(const CLI::App& command, std::string& out) {
  std::string group = "Options";  // group of --help, which comes first
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() != group) {
      group = option->get_group();
      out += fmt::format(".PP\n.B {}\n", roff(group));
    }
    const bool positional = option->get_positional();
    out += fmt::format(".TP\n.B {}{}\n{}\n",
                       roff(option->get_name(positional, !positional)),
                       positional || option->get_type_name().empty()
                           ? ""
                           : " \\fI" + roff(option->get_type_name()) + "\\fR",
                       roff(option->get_description()));
  }
}

void add_sections(const CLI::App& app, const std::string& path, std::string& out) {
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = path + command->get_name();
    out += fmt::format(".SS {}\n{}\n", roff(name), roff(command->get_description()));
    add_options(*command, out);
    if (!command->get_footer().empty())
      out += fmt::format(".PP\n.nf\n{}.fi\n", roff(command->get_footer()));
    add_sections(*command, name + " ", out);
  }
}

std::string manual(const CLI::App& root) {
  std::string out = fmt::format(
      ".TH PRUNER 1 \"\" \"pruner {}\" \"User Commands\"\n"
      ".SH NAME\npruner \\- tunes and compiles neural networks for the machine they run on\n"
      ".SH SYNOPSIS\n.B pruner\n.I COMMAND\n[OPTIONS]\n.SH COMMANDS\n",
      kVersion);
  add_sections(root, "", out);
  return out +
         ".SH EXIT STATUS\n0: done. 1: a fault of the machine, or of pruner. 2: something for the "
         "user to mend; one line says what. 130: interrupted.\n";
}

// Shows the text that `text_of` makes of the whole command line.
RunCommand show_all(const CLI::App& command, std::string (*text_of)(const CLI::App&)) {
  return [&command, text_of](const Invocation& call) -> Result<int> {
    const std::string text = text_of(root_of(command));
    return call.show(Json(text), text);
  };
}

}  // namespace

RunCommand make_completion(CLI::App& app) { return show_all(app, bash_completion); }
RunCommand make_manual(CLI::App& app) { return show_all(app, manual); }

}  // namespace pruner
