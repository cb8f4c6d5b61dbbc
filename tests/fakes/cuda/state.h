// All that the fake driver knows of this process, and what stands around each of its calls: the
// lock, the rules, the state that the call needs, the log.
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_object.h"
#include "memory.h"
#include "queue.h"
#include "rules.h"

namespace fakes {

enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kContextIsDestroyed = 709,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

/// A handle that was never given before.
uintptr_t new_handle();

/// Objects by handles: one that was destroyed is never taken for another.
template <typename T>
class Table {
 public:
  void* add(std::unique_ptr<T> object) {
    const uintptr_t handle = new_handle();
    objects_[handle] = std::move(object);
    return reinterpret_cast<void*>(handle);
  }
  T* find(const void* handle) const {
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second.get();
  }
  std::unique_ptr<T> take(const void* handle) {
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == objects_.end()) return nullptr;
    std::unique_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }
  const auto& all() const { return objects_; }

 private:
  std::map<uintptr_t, std::unique_ptr<T>> objects_;
};

struct Module;

struct Function {
  Module* module;
  std::string name;
  const KernelTable* table;
  ThreadPlace* place;
  int most_dynamic_bytes = 48 << 10;
};

struct Module {
  void* library = nullptr;
  int file = -1;
  std::vector<void*> functions;  // their handles
  ~Module();
};

struct Context {
  int device = 0;
  int retained = 0;
  bool alive = false;
  int sticky = 0;  // an error after which the context is lost

  std::unique_ptr<DeviceMemory> memory;
  std::map<uintptr_t, size_t> pinned;  // memory of the host's
  Stream null_stream;
  Table<Stream> streams;
  std::vector<std::unique_ptr<Stream>> destroyed_streams;  // with work that is still to be done
  Table<Event> events;
  Table<Module> modules;
  Table<Function> functions;
  Table<Graph> graphs, graph_execs;

  double clock_s = 0;  // time that the device has spent
  int64_t last_number = 0;
  double started_s = 0;

  void begin();
  void destroy();
  /// "2 allocations, 1 stream"; empty: nothing is left.
  std::string leaks() const;
  Stream* stream(void* handle);
  bool is_pinned(const void* address, size_t bytes) const;
};

struct Driver {
  std::mutex mutex;
  int initialized_by = 0;                          // the process
  std::vector<std::unique_ptr<Context>> contexts;  // the primary one of each device

  struct Entry {
    Context* context;
    bool pushed;
  };
  std::map<int, std::vector<Entry>> stacks;  // key: thread

  static Driver& get();
  Context* context(const void* handle) const;
  std::vector<Entry>& stack();
  Context* current();
  void report_leaks();
};

int this_thread();

/// Returns the most bytes of shared memory of a block, which a function has to ask for.
int most_shared_bytes(int device);

/// Notes a violation and gives `status`.
int violation(const std::string& what, int status);

/// `Needs` is what a call needs. A call that releases does so even if a rule makes the call fail.
enum class Needs { kNothing, kInit, kContext, kContextToRelease, kInitToRelease };

bool is_sticky(int status);
int missing(const char* name, Needs needs);

template <typename Body, typename... Args>
int call(const char* name, Needs needs, Body body, const Args&... args) {
  Driver& driver = Driver::get();
  Rules& rules = Rules::get();
  std::unique_lock lock(driver.mutex);
  std::ostringstream line;
  line << name;
  ((line << " " << args), ...);
  const Fate fate = rules.next(name);
  if (fate.kind == Fate::kHangs || fate.kind == Fate::kKills) {
    lock.unlock();
    end_in(fate, line.str());
  }
  const bool releases = needs == Needs::kContextToRelease || needs == Needs::kInitToRelease;
  int status = fate.kind == Fate::kFails ? fate.status : missing(name, needs);
  if (fate.kind == Fate::kFails && is_sticky(status) && driver.current() != nullptr) {
    driver.current()->sticky = status;
  }
  if (fate.kind == Fate::kFails && releases && missing(name, needs) == kSuccess) body();
  if (fate.kind != Fate::kFails && status == kSuccess) status = body();
  line << " -> " << status;
  rules.log(line.str());
  return status;
}

/// The calling thread's context, in the body of a call that needs one.
inline Context& here() { return *Driver::get().current(); }

}  // namespace fakes
