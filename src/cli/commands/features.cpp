// pruner features: what the analysis and the models see of recorded programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "analysis/primitives.h"
#include "analysis/symbols.h"
#include "cli/commands.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "dataset/record_device.h"
#include "model/learned_model.h"
#include "record/record_id.h"
#include "record/record_paths.h"
#include "report/time_text.h"
#include "search/history.h"
#include "support/ceil_div.h"
#include "support/gzip.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

/// Holds the score of a draft, and the draft's name: "cpu", or a form.
struct DraftScore {
  std::optional<double> score;  // 1/ms; nullopt: there is no draft of such programs
  std::string form;
};

/// Scores programs as the options say.
struct Scoring {
  std::optional<Gpu> gpu;  // GPU of --psa; nullopt: each record's own
  DraftForm form = DraftForm::kOurs;
  std::unique_ptr<LearnedModel> model;  // null without --load-model
  std::unique_ptr<std::mutex> scoring = std::make_unique<std::mutex>();  // held while it scores

  DraftScore draft_score(const RecordedProgram& program, const DeviceLabel& device) const {
    if (is_cpu(device.kind)) {
      const bool known = program.cpu_draft_s > 0;
      return {known ? std::optional(1e-3 / program.cpu_draft_s) : std::nullopt, "cpu"};
    }
    const Gpu numbers = gpu ? *gpu : gpu_of(device).value_or(default_draft_gpu());
    return {pruner::draft_score(program.statements, numbers, form),
            std::string(draft_form_name(form))};
  }
  /// Returns the score of --load-model's model; null without a model, or if the score is no number.
  Json model_score(const ProgramFeatures& program) const {
    if (model == nullptr) return {};
    const std::lock_guard lock(*scoring);
    const std::vector<float> scores = model->predict({&program, 1});
    return scores.empty() || !std::isfinite(scores[0]) ? Json() : Json(scores[0]);
  }
};

Result<Scoring> read_scoring(const PsaOptions& draft, const std::string& load_model) {
  Scoring scoring;
  TRY_ASSIGN(scoring.gpu, read_draft_gpu(draft.device));
  TRY_ASSIGN(scoring.form, read_draft_form(draft.form));
  if (!load_model.empty()) {
    TRY_ASSIGN(scoring.model, load_learned_model(load_model, 1));
  }
  return scoring;
}

ProgramFeatures features_of(const RecordedProgram& program, bool compat) {
  ProgramFeatures f = features(program.statements, program.flags, compat);
  f.primitives = program.primitives;
  return f;
}

/// Returns the rows that TLP sees, without those that fill up the matrix.
Json primitive_rows(const RecordedProgram& program) {
  const PrimitiveForm form = program.is_gpu() ? kGpuPrimitives : kCpuPrimitives;
  Json rows = Json::array();
  for (const Primitive& step : primitives_of(program.primitives)) {
    std::vector<float> row(static_cast<size_t>(form.width));
    write_primitive(step, form, row.data());
    rows.push_back(row);
  }
  return rows;
}

/// Holds a program, its draft score and its measured time.
struct Measured {
  RecordedProgram program;
  DraftScore draft;
  std::optional<double> seconds;  // nullopt: the trial failed
};

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string json_line(const Measured& measured, const Scoring& scoring, bool compat) {
  const RecordedProgram& program = measured.program;
  const ProgramFeatures f = features_of(program, compat);
  Json rows = Json::array();
  const std::vector<Symbols> all = symbols(program.statements);
  for (size_t r = 0; r < all.size(); ++r) {
    const auto first = f.rows.begin() + static_cast<std::ptrdiff_t>(r * kRowFeatures);
    rows.push_back({{"buffer", program.buffers[static_cast<size_t>(all[r].buffer.value)]},
                    {"symbols", all[r].values()},
                    {"statement", std::vector<float>(first, first + kRowFeatures)}});
  }
  Json dataflow = Json::array();
  for (auto step = f.dataflow.begin(); step != f.dataflow.end(); step += kDataflowFeatures)
    dataflow.push_back(std::vector<float>(step, step + kDataflowFeatures));
  const Json json = {{"rows", rows},
                     {"dataflow", dataflow},
                     {"primitives", primitive_rows(program)},
                     {"draft_score", number_or_null(measured.draft.score)},
                     {"draft_form", measured.draft.form},
                     {"measured_s", number_or_null(measured.seconds)},
                     {"model_score", scoring.model_score(f)}};
  return json.dump() + "\n";
}

