#include "cli/run_watch.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace pruner {

void EventOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kOutput);
  add_option(app, "--events FILE", file)
      .writes()
      .replaces({FileKind::kJson})
      .help("what happens, one JSON object a line, as it does; -: on standard output");
}

Result<std::unique_ptr<RunWatch>> RunWatch::open(const EventOptions& options,
                                                 const Invocation& call) {
  const bool to_output = options.file == "-";
  std::FILE* file = nullptr;
  if (!options.file.empty() && !to_output) {
    file = std::fopen(options.file.c_str(), "w");
    if (file == nullptr) return Error("--events ", options.file, ": ", std::strerror(errno));
  }
  return std::unique_ptr<RunWatch>(new RunWatch(call, file, to_output));
}

RunWatch::RunWatch(const Invocation& call, std::FILE* file, bool to_output)
    : view_(stderr, call.quiet),
      file_(file, std::fclose),
      events_(to_output ? stdout : file),
      json_(call.json || to_output),
      to_output_(to_output) {}

void RunWatch::started(const Json& facts, std::span<const WeightedTask> tasks) {
  Json fields = facts;
  fields["version"] = kVersion;
  fields["tasks"] = tasks_json(tasks);
  events_.write("started", fields);
}

void RunWatch::phase(const char* name, const std::string& doing) {
  events_.write("phase", {{"phase", name}, {"doing", doing}});
  // The line of reading passes, so that a failed read leaves one line on the screen: the error.
  view_.say(doing, std::string_view(name) == "read");
}

void RunWatch::round(const RoundLine& line) {
  events_.round(line);
  view_.show(line);
}

Result<Unit> RunWatch::done(const Json& result) {
  events_.write("done", {{"result", result}});
  TRY(events_.end());
  if (json_ && !to_output_) fmt::print("{}\n", print_json(result));
  return Unit{};
}

}  // namespace pruner
