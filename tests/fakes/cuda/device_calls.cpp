// The driver's calls for devices and contexts.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver_api.h"
#include "errors.h"
#include "state.h"

using namespace fakes;

namespace {

struct DeviceRow {
  int arch;
  int processors, threads_per_processor, blocks_per_processor;
  int shared_per_processor, most_shared_per_block;  // bytes
  int l2_bytes;
};

// `kDevices` has the numbers of V100, T4, A100, A10G, L4 and H100.
constexpr DeviceRow kDevices[] = {
    {70, 80, 2048, 32, 98304, 98304, 6 << 20},
    {75, 40, 1024, 16, 65536, 65536, 4 << 20},
    {80, 108, 2048, 32, 167936, 166912, 40 << 20},
    {86, 80, 1536, 16, 102400, 101376, 6 << 20},
    {89, 58, 1536, 24, 102400, 101376, 48 << 20},
    {90, 132, 2048, 32, 233472, 232448, 50 << 20},
};

int arch_of(CuDevice device) { return Rules::get().arch(device); }

const DeviceRow& row_of(CuDevice device) {
  const DeviceRow* row = kDevices;
  for (const DeviceRow& known : kDevices) {
    if (known.arch <= arch_of(device)) row = &known;
  }
  return *row;
}

bool is_device(CuDevice device) { return device >= 0 && device < Rules::get().settings().devices; }

// Returns an attribute by its number in CUdevice_attribute; -1: the fake does not say.
int attribute_of(CuDevice device, int attribute) {
  const DeviceRow& row = row_of(device);
  switch (attribute) {
    case 1: return 1024;  // threads of a block
    case 2:
    case 3: return 1024;
    case 4: return 64;
    case 5: return 2147483647;  // blocks of a grid
    case 6:
    case 7: return 65535;
    case 8: return 48 << 10;  // shared memory of a block
    case 9: return 64 << 10;
    case 10: return 32;
    case 11: return 2147483647;
    case 12: return 65536;
    case 13: return 1410000;  // kHz
    case 14: return 512;
    case 16: return row.processors;
    case 17:
    case 18: return 0;
    case 19: return 1;
    case 20: return 0;
    case 31: return 1;
    case 32: return 1;  // ECC
    case 33: return device + 1;
    case 34: return 0;
    case 36: return 1215000;  // kHz
    case 37: return 5120;     // bits
    case 38: return row.l2_bytes;
    case 39: return row.threads_per_processor;
    case 40: return 3;
    case 41: return 1;
    case 50: return 0;
    case 75: return arch_of(device) / 10;
    case 76: return arch_of(device) % 10;
    case 78: return 1;
    case 81: return row.shared_per_processor;
    case 82: return 65536;
    case 97: return row.most_shared_per_block;
    case 106: return row.blocks_per_processor;
    case 111: return row.arch >= 80 ? 1024 : 0;
    default: return -1;
  }
}

int copy_text(char* to, int bytes, const std::string& text) {
  if (to == nullptr || bytes <= 0) return kInvalidValue;
  snprintf(to, static_cast<size_t>(bytes), "%s", text.c_str());
  return kSuccess;
}

const ErrorRow* error_row(int status) {
  const auto* const row = std::find_if(std::begin(kErrors),
                                       std::end(kErrors),
                                       [&](const ErrorRow& r) { return r.status == status; });
  return row == std::end(kErrors) ? nullptr : row;
}

}  // namespace

int fakes::most_shared_bytes(int device) { return row_of(device).most_shared_per_block; }

FAKE_EXPORT CuStatus cuInit(unsigned flags) {
  return call(
      __func__,
      Needs::kNothing,
      [&] {
        Driver& driver = Driver::get();
        if (flags != 0) return kInvalidValue;
        driver.initialized_by = getpid();
        while (static_cast<int>(driver.contexts.size()) < Rules::get().settings().devices) {
          const auto& context = driver.contexts.emplace_back(std::make_unique<Context>());
          context->device = static_cast<int>(driver.contexts.size()) - 1;
        }
        return driver.contexts.empty() ? static_cast<Status>(100) : kSuccess;
      },
      flags);
}

FAKE_EXPORT CuStatus cuDriverGetVersion(int* version) {
  return call(__func__, Needs::kNothing, [&] {
    *version = Rules::get().settings().version;
    return kSuccess;
  });
}

FAKE_EXPORT CuStatus cuGetErrorString(CuStatus status, const char** text) {
  return call(
      __func__,
      Needs::kNothing,
      [&] {
        const ErrorRow* row = error_row(status);
        *text = row == nullptr ? nullptr : row->text;
        return row == nullptr ? kInvalidValue : kSuccess;
      },
      status);
}

FAKE_EXPORT CuStatus cuGetErrorName(CuStatus status, const char** name) {
  return call(
      __func__,
      Needs::kNothing,
      [&] {
        const ErrorRow* row = error_row(status);
        *name = row == nullptr ? nullptr : row->name;
        return row == nullptr ? kInvalidValue : kSuccess;
      },
      status);
}

