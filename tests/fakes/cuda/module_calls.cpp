// The driver's calls for modules, functions and launches.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "driver_api.h"
#include "emulator.h"
#include "state.h"

using namespace fakes;

namespace {

constexpr int kStaticBytes = 48 << 10;  // shared memory of a block that needs no asking

int no_function() {
  return violation("no such kernel: its module was never loaded, or is unloaded", kInvalidHandle);
}

int static_bytes(const KernelTable& table) {
  return static_cast<int>(table.shared_end - table.shared);
}

// A code runs where the major version is the same and the minor one not lower.
bool runs_on(unsigned arch, int device_arch) {
  const auto device = static_cast<unsigned>(device_arch);
  return arch / 10 == device / 10 && arch % 10 <= device % 10;
}

int load(const char* image, Module& module) {
  ImageHeader header;
  std::memcpy(header.magic, image, sizeof header.magic);
  if (std::memcmp(header.magic, kImageMagic, sizeof header.magic) != 0) {
    return violation("a module is loaded that is no cubin of the fake NVRTC", kInvalidImage);
  }
  std::memcpy(&header, image, sizeof header);
  if (!runs_on(header.arch, Rules::get().arch(here().device))) return kNoBinaryForGpu;
  // The file stays open: its name is that of no other module.
  module.file = memfd_create("fake cubin", MFD_CLOEXEC);
  size_t written = 0;
  while (written < header.bytes) {
    const ssize_t count =
        write(module.file, image + sizeof header + written, header.bytes - written);
    if (count <= 0) return kOutOfMemory;
    written += static_cast<size_t>(count);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module.file);
  module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module.library == nullptr) return violation(std::string("a module: ") + dlerror(), 200);
  return kSuccess;
}

struct Shape {
  Index3 blocks, threads;
  unsigned shared_bytes;
};

int check_launch(const Function& function, const Shape& shape) {
  const auto [blocks, threads, shared] = shape;
  const std::string who = "a launch of " + function.name + " with ";
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || threads.x == 0 || threads.y == 0 ||
      threads.z == 0) {
    return violation(who + "no blocks or no threads", kInvalidValue);
  }
  if (blocks.x > 2147483647 || blocks.y > 65535 || blocks.z > 65535) {
    return violation(who + "more blocks than a grid has", kInvalidValue);
  }
  const uint64_t all = uint64_t{threads.x} * threads.y * threads.z;
  if (all > 1024 || threads.x > 1024 || threads.y > 1024 || threads.z > 64) {
    return violation(who + std::to_string(all) + " threads", kInvalidValue);
  }
  const unsigned bound = function.table->max_threads;
  if (bound != 0 && all > bound) {
    return violation(
        who + std::to_string(all) + " threads, " + std::to_string(bound) + " are its bound",
        kInvalidValue);
  }
  if (static_bytes(*function.table) > kStaticBytes) {
    return violation(
        who + std::to_string(static_bytes(*function.table)) + " bytes of static shared memory",
        kInvalidValue);
  }
  if (shared > static_cast<unsigned>(function.most_dynamic_bytes)) {
    return violation(who + std::to_string(shared) + " bytes of dynamic shared memory",
                     kInvalidValue);
  }
  return kSuccess;
}

// The arguments' bytes, as they are now.
std::vector<std::string> copy_arguments(const Function& function, void** arguments) {
  std::vector<std::string> values;
  for (int i = 0; i < function.table->count; ++i) {
    values.emplace_back(static_cast<const char*>(arguments[i]), function.table->bytes[i]);
    if (!function.table->is_pointer[i]) continue;
    uint64_t address = 0;
    std::memcpy(&address, values.back().data(), sizeof address);
    const Context& context = here();
    if (address == 0 || context.memory->holds(address, 0) ||
        context.is_pinned(reinterpret_cast<void*>(address), 0)) {
      continue;
    }
    violation("argument " + std::to_string(i) + " of " + function.name + " points " +
                  context.memory->describe(address),
              0);
  }
  return values;
}

int run(Context& context,
        CuFunction handle,
        const Shape& shape,
        const std::vector<std::string>& values) {
  const Function* const function = context.functions.find(handle);
  if (function == nullptr) return no_function();
  std::vector<std::string> copies = values;  // kernels may write to their parameters
  Launch launch{shape.blocks, shape.threads, {}, shape.shared_bytes};
  for (std::string& copy : copies) launch.arguments.push_back(copy.data());
  const Ending ending = emulate(*function->table, *function->place, launch);
  if (ending.status != 0) {
    const std::string where =
        ending.address == 0 ? "" : ", " + context.memory->describe(ending.address);
    return violation(function->name + ": " + ending.what + where, ending.status);
  }
  const std::string damage = context.memory->find_damage();
  if (damage.empty()) return kSuccess;
  return violation(function->name + " writes " + damage, kIllegalAddress);
}

}  // namespace

FAKE_EXPORT CuStatus cuModuleLoadData(CuModule* handle, const void* image) {
  return call(__func__, Needs::kContext, [&]() -> int {
    if (const int forbidden = forbid_in_captures(here())) return forbidden;
    if (handle == nullptr || image == nullptr) return kInvalidValue;
    auto module = std::make_unique<Module>();
    const int status = load(static_cast<const char*>(image), *module);
    if (status == kSuccess) *handle = here().modules.add(std::move(module));
    return status;
  });
}

