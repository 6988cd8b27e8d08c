// SPDX-License-Identifier: Apache-2.0
// Driver API functions that have a runtime API equivalent: contexts, memory, streams, events,
// graphs. A device has a single context, the primary context.
#pragma once

typedef cudaGraph_t CUgraph;
typedef cudaGraphExec_t CUgraphExec;
typedef cudaGraphNode_t CUgraphNode;
typedef cudaMemPool_t CUmemoryPool;
typedef cudaHostFn_t CUhostFn;
#define CU_STREAM_DEFAULT cudaStreamDefault
#define CU_STREAM_NON_BLOCKING cudaStreamNonBlocking
#define CU_STREAM_LEGACY cudaStreamLegacy
#define CU_STREAM_PER_THREAD cudaStreamPerThread
#define CU_EVENT_DEFAULT cudaEventDefault
#define CU_EVENT_BLOCKING_SYNC cudaEventBlockingSync
#define CU_EVENT_DISABLE_TIMING cudaEventDisableTiming
#define CU_EVENT_INTERPROCESS cudaEventInterprocess
#define CU_MEM_ATTACH_GLOBAL cudaMemAttachGlobal
#define CU_MEM_ATTACH_HOST cudaMemAttachHost
#define CU_MEMHOSTALLOC_PORTABLE cudaHostAllocPortable
#define CU_MEMHOSTALLOC_DEVICEMAP cudaHostAllocMapped
#define CU_MEMHOSTALLOC_WRITECOMBINED cudaHostAllocWriteCombined

/// Returns the allocation that contains an address; `begin` and `bytes` may be null.
CUresult cuMemGetAddressRange(CUdeviceptr* begin, size_t* bytes, CUdeviceptr address);

// Defines driver function `name` as a call of runtime function `as`.
#define RUNG_DRIVER(name, parameters, as, arguments) \
  inline CUresult name parameters { return rung::cuda::result(as arguments); }

RUNG_DRIVER(cuDevicePrimaryCtxRelease, (CUdevice), cudaError_t, (cudaSuccess))
RUNG_DRIVER(cuDevicePrimaryCtxReset, (CUdevice), cudaDeviceReset, ())
RUNG_DRIVER(cuCtxSetCurrent, (CUcontext), cudaError_t, (cudaSuccess))
RUNG_DRIVER(cuCtxPushCurrent, (CUcontext), cudaError_t, (cudaSuccess))
inline CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return cuCtxCreate(context, 0, device);
}
inline CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}
inline CUresult cuCtxPopCurrent(CUcontext* context) {
  if (context != nullptr) *context = nullptr;
  return CUDA_SUCCESS;
}
inline CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const cudaError_t error =
      cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess) return rung::cuda::result(error);
  return rung::cuda::result(
      cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device));
}

// Memory.
RUNG_DRIVER(cuMemAllocManaged, (CUdeviceptr * to, size_t bytes, unsigned flags), cudaMallocManaged,
            (reinterpret_cast<void**>(to), bytes, flags))
RUNG_DRIVER(cuMemAllocPitch,
            (CUdeviceptr * to, size_t* pitch, size_t width, size_t height, unsigned),
            cudaMallocPitch, (reinterpret_cast<void**>(to), pitch, width, height))
RUNG_DRIVER(cuMemAllocAsync, (CUdeviceptr * to, size_t bytes, CUstream stream), cudaMallocAsync,
            (reinterpret_cast<void**>(to), bytes, stream))
RUNG_DRIVER(cuMemFreeAsync, (CUdeviceptr of, CUstream stream), cudaFreeAsync,
            (rung::cuda::pointer(of), stream))
RUNG_DRIVER(cuMemAllocHost, (void** to, size_t bytes), cudaMallocHost, (to, bytes))
RUNG_DRIVER(cuMemHostAlloc, (void** to, size_t bytes, unsigned flags), cudaHostAlloc,
            (to, bytes, flags))
RUNG_DRIVER(cuMemFreeHost, (void* memory), cudaFreeHost, (memory))
RUNG_DRIVER(cuMemHostGetDevicePointer, (CUdeviceptr * to, void* memory, unsigned flags),
            cudaHostGetDevicePointer, (reinterpret_cast<void**>(to), memory, flags))
RUNG_DRIVER(cuMemHostRegister, (void* memory, size_t bytes, unsigned flags), cudaHostRegister,
            (memory, bytes, flags))
