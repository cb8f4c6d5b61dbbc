#include "emulator.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

namespace fakes {
namespace {

enum : int { kIllegalAddress = 700, kMisalignedAddress = 716, kLaunchFailed = 719 };
constexpr size_t kWarp = 32;
constexpr size_t kStackBytes = 256 << 10, kGuardBytes = 4096, kSignalStackBytes = 64 << 10;

// Saved registers, as the compiler's own setjmp() has them: it asks the system for nothing.
using Place = void* [5];

// The jump has a function of its own: compilers forbid it in the function that set the place.
[[noreturn]] __attribute__((noinline)) void jump(void** place) { __builtin_longjmp(place, 1); }

enum class State { kReady, kInWarp, kAtBarrier, kEnded };

// `Copy` is what a thread copies beside its work.
struct Copy {
  void* to;
  const void* from;
  unsigned bytes, valid;
};
using Copies = std::vector<Copy>;

struct Fiber {
  State state = State::kReady;
  int line = 0;  // line of the barrier
  bool begun = false;
  Place at;
  ucontext_t start;
  Copies open;                // since the last commit
  std::deque<Copies> groups;  // in order
};

// The fibers of a block. There is one of it, under the driver's lock.
class Block {
 public:
  ~Block() {
    if (stacks_ != nullptr) munmap(stacks_, bytes_);
  }

  bool prepare(size_t threads);
  Ending run(const KernelTable& kernel, ThreadPlace& place, const Launch& launch, bool reversed);
  /// Fibers that were left in the middle of a kernel begin anew.
  void abandon() { fibers_.clear(); }

