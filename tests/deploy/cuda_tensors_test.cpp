// label: cuda-fake
// Modules for CUDA on tensors that lie on the device, in streams and graphs of the caller's.
#include <cstring>
#include <map>

#include "deploy/module.h"
#include "fakes/driver_log.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "network_case.h"
#include "pruner/module.hpp"
#include "shell.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Target sm_80() { return *parse_target("cuda --arch=sm_80", 0); }

/// Builds a module of a network, outside of what a test looks at.
void build(const Graph& graph, const std::string& path) {
  const FakeCuda cuda;
  const Result<Partition> cut = partition(graph, sm_80());
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const Result<ModuleSummary> built = build_module(*cut, sm_80(), nullptr, {}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
}

/// The caller's side of CUDA: a context, tensors, streams.
class Caller {
 public:
  explicit Caller(int device = 0) : device_(device) {
    EXPECT_EQ(CU(cuInit)(0), 0);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, device), 0);
    EXPECT_EQ(CU(cuCtxPushCurrent_v2)(context_), 0);
  }
  ~Caller() {
    for (const CuDevicePtr address : memory_) CU(cuMemFree_v2)(address);
    for (const CuStream stream : streams_) CU(cuStreamDestroy_v2)(stream);
    CU(cuCtxPopCurrent_v2)(&context_);
    CU(cuDevicePrimaryCtxRelease_v2)(device_);
  }

  void* allocate(int64_t bytes) {
    CuDevicePtr address = 0;
    EXPECT_EQ(CU(cuMemAlloc_v2)(&address, static_cast<size_t>(bytes)), 0);
    memory_.push_back(address);
    return reinterpret_cast<void*>(address);
  }
  /// Copies a tensor to the device, `offset` bytes behind the beginning of an allocation.
  void* put(const Tensor& tensor, int64_t offset = 0) {
    void* const place = static_cast<char*>(allocate(tensor.bytes() + offset)) + offset;
    write(place, tensor);
    return place;
  }
  void write(void* to, const Tensor& tensor) {
    EXPECT_EQ(CU(cuMemcpyHtoDAsync_v2)(reinterpret_cast<CuDevicePtr>(to),
                                       tensor.data(),
                                       static_cast<size_t>(tensor.bytes()),
                                       nullptr),
              0);
    EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), 0);
  }
  Tensor read(const Tensor& like, const void* from) {
    Tensor tensor(like.dtype(), like.shape());
    EXPECT_EQ(CU(cuMemcpyDtoHAsync_v2)(tensor.data(),
                                       reinterpret_cast<CuDevicePtr>(from),
                                       static_cast<size_t>(tensor.bytes()),
                                       nullptr),
              0);
    return tensor;
  }
  CuStream stream() {
    CuStream made = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&made, 1), 0);
    streams_.push_back(made);
    return made;
  }

 private:
  int device_;
  CuContext context_ = nullptr;
  std::vector<CuDevicePtr> memory_;
  std::vector<CuStream> streams_;
};

/// The tensors of a run, all on the device unless a test says so.
struct Tensors {
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<uint8_t> in_there, out_there;

  Tensors(Caller& caller, const Case& c, int64_t offset = 0) {
    for (const Tensor& tensor : c.inputs) in.push_back(caller.put(tensor, offset));
    for (const Tensor& tensor : c.expected)
      out.push_back(static_cast<char*>(caller.allocate(tensor.bytes() + offset)) + offset);
    in_there.assign(in.size(), 1);
    out_there.assign(out.size(), 1);
  }
  PrunerRun run(int32_t flags = 0, CuStream stream = nullptr) const {
    PrunerRun run = {};
    run.size = sizeof run;
    run.flags = flags;
    run.inputs = in.data();
    run.outputs = out.data();
    run.inputs_on_device = in_there.data();
    run.outputs_on_device = out_there.data();
    run.stream = stream;
    return run;
  }
  std::vector<Tensor> results(Caller& caller, const Case& c) const {
    std::vector<Tensor> results;
    for (size_t o = 0; o < out.size(); ++o) results.push_back(caller.read(c.expected[o], out[o]));
    return results;
  }
};