RUNG_DRIVER(cuMemHostUnregister, (void* memory), cudaHostUnregister, (memory))
RUNG_DRIVER(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), cudaMemcpy,
            (rung::cuda::pointer(to), rung::cuda::pointer(from), bytes, cudaMemcpyDefault))
RUNG_DRIVER(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
            cudaMemcpyAsync,
            (rung::cuda::pointer(to), rung::cuda::pointer(from), bytes, cudaMemcpyDefault, stream))
RUNG_DRIVER(cuMemcpyHtoDAsync, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream),
            cudaMemcpyAsync, (rung::cuda::pointer(to), from, bytes, cudaMemcpyHostToDevice, stream))
RUNG_DRIVER(cuMemcpyDtoHAsync, (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
            cudaMemcpyAsync, (to, rung::cuda::pointer(from), bytes, cudaMemcpyDeviceToHost, stream))
RUNG_DRIVER(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
            cudaMemcpyAsync,
            (rung::cuda::pointer(to), rung::cuda::pointer(from), bytes, cudaMemcpyDeviceToDevice,
             stream))
RUNG_DRIVER(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
            cudaMemsetAsync, (rung::cuda::pointer(to), value, count, stream))

// Streams and events.
RUNG_DRIVER(cuStreamCreate, (CUstream * stream, unsigned flags), cudaStreamCreateWithFlags,
            (stream, flags))
RUNG_DRIVER(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
            cudaStreamCreateWithPriority, (stream, flags, priority))
RUNG_DRIVER(cuStreamDestroy, (CUstream stream), cudaStreamDestroy, (stream))
RUNG_DRIVER(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize, (stream))
RUNG_DRIVER(cuStreamQuery, (CUstream stream), cudaStreamQuery, (stream))
RUNG_DRIVER(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
            cudaStreamWaitEvent, (stream, event, flags))
RUNG_DRIVER(cuLaunchHostFunc, (CUstream stream, CUhostFn call, void* data), cudaLaunchHostFunc,
            (stream, call, data))
RUNG_DRIVER(cuEventCreate, (CUevent * event, unsigned flags), cudaEventCreateWithFlags,
            (event, flags))
RUNG_DRIVER(cuEventDestroy, (CUevent event), cudaEventDestroy, (event))
RUNG_DRIVER(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord, (event, stream))
RUNG_DRIVER(cuEventSynchronize, (CUevent event), cudaEventSynchronize, (event))
RUNG_DRIVER(cuEventQuery, (CUevent event), cudaEventQuery, (event))
RUNG_DRIVER(cuEventElapsedTime, (float* milliseconds, CUevent from, CUevent to),
            cudaEventElapsedTime, (milliseconds, from, to))

// Graphs.
RUNG_DRIVER(cuStreamEndCapture, (CUstream stream, CUgraph* graph), cudaStreamEndCapture,
            (stream, graph))
RUNG_DRIVER(cuGraphCreate, (CUgraph * graph, unsigned flags), cudaGraphCreate, (graph, flags))
RUNG_DRIVER(cuGraphInstantiate, (CUgraphExec * to, CUgraph graph, unsigned long long flags),
            cudaGraphInstantiate, (to, graph, flags))
RUNG_DRIVER(cuGraphLaunch, (CUgraphExec graph, CUstream stream), cudaGraphLaunch, (graph, stream))
RUNG_DRIVER(cuGraphGetNodes, (CUgraph graph, CUgraphNode* nodes, size_t* count), cudaGraphGetNodes,
            (graph, nodes, count))
RUNG_DRIVER(cuGraphExecDestroy, (CUgraphExec graph), cudaGraphExecDestroy, (graph))
RUNG_DRIVER(cuGraphDestroy, (CUgraph graph), cudaGraphDestroy, (graph))
#undef RUNG_DRIVER

namespace rung::cuda {
template <class T>
CUresult set_memory(CUdeviceptr to, T value, size_t count) {
  T* const values = static_cast<T*>(malloc(count * sizeof(T)));
  if (values == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) values[i] = value;
  const CUresult done = cuMemcpyHtoD(to, values, count * sizeof(T));
  free(values);
  return done;
}
}  // namespace rung::cuda
inline CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return rung::cuda::set_memory(to, value, count);
}
inline CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return rung::cuda::set_memory(to, value, count);
}
