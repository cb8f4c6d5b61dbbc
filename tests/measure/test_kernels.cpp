#include "test_kernels.h"

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "runtime/thread_pool.h"
#include "tensor/operators.h"

namespace pruner {

namespace {

constexpr int64_t kN = 16, kWide = 512;
constexpr int64_t kUnseen = 87171;  // an element of the wide one's output, in no sample

template <int64_t kRows, int64_t kDepth>
void multiply_of(void* const* args, PrunerPool* pool) {
  const auto* a = static_cast<const float*>(args[0]);
  const auto* b = static_cast<const float*>(args[1]);
  auto* c = static_cast<float*>(args[2]);
  parallel_for(*pool, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < kRows; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) sum += a[i * kDepth + k] * b[k * kRows + j];
        c[i * kRows + j] = sum;
      }
    }
  });
}

void multiply(void* const* args, void*, PrunerPool* pool) { multiply_of<kN, kN>(args, pool); }

float* output(void* const* args) { return static_cast<float*>(args[2]); }

void slow(void* const* args, void* workspace, PrunerPool* pool) {
  multiply(args, workspace, pool);
  usleep(20000);
}
void wrong(void* const* args, void* workspace, PrunerPool* pool) {
  multiply(args, workspace, pool);
  output(args)[kN * kN - 1] += 0.01f;
}
void unwritten(void* const* args, void* workspace, PrunerPool* pool) {
  float last = output(args)[100];
  multiply(args, workspace, pool);
  output(args)[100] = last;
}
void not_a_number(void* const* args, void* workspace, PrunerPool* pool) {
  multiply(args, workspace, pool);
  output(args)[0] = std::nanf("");
}
volatile int* volatile nowhere = reinterpret_cast<int*>(8);
void crash(void* const*, void*, PrunerPool*) { *nowhere = 1; }
void illegal(void* const*, void*, PrunerPool*) { raise(SIGILL); }
void past_end(void* const* args, void*, PrunerPool*) {
  for (int64_t i = 0;; ++i) *static_cast<volatile float*>(output(args) + i) = 0;
}
void just_past_end(void* const* args, void* workspace, PrunerPool* pool) {
  multiply(args, workspace, pool);
  static_cast<volatile char*>(workspace)[100] = 1;
}
void writes_input(void* const* args, void*, PrunerPool*) {
  static_cast<volatile float*>(args[1])[3] = 0;
}
void hang(void* const*, void*, PrunerPool*) {
  for (volatile int forever = 1; forever != 0;) {
  }
}
char* volatile more;
void memory(void* const*, void*, PrunerPool*) {
  for (;;) more = new char[64 << 20];
}
volatile int endless = 1;
int deep_stack_of(int depth) {
  volatile char room[1 << 16];
  room[0] = static_cast<char>(depth);
  return endless != 0 ? deep_stack_of(depth + 1) + room[0] : 0;
}
void deep_stack(void* const*, void*, PrunerPool*) { deep_stack_of(0); }
void worker_crash(void* const*, void*, PrunerPool* pool) {
  parallel_for(*pool, 2, [](int64_t begin, int64_t) {
    if (begin == 0) usleep(1000000);
    if (begin == 1) *nowhere = 1;
  });
}
void prints(void* const* args, void* workspace, PrunerPool* pool) {
  std::puts("a stray print");
  std::fflush(stdout);
  multiply(args, workspace, pool);
}
// Half of the time it computes something else: a race, as the second check sees it.
void changes(void* const* args, void* workspace, PrunerPool* pool) {
  static int calls = 0;
  multiply(args, workspace, pool);
  if (calls++ > 0) output(args)[0] += 1;
}
// A race that one run of eight loses.
void rarely(void* const* args, void* workspace, PrunerPool* pool) {
  static int calls = 0;
  multiply(args, workspace, pool);
  if (++calls % 8 == 0) output(args)[77] = 0;
}
volatile float tiny = 0x1p-100F;
void flushed(void* const* args, void* workspace, PrunerPool* pool) {
  multiply(args, workspace, pool);
  Meeting meeting(pool->threads);
  std::atomic<int> kept = 0;
  parallel_for(*pool, pool->threads, [&](int64_t, int64_t) {
    kept += tiny * 0x1p-40F != 0;
    meeting.arrive_and_wait();
  });
  output(args)[0] += static_cast<float>(kept);
}
void wide(void* const* args, void*, PrunerPool* pool) { multiply_of<kWide, 4>(args, pool); }
void wide_wrong(void* const* args, void* workspace, PrunerPool* pool) {
  wide(args, workspace, pool);
  output(args)[kUnseen] += 1;
}

