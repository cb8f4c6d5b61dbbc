// How well each form of the draft picks among measured programs: draft_bench FOLDER [DAGS...]
//
// FOLDER holds Ansor's records of GPUs, whose path names the device. For each contraction of at
// least 500 programs that ran, a form keeps the 16 that it scores best. Best-1 is the best latency
// of all by the best of those kept; that of 16 drawn at random, expected, stands beside it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/draft_form.h"
#include "dataset/recorded_program.h"
#include "record/record_paths.h"
#include "space/access.h"
#include "support/gzip.h"
#include "support/parallel_for.h"
#include "target/device_file.h"
#include "tune/recorded.h"

namespace pruner {
namespace {

constexpr size_t kKept = 16, kFewestPrograms = 500;
constexpr DraftForm kForms[] = {DraftForm::kRelease, DraftForm::kPaper, DraftForm::kOurs};
constexpr size_t kFormCount = std::size(kForms);

struct Program {
  double cost_s = 0;
  std::array<double, kFormCount> scores{};
};

/// One task on one device.
struct Set {
  std::string device, name;
  std::vector<Program> programs;
};

double best_cost_s(const std::vector<Program>& programs) {
  return std::ranges::min_element(programs, {}, &Program::cost_s)->cost_s;
}

/// Of 16 drawn at random: each is the best of its draw as often as the others are slower.
double random_best_1(std::vector<Program> programs) {
  std::ranges::sort(programs, {}, &Program::cost_s);
  const double best = programs[0].cost_s, count = static_cast<double>(programs.size());
  double expected = 0, none_before = 1;  // chance that no faster one is drawn
  for (size_t i = 0; i + kKept <= programs.size() || none_before > 1e-12; ++i) {
    if (i >= programs.size()) break;
    const double left = count - static_cast<double>(i);
    const double drawn = std::min(1.0, static_cast<double>(kKept) / left);
    expected += none_before * drawn * best / programs[i].cost_s;
    none_before *= 1 - drawn;
  }
  return expected;
}

double best_1(std::vector<Program> programs, size_t form) {
  const double best = best_cost_s(programs);
  std::ranges::stable_sort(
      programs, std::greater<>(), [&](const Program& p) { return p.scores[form]; });
  programs.resize(std::min(programs.size(), kKept));
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
  explicit Sets(ansor::WorkloadTable& workloads) : workloads_(workloads) {}

  Result<Unit> add_file(const std::string& path) {
    const std::string device = device_of(path);
    const Result<Target> target = read_device(device);
    if (!target.ok()) return Unit{};
    TRY_ASSIGN(const UnpackedFile unpacked, read_unpacked(path));
    const std::vector<RecordLine> lines = record_lines(unpacked.content);
    std::vector<std::pair<std::string, Program>> read(lines.size());
    constexpr int64_t kPart = 64;
    const auto parts = static_cast<int64_t>(lines.size() + kPart - 1) / kPart;
    parallel_for(parts, 2, [&](int64_t part) {
      RecordedPrograms programs(workloads_);
      for (int64_t i = part * kPart;
           i < std::min<int64_t>((part + 1) * kPart, static_cast<int64_t>(lines.size()));
           ++i)
        read[static_cast<size_t>(i)] = program_of(lines[static_cast<size_t>(i)], programs, *target);
    });
    for (auto& [key, program] : read) {
      if (key.empty()) continue;
      Set& set = sets_[{device, key}];
      set.device = device;
      set.name = key;
      set.programs.push_back(program);
    }
    return Unit{};
  }

  const std::map<std::pair<std::string, std::string>, Set>& all() const { return sets_; }

 private:
  // An empty key: failed, no contraction, seen before, or no program.
  std::pair<std::string, Program> program_of(const RecordLine& line,
                                             RecordedPrograms& programs,
                                             const Target& target) {
    const Result<Record> record = parse_line(line.text);
    if (!record.ok() || !record->result.ok()) return {};
    const ansor::WorkloadEntry& workload = workloads_.find(record->workload_key);
    if (workload.variants.empty() || !is_contraction(workload.variants[0]->dag())) return {};
    const Result<RecordedProgram> program = programs.read(*record);
    if (!program.ok() || !program->is_gpu()) {
      if (!program.ok()) fmt::print(stderr, "{}\n", program.error().message());
      return {};
    }
    Program made;
    made.cost_s = recorded_cost_s(*record);
    for (size_t f = 0; f < kFormCount; ++f)
      made.scores[f] = draft_score(program->statements, target.gpu, kForms[f]);
    return {ansor::canonical_key(record->workload_key), made};
  }

  ansor::WorkloadTable& workloads_;
  std::map<std::pair<std::string, std::string>, Set> sets_;
};

struct Sum {
  int tasks = 0;
  double random = 0;
  std::array<double, kFormCount> forms{};

  void add(double by_chance, const std::array<double, kFormCount>& by_form) {
    ++tasks;
    random += by_chance;
    for (size_t f = 0; f < kFormCount; ++f) forms[f] += by_form[f];
  }
  void print(const std::string& name) const {
    fmt::print("{:<8} {:>5} tasks  random {:.4f}", name, tasks, random / tasks);
    for (size_t f = 0; f < kFormCount; ++f) {
      const double gap = 1 - random / tasks, left = 1 - forms[f] / tasks;
      static constexpr const char* kNames[] = {"release", "paper", "ours"};
      fmt::print(
          "  {} {:.4f} ({:+.0f}% of the gap)", kNames[f], forms[f] / tasks, 100 * (1 - left / gap));
    }
    fmt::print("\n");
  }
};

Result<Unit> run(const std::vector<std::string>& args) {
  ansor::WorkloadTable workloads;
  for (size_t i = 1; i < args.size(); ++i) TRY(workloads.add_file(args[i]));
  TRY_ASSIGN(const std::vector<RecordPath> files, find_record_files({args[0]}));
  Sets sets(workloads);
  for (const RecordPath& file : files) TRY(sets.add_file(file.path));
  std::map<std::string, Sum> sums;
  for (const auto& [key, set] : sets.all()) {
    if (set.programs.size() < kFewestPrograms) continue;
    std::array<double, kFormCount> by_form{};
    for (size_t f = 0; f < kFormCount; ++f) by_form[f] = best_1(set.programs, f);
    const double by_chance = random_best_1(set.programs);
    fmt::print("{:<8} {:>5} random {:.3f}  release {:.3f}  paper {:.3f}  ours {:.3f}  {}\n",
               set.device,
               set.programs.size(),
               by_chance,
               by_form[0],
               by_form[1],
               by_form[2],
               set.name);
    sums[set.device].add(by_chance, by_form);
    sums["all"].add(by_chance, by_form);
  }
  for (const auto& [device, sum] : sums) sum.print(device);
  return Unit{};
}

}  // namespace
}  // namespace pruner

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "draft_bench FOLDER [DAGS...]\n");
    return 2;
  }
  const auto done = pruner::run(std::vector<std::string>(argv + 1, argv + argc));
  if (!done.ok()) fmt::print(stderr, "{}\n", done.error().message());
  return done.ok() ? 0 : 2;
}
