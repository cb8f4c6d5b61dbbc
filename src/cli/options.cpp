// The door to CLI11: what it throws becomes a Result, its messages become ours.
#include "cli/options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "cli/help.h"
#include "support/cpu_budget.h"

namespace pruner {

namespace {

/// Help for the first words that run nothing by themselves.
constexpr std::pair<std::string_view, std::string_view> kFirstWords[] = {
    {"dataset", "Make data sets for cost models."},
    {"device", "Show devices, known ones and those here, and measure this machine."},
    {"fleet", "Tune on many machines."},
    {"records", "Look into record files, and make others of them."},
};

/// Reads a number into `value`. Returns what is wrong with the text; empty if nothing is.
template <typename T>
std::string read_number(const std::string& text, T& value, int64_t least) {
  std::conditional_t<std::is_integral_v<T>, int64_t, double> number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = code == std::errc() && end == text.data() + text.size();
  if (!whole_text || static_cast<decltype(number)>(static_cast<T>(number)) != number)
    return fmt::format("\"{}\" is not a {}number", text, std::is_integral_v<T> ? "whole " : "");
  if (number < static_cast<decltype(number)>(least))
    return fmt::format("{} is less than {}", text, least);
  value = static_cast<T>(number);
  return "";
}

// The names of the validators that mark an option whose value is a file to write (Option::writes).
constexpr const char* kWrites = "writes";
constexpr const char* kWritesOverInputs = "writes-over-inputs";
constexpr const char* kReplaces = "replaces";  // finds what may not be replaced (Option::replaces)

bool is_marked(const CLI::Option& option, const char* mark) {
  try {
    return const_cast<CLI::Option&>(option).get_validator(mark) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}
bool is_written(const CLI::Option& option) {
  return is_marked(option, kWrites) || is_marked(option, kWritesOverInputs);
}

/// Whether the values of an option may be files, by the name of the value in help.
bool may_be_read(const CLI::Option& option) {
  const std::string value =
      option.get_positional() ? option.get_name(true) : option.get_type_name();
  return std::ranges::any_of(
      std::array{"FILE", "VALUE", "DEVICE", "MODEL.onnx", "RECORDS", "RUN"},
      [&](const char* word) { return value.find(word) != std::string::npos; });
}

/// Returns the name of an option in messages: -o for "-o,--out-file", and MODEL.onnx for itself.
std::string shown_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  return "--" + option.get_lnames().front();
}

/// Whether two names lead to one file; folders, pipes and devices are not files.
bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::exists(a, code)) return fs::is_regular_file(a, code) && fs::equivalent(a, b, code);
  if (fs::exists(b, code)) return false;
  return fs::absolute(a, code).lexically_normal() == fs::absolute(b, code).lexically_normal();
}

/// Returns an error if an option names a file to write, and a file of another kind is there.
Result<Unit> check_replaced_file(const CLI::Option& option) {
  if (!is_marked(option, kReplaces)) return Unit{};
  CLI::Validator check = *const_cast<CLI::Option&>(option).get_validator(kReplaces);
  std::string file = option.results().back();
  const std::string why = check.active(true)(file);
  if (!why.empty()) return Error(shown_name(option), ": ", why);
  return Unit{};
}

