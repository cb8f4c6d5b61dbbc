// label: slow
// Candidates of every kind of operator through NVRTC: what the sketches make is C that compiles,
// takes what it says, and about the registers that are foreseen. PRUNER_CANDIDATES=N draws N
// candidates of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "analysis/draft.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cubin.h"
#include "codegen/cuda/nvrtc_fixture.h"
#include "codegen/launch.h"
#include "lower/lower.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/held_task.h"
#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

class CudaCandidates : public WithNvrtc, public testing::WithParamInterface<const char*> {};
using CudaWarpCandidates = WithNvrtc;
using CudaWinograd = WithNvrtc;
using CudaRegisters = WithNvrtc;

TEST_P(CudaCandidates, Compile) {
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const Task task = operator_task(GetParam(), target);
  const Space space = make_space(task);
  Rng rng(5);
  for (int i = 0; i < candidates_each(2); ++i) {
    const Candidate candidate = sample(space, rng);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    const Result<Artifact> artifact = compile(*program, target, "k");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message() << print(space, candidate);
    const auto kernels = read_cubin(artifact->object);
    ASSERT_TRUE(kernels.ok()) << kernels.error().message();
    ASSERT_EQ(kernels->size(), artifact->launches.size());
    for (size_t k = 0; k < kernels->size(); ++k) {
      EXPECT_EQ((*kernels)[k].shared_bytes, artifact->launches[k].shared_bytes);
      EXPECT_GT((*kernels)[k].registers, 0);
      EXPECT_LE((*kernels)[k].registers * artifact->launches[k].threads,
                target.gpu.registers_per_block);
    }
  }
}

// Those of tensor cores, for every arch: what shared memory they take is what their buffers take,
// and no fragment is in memory where the registers suffice.
TEST_F(CudaWarpCandidates, Compile) {
  int compiled = 0, spilled = 0;
  for (const WarpOperator& row : kWarpOperators) {
    const Task task = warp_task(row);
    const Space space = warp_space(task, row.structure);
    Rng rng(7);
    for (int i = 0; i < candidates_each(2); ++i) {
      const Candidate candidate = sample(space, rng);
      SCOPED_TRACE(std::string(row.arch) + " " + row.op + " " + print(space, candidate));
      const Result<Program> program = lower(space, candidate, "k");
      ASSERT_TRUE(program.ok()) << program.error().message();
      int64_t shared = 0, over = 0;  // bytes of the one kernel that has any
      const int64_t alignment = shared_alignment(program->body);
      for (const Buffer& buffer : program->buffers)
        if (buffer.scope == Scope::kShared) (buffer.over ? over : shared) += buffer.bytes();
      const Result<Artifact> artifact = compile(*program, task.target, "k");
      ASSERT_TRUE(artifact.ok()) << artifact.error().message();
      const auto kernels = read_cubin(artifact->object);
      ASSERT_TRUE(kernels.ok()) << kernels.error().message();
      ASSERT_EQ(kernels->size(), artifact->launches.size());
      int64_t launched = 0;
      for (size_t k = 0; k < kernels->size(); ++k) {
        const Artifact::Launch& launch = artifact->launches[k];
        launched += launch.shared_bytes;
        EXPECT_LE(launch.shared_bytes, task.target.gpu.most_shared_bytes_per_block);
        EXPECT_LE((*kernels)[k].registers * launch.threads, task.target.gpu.registers_per_block);
        ++compiled;
        spilled += (*kernels)[k].stack_bytes > 0 ? 1 : 0;
      }
      EXPECT_GE(launched, std::max(shared, over));
      EXPECT_LT(launched, std::max(shared, over) + alignment) << "one gap between two buffers";
    }
  }
  printf("%d of %d kernels of warps have local memory\n", spilled, compiled);
  EXPECT_LE(spilled, 0.05 * compiled);
}

