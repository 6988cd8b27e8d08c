// SPDX-License-Identifier: Apache-2.0
// Events. Interprocess events keep the numbers of their latest record and latest completed record
// in shared memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/stream.hpp"

namespace rung::cuda {
namespace {

constexpr useconds_t poll_interval = 100;  // microseconds between polls of another process

std::uint64_t load(const std::uint64_t& counter) {
  return __atomic_load_n(&counter, __ATOMIC_ACQUIRE);
}
/// Raises the counter to at least `number`. Records may complete out of order.
void reach(std::uint64_t& counter, std::uint64_t number) {
  std::uint64_t before = load(counter);
  while (before < number && !__atomic_compare_exchange_n(&counter, &before, number, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
}
/// Returns the number of an incomplete record by another process; 0 if there is none.
std::uint64_t awaited(const CUevent_st& event) {
  if (event.shared == nullptr) return 0;
  const std::uint64_t number = load(event.shared->recorded);
  return load(event.shared->reached) < number ? number : 0;
}
void await(const BlockHeader& shared, std::uint64_t number) {
  while (load(shared.reached) < number) usleep(poll_interval);
}

bool is_pending(const CUevent_st& event) {
  return (event.reached != nullptr && !event.reached->done) || awaited(event) != 0;
}

}  // namespace
}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (event == nullptr) return remember(cudaErrorInvalidValue);
  const bool shared = (flags & cudaEventInterprocess) != 0;
  if (shared && (flags & cudaEventDisableTiming) == 0) return remember(cudaErrorInvalidValue);
  auto* made = new CUevent_st{flags};
  made->device = current_device();
  if (shared) {
    made->block = make_block({.device = current_device()});
    if (made->block >= 0) made->shared = map_header(made->block, 0);
    if (made->shared == nullptr) {
      delete made;
      return remember(cudaErrorMemoryAllocation);
    }
    note_other_processes();
  }
  add_event(made);
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
  if (!remove_event(event)) return remember(cudaErrorInvalidResourceHandle);
  forget_event(event);
  if (event->reached != nullptr && !event->reached->done) return remember(cudaSuccess);  // in use
  if (event->shared != nullptr) unmap_header(event->shared);
  if (event->block >= 0) close(event->block);
  delete event;
  return remember(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr || event_of(event) == nullptr || there->device != event->device) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  advance_clock(500);
  event->capture = there->capture;
  event->captured = there->captured;
  event->recorded = true;
  note_record(event, stream, there->capture != nullptr);
  event->reached = nullptr;
  const std::uint64_t number =
      event->shared != nullptr ? __atomic_add_fetch(&event->shared->recorded, 1, __ATOMIC_ACQ_REL)
                               : 0;
  const auto record = [event, number] {
    event->time = clock_now();
    if (event->shared != nullptr) reach(event->shared->reached, number);
    return cudaSuccess;
  };
  if (there->capture == nullptr && is_busy(stream)) {
    event->reached = submit_late(*there, record, nullptr);
  } else {
    record();
  }
  return remember(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const bool discarded = discards_answer();
  if (event_of(event) == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (is_pending(*event)) return remember(cudaErrorNotReady);
  if (!discarded) note_host_wait(event, true);
  return remember(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event_of(event) == nullptr) return remember(cudaErrorInvalidResourceHandle);
  const cudaError_t error = await_task(event->reached);
  if (event->shared != nullptr) await(*event->shared, awaited(*event));
  note_host_wait(event, false);
  return remember(error);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return remember(cudaErrorInvalidValue);
  const bool good = event_of(start) != nullptr && event_of(end) != nullptr && start->recorded &&
                    end->recorded && ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
  if (!good) return remember(cudaErrorInvalidResourceHandle);
  if (is_pending(*start) || is_pending(*end)) return remember(cudaErrorNotReady);
  note_host_wait(start, true);
  note_host_wait(end, true);
  *milliseconds = static_cast<float>((end->time - start->time) * 1e-6);
  return remember(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  CUstream_st* there = stream_of(stream);
  if (there == nullptr || event_of(event) == nullptr) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  // A stream that waits for captured work becomes part of the capture.
  if (event->capture != nullptr && there->capture == nullptr) {
    there->capture = event->capture;
    there->captured.clear();
  }
  if (there->capture != nullptr && there->capture == event->capture) {
    for (cudaGraphNode_t one : event->captured) {
      const auto& known = there->captured;
      if (std::find(known.begin(), known.end(), one) == known.end()) there->captured.push_back(one);
    }
  }
  if (there->capture == nullptr) note_wait(stream, event);
  if (there->capture != nullptr || !is_pending(*event)) return remember(cudaSuccess);
  // The shared block of an interprocess event outlives the event.
  const std::uint64_t number = awaited(*event);
  const int block = number != 0 ? dup(event->block) : -1;
  submit_late(
      *there,
      [block, number] {
        if (block < 0) return cudaSuccess;
        BlockHeader* shared = map_header(block, 0);
        if (shared != nullptr) await(*shared, number);
        if (shared != nullptr) unmap_header(shared);
        close(block);
        return cudaSuccess;
      },
      event->reached);
  return remember(cudaSuccess);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (handle == nullptr) return remember(cudaErrorInvalidValue);
  if (event_of(event) == nullptr || event->block < 0) {
    return remember(cudaErrorInvalidResourceHandle);
  }
  put_name(*handle, name_of_block(event->block));
  return remember(cudaSuccess);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  if (event == nullptr) return remember(cudaErrorInvalidValue);
  const BlockName name = name_in(handle);
  BlockHeader header;
  const int block = open_block(name, header);
  BlockHeader* shared = block >= 0 && header.bytes == 0 ? map_header(block, 0) : nullptr;
  if (shared == nullptr) {
    if (block >= 0) close(block);
    return remember(cudaErrorInvalidResourceHandle);
  }
  auto* made = new CUevent_st{cudaEventInterprocess | cudaEventDisableTiming};
  made->device = current_device();
  made->shared = shared;
  made->block = block;
  note_other_processes();
  add_event(made);
  *event = made;
  return remember(cudaSuccess);
}
