// SPDX-License-Identifier: Apache-2.0
// State of the happens-before order of work: clocks of streams, events and the host, and the work
// in flight. Internal to stream_*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "rung/emulate/runtime/stream_order.hpp"

namespace rung::cuda {

/// A stream, for the order of work.
struct Track {
  std::size_t slot = 0;
  WorkClock clock;  // work that precedes the stream's next work
  bool legacy = false, blocking = true;
  int device = 0;
  std::string text;
  std::string vain_wait;
};

struct EventState {
  WorkClock clock;
  bool recorded = false;  // recorded at least once
  bool waited = false;    // by a call that did not wait because the event had not been recorded
  ProgramCall wait;
};

/// All state; its functions below require that the caller holds the lock.
struct Order {
  std::mutex mutex;
  std::vector<std::uint32_t> numbers;  // number of the last operation, by slot
  std::vector<std::size_t> free_slots;
  // Keys are streams; for a per-thread default stream, the address of a thread-local variable.
  std::map<const void*, Track> tracks;
  std::map<const void*, std::string> created;  // where the streams were created
  std::unordered_map<cudaEvent_t, EventState> events;
  WorkClock host;
  std::string host_vain_wait;
  std::map<int, WorkClock> gone;  // work of destroyed streams, by device
  std::deque<StreamWorkRef> in_flight;
  int callbacks = 0;           // number of running host functions
  bool other_streams = false;  // streams other than the default stream exist
  std::unordered_map<std::string, WorkBytes> known_launches;
};
Order& order();

/// Work whose accesses are attributed to this thread; null: none.
StreamWork*& running_work();

void join(WorkClock& clock, const WorkClock& other);
/// Returns a slot for a new stream or branch of a graph.
std::size_t new_slot(Order& all);
/// Returns the stream's track, which the first call creates; null if the stream does not exist.
Track* track_of(Order& all, cudaStream_t handle);
/// Orders the stream's next work after all work that must precede it.
void advance(Order& all, Track& track);
/// Assigns the slot's next number to the work, and adds the work to `clock`, the clock of all work
/// that precedes it.
void number(Order& all, StreamWork& work, std::size_t slot, WorkClock& clock);

// --- in stream_conflicts.cpp ---

/// Watches host accesses to the memory used by work in flight.
void renew_watch(Order& all);
/// Orders the host after all work of the clock.
void host_knows(Order& all, const WorkClock& clock);
/// Reports conflicts of the work with work in flight, and adds the work to the work in flight.
void commit(Order& all, const StreamWorkRef& work);

inline ByteRange byte_range(const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {begin, begin + bytes};
}

}  // namespace rung::cuda