FAKE_EXPORT CuStatus cuDeviceGetCount(int* count) {
  return call(__func__, Needs::kInit, [&] {
    *count = Rules::get().settings().devices;
    return kSuccess;
  });
}

FAKE_EXPORT CuStatus cuDeviceGet(CuDevice* device, int number) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        if (!is_device(number)) return kInvalidDevice;
        *device = number;
        return kSuccess;
      },
      number);
}

FAKE_EXPORT CuStatus cuDeviceGetName(char* name, int bytes, CuDevice device) {
  return call(
      __func__,
      Needs::kInit,
      [&]() -> int {
        if (!is_device(device)) return kInvalidDevice;
        return copy_text(name, bytes, "Fake GPU sm_" + std::to_string(arch_of(device)));
      },
      device);
}

FAKE_EXPORT CuStatus cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        if (!is_device(device)) return kInvalidDevice;
        *value = attribute_of(device, attribute);
        return *value < 0 ? kInvalidValue : kSuccess;
      },
      attribute,
      device);
}

FAKE_EXPORT CuStatus cuDeviceTotalMem_v2(size_t* bytes, CuDevice device) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        if (!is_device(device)) return kInvalidDevice;
        *bytes = Rules::get().settings().memory_bytes;
        return kSuccess;
      },
      device);
}

FAKE_EXPORT CuStatus cuDeviceGetPCIBusId(char* id, int bytes, CuDevice device) {
  return call(
      __func__,
      Needs::kInit,
      [&]() -> int {
        if (!is_device(device)) return kInvalidDevice;
        char text[32];
        snprintf(text, sizeof text, "0000:%02X:00.0", device + 1);
        return copy_text(id, bytes, text);
      },
      device);
}

FAKE_EXPORT CuStatus cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        if (!is_device(device)) return kInvalidDevice;
        Context& primary = *Driver::get().contexts[static_cast<size_t>(device)];
        if (!primary.alive) primary.begin();
        ++primary.retained;
        *context = &primary;
        return kSuccess;
      },
      device);
}

FAKE_EXPORT CuStatus cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  return call(
      __func__,
      Needs::kInitToRelease,
      [&] {
        if (!is_device(device)) return kInvalidDevice;
        Context& primary = *Driver::get().contexts[static_cast<size_t>(device)];
        if (primary.retained == 0) {
          violation("a context is released that was not retained", 0);
          return kInvalidContext;
        }
        if (--primary.retained > 0) return kSuccess;
        if (primary.alive && primary.sticky == 0) {
          run_all(primary);
          const std::string left = primary.leaks();
          if (!left.empty() && primary.sticky == 0)
            violation("a context is released that has " + left, 0);
        }
        primary.destroy();
        return kSuccess;
      },
      device);
}

FAKE_EXPORT CuStatus cuDevicePrimaryCtxReset_v2(CuDevice device) {
  return call(
      __func__,
      Needs::kInitToRelease,
      [&] {
        if (!is_device(device)) return kInvalidDevice;
        Driver::get().contexts[static_cast<size_t>(device)]->destroy();
        return kSuccess;
      },
      device);
}

FAKE_EXPORT CuStatus cuCtxPushCurrent_v2(CuContext context) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        Driver& driver = Driver::get();
        Context* const found = driver.context(context);
        if (found == nullptr) return kInvalidContext;
        if (!found->alive) return kContextIsDestroyed;
        driver.stack().push_back({found, true});
        return kSuccess;
      },
      context);
}

FAKE_EXPORT CuStatus cuCtxPopCurrent_v2(CuContext* context) {
  return call(__func__, Needs::kInitToRelease, [&]() -> int {
    std::vector<Driver::Entry>& stack = Driver::get().stack();
    if (stack.empty()) return violation("a context is popped where none is", kInvalidContext);
    if (context != nullptr) *context = stack.back().context;
    stack.pop_back();
    return kSuccess;
  });
}

FAKE_EXPORT CuStatus cuCtxSetCurrent(CuContext context) {
  return call(
      __func__,
      Needs::kInit,
      [&] {
        Driver& driver = Driver::get();
        std::vector<Driver::Entry>& stack = driver.stack();
        if (context == nullptr) {
          if (!stack.empty()) stack.pop_back();
          return kSuccess;
        }
        Context* const found = driver.context(context);
        if (found == nullptr) return kInvalidContext;
        if (!found->alive) return kContextIsDestroyed;
        if (stack.empty()) stack.push_back({found, false});
        stack.back().context = found;
        return kSuccess;
      },
      context);
}

FAKE_EXPORT CuStatus cuCtxSynchronize() {
  return call(__func__, Needs::kContext, [&] {
    const int forbidden = forbid_in_captures(here());
    return forbidden != 0 ? forbidden : run_all(here());
  });
}
