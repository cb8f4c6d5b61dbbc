// The part of CUDA's driver interface that the fake has, by NVIDIA's documentation. Handles are
// opaque, and a status that is not 0 is an error.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using CuStatus = int;
using CuDevice = int;
using CuContext = void*;
using CuStream = void*;
using CuEvent = void*;
using CuModule = void*;
using CuFunction = void*;
using CuGraph = void*;
using CuGraphExec = void*;
using CuDevicePtr = unsigned long long;
struct CuLaunchAttribute {
  int id, pad;
  int value[16];
};
struct CuLaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  CuStream stream;
  const CuLaunchAttribute* attributes;
  unsigned num_attributes;
};

CuStatus cuInit(unsigned flags);
CuStatus cuDriverGetVersion(int* version);
CuStatus cuGetErrorString(CuStatus status, const char** text);
CuStatus cuGetErrorName(CuStatus status, const char** name);

CuStatus cuDeviceGetCount(int* count);
CuStatus cuDeviceGet(CuDevice* device, int number);
CuStatus cuDeviceGetName(char* name, int bytes, CuDevice device);
CuStatus cuDeviceGetAttribute(int* value, int attribute, CuDevice device);
CuStatus cuDeviceTotalMem_v2(size_t* bytes, CuDevice device);
CuStatus cuDeviceGetPCIBusId(char* id, int bytes, CuDevice device);

CuStatus cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device);
CuStatus cuDevicePrimaryCtxRelease_v2(CuDevice device);
CuStatus cuDevicePrimaryCtxReset_v2(CuDevice device);
CuStatus cuCtxPushCurrent_v2(CuContext context);
CuStatus cuCtxPopCurrent_v2(CuContext* context);
CuStatus cuCtxSetCurrent(CuContext context);
CuStatus cuCtxSynchronize();

CuStatus cuStreamCreate(CuStream* stream, unsigned flags);
CuStatus cuStreamDestroy_v2(CuStream stream);
CuStatus cuStreamSynchronize(CuStream stream);
CuStatus cuStreamQuery(CuStream stream);
CuStatus cuStreamGetCtx(CuStream stream, CuContext* context);
CuStatus cuStreamIsCapturing(CuStream stream, int* status);
CuStatus cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags);

CuStatus cuEventCreate(CuEvent* event, unsigned flags);
CuStatus cuEventRecord(CuEvent event, CuStream stream);
CuStatus cuEventSynchronize(CuEvent event);
CuStatus cuEventQuery(CuEvent event);
CuStatus cuEventElapsedTime(float* milliseconds, CuEvent start, CuEvent end);
CuStatus cuEventDestroy_v2(CuEvent event);

CuStatus cuMemAlloc_v2(CuDevicePtr* address, size_t bytes);
CuStatus cuMemFree_v2(CuDevicePtr address);
CuStatus cuMemGetInfo_v2(size_t* free, size_t* total);
CuStatus cuPointerGetAttribute(void* value, int attribute, CuDevicePtr address);
CuStatus cuMemHostAlloc(void** address, size_t bytes, unsigned flags);
CuStatus cuMemFreeHost(void* address);
CuStatus cuMemsetD8Async(CuDevicePtr to, unsigned char value, size_t bytes, CuStream stream);
CuStatus cuMemcpyHtoDAsync_v2(CuDevicePtr to, const void* from, size_t bytes, CuStream stream);
CuStatus cuMemcpyDtoHAsync_v2(void* to, CuDevicePtr from, size_t bytes, CuStream stream);
CuStatus cuMemcpyDtoDAsync_v2(CuDevicePtr to, CuDevicePtr from, size_t bytes, CuStream stream);

CuStatus cuModuleLoadData(CuModule* module, const void* image);
CuStatus cuModuleUnload(CuModule module);
CuStatus cuModuleGetFunction(CuFunction* function, CuModule module, const char* name);
CuStatus cuFuncGetAttribute(int* value, int attribute, CuFunction function);
CuStatus cuFuncSetAttribute(CuFunction function, int attribute, int value);
CuStatus cuLaunchKernel(CuFunction function,
                        unsigned blocks_x,
                        unsigned blocks_y,
                        unsigned blocks_z,
                        unsigned threads_x,
                        unsigned threads_y,
                        unsigned threads_z,
                        unsigned shared_bytes,
                        CuStream stream,
                        void** arguments,
                        void** extra);
CuStatus cuLaunchKernelEx(const CuLaunchConfig* config,
                          CuFunction function,
                          void** arguments,
                          void** extra);

CuStatus cuStreamBeginCapture_v2(CuStream stream, int mode);
CuStatus cuStreamEndCapture(CuStream stream, CuGraph* graph);
CuStatus cuGraphInstantiateWithFlags(CuGraphExec* exec, CuGraph graph, unsigned long long flags);
CuStatus cuGraphLaunch(CuGraphExec exec, CuStream stream);
CuStatus cuGraphExecDestroy(CuGraphExec exec);
CuStatus cuGraphDestroy(CuGraph graph);

/// Reads the environment again and forgets all there was, as if the process had just begun. Only
/// the fake has this call. Returns the number of violations, leaks included.
int fake_cuda_restart();

}  // extern "C"
