// layer: dataset
// Lines of records -> records, and the programs that they are of.
#include "dataset/recorded_program.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/json_mutator.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

const char* const kOperator = "dense 16 32 64 +bias";

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> lines;
  for (const char* target : {"llvm -mcpu=haswell --threads=2", "cuda --arch=sm_80"}) {
    const Task task = operator_task(kOperator, *parse_target(target, 0));
    const Space space = make_space(task);
    Rng rng(4);
    MeasureResult result;
    result.costs_s = {1e-3};
    lines.push_back(print_line(make_record(task, space, sample(space, rng), result)));
  }
  for (const char* steps :
       {R"([["SP", 2, 0, 8, [2], 1], ["FU", 2, [0, 1]], ["AN", 2, 0, 3]])",
        R"([["CHW", 2, "local"], ["SP", 2, 0, 8, [1, 2, 2, 1], 1], ["FSP", 3, 0, 1, 2]])",
        R"([["CHR", 1, "shared", [2]], ["CA", 2, 3, 0], ["PR", 3, 0, "auto_unroll_max_step$16"]])",
        R"([["SP", 2, 2, 8, [4], 1], ["RF", 2, 3, 2], ["RE", 2, [0, 1, 2]]])"}) {
    lines.push_back(
        R"({"i": [["[\"matmul_layer\", 8, 8, 8]", "cuda", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], )"
        R"("", 0, []], [[], )" +
        std::string(steps) + R"(]], "r": [[0.001], 0, 1.5, 1639461739], "v": "v0.6"})");
  }
  return lines;
}

bool read_input(std::string_view bytes) {
  static ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  programs.add_task(operator_task(kOperator).dag);
  bool read = false;
  for (const RecordLine& line : record_lines(bytes)) {
    const Result<Record> record = parse_line(line.text);
    if (!record.ok()) continue;
    read = true;
    const std::string printed = print_line(*record);
    const Result<Record> again = parse_line(printed);
    CHECK(again.ok() && print_line(*again) == printed) << printed;
    (void)programs.read(*record);
  }
  return read;
}

}  // namespace pruner
