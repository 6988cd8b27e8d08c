// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include "rung/emulate/runtime/stream.hpp"

#include <atomic>
#include <mutex>
#include <set>

#include "rung/emulate/runtime/memory.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

std::atomic<int> captures{0};
std::mutex handles_mutex;
std::set<CUstream_st*>& streams() {
  static auto& all = *new std::set<CUstream_st*>;
  return all;
}
std::set<CUevent_st*>& events() {
  static auto& all = *new std::set<CUevent_st*>;
  return all;
}

bool known(cudaEvent_t event) {
  const std::lock_guard lock(handles_mutex);
  return events().count(event) != 0;
}

}  // namespace

bool any_capture() { return captures.load(std::memory_order_relaxed) != 0; }

CUstream_st* stream_of(cudaStream_t stream) {
  static auto& default_stream = *new CUstream_st;
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return &default_stream;
  }
  const std::lock_guard lock(handles_mutex);
  return streams().count(stream) != 0 ? stream : nullptr;
}

cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type,
                   std::function<cudaError_t()> operation) {
  if (device_failure() != cudaSuccess) return remember(cudaSuccess);
  CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) {
    there->capture->nodes.push_back(
        std::make_shared<CUgraphNode_st>(CUgraphNode_st{type, std::move(operation)}));
    return remember(cudaSuccess);
  }
  return remember(operation());
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: its implementation

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return remember(cudaErrorInvalidValue);
  auto* made = new CUstream_st{flags, priority};
  const std::lock_guard lock(handles_mutex);
  streams().insert(made);
  *stream = made;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(handles_mutex);
  if (streams().erase(stream) == 0) return remember(cudaErrorInvalidResourceHandle);
  delete stream;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  return remember(there->capture != nullptr ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  *priority = there->priority;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  *flags = there->flags;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID,
                                   const cudaLaunchAttributeValue*) {
  return remember(cudaSuccess);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, std::size_t, unsigned int) {
  return remember(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return submit(stream, cudaGraphNodeTypeHost, [=] {
    function(data);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int) {
  return submit(stream, cudaGraphNodeTypeHost, [=] {
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (event == nullptr) return remember(cudaErrorInvalidValue);
  auto* made = new CUevent_st{flags};
  const std::lock_guard lock(handles_mutex);
  events().insert(made);
  *event = made;
  return remember(cudaSuccess);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(handles_mutex);
  if (events().erase(event) == 0) return remember(cudaErrorInvalidResourceHandle);
  delete event;
  return remember(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr || !known(event)) return remember(cudaErrorInvalidResourceHandle);
  advance_clock(500);
  event->capture = there->capture;
  event->recorded = true;
  event->time = clock_now();
  return remember(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return remember(known(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return remember(cudaErrorInvalidValue);
  const bool good = known(start) && known(end) && start->recorded && end->recorded &&
                    ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
  if (!good) return remember(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>((end->time - start->time) * 1e-6);
  return remember(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr || !known(event)) return remember(cudaErrorInvalidResourceHandle);
  // A stream that waits for captured work is captured with it.
  if (event->capture != nullptr && there->capture == nullptr) there->capture = event->capture;
  return remember(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there == stream_of(nullptr)) return remember(cudaErrorStreamCaptureUnsupported);
  if (there->capture != nullptr) return remember(cudaErrorIllegalState);
  there->capture = new CUgraph_st;
  there->origin = true;
  ++captures;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture == nullptr) return remember(cudaErrorIllegalState);
  if (!there->origin) return remember(cudaErrorStreamCaptureUnmatched);
  CUgraph_st* const captured = there->capture;
  const std::lock_guard lock(handles_mutex);
  for (CUstream_st* one : streams()) {
    if (one->capture == captured) one->capture = nullptr;
  }
  for (CUevent_st* one : events()) {
    if (one->capture == captured) one->capture = nullptr;
  }
  there->origin = false;
  --captures;
  *graph = captured;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  *status = there->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return remember(cudaSuccess);
}
