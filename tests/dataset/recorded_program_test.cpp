#include "dataset/recorded_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "analysis/primitives.h"
#include "ansor/own_steps.h"
#include "golden.h"
#include "record/record_paths.h"
#include "support/gzip.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

constexpr const char* kKey = R"(["matmul_layer", 8, 8, 8])";

Result<Record> record_of(const std::string& key, const std::string& steps) {
  return parse_line(R"({"i": [[)" + print_json(Json(key)) +
                    R"(, "cuda", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "", 0, []], [[], )" +
                    steps + R"(]], "r": [[0.001], 0, 1.5, 1639461739], "v": "v0.6"})");
}

TEST(RecordedProgram, OfStepsHasTheStagesOfItsWorkload) {
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  const auto program = programs.read(*record_of(kKey, "[]"));
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ(program->statements.statements.size(), 2u);  // first value, update
  EXPECT_FALSE(program->is_gpu());
  EXPECT_TRUE(program->primitives.empty());
  const auto split = programs.read(*record_of(kKey, R"([["SP", 2, 0, 8, [2], 1]])"));
  ASSERT_TRUE(split.ok()) << split.error().message();
  EXPECT_EQ(split->primitives, (std::vector<int32_t>{4, 5, 2, 0, 8, 2, 1}));
}

TEST(RecordedProgram, SaysWhyThereIsNone) {
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  EXPECT_ERROR(programs.read(*record_of(R"(["nothing", 8])", "[]")), "unknown function");
  EXPECT_ERROR(programs.read(*record_of(kKey, R"([["SP", 9, 0, 8, [2], 1]])")), "step 0");
}

TEST(RecordedProgram, AnAddedTaskServesKeysThatNobodyKnows) {
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  programs.add_task(*parse_operator("matmul 8 8 8"));
  EXPECT_TRUE(programs.read(*record_of(R"(["mine", 8])", "[]")).ok());
}

TEST(RecordedProgram, OfOursIsItsCandidates) {
  const ComputeDag dag = *parse_operator("dense 16 32 64 +bias");
  const Task task = make_task(dag, *parse_target("llvm -mcpu=haswell --threads=2", 0), "dense");
  const Space space = make_space(task);
  Rng rng(4);
  const Candidate candidate = sample(space, rng);
  MeasureResult result;
  result.costs_s = {1e-3};
  const std::string line = print_line(make_record(task, space, candidate, result));
  ansor::WorkloadTable workloads;
  RecordedPrograms programs(workloads);
  EXPECT_ERROR(programs.read(*parse_line(line)), "whose DAG is not given");
  programs.add_task(dag);
  const auto program = programs.read(*parse_line(line));
  ASSERT_TRUE(program.ok()) << program.error().message();
  const Statements expected = make_statements(make_loop_nest(space, candidate));
  EXPECT_EQ(features(program->statements, program->flags),
            features(expected, task_flags(task.dag)));
  EXPECT_GT(program->cpu_draft_s, 0);
  EXPECT_EQ(program->primitives, primitives(ansor::steps_of(space, candidate)));
}

// Some public records of each file are read: all that replay have features that are numbers.
TEST(RecordedProgram, OfPublicRecordsHasFiniteFeatures) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no records under " << folder;
  ansor::WorkloadTable workloads;
  const std::string shared = PRUNER_SHARED_DATA;
  ASSERT_TRUE(workloads.add_file(shared + "/tenset-tasks/tasks.jsonl").ok());
  RecordedPrograms programs(workloads);
  int read = 0;
  const auto files = find_record_files({folder});
  ASSERT_TRUE(files.ok());
  for (const RecordPath& file : *files) {
    const auto unpacked = read_unpacked(file.path);
    ASSERT_TRUE(unpacked.ok());
    const std::vector<RecordLine> lines = record_lines(unpacked->content);
    for (size_t i = 0; i < lines.size(); i += 1 + lines.size() / 4) {
      const Result<Record> record = parse_line(lines[i].text);
      if (!record.ok()) continue;
      const auto program = programs.read(*record);
      if (!program.ok()) continue;
      const ProgramFeatures f = features(program->statements, program->flags);
      const auto finite = [](float x) { return std::isfinite(x); };
      EXPECT_TRUE(std::ranges::all_of(f.rows, finite)) << file.path << ":" << lines[i].number;
      EXPECT_TRUE(std::ranges::all_of(f.dataflow, finite)) << file.path << ":" << lines[i].number;
      EXPECT_GT(f.row_count(), 0u);
      ++read;
    }
  }
  EXPECT_GT(read, 300);
}

}  // namespace
}  // namespace pruner
