// The driver's calls for memory and copies.
#include <cstdlib>
#include <cstring>

#include "driver_api.h"
#include "state.h"

using namespace fakes;

namespace {

bool is_there(const char* what, CuDevicePtr address, size_t bytes) {
  const DeviceMemory& memory = *here().memory;
  if (memory.holds(address, bytes)) return true;
  const bool begins = memory.holds(address, 0);
  violation(std::string(what) + " of " + std::to_string(bytes) + " bytes, " +
                (begins ? "more than there are: " : "") + memory.describe(address),
            0);
  return false;
}

// When the copy's turn comes.
int check_again(Context& context, const char* what, CuDevicePtr address, size_t bytes) {
  if (context.memory->holds(address, bytes)) return kSuccess;
  return violation(std::string(what) + ", which was queued: " + context.memory->describe(address),
                   kIllegalAddress);
}

void* at(CuDevicePtr address) { return reinterpret_cast<void*>(address); }

// Memory of the host that may be paged out is copied before the call returns, or is a wait: in a
// capture CUDA's documentation promises neither.
int queue_copy(Stream& stream, bool pageable, Operation operation) {
  if (pageable && stream.capture) return forbid_in_capture(stream);
  return enqueue(here(), stream, std::move(operation));
}

}  // namespace

FAKE_EXPORT CuStatus cuMemAlloc_v2(CuDevicePtr* address, size_t bytes) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Context& context = here();
        if (const int forbidden = forbid_in_captures(context)) return forbidden;
        if (address == nullptr || bytes == 0) return kInvalidValue;
        const uint64_t all = Rules::get().settings().memory_bytes;
        if (bytes > all || context.memory->used_bytes() > all - bytes) return kOutOfMemory;
        *address = context.memory->allocate(bytes);
        return *address == 0 ? kOutOfMemory : kSuccess;
      },
      bytes);
}

// Waits for the device, as CUDA's cuMemFree does.
FAKE_EXPORT CuStatus cuMemFree_v2(CuDevicePtr address) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int {
        Context& context = here();
        if (address == 0) return kSuccess;
        if (const int forbidden = forbid_in_captures(context)) return forbidden;
        if (const int status = run_all(context)) return status;
        if (context.memory->release(address)) return kSuccess;
        return violation(
            "memory is freed that was not allocated: " + context.memory->describe(address),
            kInvalidValue);
      },
      address);
}

FAKE_EXPORT CuStatus cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call(__func__, Needs::kContext, [&] {
    *total = Rules::get().settings().memory_bytes;
    *free = *total - here().memory->used_bytes();
    return kSuccess;
  });
}

// Three of the attributes: the kind of memory, whether it is managed, and the device. Of pageable
// memory CUDA knows nothing.
FAKE_EXPORT CuStatus cuPointerGetAttribute(void* value, int attribute, CuDevicePtr address) {
  enum { kMemoryType = 2, kManaged = 8, kDevice = 9, kHost = 1, kOnDevice = 2 };
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        if (value == nullptr ||
            (attribute != kMemoryType && attribute != kManaged && attribute != kDevice))
          return kInvalidValue;
        for (const auto& context : Driver::get().contexts) {
          if (!context->alive) continue;
          const bool on_device = context->memory->holds(address, 1);
          if (!on_device && !context->is_pinned(at(address), 1)) continue;
          // All of them are 4 bytes wide; the fake has no managed memory.
          *static_cast<int*>(value) = attribute == kDevice    ? context->device
                                      : attribute == kManaged ? 0
                                      : on_device             ? kOnDevice
                                                              : kHost;
          return kSuccess;
        }
        return kInvalidValue;
      },
      attribute,
      address);
}

FAKE_EXPORT CuStatus cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        if (const int forbidden = forbid_in_captures(here())) return forbidden;
        if (address == nullptr || bytes == 0 || flags > 7) return kInvalidValue;
        *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        if (*address == nullptr) return kOutOfMemory;
        std::memset(*address, 0xff, bytes);
        here().pinned[reinterpret_cast<uintptr_t>(*address)] = bytes;
        return kSuccess;
      },
      bytes,
      flags);
}

FAKE_EXPORT CuStatus cuMemFreeHost(void* address) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int {
        if (const int forbidden = forbid_in_captures(here())) return forbidden;
        if (const int status = run_all(here())) return status;
        if (here().pinned.erase(reinterpret_cast<uintptr_t>(address)) == 0) {
          return violation("pinned memory is freed that was not allocated", kInvalidValue);
        }
        std::free(address);
        return kSuccess;
      },
      address);
}

FAKE_EXPORT CuStatus cuMemsetD8Async(CuDevicePtr to,
                                     unsigned char value,
                                     size_t bytes,
                                     CuStream handle) {
  const char* const name = __func__;
  return call(
      name,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return violation("no such stream", kInvalidHandle);
        if (!is_there(name, to, bytes)) return kInvalidValue;
        return enqueue(here(), *stream, {name, [=](Context& context) {
                                           const int status = check_again(context, name, to, bytes);
                                           if (status == 0) std::memset(at(to), value, bytes);
                                           return status;
                                         }});
      },
      to,
      static_cast<int>(value),
      bytes,
      handle);
}

FAKE_EXPORT CuStatus cuMemcpyHtoDAsync_v2(CuDevicePtr to,
                                          const void* from,
                                          size_t bytes,
                                          CuStream handle) {
  const char* const name = __func__;
  return call(
      name,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return violation("no such stream", kInvalidHandle);
        if (!is_there(name, to, bytes)) return kInvalidValue;
        const bool pageable = !here().is_pinned(from, bytes);
        const auto staged = std::make_shared<std::string>();
        if (pageable) staged->assign(static_cast<const char*>(from), bytes);
        return queue_copy(
            *stream, pageable, {name, [=](Context& context) {
                                  const int status = check_again(context, name, to, bytes);
                                  if (status == 0)
                                    std::memcpy(at(to), pageable ? staged->data() : from, bytes);
                                  return status;
                                }});
      },
      to,
      from,
      bytes,
      handle);
}

FAKE_EXPORT CuStatus cuMemcpyDtoHAsync_v2(void* to,
                                          CuDevicePtr from,
                                          size_t bytes,
                                          CuStream handle) {
  const char* const name = __func__;
  return call(
      name,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return violation("no such stream", kInvalidHandle);
        if (!is_there(name, from, bytes)) return kInvalidValue;
        const bool pageable = !here().is_pinned(to, bytes);
        const int status = queue_copy(*stream, pageable, {name, [=](Context& context) {
                                                            const int there = check_again(
                                                                context, name, from, bytes);
                                                            if (there == 0)
                                                              std::memcpy(to, at(from), bytes);
                                                            return there;
                                                          }});
        return status == 0 && pageable ? run_stream(here(), *stream) : status;
      },
      to,
      from,
      bytes,
      handle);
}

FAKE_EXPORT CuStatus cuMemcpyDtoDAsync_v2(CuDevicePtr to,
                                          CuDevicePtr from,
                                          size_t bytes,
                                          CuStream handle) {
  const char* const name = __func__;
  return call(
      name,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return violation("no such stream", kInvalidHandle);
        if (!is_there(name, from, bytes) || !is_there(name, to, bytes)) return kInvalidValue;
        return enqueue(here(), *stream, {name, [=](Context& context) {
                                           int status = check_again(context, name, to, bytes);
                                           if (status == 0)
                                             status = check_again(context, name, from, bytes);
                                           if (status == 0) std::memmove(at(to), at(from), bytes);
                                           return status;
                                         }});
      },
      to,
      from,
      bytes,
      handle);
}