// Norms, depthwise convolutions and gates in the kernel of a product: nothing is refused or has a
// fence put in, and the rows that a warp loads are in registers.
TEST_F(CudaWarpCandidates, OfOperandsThatAKernelMakesCompile) {
  Rng rng(41);
  int compiled = 0, spilled = 0;
  for (const WarpDevice& device : kHeldDevices) {
    for (int i = 0; i < candidates_each(2); ++i) {
      for (const HeldKind kind : kHeldKinds) {
        const Task task = drawn_held(rng, kind, device.arch, device.fewest);
        const Space space = held_space(task, device.structure);
        const Candidate candidate = sample(space, rng);
        SCOPED_TRACE(print(task.dag) + print(space, candidate));
        const Result<Program> program = lower(space, candidate, "k");
        ASSERT_TRUE(program.ok()) << program.error().message();
        const Result<Artifact> artifact = compile(*program, task.target, "k");
        ASSERT_TRUE(artifact.ok()) << artifact.error().message();
        const auto kernels = read_cubin(artifact->object);
        ASSERT_TRUE(kernels.ok()) << kernels.error().message();
        const Artifact::Launch& launch = artifact->launches[0];
        EXPECT_LE(launch.shared_bytes, task.target.gpu.most_shared_bytes_per_block);
        EXPECT_LE((*kernels)[0].registers * launch.threads, task.target.gpu.registers_per_block);
        ++compiled;
        spilled += (*kernels)[0].stack_bytes > 0 ? 1 : 0;
      }
    }
  }
  printf("%d of %d kernels that make operands have local memory\n", spilled, compiled);
  EXPECT_LE(spilled, 0.1 * compiled);
}

// The elements that a transform reads of a tile, and all that it makes of them, are in registers.
// The analysis knows how many registers these are.
TEST_F(CudaWinograd, KeepsTilesInRegisters) {
  for (const char* op : kWinogradOperators) {
    for (const char* form : {"winograd-2x2", "winograd-4x4"}) {
      const Task task = gpu_task(op);
      const Space space = make_space(task, std::vector<std::string>{form});
      Rng rng(5);
      for (int i = 0; i < candidates_each(2); ++i) {
        const Candidate candidate = sample(space, rng);
        SCOPED_TRACE(print(space, candidate));
        const Result<Artifact> artifact = compile(*lower(space, candidate, "k"), task.target, "k");
        ASSERT_TRUE(artifact.ok()) << artifact.error().message();
        const auto kernels = read_cubin(artifact->object);
        ASSERT_TRUE(kernels.ok()) << kernels.error().message();
        const Draft draft = pruner::draft(make_loop_nest(space, candidate), task.target);
        ASSERT_EQ(draft.kernels.size(), kernels->size());
        int transforms = 0;
        for (size_t k = 0; k < kernels->size(); ++k) {
          const StagePlan& plan = space[candidate.sketch].plan(draft.kernels[k].root);
          if (plan.structure != &kThreadTransform) continue;
          ++transforms;
          EXPECT_EQ((*kernels)[k].stack_bytes, 0);
          // A kernel takes fewer registers if more is known, as of a small image.
          EXPECT_LE((*kernels)[k].registers, draft.kernels[k].registers + 8);
        }
        EXPECT_EQ(transforms, 2);
      }
    }
  }
}

/// The rank of each value among all; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double v) { return v < value; });
    const auto equal = std::ranges::count(values, value);
    result.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2);
  }
  return result;
}

/// Spearman's coefficient.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

