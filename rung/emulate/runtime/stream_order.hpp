// SPDX-License-Identifier: Apache-2.0
// The order that streams, events and waits of the host give to work, by vector clocks: two pieces
// of work that access the same bytes, one of them to write, and of which neither is ordered before
// the other are a finding. The runtime itself does everything in the order of the calls.
//
// Each stream has a slot in the clocks, and so has each branch of a graph. The host is one agent,
// whatever its threads: how they synchronize is not known.
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

/// By slot: how much of its work is known to be done.
using WorkClock = std::vector<std::uint32_t>;

/// A call of the program.
struct ProgramCall {
  std::string name;  // "cudaMemcpyAsync"; "": not known
  // Behind the call, and behind the calls of the functions around it; null: `file` and `line` say
  // where it is.
  std::array<const void*, 4> code = {};
  const char* file = "";
  int line = 0;
};

/// Bytes that work accesses.
struct WorkBytes {
  ByteRanges reads, writes, atomics;
  [[nodiscard]] bool empty() const { return reads.empty() && writes.empty() && atomics.empty(); }
};

/// A piece of work of a stream, or a node of a launched graph.
struct StreamWork : std::enable_shared_from_this<StreamWork> {
  std::size_t slot = 0;
  std::uint32_t number = 0;  // within its slot, from 1
  WorkClock before;          // what is done when it ends
  ProgramCall call;
  std::string stream;  // "the default stream"
  bool default_stream = false;
  bool in_graph = false;
  bool synchronous = false;  // by a call like cudaMemcpy, which may wait for it
  bool waits = false;        // the call does
  // Of a copy: its ends are pageable memory, which the call is done with when it returns.
  bool from_pageable = false, to_pageable = false;
  std::string vain_wait;         // of its stream for an event that had not been recorded; "": none
  bool polls = false;            // a kernel that has waited for others: for whom is not known
  bool host_code = false;        // a function of the host
  bool host_code_seen = false;   // it has hooks
  bool signals = false;          // and may have told other threads of the host that it runs
  std::uintptr_t stack_end = 0;  // of its own variables
  WorkBytes bytes;
  // Of a kernel.
  std::string kernel;
  std::vector<Argument> arguments;

  [[nodiscard]] bool is_known_to(const WorkClock& clock) const {
    return slot < clock.size() && clock[slot] >= number;
  }
};
using StreamWorkRef = std::shared_ptr<StreamWork>;

/// Returns whether the program's work is followed.
bool follows_streams();

/// Enqueues work; null where nobody follows it.
StreamWorkRef enqueue_work(cudaStream_t stream, cudaGraphNodeType type);
/// Enqueues the nodes of a graph. `last`: the clock of this graph's last launch, which this one
/// follows.
std::vector<StreamWorkRef> enqueue_nodes(cudaStream_t stream, const CUgraphExec_st& graph,
                                         WorkClock& last);
/// Returns the call of the program that this thread is in.
ProgramCall program_call();

/// While it exists, what this thread does belongs to the work; its end looks for work that
/// conflicts. Null: nothing changes.
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

/// The work that this thread runs reads or writes these bytes.
void work_reads(const void* memory, std::size_t bytes);
void work_writes(const void* memory, std::size_t bytes);
/// Looks now for work that conflicts with what the running work has accessed so far.
void commit_work();
/// The work that this thread runs is a launch of this kernel; returns the bytes to fill in by
/// work_accesses(), null where nobody asks.
std::unique_ptr<simt::record::Footprint> begin_kernel_footprint();
void work_accesses(const LaunchConfig& config, const std::string& kernel, const void* key,
                   const Closure& closure, const simt::record::Footprint* footprint);
/// The work that this thread runs copies between these ends: decides whether its call waits.
void work_copies(const void* to, const void* from, cudaMemcpyKind kind);
/// Likewise of a fill.
void work_fills(const void* to);

/// The host has waited for all work of a stream, or of a device.
void host_waited_for_stream(cudaStream_t stream);
void host_waited_for_device(int device);

// --- streams and events ---

void note_stream(cudaStream_t stream);
void forget_stream(cudaStream_t stream);
/// `captured`: as a dependency within a graph.
void note_record(cudaEvent_t event, cudaStream_t stream, bool captured);
void note_wait(cudaStream_t stream, cudaEvent_t event);
/// `by_query`: it was found to be reached.
void note_host_wait(cudaEvent_t event, bool by_query);
void forget_event(cudaEvent_t event);
/// Reports events that were waited for and never recorded; at the program's end.
void report_unrecorded_events();

// --- memory ---

/// cudaMallocAsync has given memory out in the order of a stream.
void note_allocation(const void* memory, std::size_t bytes, cudaStream_t stream);
/// The host frees memory by a call that does not wait for work.
void note_free(const void* memory, std::size_t bytes);
/// The memory is gone.
void forget_bytes(const void* memory, std::size_t bytes);

// --- in stream_report.cpp ---

/// Two pieces of work that are not ordered; `later` was enqueued later.
void report_unordered(const StreamWork& earlier, const StreamWork& later, std::uintptr_t address,
                      bool earlier_writes, bool later_writes);
/// An access of host code while work is in flight; `vain_wait` as of StreamWork.
void report_host_too_early(const StreamWork& earlier, std::uintptr_t address, bool earlier_writes,
                           bool writes, const void* behind, const std::string& vain_wait);
/// A call of the host that frees memory while work that accesses it is in flight.
void report_freed_in_flight(const StreamWork& earlier, std::uintptr_t address,
                            const ProgramCall& call);
void report_unrecorded_event(const ProgramCall& wait);
/// Returns "file:line"; "" where it is not known.
std::string place_of(const ProgramCall& call);

}  // namespace rung::cuda