std::string table(const std::string& where,
                  const Measured& measured,
                  const Scoring& scoring,
                  bool compat) {
  const RecordedProgram& program = measured.program;
  const DraftScore& draft = measured.draft;
  std::string text =
      draft.score ? fmt::format("{}: draft score {:.6g} ({})", where, *draft.score, draft.form)
                  : where + ": no draft score (of programs of TVM on CPUs there is none)";
  text += measured.seconds ? fmt::format(", measured {:.6g} ms", *measured.seconds * 1e3)
                           : ", its trial failed";
  const Json model_score = scoring.model_score(features_of(program, compat));
  if (model_score.is_number())
    text += fmt::format(", model score {:.6g}", model_score.get<float>());
  text += fmt::format(
      "\n| {:>9} | {:>9} | {:>7} | {:>10} | {:>9} | {:>9} | {:>7} | {:>7} | {:>5} | {:>7} |\n",
      "f_thread",
      "f_total",
      "reg",
      "mem_thread",
      "smem",
      "dram",
      "reuse",
      "grid",
      "block",
      "vthread");
  for (const Symbols& s : symbols(program.statements)) {
    text += fmt::format(
        "| {:>9.4g} | {:>9.4g} | {:>7.5g} | {:>10.4g} | {:>9.4g} | {:>9.4g} | {:>7.4g} | {:>7.6g} "
        "| "
        "{:>5.4g} | {:>7.3g} | {}\n",
        s.f_thread,
        s.f_total,
        s.reg,
        s.mem_thread,
        s.smem,
        s.dram,
        s.reuse,
        s.grid,
        s.block,
        s.vthread,
        program.buffers[static_cast<size_t>(s.buffer.value)]);
  }
  return text;
}

/// Holds the text that is shown for one line of a file: about a program, or why the line is none.
struct Shown {
  std::string text;
  bool program = false;
  std::string where = {}, task = {};   // a program's file and line, and workload
  std::optional<double> seconds = {};  // measured; nullopt: the trial failed
  std::optional<double> score = {};    // the draft's
};

/// Programs in the order of the measured time, failed trials last.
bool faster(const Shown& a, const Shown& b) {
  return a.seconds.value_or(kWorstCost) < b.seconds.value_or(kWorstCost);
}

/// Tells how the draft's favourite (with a score and a time) did, if all programs are of one task.
std::string favourite_text(std::span<const Shown> programs, double fastest_s) {
  const Shown* favourite = nullptr;
  for (const Shown& program : programs) {
    if (program.task != programs.front().task) return "";
    if (!program.seconds || !program.score) continue;
    if (favourite == nullptr || *program.score > *favourite->score) favourite = &program;
  }
  if (favourite == nullptr) return "";
  return fmt::format("; the one that the draft scores highest took {} ({}), {:.2f} x that",
                     time_text(favourite->seconds),
                     favourite->where,
                     *favourite->seconds / fastest_s);
}

/// "36 programs, 2 of them failed; the fastest took 12.3 us (r.json:7); ...".
std::string summary_text(std::span<const Shown> programs, int64_t others) {
  const auto failed = std::ranges::count_if(programs, [](const Shown& p) { return !p.seconds; });
  std::string text = fmt::format("{} programs, {} of them failed", programs.size(), failed);
  if (others > 0) text += fmt::format(", {} records are none", others);
  const Shown& fastest = *std::ranges::min_element(programs, faster);
  if (fastest.seconds)
    text += fmt::format("; the fastest took {} ({})", time_text(fastest.seconds), fastest.where) +
            favourite_text(programs, *fastest.seconds);
  return text + "\n";
}

