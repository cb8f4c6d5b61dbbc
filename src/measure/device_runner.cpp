#include "measure/device_runner.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>
#include <thread>

#include "measure/kernel_check.h"
#include "measure/kernel_run.h"
#include "measure/wire.h"
#include "measure/worker_loop.h"
#include "support/ceil_div.h"
#include "support/log.h"

namespace pruner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAttempts = 4;  // tries to time at a moment when the device is not slowed down
constexpr auto kCoolDown = std::chrono::milliseconds(200);
constexpr int64_t kLeastFlushBytes = int64_t{32} << 20;  // floor of the flush size
// At most so many copies of the constants. If more were needed to fill the cache, the constants are
// so small that it matters little where they lie, and one copy is used.
constexpr int64_t kMostTurns = 256;

// Timings next to another's work are noise.
void warn_of_others(const GpuFacts& facts) {
  for (const pid_t pid : processes_on_gpu(facts.bus)) {
    if (pid != getpid())
      log_warning(
          "{} ({}) is used by process {} too: timings will be noisy", facts.name, facts.bus, pid);
  }
}

}  // namespace

Result<std::unique_ptr<DeviceRunner>> DeviceRunner::open(Backend backend, int number) {
  TRY_ASSIGN(std::unique_ptr<GpuContext> context, GpuContext::open(backend, number));
  const GpuFacts& facts = context->facts();
  if (!facts.is_gpu)
    log_warning("{} ({}) is no GPU: its times are a CPU's", facts.name, facts.driver);
  warn_of_others(facts);
  return std::unique_ptr<DeviceRunner>(new DeviceRunner(std::move(context)));
}

Result<Unit> DeviceRunner::set_task(Task task) {
  workload_.reset();
  inputs_.clear();
  constant_copies_.clear();
  TRY_ASSIGN(Workload workload, make_workload(std::move(task), options_));
  for (const GuardedBuffer& input : workload.buffers) {
    TRY_ASSIGN(GpuBuffer buffer, context_->allocate(input.bytes()));
    TRY(buffer.write(input.data()));
    inputs_.push_back(std::move(buffer));
  }
  workload_ = std::move(workload);
  return prepare_flush();
}

Result<Unit> DeviceRunner::prepare_flush() {
  if (!options_.flush_l2 || !flush_.empty()) return Unit{};
  const int64_t bytes = std::max(2 * context_->facts().l2_bytes, kLeastFlushBytes);
  TRY_ASSIGN(GpuBuffer buffer, context_->allocate(bytes));
  flush_.push_back(std::move(buffer));
  return Unit{};
}

MeasureResult DeviceRunner::run(const Artifact& artifact, double best_s) {
  CHECK(workload_.has_value()) << "no task to run a kernel of";
  const auto start = Clock::now();
  workload_->fresh = workload_->fresh.split();
  MeasureResult result = check_and_time(artifact, best_s);
  result.run_s = std::chrono::duration<double>(Clock::now() - start).count();
  result.timestamp = std::time(nullptr);
  return result;
}

Result<std::vector<GpuBuffer*>> DeviceRunner::fill_buffers(const Artifact& artifact,
                                                           const KernelArguments& arguments,
                                                           std::vector<GpuBuffer>& made) {
  std::vector<GpuBuffer*> buffers;
  made.reserve(artifact.arguments.size() + 1);  // `buffers` points into it
  const auto make = [&](int64_t bytes, const void* content) -> Result<Unit> {
    TRY_ASSIGN(GpuBuffer buffer, context_->allocate(bytes));
    made.push_back(std::move(buffer));
    buffers.push_back(&made.back());
    return content != nullptr ? made.back().write(content) : made.back().fill(kUnwritten);
  };
  for (size_t i = 0; i < artifact.arguments.size(); ++i) {
    const Artifact::Argument& argument = artifact.arguments[i];
    if (!argument.output && argument.pack.identity()) {
      buffers.push_back(&inputs_[i]);
    } else {
      TRY(make(arguments.arguments[i]->bytes(), argument.output ? nullptr : arguments.pointers[i]));
    }
  }
  TRY(make(artifact.workspace_bytes, nullptr));
  return buffers;
}