std::optional<Module> load(const std::string& path, int device = 0) {
  std::string error;
  PrunerOptions options = {};
  options.size = sizeof options;
  options.device = device;
  std::optional<Module> module = Module::load(path, options, &error);
  EXPECT_TRUE(module) << error;
  return module;
}

/// A module of a small network of convolutions.
class CudaTensors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(case_.ok()) << case_.error().message();
    build(case_->graph, path_);
  }
  const Result<Case> case_ = make_case(small_convolutional());
  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
  const std::string path_ = folder_->path("module.so");
};

// Launched, recorded, replayed: nothing goes over the host, nothing is allocated or waited for.
TEST_F(CudaTensors, StayWhereTheyLie) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    EXPECT_EQ(module->device_kind(), PRUNER_CUDA);
    const Tensors tensors(caller, *case_);
    const CuStream stream = caller.stream();
    for (int i = 0; i < 3; ++i) {
      std::map<std::string, int> before = driver_calls(cuda.log());
      const PrunerRun run = tensors.run(PRUNER_RUN_STREAM, stream);
      ASSERT_TRUE(module->execute(run)) << module->error();
      std::map<std::string, int> calls = driver_calls(cuda.log());
      for (auto& [function, count] : calls) count -= before[function];
      for (const char* none : {"cuMemcpyHtoDAsync_v2",
                               "cuMemcpyDtoHAsync_v2",
                               "cuMemcpyDtoDAsync_v2",
                               "cuMemAlloc_v2",
                               "cuMemHostAlloc",
                               "cuStreamSynchronize",
                               "cuEventSynchronize"})
        EXPECT_EQ(calls[none], 0) << none << " in run " << i;
      EXPECT_EQ(calls["cuGraphLaunch"], i == 0 ? 0 : 1);
      EXPECT_TRUE(i != 2 || calls["cuLaunchKernel"] == 0);
      ASSERT_TRUE(module->wait()) << module->error();
      expect_close(tensors.results(caller, *case_), case_->expected);
      for (size_t o = 0; o < case_->expected.size(); ++o) {  // the next run has to write it again
        Tensor zero(case_->expected[o].dtype(), case_->expected[o].shape());
        caller.write(tensors.out[o], zero);
      }
    }
  }
  EXPECT_EQ(cuda.end(), "");
}

// In the instance's own queue, with waits, through the default stream, and at no good address.
TEST_F(CudaTensors, AreTakenInEachWay) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    for (const int64_t offset : {0, 4}) {
      for (const int32_t flags : {0, int{PRUNER_RUN_STREAM}, PRUNER_RUN_STREAM | PRUNER_RUN_WAIT}) {
        const Tensors tensors(caller, *case_, offset);
        for (int i = 0; i < 3; ++i) {
          ASSERT_TRUE(module->execute(tensors.run(flags))) << module->error();
          ASSERT_TRUE(module->wait()) << module->error();
          expect_close(tensors.results(caller, *case_), case_->expected);
        }
      }
    }
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST_F(CudaTensors, MixWithTensorsOfTheHost) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    for (const bool output : {false, true}) {
      Tensors tensors(caller, *case_);
      std::vector<Tensor> host;
      for (const Tensor& tensor : case_->expected)
        host.emplace_back(tensor.dtype(), tensor.shape());
      if (output) {
        for (size_t o = 0; o < host.size(); ++o) tensors.out[o] = host[o].data();
        tensors.out_there.assign(host.size(), 0);
      } else {
        tensors.in[0] = case_->inputs[0].data();
        tensors.in_there[0] = 0;
      }
      for (int i = 0; i < 3; ++i) {
        const PrunerRun run = tensors.run(PRUNER_RUN_STREAM, caller.stream());
        ASSERT_TRUE(module->execute(run)) << module->error();  // it waits
        expect_close(output ? host : tensors.results(caller, *case_), case_->expected);
      }
    }
  }
  EXPECT_EQ(cuda.end(), "");
}

