// SPDX-License-Identifier: Apache-2.0
// Happens-before order of work by streams, events and host waits, with vector clocks. Two unordered
// operations that access the same bytes are a finding if at least one of them writes. The runtime
// itself executes all work in call order.
//
// Each stream and each branch of a graph has a slot in the clocks. The host counts as a single
// agent, since synchronization among its threads is unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/byte_ranges.hpp"

struct CUgraphExec_st;

namespace rung::cuda {

/// For each slot, the number of the last completed operation.
using WorkClock = std::vector<std::uint32_t>;

/// A call by the program, for reports.
struct ProgramCall {
  std::string name;  // "cudaMemcpyAsync"; "": unknown
  // Return addresses of the call and its callers; null if `file` and `line` give the location.
  std::array<const void*, 4> code = {};
  const char* file = "";
  int line = 0;
};

/// Bytes accessed by work.
struct WorkBytes {
  ByteRanges reads, writes, atomics;
  [[nodiscard]] bool empty() const { return reads.empty() && writes.empty() && atomics.empty(); }
};

/// One operation of a stream, or a node of a launched graph.
struct StreamWork : std::enable_shared_from_this<StreamWork> {
  std::size_t slot = 0;
  std::uint32_t number = 0;  // number within its slot, from 1
  WorkClock before;          // clock of all work that precedes its end
  ProgramCall call;
  std::string stream;  // "the default stream"
  bool default_stream = false;
  bool in_graph = false;
  bool synchronous = false;  // enqueued by a call like cudaMemcpy, which may wait for completion
  bool waits = false;        // the call waits for completion
  // Source or destination is pageable memory, which is no longer accessed when the call returns.
  bool from_pageable = false, to_pageable = false;
  std::string vain_wait;         // its stream's wait for an event that was never recorded; "": none
  bool polls = false;            // a kernel that has waited for unknown other work
  bool host_code = false;        // a host function
  bool host_code_seen = false;   // the host function is compiled with hooks
  bool signals = false;          // may have signaled other host threads
  std::uintptr_t stack_end = 0;  // end of the stack memory used by the host function itself
  WorkBytes bytes;
  // For kernels only.
  std::string kernel;
  std::vector<Argument> arguments;

  [[nodiscard]] bool is_known_to(const WorkClock& clock) const {
    return slot < clock.size() && clock[slot] >= number;
  }
};
using StreamWorkRef = std::shared_ptr<StreamWork>;

/// Returns true if the program's work is tracked.
bool follows_streams();

/// Enqueues work. Returns null if work is not tracked.
StreamWorkRef enqueue_work(cudaStream_t stream, cudaGraphNodeType type);
/// Enqueues the nodes of a graph. `last`: clock of the graph's previous launch, after which this
/// launch is ordered.
std::vector<StreamWorkRef> enqueue_nodes(cudaStream_t stream, const CUgraphExec_st& graph,
                                         WorkClock& last);
/// Returns the program's call that this thread is executing.
ProgramCall program_call();

/// Attributes this thread's accesses to `work` during the object's lifetime; the destructor checks
/// for conflicts. No effect if `work` is null.
class RunningWork {
 public:
  explicit RunningWork(StreamWorkRef work);
  ~RunningWork();
  RunningWork(const RunningWork&) = delete;
  RunningWork& operator=(const RunningWork&) = delete;

 private:
  StreamWorkRef work_;
  StreamWork* outer_;
};

/// Records that the running work reads or writes these bytes.
void work_reads(const void* memory, std::size_t bytes);
void work_writes(const void* memory, std::size_t bytes);
/// Checks the accesses that the running work has made so far for conflicts.
void commit_work();
/// Records that the running work is a kernel launch. Returns the footprint that must be filled in
/// for work_accesses(); null if it is not needed.
std::unique_ptr<simt::record::Footprint> begin_kernel_footprint();
void work_accesses(const LaunchConfig& config, const std::string& kernel, const void* key,
                   const Closure& closure, const simt::record::Footprint* footprint);
/// Records the source and destination of the running work's copy, which determine whether its call
/// waits.
void work_copies(const void* to, const void* from, cudaMemcpyKind kind);
/// Records the destination of a fill, which decides whether the call waits for the fill.
void work_fills(const void* to);

/// Returns true at the first query of this thread after discard_answer(): the host learns nothing.
bool discards_answer();
/// Records that the host has waited for all work of a stream or a device.
void host_waited_for_stream(cudaStream_t stream);
void host_waited_for_device(int device);

// --- streams and events ---

void note_stream(cudaStream_t stream);
void forget_stream(cudaStream_t stream);
/// Records that an event is recorded in the stream. `captured`: as a dependency in a graph.
void note_record(cudaEvent_t event, cudaStream_t stream, bool captured);
void note_wait(cudaStream_t stream, cudaEvent_t event);
/// Records that the host has waited for an event. `by_query`: cudaEventQuery has returned success.
void note_host_wait(cudaEvent_t event, bool by_query);
void forget_event(cudaEvent_t event);
/// Reports events that were waited for but never recorded. Called at the program's end.
void report_unrecorded_events();

// --- memory ---

/// Records memory allocated in stream order by cudaMallocAsync.
void note_allocation(const void* memory, std::size_t bytes, cudaStream_t stream);
/// Records memory freed by a host call that does not wait for work.
void note_free(const void* memory, std::size_t bytes);
/// Forgets memory that no longer exists.
void forget_bytes(const void* memory, std::size_t bytes);

// --- in stream_report.cpp ---

/// Reports two unordered operations, of which `later` was enqueued later.
void report_unordered(const StreamWork& earlier, const StreamWork& later, std::uintptr_t address,
                      bool earlier_writes, bool later_writes);
/// Reports a host access to memory of work in flight; `vain_wait` as in StreamWork.
void report_host_too_early(const StreamWork& earlier, std::uintptr_t address, bool earlier_writes,
                           bool writes, const void* behind, const std::string& vain_wait);
/// Reports a host call that frees memory accessed by work in flight.
void report_freed_in_flight(const StreamWork& earlier, std::uintptr_t address,
                            const ProgramCall& call);
void report_unrecorded_event(const ProgramCall& wait);
/// Returns "file:line"; "" if unknown.
std::string place_of(const ProgramCall& call);

}  // namespace rung::cuda