TEST_F(CudaRegisters, AreAboutWhatTheAnalysisForesees) {
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  std::vector<double> foreseen, taken;
  constexpr int64_t kMostPutAside = 64;  // bytes
  int close = 0, local = 0, arrays = 0;
  struct {
    int foreseen = 0, local = 0;
  } spills;
  for (const char* op : kSmallOperators) {
    const Task task = operator_task(op, target);
    const Space space = make_space(task);
    Rng rng(5);
    for (int i = 0; i < candidates_each(2); ++i) {
      const Candidate candidate = sample(space, rng);
      const Result<Artifact> artifact = compile(*lower(space, candidate, "k"), target, "k");
      ASSERT_TRUE(artifact.ok()) << artifact.error().message();
      const auto kernels = read_cubin(artifact->object);
      ASSERT_TRUE(kernels.ok()) << kernels.error().message();
      const Draft draft = pruner::draft(make_loop_nest(space, candidate), target);
      ASSERT_EQ(draft.kernels.size(), kernels->size());
      for (size_t k = 0; k < kernels->size(); ++k) {
        const auto threads = static_cast<double>(artifact->launches[k].threads);
        const double most = std::min(255.0, 65536 / (std::ceil(threads / 32) * 32));
        foreseen.push_back(std::min(draft.kernels[k].registers, most));
        taken.push_back(static_cast<double>((*kernels)[k].registers));
        const double ratio = foreseen.back() / taken.back();
        close += ratio < 1.5 && ratio > 1 / 1.5 ? 1 : 0;
        const bool has_local = (*kernels)[k].stack_bytes > 0;
        const bool foreseen_spill = draft.kernels[k].registers > most;
        local += has_local ? 1 : 0;
        spills.foreseen += foreseen_spill ? 1 : 0;
        spills.local += foreseen_spill && has_local ? 1 : 0;
        arrays += !foreseen_spill && (*kernels)[k].stack_bytes > kMostPutAside ? 1 : 0;
      }
    }
  }
  const double correlation = rank_correlation(foreseen, taken);
  const double share = static_cast<double>(close) / static_cast<double>(taken.size());
  printf("registers of %zu kernels: rank correlation %.3f, %.1f %% within 1.5 times\n",
         taken.size(),
         correlation,
         100 * share);
  printf("%d kernels have local memory, %d more than %d bytes; of %d foreseen to spill %d\n",
         local,
         arrays,
         static_cast<int>(kMostPutAside),
         spills.foreseen,
         spills.local);
  EXPECT_GT(correlation, 0.8);
  EXPECT_GT(share, 0.7);
  // Accumulators are none of it, but a few values that the compiler puts aside.
  EXPECT_LE(arrays, 0.01 * static_cast<double>(taken.size()));
}

/// Contractions by tensor cores, of every type, some with ends that no tile divides.
constexpr WarpOperator kContractions[] = {
    {"sm_80", "matmul 1024 1024 1024 bits=16", "m16n8k16-tile"},
    {"sm_80", "matmul 512 768 384 bits=16 exponent=8", "m16n8k16-tile"},
    {"sm_80", "dense 512 768 768 bits=16 +bias +relu", "m16n8k16-tile"},
    {"sm_80", "dense 1024 512 512 bits=8", "m16n8k32-tile"},
    {"sm_80", "batch_matmul 12 128 128 64 bits=16", "m16n8k16-tile"},
    {"sm_80", "matmul 200 136 160 bits=16", "m16n8k16-tile"},
    {"sm_80", "attention 1 12 128 128 64 bits=16", "attention-tile"},
    {"sm_80", "attention 1 4 512 512 128 causal=1 bits=16 exponent=8", "attention-tile"},
    {"sm_90", "matmul 4096 4096 4096 bits=16", "m64n8k16-tile"},
    {"sm_90", "dense 512 768 768 bits=16 exponent=8 +bias +relu", "m64n8k16-tile"},
    {"sm_90", "dense 1024 512 512 bits=8", "m64n8k32-tile"},
    {"sm_90", "dense 1024 512 512 bits=19", "m64n8k8-tile"},
    {"sm_90", "conv2d 1 256 14 14 256 3 3 padding=1 bits=16", kGroupConv},
    {"sm_90", "attention 1 4 512 512 128 causal=1 bits=16 exponent=8", "group-attention-tile"},
};

struct WarpKernel {
  double foreseen = 0, taken = 0;  // registers
  bool local = false;              // something that no register holds
};

