// pruner report: work dirs of finished runs -> the summary table, and their curves over one
// another.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/options.h"
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

}  // namespace

Result<int> run_report(const Options& options) {
  if (options.files.empty())
    return Error("report: no run is named; give work dirs of `pruner tune`, e.g. out_resnet_50");
  const ReportForm* form = nullptr;
  if (!options.out_file.empty()) {
    TRY_ASSIGN(form, find_form(options.out_file));
  }
  TRY_ASSIGN(const Comparison comparison, compare_runs(options.files));
  if (form != nullptr) TRY(write_file(options.out_file, form->print(comparison)));
  options.json ? fmt::print("{}\n", print_json(comparison_json(comparison)))
               : fmt::print("{}", print_comparison(comparison));
  return kDone;
}

}  // namespace pruner