static bool is_constant(const Workload& workload, size_t argument) {
  return argument < workload.constant.size() && workload.constant[argument];
}

int64_t DeviceRunner::turns(const Artifact& artifact, const KernelArguments& arguments) const {
  if (options_.weights_from != WeightsFrom::kMemory || !flush_.empty()) return 1;
  int64_t bytes = 0;
  for (size_t i = 0; i < artifact.arguments.size(); ++i)
    if (is_constant(*workload_, i)) bytes += arguments.arguments[i]->bytes();
  if (bytes == 0) return 1;
  const int64_t evicting = std::max(2 * context_->facts().l2_bytes, kLeastFlushBytes);
  const int64_t turns = ceil_div(evicting, bytes);
  return turns > kMostTurns ? 1 : turns;
}

Result<std::vector<std::vector<GpuBuffer*>>> DeviceRunner::fill_turns(
    const Artifact& artifact,
    const KernelArguments& arguments,
    const std::vector<GpuBuffer*>& first,
    std::vector<GpuBuffer>& copies) {
  const auto count = static_cast<size_t>(turns(artifact, arguments));
  std::vector<std::vector<GpuBuffer*>> all(count, first);
  copies.reserve(count * artifact.arguments.size());  // `all` points into it
  const auto copy_of = [&](size_t i) -> Result<GpuBuffer> {
    TRY_ASSIGN(GpuBuffer buffer, context_->allocate(arguments.arguments[i]->bytes()));
    TRY(buffer.write(arguments.pointers[i]));
    return buffer;
  };
  for (size_t i = 0; i < artifact.arguments.size(); ++i) {
    if (!is_constant(*workload_, i)) continue;
    const bool as_task_has_it = artifact.arguments[i].pack.identity();
    std::vector<GpuBuffer>& kept = constant_copies_[i];
    while (as_task_has_it && kept.size() + 1 < count) {
      TRY_ASSIGN(GpuBuffer buffer, copy_of(i));
      kept.push_back(std::move(buffer));
    }
    for (size_t turn = 1; turn < count; ++turn) {
      if (as_task_has_it) {
        all[turn][i] = &kept[turn - 1];
        continue;
      }
      TRY_ASSIGN(GpuBuffer buffer, copy_of(i));
      copies.push_back(std::move(buffer));
      all[turn][i] = &copies.back();
    }
  }
  return all;
}

MeasureResult DeviceRunner::check_and_time(const Artifact& artifact, double best_s) {
  const auto bad = [](MeasureError error, const auto& result) {
    return failed_result(error, result.error().message());
  };
  Result<GpuProgram> program = context_->load(artifact);
  if (!program.ok()) return bad(MeasureError::kCompileDevice, program);
  const auto arguments = make_arguments(*workload_, artifact);
  if (!arguments.ok()) return bad(MeasureError::kRuntimeDevice, arguments);
  std::vector<GpuBuffer> made;
  const auto buffers = fill_buffers(artifact, *arguments, made);
  if (!buffers.ok()) return bad(MeasureError::kRuntimeDevice, buffers);

  const auto outputs =
      std::span(*buffers).subspan(workload_->inputs.size(), workload_->outputs.size());
  KernelCheck check(*workload_, artifact, *arguments, workload_->fresh);
  const auto read_outputs = [&]() -> Result<Unit> {
    for (size_t i = 0; i < outputs.size(); ++i)
      TRY(outputs[i]->read(arguments->pointers[workload_->inputs.size() + i]));
    return Unit{};
  };
  const Result<double> first = program->run(*buffers, 1);
  if (!first.ok()) return bad(MeasureError::kRuntimeDevice, first);
  if (const auto read = read_outputs(); !read.ok()) return bad(MeasureError::kRuntimeDevice, read);
  const auto wrong = check.find_wrong();
  MeasureResult result =
      wrong ? failed_result(MeasureError::kWrongAnswer, *wrong) : MeasureResult{};
  result.refuted = check.refuted();
  if (!result.ok()) return result;

  std::vector<GpuBuffer> copies;
  const auto turns = fill_turns(artifact, *arguments, *buffers, copies);
  if (!turns.ok()) return bad(MeasureError::kRuntimeDevice, turns);
  const auto run = [&](int64_t calls) -> Result<double> {
    for (GpuBuffer* output : outputs) TRY(output->fill(KernelCheck::kRefilled));
    return flush_.empty() ? program->run_in_turns(*turns, calls)
                          : program->run(*buffers, calls, &flush_.front());
  };
  const auto look_again = [&] {
    const Result<Unit> read = read_outputs();
    if (!read.ok()) result = bad(MeasureError::kRuntimeDevice, read);
    if (const auto wrong = result.ok() ? check.find_wrong_again() : std::nullopt)
      result = failed_result(MeasureError::kWrongAnswer, *wrong + " when run again");
  };
  // Outputs are looked at after repeats 1, 2, 4, ... and the last one: bringing outputs from the
  // device takes longer than running most kernels.
  unsigned repeats = 0;
  const auto repeat = [&](int64_t calls) -> Repeat {
    const Result<double> seconds = run(calls);
    if (!seconds.ok()) result = bad(MeasureError::kRuntimeDevice, seconds);
    if (std::has_single_bit(++repeats) && result.ok()) look_again();
    return {result.ok() ? *seconds : kFailedCost};  // the latter ends the timing: too slow
  };
  const Timing timing = time(repeat, best_s, result);
  if (!std::has_single_bit(repeats) && result.ok()) look_again();
  if (!result.ok()) return result;
  result.costs_s = timing.costs_s;
  result.cut_off = timing.cut_off;
  return result;
}

