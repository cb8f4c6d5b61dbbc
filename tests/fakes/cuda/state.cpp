#include "state.h"

#include <dlfcn.h>

#include <atomic>

#include "driver_api.h"

namespace fakes {

uintptr_t new_handle() {
  static uintptr_t last = 0x1000;  // no address of this process
  return last += 0x10;
}

Module::~Module() {
  if (library != nullptr) dlclose(library);
  if (file >= 0) close(file);
}

void Context::begin() {
  alive = true;
  memory = std::make_unique<DeviceMemory>();
}

void Context::destroy() {
  for (const auto& [address, bytes] : pinned) free(reinterpret_cast<void*>(address));
  const int was_device = device, was_retained = retained;
  *this = Context();
  device = was_device;
  retained = was_retained;
}

std::string Context::leaks() const {
  std::string text;
  const auto add = [&](size_t count, const char* what) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(memory == nullptr ? 0 : memory->count(), "allocations");
  add(pinned.size(), "pinned allocations");
  add(streams.size(), "streams");
  add(events.size(), "events");
  add(modules.size(), "modules");
  add(graphs.size(), "graphs");
  add(graph_execs.size(), "executable graphs");
  return text;
}

Stream* Context::stream(void* handle) {
  return handle == nullptr ? &null_stream : streams.find(handle);
}

bool Context::is_pinned(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin()) return false;
  const auto& [start, size] = *--next;
  return at - start <= size && bytes <= size - (at - start);
}

Driver& Driver::get() {
  static auto* const driver = new Driver;  // stays: calls come until the process ends
  return *driver;
}

int this_thread() {
  static std::atomic<int> last = 0;
  static thread_local const int number = ++last;
  return number;
}

Context* Driver::context(const void* handle) const {
  for (const auto& context : contexts) {
    if (context.get() == handle) return context.get();
  }
  return nullptr;
}

std::vector<Driver::Entry>& Driver::stack() { return stacks[this_thread()]; }

Context* Driver::current() {
  const std::vector<Entry>& entries = stack();
  return entries.empty() ? nullptr : entries.back().context;
}

int violation(const std::string& what, int status) {
  Rules::get().violation(what);
  return status;
}

// After these no call of the context does anything.
bool is_sticky(int status) {
  return status == kIllegalAddress || status == 702 || status == 710 ||
         (status >= 714 && status <= kLaunchFailed);
}

int missing(const char* name, Needs needs) {
  if (needs == Needs::kNothing) return kSuccess;
  Driver& driver = Driver::get();
  const std::string call = name;
  if (driver.initialized_by == 0) return violation(call + " before cuInit", kNotInitialized);
  if (driver.initialized_by != getpid()) {
    return violation(call + " in a child of the process that called cuInit", kNotInitialized);
  }
  if (needs == Needs::kInit || needs == Needs::kInitToRelease) return kSuccess;
  const Context* context = driver.current();
  if (context == nullptr) return violation(call + " without a current context", kInvalidContext);
  if (!context->alive) return violation(call + " in a destroyed context", kContextIsDestroyed);
  return context->sticky;
}

void Driver::report_leaks() {
  if (initialized_by != getpid()) return;
  for (const auto& context : contexts) {
    if (context->sticky != 0) return;  // a lost one gives nothing back
  }
  for (const auto& [thread, entries] : stacks) {
    size_t pushed = 0;
    for (const Entry& entry : entries) pushed += entry.pushed ? 1 : 0;
    if (pushed != 0)
      violation(std::to_string(pushed) + " contexts were pushed and never popped", 0);
  }
  for (const auto& context : contexts) {
    if (!context->alive) continue;
    const std::string left = context->leaks();
    if (!left.empty()) violation("left at the end: " + left, 0);
    if (context->retained != 0) {
      violation("left at the end: the context of device " + std::to_string(context->device) +
                    ", retained " + std::to_string(context->retained) + " times",
                0);
    }
  }
}

__attribute__((destructor)) static void report_at_the_end() { Driver::get().report_leaks(); }

}  // namespace fakes

FAKE_EXPORT int fake_cuda_restart() {
  fakes::Driver& driver = fakes::Driver::get();
  const std::lock_guard lock(driver.mutex);
  driver.report_leaks();
  const int violations = fakes::Rules::get().violations();
  for (const auto& context : driver.contexts) context->destroy();
  driver.contexts.clear();
  driver.stacks.clear();
  driver.initialized_by = 0;
  fakes::Rules::get().read();
  return violations;
}