// Each run waits for the one before it, which is in another stream; also at the end.
TEST_F(CudaTensors, FollowOneAnotherInSeveralStreams) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    std::vector<Tensors> all;
    for (int i = 0; i < 12; ++i) all.emplace_back(caller, *case_);
    const CuStream streams[] = {caller.stream(), caller.stream(), caller.stream()};
    for (size_t i = 0; i < 2 * all.size(); ++i) {
      const PrunerRun run = all[i % all.size()].run(PRUNER_RUN_STREAM, streams[i % 3]);
      ASSERT_TRUE(module->execute(run)) << module->error();
    }
    // The last one's stream does all that it waits for.
    EXPECT_EQ(CU(cuStreamSynchronize)(streams[(2 * all.size() - 1) % 3]), 0);
    for (const Tensors& tensors : all)
      expect_close(tensors.results(caller, *case_), case_->expected);
    const PrunerRun run = all[0].run(PRUNER_RUN_STREAM, streams[0]);
    ASSERT_TRUE(module->execute(run)) << module->error();
    module.reset();
    expect_close(all[0].results(caller, *case_), case_->expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST_F(CudaTensors, AreCapturedInTheCallersGraph) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    const Tensors tensors(caller, *case_), unaligned(caller, *case_, 4);
    const CuStream stream = caller.stream();
    CuGraph graph = nullptr;
    CuGraphExec executable = nullptr;
    const PrunerRun run = tensors.run(PRUNER_RUN_STREAM, stream);
    for (const bool after_a_run : {false, true}) {
      if (after_a_run) {
        ASSERT_TRUE(module->execute(run)) << module->error();
      }
      enum { kGlobal = 0 };
      ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream, kGlobal), 0);
      ASSERT_TRUE(module->execute(run)) << module->error();
      ASSERT_EQ(CU(cuStreamEndCapture)(stream, &graph), 0);
      ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), 0);
      for (int i = 0; i < 2; ++i) {
        for (size_t o = 0; o < case_->expected.size(); ++o)
          caller.write(tensors.out[o],
                       Tensor(case_->expected[o].dtype(), case_->expected[o].shape()));
        ASSERT_EQ(CU(cuGraphLaunch)(executable, stream), 0);
        ASSERT_EQ(CU(cuStreamSynchronize)(stream), 0);
        expect_close(tensors.results(caller, *case_), case_->expected);
      }
      CU(cuGraphExecDestroy)(executable);
      CU(cuGraphDestroy)(graph);
    }
    // Three runs that a capture cannot have in it; the capture goes on.
    Tensors mixed = tensors;
    mixed.in[0] = case_->inputs[0].data();
    mixed.in_there[0] = 0;
    const struct {
      PrunerRun run;
      const char* words;
    } kCases[] = {
        {mixed.run(PRUNER_RUN_STREAM, stream), "all tensors of the run have to lie on the device"},
        {tensors.run(PRUNER_RUN_STREAM | PRUNER_RUN_WAIT, stream), "cannot be waited for"},
        {unaligned.run(PRUNER_RUN_STREAM, stream), "run the module once before the capture"}};
    ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream, 0), 0);
    for (const auto& [refused, words] : kCases) {
      EXPECT_FALSE(module->execute(refused));
      EXPECT_NE(std::string(module->error()).find(words), std::string::npos) << module->error();
    }
    ASSERT_TRUE(module->execute(run)) << module->error();
    ASSERT_EQ(CU(cuStreamEndCapture)(stream, &graph), 0);
    CU(cuGraphDestroy)(graph);
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST_F(CudaTensors, LieWhereTheRunSays) {
  const FakeCuda cuda("devices=2,arch=80");
  {
    Caller caller;
    std::optional<Module> module = load(path_);
    ASSERT_TRUE(module);
    const Tensors right(caller, *case_);
    const auto expect_refused = [&](const PrunerRun& run, const std::string& words) {
      EXPECT_FALSE(module->execute(run)) << words;
      EXPECT_NE(std::string(module->error()).find(words), std::string::npos) << module->error();
      ASSERT_TRUE(module->execute(right.run())) << module->error();
    };
    Tensors host = right;
    host.in[0] = case_->inputs[0].data();
    expect_refused(host.run(), "lies in the memory of the host, the run says");
    Tensors device = right;
    device.in_there[0] = 0;
    expect_refused(device.run(), "lies in the memory of a device, the run says");
    Tensors none = right;
    none.in[0] = nullptr;
    expect_refused(none.run(), "is NULL");
    Tensors same = right;
    same.out[0] = const_cast<void*>(same.in[0]);
    expect_refused(same.run(), "overlaps");
    {
      Caller other(1);
      Tensors elsewhere = right;
      elsewhere.in[0] = other.put(case_->inputs[0]);
      expect_refused(elsewhere.run(), "lies on cuda:1, the module runs on cuda:0");
      expect_refused(right.run(PRUNER_RUN_STREAM, other.stream()),
                     "the stream is of another device or context than cuda:0");
    }
    PrunerRun small = right.run();
    small.size -= 8;
    expect_refused(small, "a PrunerRun of ");
    struct {
      PrunerRun run;
      int64_t more;
    } newer = {right.run(), 0};
    newer.run.size = sizeof newer;
    EXPECT_TRUE(module->execute(newer.run)) << module->error();
    newer.more = 1;
    expect_refused(newer.run, "asks for what this module");
    expect_refused(right.run(64), "the flags 64");
    // Another device has its own instance.
    Caller other(1);
    std::optional<Module> second = load(path_, 1);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->device(), 1);
    const Tensors there(other, *case_);
    ASSERT_TRUE(second->execute(there.run())) << second->error();
    expect_close(there.results(other, *case_), case_->expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST_F(CudaTensors, ShareWeightsAndPrograms) {
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> first = load(path_);
    const int loaded = driver_calls(cuda.log())["cuModuleLoadData"];
    const int written = driver_calls(cuda.log())["cuMemcpyHtoDAsync_v2"];
    std::optional<Module> second = load(path_);
    ASSERT_TRUE(first && second);
    EXPECT_GT(loaded, 0);
    EXPECT_EQ(driver_calls(cuda.log())["cuModuleLoadData"], loaded);
    EXPECT_EQ(driver_calls(cuda.log())["cuMemcpyHtoDAsync_v2"], written);
    first.reset();
    const Tensors tensors(caller, *case_);
    ASSERT_TRUE(second->execute(tensors.run())) << second->error();
    expect_close(tensors.results(caller, *case_), case_->expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST_F(CudaTensors, ComeFromAPool) {
  struct Pool {
    Caller* caller;
    int taken = 0, given_back = 0;
    int64_t offset = 0;
  };
  const FakeCuda cuda;
  {
    Caller caller;
    Pool pool{&caller};
    PrunerOptions options = {};
    options.size = sizeof options;
    options.pool = &pool;
    options.allocate = [](void* of, int64_t bytes) -> void* {
      Pool& pool = *static_cast<Pool*>(of);
      ++pool.taken;
      if (pool.offset < 0) return nullptr;
      return static_cast<char*>(pool.caller->allocate(bytes + 64)) + pool.offset;
    };
    options.release = [](void* of, void*) { ++static_cast<Pool*>(of)->given_back; };
    std::string error;
    std::optional<Module> module = Module::load(path_, options, &error);
    ASSERT_TRUE(module) << error;
    EXPECT_EQ(pool.taken, 1);
    const Tensors tensors(caller, *case_);
    ASSERT_TRUE(module->execute(tensors.run())) << module->error();
    expect_close(tensors.results(caller, *case_), case_->expected);
    module.reset();
    EXPECT_EQ(pool.given_back, 1);
    pool.offset = 4;
    EXPECT_FALSE(Module::load(path_, options, &error));
    EXPECT_NE(error.find("no multiple of 16"), std::string::npos) << error;
    pool.offset = -1;
    EXPECT_FALSE(Module::load(path_, options, &error));
    EXPECT_NE(error.find("the caller's pool has no"), std::string::npos) << error;
    options.release = nullptr;
    EXPECT_FALSE(Module::load(path_, options, &error));
    EXPECT_NE(error.find("both functions"), std::string::npos) << error;
  }
  EXPECT_EQ(cuda.end(), "");
}

// Each call that two runs make fails, the first and the last time that it is made.
TEST_F(CudaTensors, LeaveNothingAfterAFailure) {
  const auto run = [&](std::string* error) {
    Caller caller;
    std::optional<Module> module = load(path_);
    const Tensors tensors(caller, *case_, 4);
    bool done = true;
    for (int i = 0; done && i < 2; ++i)
      done = module->execute(tensors.run(PRUNER_RUN_STREAM, caller.stream()));
    done = done && module->wait();
    *error = done ? "" : module->error();
    return done;
  };
  std::string error;
  std::map<std::string, int> calls;
  {
    const FakeCuda cuda;
    ASSERT_TRUE(run(&error)) << error;
    calls = driver_calls(cuda.log());
  }
  for (const char* function : {"cuStreamGetCtx",
                               "cuStreamIsCapturing",
                               "cuStreamWaitEvent",
                               "cuPointerGetAttribute",
                               "cuMemcpyDtoDAsync_v2",
                               "cuLaunchKernel",
                               "cuGraphInstantiateWithFlags",
                               "cuGraphLaunch",
                               "cuStreamBeginCapture_v2",
                               "cuStreamEndCapture",
                               "cuEventRecord",
                               "cuEventSynchronize"}) {
    ASSERT_GT(calls[function], 0) << function;
    for (const int call : {1, calls[function]}) {
      const FakeCuda cuda(std::string(function) + "@" + std::to_string(call) + "=719");
      EXPECT_FALSE(run(&error)) << function;
      EXPECT_TRUE(names(error, function)) << error;
    }
  }
  const FakeCuda cuda;
  EXPECT_TRUE(run(&error)) << error;
  EXPECT_EQ(cuda.end(), "");
}

// Programs of C and C++ with buffers of their own, a stream, and a graph.
TEST_F(CudaTensors, AreGivenByTheExamples) {
  if (output_of("c++ --version >/dev/null") != "status 0") GTEST_SKIP() << "no c++ here";
  const FakeCuda cuda;
  const std::string include = " -I" + test_path("../include") + " ", program = folder_->path("run");
  const std::string driver = " " FAKES "/libcuda.so.1 -Wl,-rpath," FAKES " ";
  EXPECT_EQ(
      output_of("cc -std=gnu11 -Wall -Wextra" + include + test_path("../examples/run_on_gpu.c") +
                " " + path_ + driver + "-o " + program),
      "status 0");
  const std::string in_c = output_of(program);
  EXPECT_EQ(output_of("c++ -std=c++17 -Wall -Wextra" + include +
                      test_path("../examples/run_on_gpu.cpp") + driver + "-ldl -o " + program),
            "status 0");
  const std::string in_cpp = output_of(program + " " + path_);
  // The network on zeros, by the interpreter.
  std::vector<Tensor> zeros;
  for (const Tensor& input : case_->inputs) zeros.emplace_back(input.dtype(), input.shape());
  const auto outputs = interpret_graph(case_->graph, zeros);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  for (const bool c : {true, false}) {
    const std::string& lines = c ? in_c : in_cpp;
    EXPECT_NE(lines.find("status 0"), std::string::npos) << lines;
    size_t at = 0, found = 0;
    for (const char* const words = "begins with ";
         (at = lines.find(words, at)) != std::string::npos;
         ++found) {
      at += std::strlen(words);
      const double wanted = (*outputs)[found % outputs->size()].get(0);
      EXPECT_NEAR(std::stod(lines.substr(at)), wanted, 1e-4 * std::abs(wanted)) << lines;
    }
    EXPECT_EQ(found, outputs->size() * (c ? 2 : 1)) << lines;
  }
  EXPECT_NE(in_c.find("from a graph: "), std::string::npos) << in_c;
  EXPECT_EQ(cuda.lines("VIOLATION"), "");
}

// The rows of a table that a first input of indices names, and the largest of each column.
Graph rows_of_a_table() {
  NetworkBuilder b("rows");
  const ValueId table = b.input("table", {10, 8}, DType::kFloat32);
  const ValueId rows = b.input("rows", {5}, DType::kInt64);
  const ValueId taken = b.node("Gather", {table, rows}, {{"axis", int64_t{0}}});
  return b.finish({{b.node("Relu", {taken}), "taken"}});
}

TEST(CudaIndices, OutOfRangeAreTheRunsError) {
  const Result<Case> c = make_case(rows_of_a_table());
  ASSERT_TRUE(c.ok()) << c.error().message();
  const auto folder = TemporaryFolder::make("");
  const std::string path = folder->path("rows.so");
  build(c->graph, path);
  const FakeCuda cuda;
  {
    Caller caller;
    std::optional<Module> module = load(path);
    ASSERT_TRUE(module);
    Case wrong = *c;
    wrong.inputs[1] = c->inputs[1].clone();
    wrong.inputs[1].set_int(3, 10);
    const Tensors right(caller, *c), outside(caller, wrong);
    const CuStream stream = caller.stream();
    const std::string words = "\"rows\" holds the index 10, which is out of range";
    for (int i = 0; i < 3; ++i) {  // launched, recorded, replayed
      EXPECT_FALSE(module->execute(outside.run()));
      EXPECT_NE(std::string(module->error()).find(words), std::string::npos) << module->error();
      // A run that nobody waits for: said by a wait, and by the next run.
      ASSERT_TRUE(module->execute(outside.run(PRUNER_RUN_STREAM, stream))) << module->error();
      EXPECT_FALSE(module->wait());
      EXPECT_NE(std::string(module->error()).find(words), std::string::npos) << module->error();
      ASSERT_TRUE(module->execute(outside.run(PRUNER_RUN_STREAM, stream))) << module->error();
      ASSERT_EQ(CU(cuStreamSynchronize)(stream), 0);
      EXPECT_FALSE(module->execute(right.run()));
      EXPECT_NE(std::string(module->error()).find("an earlier run: "), std::string::npos);
      ASSERT_TRUE(module->execute(right.run())) << module->error();
      expect_close(right.results(caller, *c), c->expected);
    }
    // Indices on the device that are said to lie on the host are not read there.
    Tensors elsewhere = right;
    elsewhere.in_there[1] = 0;
    EXPECT_FALSE(module->execute(elsewhere.run()));
    EXPECT_NE(std::string(module->error()).find("\"rows\" lies in the memory of a device"),
              std::string::npos)
        << module->error();
    // Times of the kernels, on places that no run has written, say nothing of indices.
    double seconds = 0;
    ASSERT_TRUE(module->time_kernels(&seconds)) << module->error();
    ASSERT_TRUE(module->execute(right.run())) << module->error();
    // In the host's memory they are found before the run begins.
    std::vector<const void*> in = {wrong.inputs[0].data(), wrong.inputs[1].data()};
    Tensor taken(c->expected[0].dtype(), c->expected[0].shape());
    void* out = taken.data();
    EXPECT_FALSE(module->run(in.data(), &out));
    EXPECT_NE(std::string(module->error()).find("expected one in [-10, 9]"), std::string::npos);
  }
  EXPECT_EQ(cuda.end(), "");
}

}  // namespace
}  // namespace pruner
