// How well each form of the draft picks among measured programs: draft_bench [--without PENALTY]
// FOLDER [DAGS...]
//
// FOLDER holds Ansor's records of GPUs, whose path names the device, or what `pruner dataset
// collect
// --op` measured on a CPU. Of a GPU's contraction of at least 500 programs that ran, a form keeps
// the 16 that it scores best; of a CPU's operator, the draft keeps an eighth. Best-1 is the best
// latency of all by the best of those kept; that of as many drawn at random, expected, stands
// beside it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/draft_form.h"
#include "dataset/recorded_program.h"
#include "record/record_paths.h"
#include "space/access.h"
#include "support/gzip.h"
#include "support/parallel_for.h"
#include "target/device_file.h"
#include "tensor/operators.h"
#include "tune/recorded.h"

namespace pruner {
namespace {

constexpr DraftForm kForms[] = {DraftForm::kRelease, DraftForm::kPaper, DraftForm::kOurs};
const std::vector<std::string> kGpuForms = {"release", "paper", "ours"}, kCpuForms = {"draft"};

struct Program {
  double cost_s = 0;
  std::vector<double> scores;  // by form
};

/// A GPU whose numbers are known, or none.
struct Device {
  std::string name;
  std::optional<Gpu> gpu;
};

/// One task on one device.
struct Set {
  std::string device, name;
  std::vector<Program> programs;

  bool is_cpu() const { return device == "cpu"; }
  size_t kept() const { return is_cpu() ? programs.size() / 8 : 16; }
  bool is_large() const { return programs.size() >= (is_cpu() ? 200 : 500); }
  const std::vector<std::string>& forms() const { return is_cpu() ? kCpuForms : kGpuForms; }
};

double best_cost_s(const std::vector<Program>& programs) {
  return std::ranges::min_element(programs, {}, &Program::cost_s)->cost_s;
}

/// Of those drawn at random: each is the best of its draw as often as the others are slower.
double random_best_1(std::vector<Program> programs, size_t kept) {
  std::ranges::sort(programs, {}, &Program::cost_s);
  const double best = programs[0].cost_s, count = static_cast<double>(programs.size());
  double expected = 0, none_before = 1;  // chance that no faster one is drawn
  for (size_t i = 0; i + kept <= programs.size() || none_before > 1e-12; ++i) {
    if (i >= programs.size()) break;
    const double left = count - static_cast<double>(i);
    const double drawn = std::min(1.0, static_cast<double>(kept) / left);
    expected += none_before * drawn * best / programs[i].cost_s;
    none_before *= 1 - drawn;
  }
  return expected;
}

double best_1(std::vector<Program> programs, size_t kept, size_t form) {
  const double best = best_cost_s(programs);
  std::ranges::stable_sort(
      programs, std::greater<>(), [&](const Program& p) { return p.scores[form]; });
  programs.resize(std::min(programs.size(), kept));
  return best / best_cost_s(programs);
}

std::string device_of(const std::string& path) {
  for (const char* name : {"k80", "v100", "a100", "mi50"}) {
    if (path.find(name) != std::string::npos) return name == std::string("a100") ? "a100_40" : name;
  }
  return "";
}

bool is_contraction(const ComputeDag& dag) {
  for (int s = 0; s < dag.size(); ++s) {
    if (dag[StageId{s}].is_reduction() && needs_multi_level_tiling(dag, StageId{s})) return true;
  }
  return false;
}

class Sets {
 public:
  Sets(ansor::WorkloadTable& workloads, Penalties penalties)
      : workloads_(workloads), penalties_(penalties) {}

  Result<Unit> add_file(const std::string& path) {
    const std::string device = device_of(path);
    const Result<Target> known = read_device(device);
    const Device of{device, known.ok() ? std::optional<Gpu>(known->gpu) : std::nullopt};
    TRY_ASSIGN(const UnpackedFile unpacked, read_unpacked(path));
    const std::vector<RecordLine> lines = record_lines(unpacked.content);
    std::vector<std::pair<Set, Program>> read(lines.size());
    constexpr int64_t kPart = 64;
    const auto parts = static_cast<int64_t>(lines.size() + kPart - 1) / kPart;
    parallel_for(parts, 2, [&](int64_t part) {
      RecordedPrograms programs(workloads_, penalties_);
      for (int64_t i = part * kPart;
           i < std::min<int64_t>((part + 1) * kPart, static_cast<int64_t>(lines.size()));
           ++i)
        read[static_cast<size_t>(i)] = program_of(lines[static_cast<size_t>(i)], programs, of);
    });
    for (auto& [task, program] : read) {
      if (task.name.empty()) continue;
      Set& set = sets_.try_emplace({task.device, task.name}, task).first->second;
      set.programs.push_back(std::move(program));
    }
    return Unit{};
  }

  const std::map<std::pair<std::string, std::string>, Set>& all() const { return sets_; }

