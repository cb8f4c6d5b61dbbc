/* What the examples need of CUDA's driver interface: its own header, or, where no toolkit is
   installed, the same declarations. */
#ifndef PRUNER_EXAMPLES_CUDA_DRIVER_H_
#define PRUNER_EXAMPLES_CUDA_DRIVER_H_

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAS_CUDA_HEADER
#endif
#endif

#ifndef HAS_CUDA_HEADER
#ifdef __cplusplus
extern "C" {
#endif
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
enum { CU_STREAM_NON_BLOCKING = 1, CU_STREAM_CAPTURE_MODE_GLOBAL = 0 };
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec* graph, CUgraph from, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream);
CUresult cuGraphExecDestroy(CUgraphExec graph);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#ifdef __cplusplus
}
#endif
#endif

#endif /* PRUNER_EXAMPLES_CUDA_DRIVER_H_ */