 private:
  static void begin();
  static void barrier(int line);
  static void meet(int line);
  static void copy(void* to, const void* from, unsigned bytes, unsigned valid);
  static void commit();
  static void wait(unsigned groups);
  Ending run_warp(ThreadPlace& place, const Index3& shape, size_t first, size_t end, bool reversed);
  void resume(Fiber& fiber);
  void leave(State state);
  Ending divided(size_t waiting, size_t threads) const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  char* stacks_ = nullptr;
  size_t bytes_ = 0;
  Place scheduler_;
  Fiber* running_ = nullptr;
  const KernelTable* kernel_ = nullptr;
  void** arguments_ = nullptr;
  std::string problem_;  // problem of the thread that ran last
};

Block* current = nullptr;

bool Block::prepare(size_t threads) {
  if (threads <= fibers_.size()) return true;
  if (threads * kStackBytes > bytes_) {
    if (stacks_ != nullptr) munmap(stacks_, bytes_);
    fibers_.clear();
    bytes_ = threads * kStackBytes;
    void* const memory = mmap(nullptr,
                              bytes_,
                              PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                              -1,
                              0);
    stacks_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
    if (stacks_ == nullptr) bytes_ = 0;
    for (size_t at = 0; at < bytes_; at += kStackBytes) {
      mprotect(stacks_ + at, kGuardBytes, PROT_NONE);
    }
  }
  if (stacks_ == nullptr) return false;
  while (fibers_.size() < threads) {
    Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = stacks_ + (fibers_.size() - 1) * kStackBytes;
    fiber.start.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber.start, &Block::begin, 0);
  }
  return true;
}

void Block::begin() {
  for (;;) {  // a thread of each block
    current->kernel_->run(current->arguments_);
    current->leave(State::kEnded);
  }
}

void Block::barrier(int line) {
  current->running_->line = line;
  current->leave(State::kAtBarrier);
}

void Block::meet(int line) {
  current->running_->line = line;
  current->leave(State::kInWarp);
}

// Until it is done nobody knows what is there.
void Block::copy(void* to, const void* from, unsigned bytes, unsigned valid) {
  const auto misaligned = [&](const void* place) {
    return reinterpret_cast<uintptr_t>(place) % bytes != 0;
  };
  if (misaligned(to) || misaligned(from) || valid > bytes) {
    current->problem_ = "an asynchronous copy of " + std::to_string(bytes) +
                        " bytes from or to a place that is no multiple of them";
    current->leave(State::kEnded);
  }
  std::memset(to, 0xff, bytes);
  current->running_->open.push_back({to, from, bytes, valid});
}

void Block::commit() {
  Fiber& fiber = *current->running_;
  fiber.groups.push_back(std::exchange(fiber.open, {}));
}

void Block::wait(unsigned groups) {
  std::deque<Copies>& left = current->running_->groups;
  for (; left.size() > groups; left.pop_front()) {
    for (const Copy& copy : left.front()) {
      std::memset(copy.to, 0, copy.bytes);
      std::memcpy(copy.to, copy.from, copy.valid);
    }
  }
}

__attribute__((noinline)) void Block::leave(State state) {
  running_->state = state;
  if (__builtin_setjmp(running_->at) == 0) jump(scheduler_);
}

__attribute__((noinline)) void Block::resume(Fiber& fiber) {
  running_ = &fiber;
  if (__builtin_setjmp(scheduler_) != 0) return;
  if (fiber.begun) jump(fiber.at);
  fiber.begun = true;
  setcontext(&fiber.start);
}

Ending Block::divided(size_t waiting, size_t threads) const {
  return {kLaunchFailed,
          std::to_string(waiting) + " of " + std::to_string(threads) +
              " threads wait at a barrier, the others ended or wait at another",
          0};
}

// A warp until all of its lanes are at a barrier or have ended.
Ending Block::run_warp(
    ThreadPlace& place, const Index3& shape, size_t first, size_t end, bool reversed) {
  for (;;) {
    size_t together = 0;
    bool same_line = true;
    for (size_t i = first; i < end; ++i) {
      const auto t = static_cast<unsigned>(reversed ? first + end - 1 - i : i);
      Fiber& fiber = *fibers_[t];
      if (fiber.state != State::kReady && fiber.state != State::kInWarp) continue;
      place.threadIdx = {t % shape.x, t / shape.x % shape.y, t / shape.x / shape.y};
      resume(fiber);
      if (!problem_.empty()) return {kMisalignedAddress, std::exchange(problem_, ""), 0};
      if (fiber.state != State::kInWarp) continue;
      const Fiber& other = *fibers_[reversed ? end - 1 : first];
      same_line = same_line && fiber.line == other.line;
      ++together;
    }
    if (together == 0) return {};
    if (together != kWarp || !same_line)
      return {kLaunchFailed,
              std::to_string(together) + " lanes of a warp do together what takes all of them",
              0};
  }
}

// Every other block's threads run in reverse: what needs a barrier and has none shows.
Ending Block::run(const KernelTable& kernel,
                  ThreadPlace& place,
                  const Launch& launch,
                  bool reversed) {
  kernel_ = &kernel;
  arguments_ = const_cast<void**>(launch.arguments.data());
  place.barrier = &Block::barrier;
  place.meet = &Block::meet;
  place.copy = &Block::copy;
  place.commit = &Block::commit;
  place.wait = &Block::wait;
  const Index3& shape = launch.threads;
  const size_t threads = size_t{shape.x} * shape.y * shape.z, warps = (threads + kWarp - 1) / kWarp;
  for (size_t t = 0; t < threads; ++t) {
    fibers_[t]->state = State::kReady;
    fibers_[t]->open.clear();
    fibers_[t]->groups.clear();
  }
  for (;;) {
    for (size_t i = 0; i < warps; ++i) {
      const size_t first = kWarp * (reversed ? warps - 1 - i : i);
      const size_t end = std::min(first + kWarp, threads);
      const Ending ending = run_warp(place, shape, first, end, reversed);
      if (ending.status != 0) return ending;
    }
    size_t waiting = 0;
    int line = 0;
    bool same_line = true;
    for (size_t t = 0; t < threads; ++t) {
      Fiber& fiber = *fibers_[t];
      if (fiber.state == State::kEnded) continue;
      fiber.state = State::kReady;
      same_line = same_line && (waiting == 0 || fiber.line == line);
      line = fiber.line;
      ++waiting;
    }
    if (waiting == 0) return {};
    if (waiting != threads || !same_line) return divided(waiting, threads);
  }
}

// A kernel's access to what is not the device's is a signal, from which control goes back to here.
struct Trap {
  Place at;
  pthread_t thread;
  bool armed = false;
  int signal = 0;
  uint64_t address = 0;
} trap;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};