 private:
  // An empty name: failed, no contraction of a known GPU, chosen by a model, or no program.
  std::pair<Set, Program> program_of(const RecordLine& line,
                                     RecordedPrograms& programs,
                                     const Device& device) {
    const Result<Record> record = parse_line(line.text);
    if (!record.ok() || !record->result.ok()) return {};
    if (record->origin == "collect") return cpu_program(*record, programs);
    return device.gpu ? gpu_program(*record, programs, device) : std::pair<Set, Program>();
  }

  static std::pair<Set, Program> cpu_program(const Record& record, RecordedPrograms& programs) {
    const Result<ComputeDag> dag = parse_operator(record.task_name);
    if (dag.ok()) programs.add_task(*dag);
    const Result<RecordedProgram> program = programs.read(record);
    if (!program.ok()) fmt::print(stderr, "{}\n", program.error().message());
    if (!program.ok() || program->cpu_draft_s <= 0) return {};
    return {{"cpu", record.task_name, {}}, {recorded_cost_s(record), {1 / program->cpu_draft_s}}};
  }

  std::pair<Set, Program> gpu_program(const Record& record,
                                      RecordedPrograms& programs,
                                      const Device& device) {
    const ansor::WorkloadEntry& workload = workloads_.find(record.workload_key);
    if (workload.variants.empty() || !is_contraction(workload.variants[0]->dag())) return {};
    const Result<RecordedProgram> program = programs.read(record);
    if (!program.ok() || !program->is_gpu()) {
      if (!program.ok()) fmt::print(stderr, "{}\n", program.error().message());
      return {};
    }
    Program made{recorded_cost_s(record), {}};
    for (const DraftForm form : kForms)
      made.scores.push_back(draft_score(program->statements, *device.gpu, form, penalties_));
    return {{device.name, ansor::canonical_key(record.workload_key), {}}, made};
  }

  ansor::WorkloadTable& workloads_;
  Penalties penalties_;
  std::map<std::pair<std::string, std::string>, Set> sets_;
};

/// The mean of Best-1 over tasks.
struct Sum {
  const std::vector<std::string>* names;
  int tasks = 0;
  double random = 0;
  std::vector<double> forms = std::vector<double>(names->size());

  void add(double by_chance, const std::vector<double>& by_form) {
    ++tasks;
    random += by_chance;
    for (size_t f = 0; f < forms.size(); ++f) forms[f] += by_form[f];
  }
  void print(const std::string& name) const {
    fmt::print("{:<8} {:>5} tasks  random {:.4f}", name, tasks, random / tasks);
    for (size_t f = 0; f < forms.size(); ++f) {
      const double gap = 1 - random / tasks, left = 1 - forms[f] / tasks;
      fmt::print("  {} {:.4f} ({:+.0f}% of the gap)",
                 (*names)[f],
                 forms[f] / tasks,
                 100 * (1 - left / gap));
    }
    fmt::print("\n");
  }
};

Result<Unit> run(std::vector<std::string> args) {
  Penalties penalties;
  if (args.size() > 2 && args[0] == "--without") {
    const std::optional<Penalty> penalty = parse_penalty(args[1]);
    if (!penalty) return Error("--without: no penalty is named ", args[1]);
    penalties = penalties.without(*penalty);
    args.erase(args.begin(), args.begin() + 2);
  }
  ansor::WorkloadTable workloads;
  for (size_t i = 1; i < args.size(); ++i) TRY(workloads.add_file(args[i]));
  TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files({args[0]}));
  Sets sets(workloads, penalties);
  for (const RecordPath& file : files) TRY(sets.add_file(file.path));
  std::map<std::string, Sum> sums;
  for (const auto& [key, set] : sets.all()) {
    if (!set.is_large()) continue;
    const double by_chance = random_best_1(set.programs, set.kept());
    fmt::print("{:<8} {:>5} random {:.3f}", set.device, set.programs.size(), by_chance);
    std::vector<double> by_form;
    for (const std::string& form : set.forms()) {
      by_form.push_back(best_1(set.programs, set.kept(), by_form.size()));
      fmt::print("  {} {:.3f}", form, by_form.back());
    }
    fmt::print("  {}\n", set.name);
    sums.try_emplace(set.device, Sum{&set.forms()}).first->second.add(by_chance, by_form);
    if (!set.is_cpu())
      sums.try_emplace("all", Sum{&kGpuForms}).first->second.add(by_chance, by_form);
  }
  for (const auto& [device, sum] : sums) sum.print(device);
  return Unit{};
}

}  // namespace
}  // namespace pruner

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "draft_bench [--without PENALTY] FOLDER [DAGS...]\n");
    return 2;
  }
  const auto done = pruner::run(std::vector<std::string>(argv + 1, argv + argc));
  if (!done.ok()) fmt::print(stderr, "{}\n", done.error().message());
  return done.ok() ? 0 : 2;
}
