#include "cli/stages.h"

#include <fmt/format.h>

#include "analysis/draft.h"
#include "codegen/codegen.h"
#include "lower/lower.h"

namespace pruner {

namespace {

/// A task half way to code.
struct Staged {
  const Task& task;
  Space space;
  Candidate candidate;

  Result<Program> program() const { return lower(space, candidate, "kernel"); }
};

Result<std::string> print_code(const Staged& s, CodeText form) {
  TRY_ASSIGN(const Program program, s.program());
  return compile_to_text(program, s.task.target, form);
}

// A stage by its name in --print.
struct StageRow {
  std::string_view name;
  Result<std::string> (*print)(const Staged& staged);
};

// Lists the stages in the order of the way to code, which the error keeps.
constexpr StageRow kStages[] = {
    {"dag", [](const Staged& s) -> Result<std::string> { return print(s.task.dag); }},
    {"sketches", [](const Staged& s) -> Result<std::string> { return print(s.space); }},
    {"candidate",
     [](const Staged& s) -> Result<std::string> { return print(s.space, s.candidate) + "\n"; }},
    {"nest",
     [](const Staged& s) -> Result<std::string> {
       return print(make_loop_nest(s.space, s.candidate));
     }},
    {"draft",
     [](const Staged& s) -> Result<std::string> {
       const Draft scored = draft(make_loop_nest(s.space, s.candidate), s.task.target);
       return print(scored, s.space[s.candidate.sketch].dag);
     }},
    {"program",
     [](const Staged& s) -> Result<std::string> {
       TRY_ASSIGN(const Program program, s.program());
       return print(program);
     }},
    {"emitted", [](const Staged& s) { return print_code(s, CodeText::kEmitted); }},
    {"llvm", [](const Staged& s) { return print_code(s, CodeText::kLlvm); }},
    {"asm", [](const Staged& s) { return print_code(s, CodeText::kAssembly); }},
    {"cuda", [](const Staged& s) { return print_code(s, CodeText::kCuda); }},
    {"opencl", [](const Staged& s) { return print_code(s, CodeText::kOpenCl); }},
    {"ptx", [](const Staged& s) { return print_code(s, CodeText::kPtx); }},
};

}  // namespace

Result<std::string> print_stage(std::string_view name,
                                const Task& task,
                                const ScheduleChoice& choice,
                                std::span<const std::string> forms) {
  constexpr std::string_view kAfter = "after-";
  if (name.starts_with(kAfter)) {
    const Space space = make_space(task, forms);
    return print_after(name.substr(kAfter.size()), space, chosen_schedule(task, space, choice));
  }
  std::string names;
  for (const StageRow& stage : kStages) {
    names.append(names.empty() ? "" : ", ").append(stage.name);
    if (stage.name != name) continue;
    Staged staged{task, make_space(task, forms), {}};
    staged.candidate = chosen_schedule(task, staged.space, choice);
    return stage.print(staged);
  }
  return Error("--print: \"", name, "\" is no stage; use one of ", names, ", after-PASS");
}

}  // namespace pruner