Shown show(const std::string& path,
           const RecordLine& line,
           RecordedPrograms& programs,
           const Scoring& scoring,
           bool compat,
           bool as_json) {
  const std::string where = path + ":" + std::to_string(line.number);
  const Result<Record> record = parse_line(line.text);
  Result<RecordedProgram> program =
      record.ok() ? programs.read(*record) : Result<RecordedProgram>(record.error());
  if (!program.ok()) return {.text = where + ": " + program.error().message() + "\n"};
  Measured measured{*std::move(program), {}, measured_s(*record)};
  measured.draft = scoring.draft_score(measured.program, device_of_record(*record, path));
  return {.text = as_json ? json_line(measured, scoring, compat)
                          : table(where, measured, scoring, compat),
          .program = true,
          .where = where,
          .task = record->workload_key,
          .seconds = measured.seconds,
          .score = measured.draft.score};
}

// Lines that a thread reads at once.
constexpr int64_t kLinesAtOnce = 64;

struct Features {
  RecordedOptions recorded;
  std::string load_model;
  bool compat = false;  // no data flow on CPUs, as in the reference
  int64_t top = 0;      // the fastest so many; 0: all

  void add_to(CLI::App& app) {
    recorded.add_to(app);
    begin_group(app, OptionGroup::kModel);
    add_option(app, "--load-model FILE", load_model)
        .help("weights of a learned cost model: .pkl, .pth, safetensors, or xgboost's JSON");
    add_option(app, "--compat", compat).help("no data flow where the reference has none: on CPUs");
    begin_group(app, OptionGroup::kOutput);
    add_option(app, "--top N", top, 1).help("only the N that took the least time", "all");
  }

  Result<int> run(const Invocation& call) const {
    if (recorded.records.empty())
      return Error("features: no records are named; e.g. pruner features --records r.json");
    TRY_ASSIGN(const Scoring scoring, read_scoring(recorded.draft, load_model));
    ansor::WorkloadTable workloads;
    RecordedPrograms programs(workloads);
    TRY(add_dags(recorded, workloads, programs));
    TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(recorded.records));
    std::vector<Shown> found;  // with the texts of the --top ones
    int64_t others = 0;
    for (const RecordPath& file : files) {
      TRY_ASSIGN(std::vector<Shown> lines, read(file, programs, scoring, call.json));
      // Lines are printed in the order of the file, whatever thread read them.
      for (Shown& line : lines) {
        if (!line.program || top == 0)
          fmt::print(line.program ? stdout : stderr, "{}", std::exchange(line.text, ""));
        others += !line.program;
        if (line.program) found.push_back(std::move(line));
      }
      if (top > 0) forget_slow_texts(found);
    }
    if (found.empty()) return Error("features: none of ", others, " records is a program");
    if (top > 0)
      for (const Shown& program : found) fmt::print("{}", program.text);
    if (!call.json) fmt::print("{}", summary_text(found, others));
    return kDone;
  }

  void forget_slow_texts(std::vector<Shown>& found) const {
    std::ranges::sort(found, faster);
    for (size_t i = static_cast<size_t>(top); i < found.size(); ++i) found[i].text.clear();
  }

  /// Returns each line's text; nothing if the file was found in a folder and holds no records.
  Result<std::vector<Shown>> read(const RecordPath& file,
                                  RecordedPrograms& programs,
                                  const Scoring& scoring,
                                  bool as_json) const {
    TRY_ASSIGN(const UnpackedFile unpacked, read_unpacked(file.path));
    if (unpacked.damaged) return ends_early(file.path);
    const std::vector<RecordLine> lines = record_lines(unpacked.content);
    if (!file.named && !look_like_records(lines)) return std::vector<Shown>();
    const auto count = static_cast<int64_t>(lines.size());
    std::vector<Shown> all(lines.size());
    parallel_for(ceil_div(count, kLinesAtOnce), recorded.jobs, [&](int64_t part) {
      for (int64_t i = part * kLinesAtOnce; i < std::min(count, (part + 1) * kLinesAtOnce); ++i) {
        const auto at = static_cast<size_t>(i);
        all[at] = show(file.path, lines[at], programs, scoring, compat, as_json);
      }
    });
    return all;
  }
};

}  // namespace

RunCommand make_features(CLI::App& app) { return make_command<Features>(app); }

}  // namespace pruner
