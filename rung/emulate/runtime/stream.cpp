// SPDX-License-Identifier: Apache-2.0
// Streams, and submission of work to them.
#include "rung/emulate/runtime/stream.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <set>

#include "rung/emulate/runtime/devices.hpp"
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

CUstream_st& default_stream(int device) {
  static auto& all = *new std::array<CUstream_st, max_devices>;
  CUstream_st& one = all[static_cast<std::size_t>(device)];
  one.device = device;
  return one;
}

bool any_stream() {
  const std::lock_guard lock(handles_mutex);
  return !streams().empty();
}

/// Returns the work that must complete before work submitted to the stream now. The default stream
/// and the blocking streams of the same device wait for each other.
std::vector<TaskRef> work_before(const CUstream_st& stream) {
  std::vector<TaskRef> before;
  if (!any_task()) return before;
  const auto add = [&](const CUstream_st& one) {
    if (one.last != nullptr && !one.last->done) before.push_back(one.last);
  };
  add(stream);
  if ((stream.flags & cudaStreamNonBlocking) != 0) return before;
  CUstream_st& common = default_stream(stream.device);
  if (&stream != &common) {
    add(common);
    return before;
  }
  for (const CUstream_st* one : streams()) {
    const bool blocks = (one->flags & cudaStreamNonBlocking) == 0;
    if (blocks && one->device == stream.device) add(*one);
  }
  return before;
}

}  // namespace

CUevent_st* event_of(cudaEvent_t event) {
  const std::lock_guard lock(handles_mutex);
  return events().count(event) != 0 ? event : nullptr;
}
void add_event(CUevent_st* event) {
  const std::lock_guard lock(handles_mutex);
  events().insert(event);
}
bool remove_event(cudaEvent_t event) {
  const std::lock_guard lock(handles_mutex);
  return events().erase(event) != 0;
}

bool any_capture() { return captures.load(std::memory_order_relaxed) != 0; }

CUstream_st* stream_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread ||
      stream == synchronous()) {
    return &default_stream(current_device());
  }
  const std::lock_guard lock(handles_mutex);
  return streams().count(stream) != 0 ? stream : nullptr;
}

TaskRef submit_late(CUstream_st& stream, std::function<cudaError_t()> operation, TaskRef after) {
  const std::lock_guard lock(handles_mutex);
  std::vector<TaskRef> before = work_before(stream);
  if (after != nullptr) before.push_back(std::move(after));
  stream.last = start_task(std::move(operation), std::move(before), stream.device);
  return stream.last;
}

bool is_busy(cudaStream_t stream) {
  const CUstream_st* there = stream_of(stream);
  if (!any_task() || there == nullptr) return false;
  const std::lock_guard lock(handles_mutex);
  return !work_before(*there).empty();
}

cudaError_t await_stream(cudaStream_t stream) {
  const CUstream_st* there = stream_of(stream);
  if (!any_task() || there == nullptr) return cudaSuccess;
  std::vector<TaskRef> before;
  {
    const std::lock_guard lock(handles_mutex);
    before = work_before(*there);
  }
  cudaError_t error = cudaSuccess;
  for (const TaskRef& one : before) {
    const cudaError_t its = await_task(one);
    if (error == cudaSuccess) error = its;
  }
  return error;
}

cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type,
                   std::function<cudaError_t()> operation) {
  if (device_failure() != cudaSuccess) return remember(cudaSuccess);
  CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) {
    auto node = std::make_shared<CUgraphNode_st>(CUgraphNode_st{type, std::move(operation)});
    if (follows_streams()) node->call = program_call();
    for (cudaGraphNode_t one : there->captured) {
      there->capture->edges.emplace_back(one, node.get());
    }
    there->captured = {node.get()};
    there->capture->nodes.push_back(std::move(node));
    return remember(cudaSuccess);
  }
  const bool kernels = type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeGraph;
  if (kernels && there->device != current_device()) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  if (const StreamWorkRef work = enqueue_work(stream, type); work != nullptr) {
    operation = [work, run = std::move(operation)] {
      const RunningWork here(work);
      return run();
    };
  }
  const bool behind = is_busy(stream);
  const bool own = running_task() != nullptr || simt::in_kernel();
  if (own || (!behind && !(kernels && may_wait_for_host(any_stream())))) {
    const OnDevice here(there->device);
    return remember(operation());
  }
  const TaskRef task = submit_late(*there, std::move(operation), nullptr);
  if (!behind) await_or_leave(task);
  if (stream == synchronous()) return remember(await_stream(stream));
  return remember(task->done ? task->error : cudaSuccess);
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return remember(cudaErrorInvalidValue);
  auto* made = new CUstream_st{flags, priority};
  made->device = current_device();
  {
    const std::lock_guard lock(handles_mutex);
    streams().insert(made);
  }
  *stream = made;
  note_stream(made);
  return remember(cudaSuccess);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  forget_stream(stream);
  {
    const std::lock_guard lock(handles_mutex);
    if (streams().erase(stream) == 0) return remember(cudaErrorInvalidResourceHandle);
  }
  // The remaining work completes, and the default stream still waits for it.
  if (stream->last != nullptr && (stream->flags & cudaStreamNonBlocking) == 0 && any_task()) {
    submit_late(
        default_stream(stream->device), [] { return cudaSuccess; }, stream->last);
  }
  delete stream;
  return remember(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) return remember(cudaErrorStreamCaptureUnsupported);
  const cudaError_t error = await_stream(stream);
  host_waited_for_stream(stream);
  return remember(error);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const bool discarded = discards_answer();
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) return remember(cudaErrorStreamCaptureUnsupported);
  if (is_busy(stream)) return remember(cudaErrorNotReady);
  if (!discarded) host_waited_for_stream(stream);
  return remember(cudaSuccess);
}
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

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there == stream_of(nullptr)) return remember(cudaErrorStreamCaptureUnsupported);
  if (there->capture != nullptr) return remember(cudaErrorIllegalState);
  there->capture = new CUgraph_st;
  there->captured.clear();
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