/// Returns an error if an option of `app` names a file to write that another option names, too. The
/// file that the other option reads or writes would be lost.
Result<Unit> check_written_files(const CLI::App& app) {
  for (const CLI::Option* written : app.get_options()) {
    if (!is_written(*written) || written->empty()) continue;
    const std::string file = written->results().back();
    for (const CLI::Option* other : app.get_options()) {
      const bool both_written = is_written(*other);
      if (other == written || !(both_written || may_be_read(*other))) continue;
      if (!both_written && is_marked(*written, kWritesOverInputs)) continue;
      for (const std::string& value : other->results()) {
        // `named` is the FILE of "NAME=FILE". A file that does not exist yet is no input.
        const std::string named = value.substr(value.find('=') + 1);
        std::error_code code;
        const bool is_there = std::filesystem::exists(file, code);
        const bool same = same_file(file, value) || (!both_written && same_file(file, named));
        if (!same || !(both_written || is_there)) continue;
        return Error(
            fmt::format("{0} {1}: {2} names the same file, which would be lost; choose "
                        "another name for {0}",
                        shown_name(*written),
                        file,
                        shown_name(*other)));
      }
    }
    TRY(check_replaced_file(*written));
  }
  return Unit{};
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

/// The commands as CLI11's subcommands.
class Parser {
 public:
  explicit Parser(std::span<const Command> commands)
      : app_("Pruner: tunes and compiles neural networks for the machine they run on.", "pruner") {
    app_.set_version_flag("--version", std::string("pruner ") + kVersion);
    app_.require_subcommand(0, 1);
    app_.failure_message(nullptr);
    app_.formatter(help_formatter());
    app_.footer("`pruner COMMAND --help` has a command's options and examples.\n");
    for (const Command& command : commands) add(command);
  }

  Result<CommandLine> parse(int argc, const char* const* argv) {
    const auto text = [](std::string shown) {
      return CommandLine{nullptr, nullptr, {}, std::move(shown)};
    };
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return text(app_.help());
    } catch (const CLI::CallForVersion& version) {
      return text(std::string(version.what()) + "\n");
    } catch (const CLI::ExtrasError&) {
      return unexpected(app_.remaining(true).front());
    } catch (const CLI::ArgumentMismatch& mismatch) {
      const std::string what = mismatch.what();
      return Error(what.substr(0, what.find(':')), ": a value is missing");
    } catch (const CLI::ParseError& error) {
      return Error(error.what());
    }
    if (const Entry* entry = chosen()) {
      TRY(check_written_files(*entry->app));
      return CommandLine{entry->command, entry->run, call_, ""};
    }
    if (app_.get_subcommands().empty()) return text(app_.help());
    return Error(second_word_missing());
  }

 private:
  struct Entry {
    const Command* command;
    CLI::App* app;
    RunCommand run;
  };

  void add(const Command& command) {
    const std::string group(title(command.group));
    CLI::App* app = node(std::string(command.name), group);
    app->description(std::string(command.help));
    if (command.hidden()) app->group("");
    entries_.push_back({&command, app, command.make(*app)});
    begin_group(*app, OptionGroup::kOutput);
    add_option(*app, "--json", call_.json).help("the result as JSON on standard output");
    add_option(*app, "--verbose", call_.verbose).help("say more on standard error");
    add_option(*app, "--quiet", call_.quiet).help("say errors only: no progress, no warnings");
    std::string examples;
    for (const std::string_view example : command.examples)
      if (!example.empty()) examples += fmt::format("  {}\n", example);
    if (!examples.empty()) app->footer("Examples:\n" + examples);
  }

  // The subcommand of that name; made, with those above it, when it is new.
  CLI::App* node(const std::string& name, const std::string& group) {
    if (const auto found = nodes_.find(name); found != nodes_.end()) return found->second;
    const size_t space = name.find(' ');
    CLI::App* parent = space == std::string::npos ? &app_ : node(name.substr(0, space), group);
    CLI::App* app = parent->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1));
    app->group(group);
    parent->require_subcommand(0, 1);
    const auto row = std::ranges::find(kFirstWords, name, [](const auto& r) { return r.first; });
    if (row != std::end(kFirstWords)) app->description(std::string(row->second));
    return nodes_[name] = app;
  }

  // Lists the words that may follow the first one.
  std::string second_word_missing() const {
    const CLI::App* first = app_.get_subcommands().front();
    std::vector<std::string> words;
    for (const CLI::App* app : first->get_subcommands([](const CLI::App*) { return true; }))
      if (!app->get_group().empty()) words.push_back(app->get_name());
    const std::string last = words.back();
    words.pop_back();
    return fmt::format("{0}: a second word is missing: {1}{2}{3}; see pruner {0} --help",
                       first->get_name(),
                       fmt::join(words, ", "),
                       words.empty() ? "" : " or ",
                       last);
  }

  // The command that was named; null where the words name a group only.
  const Entry* chosen() const {
    for (const Entry& entry : entries_)
      if (entry.app->parsed() && entry.app->get_subcommands().empty()) return &entry;
    return nullptr;
  }

  // Returns the words that the user may have meant: commands, or the long options of the command.
  std::vector<std::string> known_words(const std::string& like) const {
    std::vector<std::string> words;
    const Entry* entry = chosen();
    if (like[0] != '-') {
      for (const Entry& known : entries_)
        if (!known.command->hidden()) words.emplace_back(known.command->name);
    } else if (entry != nullptr) {
      for (const CLI::Option* option : entry->app->get_options())
        for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    return words;
  }

  // A word that nothing takes; it hints at a known one that is at most two letters apart.
  Error unexpected(const std::string& argument) const {
    const std::string word = argument.substr(0, argument.find('='));
    const Entry* entry = chosen();
    const std::string help =
        entry ? fmt::format("pruner {} --help", entry->command->name) : "pruner --help";
    std::string hint;
    const std::vector<std::string> words = known_words(word);
    const auto nearest = std::ranges::min_element(
        words, {}, [&](const std::string& w) { return edit_distance(w, word); });
    if (nearest != words.end() && edit_distance(*nearest, word) <= 2)
      hint = fmt::format("did you mean {}? ", *nearest);
    if (word[0] == '-') return Error(word, ": unknown option; ", hint, "see ", help);
    if (!entry) return Error(word, ": unknown command; ", hint, "see ", help);
    return Error(word, ": nothing is expected here; see ", help);
  }

  CLI::App app_;
  // `nodes_` has the app of each command ("records stat") and each group ("records") by its words.
  std::map<std::string, CLI::App*> nodes_;
  std::vector<Entry> entries_;
  Invocation call_;
};

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

/// Quotes an argument so that a shell reads the same text back.
std::string quote(const std::string& argument) {
  const bool plain =
      !argument.empty() && argument.find_first_of(" '\"$&|;<>()*?#~`\\") == std::string::npos;
  return plain ? argument : "'" + argument + "'";
}

}  // namespace

