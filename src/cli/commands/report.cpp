// pruner report: work dirs of finished runs -> the summary table, and their curves over one
// another.
#include <filesystem>

#include "cli/commands.h"
#include "report/finished_runs.h"
#include "support/file.h"

namespace pruner {

namespace {

/// What -o makes, by the end of its name.
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
  std::string known;
  for (const ReportForm& form : kForms) {
    if (form.extension == extension) return &form;
    known += (known.empty() ? "" : ", ") + std::string(form.extension);
  }
  return Error("-o ", path, ": the name says the form; end it in one of ", known);
}

struct Report {
  std::vector<std::string> runs;
  std::string out_file;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "RUN", runs)
        .help("work dirs of `pruner tune`, or files as their total_latency.tsv");
    add_out_file(app, out_file, "the file to write: NAME.svg, .tsv, .txt or .json");
  }

  Result<int> run(const Invocation& call) const {
    if (runs.empty())
      return Error("report: no run is named; give work dirs of `pruner tune`, e.g. out_resnet_50");
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