WarpKernel warp_kernel(const Space& space, const Candidate& candidate, const Target& target) {
  const Result<Program> program = lower(space, candidate, "k");
  EXPECT_TRUE(program.ok()) << program.error().message() << "\n" << print(space, candidate);
  const Result<Artifact> artifact = compile(*program, target, "k");
  EXPECT_TRUE(artifact.ok()) << artifact.error().message();
  const auto kernels = read_cubin(artifact->object);
  EXPECT_TRUE(kernels.ok()) << kernels.error().message();
  const double most =
      std::min(255.0, 65536 / static_cast<double>(artifact->launches.front().threads));
  const Draft draft = pruner::draft(make_loop_nest(space, candidate), target);
  return {std::min(draft.kernels[0].registers, most),
          static_cast<double>(kernels->front().registers),
          kernels->front().stack_bytes > 0};
}

TEST_F(CudaRegisters, OfWarpsAreRankedByTheClosedForm) {
  std::vector<double> foreseen, taken;
  for (const WarpOperator& row : kContractions) {
    const Task task = warp_task(row);
    const Space space = warp_space(task, row.structure);
    Rng rng(5);
    for (int i = 0; i < candidates_each(25); ++i) {
      const WarpKernel kernel = warp_kernel(space, sample(space, rng), task.target);
      foreseen.push_back(kernel.foreseen);
      taken.push_back(kernel.taken);
      if (std::getenv("PRUNER_PRINT") != nullptr)
        printf("%s %g %g %s\n", row.structure, kernel.foreseen, kernel.taken, row.op);
    }
  }
  const double correlation = rank_correlation(foreseen, taken);
  printf("registers of %zu kernels of warps: rank correlation %.3f\n", taken.size(), correlation);
  EXPECT_GE(correlation, 0.9);
}

// Of the best drafts of a space, those whose kernels keep values in local memory.
int spilled_of_the_best(const Task& task, const Space& space) {
  std::vector<std::pair<double, Candidate>> drafts;
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    const Candidate c = sample(space, rng);
    drafts.emplace_back(draft_latency_s(make_loop_nest(space, c), task.target), c);
  }
  const auto key = [](const auto& d) { return std::tie(d.first, d.second.decisions); };
  std::ranges::sort(drafts, {}, key);
  const auto repeated = std::ranges::unique(drafts, {}, key);
  drafts.erase(repeated.begin(), repeated.end());
  drafts.resize(std::min<size_t>(drafts.size(), 50));
  int local = 0;
  for (const auto& [latency, candidate] : drafts) {
    const WarpKernel kernel = warp_kernel(space, candidate, task.target);
    local += kernel.local ? 1 : 0;
    if (kernel.local)
      printf("%.0f registers foreseen of %s\n", kernel.foreseen, print(space, candidate).c_str());
  }
  return local;
}

TEST_F(CudaRegisters, SufficeForTheBestDraftsOfWarps) {
  for (const WarpOperator& row : kContractions) {
    const Task task = warp_task(row);
    EXPECT_EQ(spilled_of_the_best(task, warp_space(task, row.structure)), 0) << row.op;
  }
}

// BERT-base's norms, llama_135m's gate, and a depthwise convolution of MobileNet-v2. Tiles of 56
// columns a warp, whose copies have odd addresses, may miss a register.
TEST_F(CudaRegisters, SufficeForTheBestDraftsOfOperandsThatAKernelMakes) {
  Rng rng(43);
  for (const WarpDevice& device : kHeldDevices) {
    for (const auto& [kind, of] : {std::pair(HeldKind::kLayerNorm, HeldExtents{128, 768, 2304}),
                                   std::pair(HeldKind::kAddedNorm, HeldExtents{128, 768, 768}),
                                   std::pair(HeldKind::kGated, HeldExtents{128, 576, 1536}),
                                   std::pair(HeldKind::kDepthwise, HeldExtents{49, 960, 160})}) {
      const Task task = held_task(rng, kind, of, device.arch);
      EXPECT_LE(spilled_of_the_best(task, held_space(task, device.structure)), 2)
          << print(task.dag);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