void Option::help(const char* text, const char* usual) const {
  option->description(usual == nullptr ? text : fmt::format("{} [default: {}]", text, usual));
}

const Option& Option::writes(bool over_inputs) const {
  const auto named = [](const std::string& file) {
    return std::string(file.empty() ? "the name of the file is empty" : "");
  };
  option->check(CLI::Validator(named, "", over_inputs ? kWritesOverInputs : kWrites));
  return *this;
}

const Option& Option::replaces(std::vector<FileKind> kinds) const {
  const auto check = [kinds = std::move(kinds)](const std::string& file) {
    return why_not_replaced(file, kinds);
  };
  // The check is not active while options are read: a file that is named twice is reported first.
  option->check(CLI::Validator(check, "", kReplaces).active(false));
  return *this;
}

void begin_group(CLI::App& app, OptionGroup group) {
  app.option_defaults()->group(std::string(title(group)));
}

template <typename T>
Option add_option(CLI::App& app, const char* flags_and_value, T& value, int64_t least) {
  const std::string text = flags_and_value;
  const size_t space = std::min(text.find(' '), text.size());
  const std::string flags = text.substr(0, space);
  const std::string shown = text.substr(std::min(space + 1, text.size()));
  if constexpr (std::is_same_v<T, bool>) {
    return {app.add_flag(flags, value)};
  } else if constexpr (std::is_arithmetic_v<T>) {
    // The check stores the number, so that the message about a bad one is ours.
    const auto read = [&value, least](const std::string& text) {
      return read_number(text, value, least);
    };
    CLI::Option* option = app.add_option(flags, [](const CLI::results_t&) { return true; });
    option->check(read)->type_name(shown);
    return {option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)};
  } else {
    CLI::Option* option = app.add_option(flags, value)->type_name(shown);
    // If a flag is given twice, the last value counts, or all values of a list. A list without
    // dashes takes all words.
    const bool list = std::is_same_v<T, std::vector<std::string>>;
    if (list && flags[0] != '-') return {option};
    option->expected(1)->allow_extra_args(false);
    return {option->multi_option_policy(list ? CLI::MultiOptionPolicy::TakeAll
                                             : CLI::MultiOptionPolicy::TakeLast)};
  }
}
template Option add_option(CLI::App&, const char*, bool&, int64_t);
template Option add_option(CLI::App&, const char*, int&, int64_t);
template Option add_option(CLI::App&, const char*, int64_t&, int64_t);
template Option add_option(CLI::App&, const char*, uint64_t&, int64_t);
template Option add_option(CLI::App&, const char*, double&, int64_t);
template Option add_option(CLI::App&, const char*, std::string&, int64_t);
template Option add_option(CLI::App&, const char*, std::vector<std::string>&, int64_t);

Option add_list(CLI::App& app, const char* flags, std::vector<std::string>& values) {
  const Option list = add_option(app, flags, values);
  list.option->allow_extra_args(true);
  return list;
}

Option add_cores(CLI::App& app, const char* flag, int& threads) {
  const int all = usable_cpus();
  threads = all;
  const Option option = add_option(app, flag, threads);
  // This runs after the check, which writes the 0 that was given.
  option.option->each([&threads, all](const std::string&) {
    if (threads == 0) threads = all;
  });
  return option;
}

void add_seed(CLI::App& app, uint64_t& seed) {
  begin_group(app, OptionGroup::kSearch);
  add_option(app, "--seed N", seed).help("of every random choice", "0");
}

void add_jobs(CLI::App& app, int& jobs) {
  begin_group(app, OptionGroup::kMeasuring);
  add_cores(app, "--jobs N", jobs).help("threads that search, build or read", "all cores");
}

void add_threads(CLI::App& app, int& threads) {
  begin_group(app, OptionGroup::kTarget);
  add_option(app, "--threads N", threads).help("threads of a kernel", "all cores");
}

void add_out_file(CLI::App& app,
                  std::string& out_file,
                  const char* help,
                  std::vector<FileKind> kinds) {
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "-o,--out-file FILE", out_file).writes().replaces(std::move(kinds)).help(help);
}

int Invocation::show(const Json& result, std::string_view text) const {
  fmt::print("{}", json ? print_json(result) + "\n" : text);
  return kDone;
}

Result<CommandLine> parse_command_line(std::span<const Command> commands,
                                       int argc,
                                       const char* const* argv) {
  std::string arguments = "pruner";
  std::vector<std::string> words(argv, argv + argc);
  for (int i = 1; i < argc; ++i) {
    arguments += " " + quote(argv[i]);
    words[static_cast<size_t>(i)] = with_hyphens(argv[i]);
  }
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const auto parser = std::make_shared<Parser>(commands);
  TRY_ASSIGN(CommandLine line, parser->parse(argc, pointers.data()));
  line.parser = parser;
  line.call.command_line = std::move(arguments);
  return line;
}

}  // namespace pruner