void multiply_narrow(void* const* args, void*, PrunerPool*) {
  const auto value = [&](int arg, int64_t i) {
    return static_cast<float>(decode_float(DType::kBFloat16, static_cast<uint16_t*>(args[arg])[i]));
  };
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kN; ++k) sum += value(0, i * kN + k) * value(1, j * kN + k);
      output(args)[i * kN + j] = sum;
    }
  }
}
void nearly(void* const* args, void* workspace, PrunerPool* pool) {
  multiply_narrow(args, workspace, pool);
  for (int64_t i = 0; i < kN * kN; ++i) output(args)[i] *= 1 + 0x1p-23f;
}

const std::map<std::string, PrunerKernel> kKernels = {{"right", multiply},
                                                      {"slow", slow},
                                                      {"wrong", wrong},
                                                      {"unwritten", unwritten},
                                                      {"nan", not_a_number},
                                                      {"crash", crash},
                                                      {"illegal", illegal},
                                                      {"past_end", past_end},
                                                      {"just_past_end", just_past_end},
                                                      {"writes_input", writes_input},
                                                      {"hang", hang},
                                                      {"memory", memory},
                                                      {"deep_stack", deep_stack},
                                                      {"worker_crash", worker_crash},
                                                      {"prints", prints},
                                                      {"changes", changes},
                                                      {"rarely", rarely},
                                                      {"flushed", flushed},
                                                      {"wide", wide},
                                                      {"wide_wrong", wide_wrong},
                                                      {"narrow", multiply_narrow},
                                                      {"nearly", nearly}};

class TestKernel : public LoadedKernel {
 public:
  explicit TestKernel(PrunerKernel entry) : entry_(entry) {}
  PrunerKernel entry() const override { return entry_; }

 private:
  PrunerKernel entry_;
};

}  // namespace

Task matmul_16(int threads) {
  Target target = host_target(threads);
  return make_task(*parse_operator("matmul 16 16 16"), std::move(target), "matmul 16x16x16");
}

Task wide_matmul(int threads) {
  return make_task(*parse_operator("matmul 512 512 4"), host_target(threads), "matmul 512x512x4");
}

Task narrow_dense_16(int threads) {
  return make_task(
      *parse_operator("dense 16 16 16 bits=16 exponent=8"), host_target(threads), "dense 16x16x16");
}

Artifact narrow_artifact(const std::string& name) {
  Artifact artifact = test_artifact(name);
  for (const size_t input : {0, 1}) artifact.arguments[input].dtype = DType::kBFloat16;
  return artifact;
}

Artifact test_artifact(const std::string& name) {
  Artifact artifact;
  artifact.object = "of " + name;
  artifact.symbol = name;
  artifact.workspace_bytes = 100;
  for (const bool output : {false, false, true}) {
    artifact.arguments.push_back({DType::kFloat32, {kN, kN}, output, {}});
  }
  return artifact;
}

Result<std::unique_ptr<LoadedKernel>> load_test_kernel(const Artifact& artifact) {
  const auto found = kKernels.find(artifact.symbol);
  if (found == kKernels.end()) return Error("no test kernel ", artifact.symbol);
  return std::unique_ptr<LoadedKernel>(std::make_unique<TestKernel>(found->second));
}

Build test_build(const Space& space, const Candidate& candidate) {
  if (space.target.is_gpu()) return pruner::build(space, candidate);
  Build build;
  build.build_s = 0.001;
  const ComputeDag& dag = space.sketches.front().dag;
  const bool wide = dag[dag.outputs().front()].shape().front() == kWide;
  const auto artifact = [&](const std::string& name) {
    if (!wide) return test_artifact(name);
    Artifact artifact = test_artifact(name == "right" ? "wide" : "wide_" + name);
    artifact.arguments[0].shape = {kWide, 4};
    artifact.arguments[1].shape = {4, kWide};
    artifact.arguments[2].shape = {kWide, kWide};
    return artifact;
  };
  build.artifact = artifact("right");
  switch (static_cast<TestBuild>(candidate.decisions.at(0))) {
    case kBuildRight: break;
    case kBuildWrong: build.artifact = artifact("wrong"); break;
    case kBuildRunCrash: build.artifact = test_artifact("crash"); break;
    case kBuildError: return {MeasureError::kCompileHost, "does not compile", 0, {}};
    case kBuildCrash: raise(SIGSEGV); break;
    case kBuildHang: usleep(60000000); break;
    case kBuildMemory: memory(nullptr, nullptr, nullptr); break;
  }
  return build;
}

}  // namespace pruner