// Times that a device takes while it is slowed down, by heat say, are of another device: they are
// taken again.
Timing DeviceRunner::time(const std::function<Repeat(int64_t calls)>& repeat,
                          double best_s,
                          MeasureResult& result) {
  for (int attempt = 1;; ++attempt) {
    const auto before = read_gpu_clocks(context_->facts().bus);
    Timing timing = time_repeats(repeat, timing_rules(options_, best_s));
    result.clocks = read_gpu_clocks(context_->facts().bus);
    const bool slowed =
        (before && before->throttled) || (result.clocks && result.clocks->throttled);
    if (!slowed || !result.ok() || attempt == kAttempts) return timing;
    std::this_thread::sleep_for(attempt * kCoolDown);
  }
}

namespace {

// Worker holds the device of a worker process, from the first request on.
struct Worker {
  std::unique_ptr<DeviceRunner> runner;

  /// Opens the device that a task's request names.
  Result<Unit> open(const Task& task, const MeasureOptions& options) {
    if (runner != nullptr) return Unit{};
    TRY_ASSIGN(runner, DeviceRunner::open(task.target.backend, options.device));
    return Unit{};
  }

  Result<MeasureResult> answer(const Frame& request, std::optional<Task> task) {
    if (task) TRY(runner->set_task(*std::move(task)));
    if (!runner->has_task()) return Error("an artifact came before its task");
    TRY_ASSIGN(const RunRequest asked, run_request_from_frame(request));
    return runner->run(asked.artifact, asked.best_s);
  }
};

Result<std::optional<Task>> read_task(Worker& worker, const Json& header) {
  if (!header.contains("task")) return std::optional<Task>();
  TRY_ASSIGN(Task task, task_from_json(header["task"]));
  TRY_ASSIGN(MeasureOptions options, options_from_json(header["options"]));
  TRY(worker.open(task, options));
  worker.runner->set_options(std::move(options));
  return std::optional<Task>(std::move(task));
}

}  // namespace

// Answers {"result", "lost"}, or {"no_device"} with the reason; `lost`: this process is of no more
// use.
int run_device_worker() {
  Worker worker;
  return serve([&](const Frame& request) -> Frame {
    Result<std::optional<Task>> task = read_task(worker, request.header);
    if (worker.runner == nullptr) {
      const char* none = "no task was sent";
      return {{{"no_device", task.ok() ? none : task.error().message()}}, ""};
    }
    Result<MeasureResult> result =
        task.ok() ? worker.answer(request, *std::move(task)) : Result<MeasureResult>(task.error());
    if (!result.ok()) result = failed_result(MeasureError::kUnknown, result.error().message());
    const bool lost = !result->ok() && worker.runner->lost();
    return {{{"result", to_json(*result)}, {"lost", lost}}, ""};
  });
}

}  // namespace pruner
