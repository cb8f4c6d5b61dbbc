// pruner features: what the analysis and the models see of recorded programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "analysis/primitives.h"
#include "analysis/symbols.h"
#include "cli/commands.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "dataset/record_device.h"
#include "model/learned_model.h"
#include "record/record_id.h"
#include "record/record_paths.h"
#include "support/gzip.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

/// Of the draft, and whose it is: "cpu", or a form.
struct DraftScore {
  std::optional<double> score;  // 1/ms; nullopt: there is no draft of such programs
  std::string form;
};

/// What scores a program, as the options say.
struct Scoring {
  std::optional<Gpu> gpu;  // nullopt: each record's own
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
  /// The score of --load-model; null without one, and where it gives no number.
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

/// What TLP sees: its rows, without those that fill up the matrix.
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

/// A program with what was measured of it.
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

/// What is shown of one line of a file: of a program, or why it is none.
struct Shown {
  std::string text;
  bool program = false;
};

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
  if (!program.ok()) return {where + ": " + program.error().message() + "\n"};
  Measured measured{*std::move(program), {}, measured_s(*record)};
  measured.draft = scoring.draft_score(measured.program, device_of_record(*record, path));
  return {as_json ? json_line(measured, scoring, compat) : table(where, measured, scoring, compat),
          true};
}

// Lines that a thread reads at once.
constexpr int64_t kLinesAtOnce = 64;

struct Features {
  RecordedOptions recorded;
  std::string load_model;
  bool compat = false;  // as the reference has it on CPUs: no data flow

  void add_to(CLI::App& app) {
    recorded.add_to(app);
    add_option(app, "--load-model", load_model)
        .help("weights of a learned cost model: .pkl, .pth, safetensors, or xgboost's JSON");
    add_option(app, "--compat", compat).help("no data flow where the reference has none: on CPUs");
  }

  Result<int> run(const Invocation& call) const {
    if (recorded.records.empty())
      return Error("features: no records are named; e.g. pruner features --records r.json");
    TRY_ASSIGN(const Scoring scoring, read_scoring(recorded.draft, load_model));
    ansor::WorkloadTable workloads;
    RecordedPrograms programs(workloads);
    TRY(add_dags(recorded, workloads, programs));
    TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files(recorded.records));
    const int jobs = recorded.jobs;
    int64_t shown = 0, bad = 0;
    for (const RecordPath& file : files) {
      TRY_ASSIGN(const UnpackedFile unpacked, read_unpacked(file.path));
      if (unpacked.damaged) return ends_early(file.path);
      const std::vector<RecordLine> lines = record_lines(unpacked.content);
      if (!file.named && !look_like_records(lines)) continue;
      const int64_t count = static_cast<int64_t>(lines.size());
      std::vector<Shown> all(lines.size());
      parallel_for((count + kLinesAtOnce - 1) / kLinesAtOnce, jobs, [&](int64_t part) {
        for (int64_t i = part * kLinesAtOnce; i < std::min(count, (part + 1) * kLinesAtOnce); ++i) {
          const RecordLine& line = lines[static_cast<size_t>(i)];
          all[static_cast<size_t>(i)] = show(file.path, line, programs, scoring, compat, call.json);
        }
      });
      for (const Shown& line : all) {
        // In the order of the file, whatever thread read them.
        fmt::print(line.program ? stdout : stderr, "{}", line.text);
        ++(line.program ? shown : bad);
      }
    }
    if (shown == 0) return Error("features: none of ", bad, " records is a program");
    return kDone;
  }
};

}  // namespace

RunCommand make_features(CLI::App& app) { return make_command<Features>(app); }

}  // namespace pruner