void caught(int signal, siginfo_t* cause, void* /*registers*/) {
  if (!trap.armed || !pthread_equal(trap.thread, pthread_self())) {
    ::signal(signal, SIG_DFL);  // not of a kernel: comes again and ends the process
    return;
  }
  trap.signal = signal;
  trap.address = reinterpret_cast<uint64_t>(cause->si_addr);
  jump(trap.at);
}

class Handlers {
 public:
  Handlers() : stack_(std::make_unique<char[]>(kSignalStackBytes)) {
    stack_t stack{};
    stack.ss_sp = stack_.get();
    stack.ss_size = kSignalStackBytes;
    sigaltstack(&stack, &old_stack_);
    struct sigaction action {};
    action.sa_sigaction = caught;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &old_[i]);
  }
  ~Handlers() {
    trap.armed = false;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  std::unique_ptr<char[]> stack_;
  stack_t old_stack_;
  struct sigaction old_[std::size(kSignals)];
};

// Whether what no launch gave is not as it was made.
bool writes_beyond(const KernelTable& kernel, const Launch& launch) {
  const auto first = kernel.dynamic_shared + launch.shared_bytes;
  const auto is_made = [](char c) { return static_cast<unsigned char>(c) == 0xff; };
  return launch.shared_bytes > 0 &&
         !std::all_of(first, kernel.dynamic_shared + kMostSharedBytes, is_made);
}

Ending run_blocks(Block& block,
                  const KernelTable& kernel,
                  ThreadPlace& place,
                  const Launch& launch) {
  place.blockDim = launch.threads;
  place.gridDim = launch.blocks;
  bool reversed = false;
  for (unsigned z = 0; z < launch.blocks.z; ++z) {
    for (unsigned y = 0; y < launch.blocks.y; ++y) {
      for (unsigned x = 0; x < launch.blocks.x; ++x, reversed = !reversed) {
        place.blockIdx = {x, y, z};
        if (kernel.shared != nullptr)  // nobody's, and no numbers
          std::memset(kernel.shared, 0xff, size_t(kernel.shared_end - kernel.shared));
        if (launch.shared_bytes > 0) std::memset(kernel.dynamic_shared, 0xff, kMostSharedBytes);
        const Ending ending = block.run(kernel, place, launch, reversed);
        if (ending.status != 0) return ending;
        if (writes_beyond(kernel, launch))
          return {kIllegalAddress, "writes beyond the shared memory that its launch gives it", 0};
      }
    }
  }
  return {};
}

}  // namespace

__attribute__((noinline)) Ending emulate(const KernelTable& kernel,
                                         ThreadPlace& place,
                                         const Launch& launch) {
  static auto* const block = new Block;
  const Index3& threads = launch.threads;
  if (!block->prepare(size_t{threads.x} * threads.y * threads.z)) {
    return {kLaunchFailed, "no memory for the threads' stacks", 0};
  }
  current = block;
  const auto handlers = std::make_unique<Handlers>();
  trap.thread = pthread_self();
  if (__builtin_setjmp(trap.at) == 0) {
    trap.armed = true;
    Ending ending = run_blocks(*block, kernel, place, launch);
    if (ending.status != 0) block->abandon();
    return ending;
  }
  trap.armed = false;
  block->abandon();
  if (trap.signal == SIGFPE) return {kLaunchFailed, "an integer is divided by zero", 0};
  return {kIllegalAddress, "an access that is not allowed", trap.address};
}

}  // namespace fakes
