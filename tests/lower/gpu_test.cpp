// Every operator x seeded GPU candidates: the loop IR computes what the reference interpreter does,
// without a race, a divergent barrier or an access out of bounds. PRUNER_CANDIDATES=N draws N
// of each (default 12).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "golden.h"
#include "lower/lower.h"
#include "lower/rewrite.h"
#include "space/gpu/attention_task.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/held_task.h"
#include "tensor/dag_builder.h"
#include "tensor/interpreter.h"
#include "tensor/operator_dags.h"
#include "tensor/pack.h"

namespace pruner {
namespace {

// Draws candidates of a task and holds each against the reference interpreter; `set` may change the
// drawn inputs.
void expect_right(const Task& task,
                  const Space& space,
                  int candidates,
                  const std::function<void(std::vector<Tensor>&)>& set = {},
                  double least_tolerance = 0) {
  Rng rng(17);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  if (set) set(inputs);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (int i = 0; i < candidates; ++i) {
    const Candidate candidate = sample(space, rng);
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Result<Unit> valid = verify(*program);
    ASSERT_TRUE(valid.ok()) << valid.error().message() << "\n" << what << "\n" << print(*program);
    std::vector<Tensor> args;
    for (size_t a = 0; a < inputs.size(); ++a)
      args.push_back(pack(inputs[a], (*program)[program->args[a]].pack));
    for (const Tensor& output : expected) {
      Tensor& arg = args.emplace_back(output.dtype(), output.shape());
      for (int64_t e = 0; e < arg.num_elements(); ++e)
        arg.set(e, std::numeric_limits<double>::quiet_NaN());
    }
    const Result<Unit> ran = interpret(*program, args);
    ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << what << "\n" << print(*program);
    for (size_t o = 0; o < expected.size(); ++o) {
      const double tolerance = std::max(least_tolerance, tolerance_of(expected[o].dtype()));
      for (int64_t e = 0; e < expected[o].num_elements(); ++e) {
        if (std::isnan(expected[o].get(e)) && std::isnan(args[inputs.size() + o].get(e))) continue;
        ASSERT_NEAR(args[inputs.size() + o].get(e),
                    expected[o].get(e),
                    tolerance * (1 + std::abs(expected[o].get(e))))
            << "element " << e << "\n"
            << what << "\n"
            << print(*program);
      }
    }
  }
}

void expect_right(const Task& task, int candidates) {
  expect_right(task, make_space(task), candidates);
}

void expect_program(const std::string& golden,
                    const std::string& op,
                    int sketch,
                    const Decided& values) {
  const Space space = make_space(gpu_task(op));
  const Result<Program> program = lower(space, decided(space, sketch, values), "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_GOLDEN(golden, print(*program));
}

TEST(LowerGpu, PrintsAsItself) {
  expect_program("lower/gpu_matmul.txt", "matmul 32 48 64", 0, kProductTile);
  expect_program("lower/gpu_softmax.txt", "softmax 6 64", 3, {{".threads", 16}, {".rows", 2}});
}

TEST(LowerGpu, PrintsAttention) {
  const Task task = warp_task({"sm_80", "attention 1 2 32 64 16 causal=1 bits=16", ""});
  const Space space = warp_space(task, "attention-tile");
  const Candidate candidate =
      decided(space, space.drawn[0].value, {{".warps", 2}, {".steps", 2}, {".buffers", 2}});
  const Result<Program> program = lower(space, candidate, "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_GOLDEN("lower/gpu_attention.txt", print(*program));
}

class WinogradOnGpu : public testing::TestWithParam<const char*> {};
class EveryGpuOperator : public testing::TestWithParam<const char*> {};

TEST_P(EveryGpuOperator, ComputesWhatTheInterpreterDoes) {
  expect_right(gpu_task(GetParam()), candidates_each(12));
}

TEST(GpuProgram, MultipliesMatricesByWarps) {
  for (const WarpOperator& row : kWarpOperators) {
    SCOPED_TRACE(std::string(row.arch) + " " + row.op);
    const Task task = warp_task(row);
    expect_right(task, warp_space(task, row.structure), candidates_each(12));
  }
}

// Rows that vectors divide and others, some longer than the registers of their threads; the threads
// of a row are a part of a warp, a warp, and several.
TEST(GpuProgram, ReducesRowsInRegisters) {
  const auto has = [](const Program& program, const auto& accepts) {
    bool found = false;
    walk(program.body, [&](const StmtNode& s) { found = found || accepts(s); });
    return found;
  };
  const auto loads_vectors = [](const StmtNode& s) {
    const For* loop = std::get_if<For>(&s.op);
    const Store* store = loop != nullptr && loop->kind == LoopKind::kVectorize
                             ? std::get_if<Store>(&loop->body->op)
                             : nullptr;
    return store != nullptr && as<Load>(store->value) != nullptr;
  };
  const auto folds = [](const StmtNode& s) { return std::holds_alternative<LaneFold>(s.op); };
  int vectors = 0, all = 0;
  for (const char* op : {"softmax 7 256",
                         "softmax 3 1000",
                         "layernorm 5 512",
                         "layernorm 2 768",
                         "layernorm 3 37",
                         "rms_norm 9 128",
                         "softmax 2 6000"}) {
    SCOPED_TRACE(op);
    const Task task = operator_task(op, *parse_target("cuda --arch=sm_80", 0));
    Space space = make_space(task);
    std::erase_if(space.drawn,
                  [&](SketchId id) { return space[id].name.find("+rows(") == std::string::npos; });
    ASSERT_FALSE(space.drawn.empty());
    expect_right(task, space, candidates_each(12));
    Rng rng(3);
    for (int i = 0; i < 10; ++i, ++all) {
      const Result<Program> program = lower(space, sample(space, rng), "k");
      ASSERT_TRUE(program.ok()) << program.error().message();
      EXPECT_TRUE(has(*program, folds));
      vectors += has(*program, loads_vectors) ? 1 : 0;
    }
  }
  EXPECT_GT(vectors, 0.3 * all);
}

// Eight elements of a thread are two vectors of four floats, or one of eight halves; an odd row has
// none.
TEST(GpuProgram, TakesNeighboursAsVectors) {
  const auto vectors = [](const char* op, int elements) {
    const Task task = operator_task(op, *parse_target("cuda --arch=sm_80", 0));
    const Space space = make_space(task);
    const Result<Program> program =
        lower(space, decided(space, 0, {{".threads", 32}, {".elements", elements}}), "k");
    EXPECT_TRUE(program.ok()) << program.error().message();
    std::vector<int> lanes;
    walk(program->body, [&](const StmtNode& s) {
      const For* loop = std::get_if<For>(&s.op);
      if (loop != nullptr && loop->kind == LoopKind::kVectorize) lanes.push_back(loop->lanes);
    });
    expect_right(task, candidates_each(6));
    return lanes;
  };
  EXPECT_EQ(vectors("relu 6 64", 8), std::vector{4});
  EXPECT_EQ(vectors("relu 6 64", 2), std::vector{2});
  EXPECT_EQ(vectors("relu 6 64 +f16", 8), std::vector{8});
  EXPECT_EQ(vectors("relu 6 64", 1), std::vector<int>());
  EXPECT_EQ(vectors("relu 64 33", 8), std::vector<int>());
}

// Norms and depthwise convolutions in the kernel of the product that reads them, and norms in that
// of the product they are added to.
TEST(GpuProgram, MakesOperandsOfItsOwn) {
  Rng rng(31);
  for (const WarpDevice& device : kHeldDevices) {
    for (int i = 0; i < candidates_each(12); ++i) {
      for (const HeldKind kind : kHeldKinds) {
        const Task task = drawn_held(rng, kind, device.arch, device.fewest);
        SCOPED_TRACE(std::string(device.arch) + "\n" + print(task.dag));
        expect_right(task, held_space(task, device.structure), 2, {}, kHeldTolerance);
      }
    }
  }
}

TEST(GpuProgram, AttendsInOneKernel) {
  Rng rng(23);
  for (const WarpDevice& device : kAttentionDevices) {
    for (int i = 0; i < candidates_each(12); ++i) {
      const Task task = drawn_attention(rng, device.arch, device.fewest);
      SCOPED_TRACE(print(task.dag));
      expect_right(task, warp_space(task, device.structure), 2);
    }
  }
}

// Chunks of which a query sees no key come before and behind those that it sees; some queries see
// none at all, whose results are no numbers, or zeros where the network asks for it.
TEST(GpuProgram, AttendsWhereChunksAreHidden) {
  for (const bool nan_is_zero : {false, true}) {
    for (const double hidden : {-std::numeric_limits<double>::infinity(), -1e9}) {
      DagBuilder b;
      AttentionParams p{.heads = 2, .hidden = hidden, .nan_is_zero = nan_is_zero};
      AttentionInputs in;
      in.query = b.placeholder("query", {2, 2, 36, 16}, DType::kFloat16);
      in.key = b.placeholder("key", {2, 2, 90, 16}, DType::kFloat16);
      in.value = b.placeholder("value", {2, 2, 90, 16}, DType::kFloat16);
      in.visible = b.placeholder("visible", {2, 1, 36, 90}, DType::kBool);
      const StageId out = add_attention(b, in, p);
      const ComputeDag dag = b.finish({{out}});
      for (const WarpDevice& device : kAttentionDevices) {
        const std::string target = std::string("cuda --arch=") + device.arch;
        const Task task = make_task(dag, *parse_target(target, 0), "attention");
        expect_right(task, warp_space(task, device.structure), 8, [](std::vector<Tensor>& inputs) {
          Tensor& visible = inputs[3];
          for (int64_t e = 0; e < visible.num_elements(); ++e) {
            const int64_t key = e % 90, query = e / 90 % 36;
            visible.set(e, query > 3 && key >= 40 && key < 40 + query ? 1 : 0);
          }
        });
      }
    }
  }
}

// Vectors of eight, of four, and none.
TEST(GpuProgram, WritesHalvesByWarps) {
  for (const char* op : {"dense 61 48 90 bits=16 +bias +relu",
                         "dense 40 44 64 bits=16 +bias",
                         "conv2d 1 21 7 7 16 3 3 padding=1 bits=16 +bias +relu"}) {
    SCOPED_TRACE(op);
    const Task task = with_half_result(gpu_task(op));
    const bool conv = std::string_view(op).starts_with("conv2d");
    expect_right(task, warp_space(task, conv ? kHalfConv : "m16n8k16-tile"), candidates_each(12));
  }
}

// The runs are as long as rows and longer, and no multiple of a vector.
TEST(GpuProgram, FetchesInRuns) {
  for (const char* op : {"matmul 20 28 24",
                         "matmul 33 49 100 +bias",
                         "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
                         "batch_matmul 3 9 20 17 bits=16"}) {
    const Task task = gpu_task(op);
    expect_right(task, space_of_runs(task), candidates_each(12));
  }
}

// Operands of float16 lie so in shared memory; their products are added up in float32.
TEST(GpuProgram, AddsProductsOfHalvesInSingle) {
  for (const char* op : {"matmul 20 28 24 bits=16",
                         "dense 5 19 24 bits=16 +bias +relu",
                         "batch_matmul 3 9 20 17 bits=16",
                         "conv2d 1 16 7 7 8 3 3 padding=1 bits=16 +bias +relu"}) {
    expect_right(gpu_task(op), 8);
  }
}

TEST_P(WinogradOnGpu, ComputesWhatTheInterpreterDoes) {
  const Task task = gpu_task(GetParam());
  for (const char* form : {"winograd-2x2", "winograd-4x4"}) {
    SCOPED_TRACE(form);
    const Space space = make_space(task, std::vector<std::string>{form});
    ASSERT_EQ(space[space.drawn.front()].form, form);
    expect_right(task, space, candidates_each(6));
  }
}

INSTANTIATE_TEST_SUITE_P(Convolutions, WinogradOnGpu, testing::ValuesIn(kWinogradOperators));

// A convolution of a convolution: the transform of the first's output is no part of the second's.
TEST(GpuProgram, ConvolvesTwiceByWinogradsForms) {
  ComputeDag dag = gpu_task("conv2d 1 8 7 9 8 3 3 padding=1").dag;
  const int first = dag.size();
  const StageId data = dag.inputs()[0], out = dag.outputs()[0];
  dag[out].output = false;
  for (int s = 0; s < first; ++s) {
    if (StageId{s} == data) continue;
    Stage again = dag[StageId{s}];
    again.name += "2";
    again.output = StageId{s} == out;
    const auto moved = [&](StageId id) {
      return id == data ? out : StageId{id.value + first - (id > data ? 1 : 0)};
    };
    for (StageId& weight : again.layout_free) weight = moved(weight);
    if (again.body)
      again.body = rewrite(again.body, [&](const Expr& e) {
        const Load* read = as<Load>(e);
        return read ? load(moved(read->tensor), read->indices, e->dtype) : Expr();
      });
    dag.stages.push_back(std::move(again));
  }
  const Task task = make_task(std::move(dag), gpu_target(), "twice");
  for (const char* form : {"winograd-2x2", "winograd-4x4"})
    expect_right(task, make_space(task, std::vector<std::string>{form}), candidates_each(6));
}

// Two contractions of one reader, and of one operand.
TEST(GpuProgram, AddsTwoProducts) {
  DagBuilder b;
  const StageId a = b.placeholder("A", {20, 24});
  const StageId left = add_matmul(b, a, b.placeholder("B", {24, 28}));
  const StageId right = add_matmul(b, a, b.placeholder("C", {24, 28}));
  expect_right(make_task(b.finish({add_add(b, left, right)}), gpu_target(), "two"), 8);
}

// A stage without axes between others.
TEST(GpuProgram, ReducesToAScalarAmidOthers) {
  DagBuilder b;
  const StageId x = b.placeholder("A", {3, 6, 6});
  const StageId sum = add_reduce(b, x, std::vector<int64_t>{0, 1, 2}, false, ReduceKind::kMean);
  const StageId out = add_elementwise(
      b, "T_exp", {{sum}}, [](std::span<const Expr> v) { return call(Intrinsic::kExp, {v[0]}); });
  expect_right(make_task(b.finish({{out}}), gpu_target(), "scalar"), 8);
}

INSTANTIATE_TEST_SUITE_P(GpuCandidates, EveryGpuOperator, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