FAKE_EXPORT CuStatus cuModuleUnload(CuModule handle) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int {
        Context& context = here();
        if (const int forbidden = forbid_in_captures(context)) return forbidden;
        if (const int status = run_all(context)) return status;
        const std::unique_ptr<Module> module = context.modules.take(handle);
        if (module == nullptr) return violation("no such module", kInvalidHandle);
        for (void* function : module->functions) context.functions.take(function);
        return kSuccess;
      },
      handle);
}

FAKE_EXPORT CuStatus cuModuleGetFunction(CuFunction* handle, CuModule module, const char* name) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Module* const found = here().modules.find(module);
        if (found == nullptr) return violation("no such module", kInvalidHandle);
        const std::string symbol = std::string("fake_kernel_") + name;
        const auto* table = static_cast<KernelTable*>(dlsym(found->library, symbol.c_str()));
        auto* place = static_cast<ThreadPlace*>(dlsym(found->library, "fake_thread"));
        if (table == nullptr || place == nullptr) return kNotFound;
        *handle =
            here().functions.add(std::make_unique<Function>(Function{found, name, table, place}));
        found->functions.push_back(*handle);
        return kSuccess;
      },
      module,
      name);
}

FAKE_EXPORT CuStatus cuFuncGetAttribute(int* value, int attribute, CuFunction handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        const Function* const function = here().functions.find(handle);
        if (function == nullptr) return no_function();
        const int arch = Rules::get().arch(here().device);
        switch (attribute) {
          case 0: *value = static_cast<int>(function->table->max_threads); break;
          case 1: *value = static_bytes(*function->table); break;
          case 2: *value = 0; break;   // constant memory
          case 3: *value = 0; break;   // local memory
          case 4: *value = 32; break;  // registers
          case 5:
          case 6: *value = arch; break;
          case 7: *value = 0; break;
          case 8: *value = function->most_dynamic_bytes; break;
          case 9: *value = -1; break;
          default: return kInvalidValue;
        }
        if (attribute == 0 && *value == 0) *value = 1024;
        return kSuccess;
      },
      attribute,
      handle);
}

FAKE_EXPORT CuStatus cuFuncSetAttribute(CuFunction handle, int attribute, int value) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        enum { kMostDynamicBytes = 8, kCarveout = 9 };
        Function* const function = here().functions.find(handle);
        if (function == nullptr) return no_function();
        if (attribute == kCarveout) return kSuccess;
        if (attribute != kMostDynamicBytes || value < 0) return kInvalidValue;
        const int bytes = value + static_bytes(*function->table);
        if (bytes > most_shared_bytes(here().device))
          return violation(
              function->name + " asks for " + std::to_string(bytes) + " bytes of shared memory",
              kInvalidValue);
        function->most_dynamic_bytes = value;
        return kSuccess;
      },
      handle,
      attribute,
      value);
}

namespace {

// Puts a kernel into a stream.
int launch(
    CuFunction handle, const Shape& shape, CuStream stream_handle, void** arguments, void** extra) {
  Context& context = here();
  Stream* const stream = context.stream(stream_handle);
  const Function* const function = context.functions.find(handle);
  if (stream == nullptr) return violation("no such stream", kInvalidHandle);
  if (function == nullptr) return no_function();
  if (const int status = check_launch(*function, shape)) return status;
  if (extra != nullptr || (arguments == nullptr && function->table->count > 0)) {
    return kInvalidValue;
  }
  const std::vector<std::string> values = copy_arguments(*function, arguments);
  return enqueue(context, *stream, {"the kernel " + function->name, [=](Context& later) {
                                      return run(later, handle, shape, values);
                                    }});
}

// The only attribute that the fake knows: the launch may begin before those before it have ended.
bool is_early(const CuLaunchAttribute& attribute) {
  constexpr int kProgrammaticStreamSerialization = 6;
  return attribute.id == kProgrammaticStreamSerialization && attribute.value[0] == 1;
}

}  // namespace

FAKE_EXPORT CuStatus cuLaunchKernel(CuFunction handle,
                                    unsigned blocks_x,
                                    unsigned blocks_y,
                                    unsigned blocks_z,
                                    unsigned threads_x,
                                    unsigned threads_y,
                                    unsigned threads_z,
                                    unsigned shared_bytes,
                                    CuStream stream,
                                    void** arguments,
                                    void** extra) {
  const Shape shape{
      {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared_bytes};
  return call(
      __func__,
      Needs::kContext,
      [&] { return launch(handle, shape, stream, arguments, extra); },
      handle,
      blocks_x,
      blocks_y,
      blocks_z,
      threads_x,
      threads_y,
      threads_z,
      shared_bytes,
      stream);
}

FAKE_EXPORT CuStatus cuLaunchKernelEx(const CuLaunchConfig* config,
                                      CuFunction handle,
                                      void** arguments,
                                      void** extra) {
  const auto body = [&]() -> int {
    if (config == nullptr) return kInvalidValue;
    if (config->num_attributes > 0 && Rules::get().arch(here().device) < 90)
      return violation("a launch with attributes on a device that has none", kInvalidValue);
    for (unsigned i = 0; i < config->num_attributes; ++i) {
      if (!is_early(config->attributes[i]))
        return violation("an attribute of a launch that the fake does not know", kInvalidValue);
    }
    const Shape shape{{config->blocks[0], config->blocks[1], config->blocks[2]},
                      {config->threads[0], config->threads[1], config->threads[2]},
                      config->shared_bytes};
    return launch(handle, shape, config->stream, arguments, extra);
  };
  if (config == nullptr) return call(__func__, Needs::kContext, body, handle);
  return call(__func__,
              Needs::kContext,
              body,
              handle,
              config->blocks[0],
              config->threads[0],
              config->shared_bytes,
              config->stream);
}
