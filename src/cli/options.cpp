// The door to CLI11: it splits the command line; values are read and judged here.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "cli/commands.h"
#include "cli/version.h"
#include "support/match.h"

namespace pruner {

namespace {

using Field = std::variant<bool Options::*, int64_t Options::*, double Options::*, std::string Options::*,
                           std::vector<std::string> Options::*>;

struct OptionRow {
  const char* flags;  // as CLI11 reads them; without dashes: an argument by its place
  Field field;
  uint32_t groups;
  const char* help;
  int64_t least = 0;  // of a number
};

constexpr uint32_t kInput = kInputOptions;

const OptionRow kOptions[] = {
    {"model", &Options::model_file, kInput, "the network: an ONNX file"},
    {"--network", &Options::network, kInput, "a built-in network (`pruner networks` lists them)"},
    {"--op", &Options::op, kInput, "an operator, e.g. 'matmul 512 512 512 +relu' (`pruner ops`)"},
    {"--task", &Options::task, kInput, "a compute DAG as JSON; with --print: the number of a task"},
    {"--batch-size", &Options::batch_size, kInput | kNameArgument, "of a built-in network", 1},
    {"--image-size", &Options::image_size, kInput | kNameArgument, "of a built-in network", 1},
    {"--seq-len", &Options::sequence_length, kInput | kNameArgument, "of a built-in network", 1},
    {"--input-shapes", &Options::input_shapes, kInput, "for dynamic dims: name:1x3x224x224,..."},

    {"--target", &Options::target, kTargetOptions, "e.g. 'llvm -mcpu=haswell'; default: this machine"},
    {"--threads", &Options::threads, kTargetOptions | kThreadsOption, "threads of a kernel; 0: all cores"},
    {"--seed", &Options::seed, kSearchOptions, "of every random choice"},
    {"--jobs", &Options::jobs, kSearchOptions, "threads that search and build; 0: all cores"},

    {"--n-trials", &Options::trials, kTuneOptions, "candidates to measure, resumed runs included (1000)", 1},
    {"--budget", &Options::budget, kTuneOptions, "time to tune, resumed runs included: 30s, 10m, 1h"},
    {"--early-stopping", &Options::early_stopping, kTuneOptions, "end after so many trials without gain"},
    {"--task-early-stopping", &Options::task_early_stopping, kTuneOptions, "the same for each task"},
    {"--num-measures-per-round,--num-measure-per-iter", &Options::round_size, kTuneOptions, "trials a round", 1},
    {"--cost-model,--model", &Options::cost_model, kTuneOptions, "what ranks candidates: draft or random"},
    {"--load-model", &Options::load_model, kTuneOptions, "weights of a learned cost model"},
    {"--psa", &Options::device_abstraction, kTuneOptions, "device description of the analyzer (GPUs)"},
    {"--tasks", &Options::tasks_regex, kTuneOptions, "tune only the tasks whose name matches"},
    {"--work-dir", &Options::work_dir, kTuneOptions, "folder of the run; the same again resumes"},
    {"--fresh", &Options::fresh, kTuneOptions, "set the folder's records aside and start anew"},
    {"--continue-tuning", &Options::continue_tuning, kTuneOptions, "go on even if no record there is of this model"},
    {"--resume", &Options::resume, kTuneOptions, "the default: earlier records of the folder are used"},
    {"--dry-run", &Options::dry_run, kTuneOptions, "print the tasks and what would be done"},

    {"--records,--logs,--log-file", &Options::records, kRecordsOption, "records to take the best schedules from"},
    {"files", &Options::files, kFilesArgument, "record files"},
    {"name", &Options::name, kNameArgument, "a built-in network"},
    {"-o,--out-file", &Options::out_file, kOutOption, "the file to write"},
    {"--module", &Options::module, kModuleOption, "the module (made by `pruner compile`)"},
    {"--inputs", &Options::inputs, kArraysOptions, "an .npz file with the inputs by name"},
    {"--outputs", &Options::outputs, kArraysOptions, "the .npz file to write"},

    {"--min-time", &Options::min_time_s, kBenchOptions, "seconds to measure for"},
    {"--profile", &Options::profile, kBenchOptions, "time each kernel"},
    {"--print", &Options::print, kPrintOptions, "dag, sketches, candidate, nest, program, llvm or asm"},
    {"--json", &Options::json, ~0u, "the result as JSON on standard output"},
    {"--verbose", &Options::verbose, ~0u, "say more on standard error"},
};

/// Help for the first words that run nothing by themselves; without one they are hidden.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"device", "Look at one device."},
    {"records", "Look into record files."},
};

/// The whole text as a number.
template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Puts the values given for an option into its field.
Result<Unit> assign(const OptionRow& row, const std::string& flag, const std::vector<std::string>& values,
                    Options& options) {
  const std::string& value = values.back();
  const auto number = [&]<typename T>(T Options::*field, const char* kind) -> Result<Unit> {
    const std::optional<T> parsed = parse_number<T>(value);
    if (!parsed) return Error(flag, ": \"", value, "\" is not ", kind);
    if (*parsed < static_cast<T>(row.least)) return Error(flag, ": ", value, " is less than ", row.least);
    options.*field = *parsed;
    return Unit{};
  };
  return match(
      row.field,  //
      [&](bool Options::*field) -> Result<Unit> {
        options.*field = true;
        return Unit{};
      },
      [&](int64_t Options::*field) { return number(field, "a whole number"); },
      [&](double Options::*field) { return number(field, "a number"); },
      [&](std::string Options::*field) -> Result<Unit> {
        options.*field = value;
        return Unit{};
      },
      [&](std::vector<std::string> Options::*field) -> Result<Unit> {
        options.*field = values;
        return Unit{};
      });
}

/// The CLI11 side of the two tables.
class Parser {
 public:
  Parser() : app_("Pruner: tunes and compiles neural networks for the machine they run on.", "pruner") {
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
  for (const OptionRow& row : kOptions) {
    if (row.groups & command.options || row.groups == ~0u) add(app, row);
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
    app->add_flag_callback(all, [set, flag] { set(flag, {"true"}); }, row.help);
    return;
  }
  CLI::Option* option = app->add_option_function<std::vector<std::string>>(
      all, [set, flag](const std::vector<std::string>& values) { set(flag, values); }, row.help);
  option->type_name("");
  const bool list = std::holds_alternative<std::vector<std::string> Options::*>(row.field);
  const bool positional = all[0] != '-';
  if (list && positional) return;
  option->expected(1)->allow_extra_args(false);
  option->multi_option_policy(list ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
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
  for (const OptionRow& row : kOptions) {
    if (command && (row.groups & command->options || row.groups == ~0u)) {
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
  const std::string help = command ? fmt::format("pruner {} --help", command->name) : "pruner --help";
  std::string hint;
  const std::vector<std::string> words = known_words(word);
  const auto nearest = std::ranges::min_element(words, {}, [&](const std::string& w) { return edit_distance(w, word); });
  if (nearest != words.end() && edit_distance(*nearest, word) <= 2) hint = fmt::format("did you mean {}? ", *nearest);
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

/// As a shell reads it back.
std::string quote(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_of(" '\"$&|;<>()*?#~`\\") == std::string::npos;
  return plain ? argument : "'" + argument + "'";
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  std::string arguments = "pruner";
  for (int i = 1; i < argc; ++i) arguments += " " + quote(argv[i]);
  TRY_ASSIGN(CommandLine line, Parser().parse(argc, argv));
  line.options.command_line = std::move(arguments);
  return line;
}

}  // namespace pruner
