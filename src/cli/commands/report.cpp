// pruner report: work dirs of runs -> the summary table, their curves over one another, the page of
// the first one.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cli/commands.h"
#include "report/finished_runs.h"
#include "report/html/run_page.h"
#include "support/file.h"

namespace pruner {

namespace {

constexpr const char* kPageExtension = ".html";
constexpr int kWatchSeconds = 5;  // time between two pages of --watch

/// Holds a form that -o makes, chosen by the extension of the file; a page is none of these forms.
struct ReportForm {
  std::string_view extension;
  std::string (*print)(const Comparison& comparison);
};
constexpr ReportForm kForms[] = {
    {".svg", curves_svg},
    {".tsv", curves_tsv},
    {".txt", print_comparison},
    {".json", [](const Comparison& comparison) { return print_json(comparison_json(comparison)); }},
};

Result<const ReportForm*> find_form(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  std::string known = kPageExtension;
  for (const ReportForm& form : kForms) {
    if (form.extension == extension) return &form;
    known += ", " + std::string(form.extension);
  }
  return Error("-o ", path, ": the name says the form; end it in one of ", known);
}

/// `kOfRuns` lists the files that runs leave in their folders, and reports are made of.
constexpr std::string_view kOfRuns[] = {"records.json",
                                        "run.json",
                                        "tasks.json",
                                        "total_latency.tsv",
                                        "results.tsv",
                                        "comparison.json",
                                        "comparison.txt",
                                        "curves.tsv"};

/// Returns an error if a report would replace a file that a run has left in its folder.
Result<Unit> check_no_file_of(const std::vector<std::string>& runs, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  for (const std::string& run : runs)
    for (const std::string_view name : kOfRuns)
      if (fs::equivalent(fs::path(run) / name, path, code))
        return Error(
            "-o ", path, ": is a file of the run, which would be lost; choose another name");
  return Unit{};
}

/// "onnxruntime=12.3", milliseconds.
Result<Peer> read_peer(const std::string& text) {
  const size_t equals = text.rfind('=');
  Peer peer{.name = text.substr(0, equals)};
  char* end = nullptr;
  if (equals != std::string::npos) peer.ms = std::strtod(text.c_str() + equals + 1, &end);
  const bool read = end != nullptr && end != text.c_str() + equals + 1 && *end == '\0';
  if (!read || peer.name.empty() || !(peer.ms > 0) || !std::isfinite(peer.ms))
    return Error("--peer ", text, ": expected NAME=MS, another program's milliseconds");
  return peer;
}

struct Report {
  std::vector<std::string> runs;
  std::string out_file;
  std::vector<std::string> peers;
  bool watch = false;
  int jobs = 0;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "RUN", runs)
        .help("work dirs of `pruner tune`, or files as their total_latency.tsv");
    add_option(app, "--peer NAME=MS", peers)
        .help("another program's time of the same network, for the page; once for each");
    add_out_file(app,
                 out_file,
                 "the file to write: NAME.html, .svg, .tsv, .txt or .json",
                 {FileKind::kText, FileKind::kSvg, FileKind::kJson});
    add_option(app, "--watch", watch).help("write the page anew each 5 s until the run has ended");
    add_jobs(app, jobs);
  }

  /// Writes the page whole; with --watch again and again, until the run has ended or Ctrl-C.
  Result<int> write_page(const Invocation& call) const {
    RunPageOptions options{.refresh_s = watch ? kWatchSeconds : 0, .jobs = jobs};
    for (const std::string& text : peers) {
      TRY_ASSIGN(Peer peer, read_peer(text));
      options.peers.push_back(std::move(peer));
    }
    KnownTasks known;
    while (true) {
      TRY_ASSIGN(const RunPage page, make_run_page(runs, options, known));
      TRY(write_file(out_file, page.html));
      if (!watch || page.status != "running") {
        if (page.comparison.curves.empty()) return kDone;
        return call.show(comparison_json(page.comparison), print_comparison(page.comparison));
      }
      std::this_thread::sleep_for(std::chrono::seconds(kWatchSeconds));
    }
  }

  Result<int> run(const Invocation& call) const {
    if (runs.empty())
      return Error("report: no run is named; give work dirs of `pruner tune`, e.g. out_resnet_50");
    TRY(check_no_file_of(runs, out_file));
    if (std::filesystem::path(out_file).extension() == kPageExtension) return write_page(call);
    if (watch || !peers.empty())
      return Error(watch ? "--watch" : "--peer", ": is for a page; add -o FILE.html");
    const ReportForm* form = nullptr;
    if (!out_file.empty()) {
      TRY_ASSIGN(form, find_form(out_file));
    }
    TRY_ASSIGN(const Comparison comparison, compare_runs(runs));
    if (form != nullptr) TRY(write_file(out_file, form->print(comparison)));
    return call.show(comparison_json(comparison), print_comparison(comparison));
  }
};

}  // namespace

RunCommand make_report(CLI::App& app) { return make_command<Report>(app); }

}  // namespace pruner
