// SPDX-License-Identifier: Apache-2.0
// Vector clocks of streams, events and the host.
#include <algorithm>
#include <atomic>
#include <utility>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/stream_state.hpp"

namespace rung::cuda {
namespace {

// Number of slots above which slots of destroyed streams are reused, even if their work may still
// be in flight.
constexpr std::size_t max_slots = 1024;

/// Addresses that identify the calling thread's default streams, one per device.
thread_local char per_thread[max_devices];
std::atomic<bool> default_is_per_thread = false;  // see rung_emulate_per_thread_streams()
thread_local bool answer_discarded = false;       // of this thread's next query

}  // namespace

Order& order() {
  static Order& one = *new Order;  // never destroyed, since static destructors may free memory
  return one;
}
StreamWork*& running_work() {
  thread_local StreamWork* running = nullptr;
  return running;
}

void join(WorkClock& clock, const WorkClock& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

std::size_t new_slot(Order& all) {
  for (auto at = all.free_slots.begin(); at != all.free_slots.end(); ++at) {
    const std::size_t slot = *at;
    const bool done = slot < all.host.size() && all.host[slot] >= all.numbers[slot];
    if (!done && all.numbers.size() < max_slots) continue;
    all.free_slots.erase(at);
    return slot;
  }
  all.numbers.push_back(0);
  return all.numbers.size() - 1;
}

Track* track_of(Order& all, cudaStream_t handle) {
  CUstream_st* const stream = stream_of(handle);
  if (stream == nullptr) return nullptr;
  const bool is_default = handle == nullptr || handle == synchronous();
  const bool own = handle == cudaStreamPerThread ||
                   (is_default && default_is_per_thread.load(std::memory_order_relaxed));
  const void* const key = own ? static_cast<const void*>(&per_thread[stream->device]) : stream;
  const auto [at, fresh] = all.tracks.try_emplace(key);
  Track& track = at->second;
  if (fresh) {
    track.slot = new_slot(all);
    track.device = stream->device;
    track.legacy = !own && stream == stream_of(cudaStreamLegacy);
    track.blocking = !track.legacy && (stream->flags & cudaStreamNonBlocking) == 0;
    all.other_streams |= !track.legacy;
    const auto created = all.created.find(key);
    track.text = track.legacy ? "the default stream"
                 : own        ? "the thread's default stream"
                 : created != all.created.end() && !created->second.empty()
                     ? "the stream created at " + created->second
                     : "another stream";
  }
  return &track;
}

void advance(Order& all, Track& track) {
  join(track.clock, all.host);
  if (track.legacy) {
    for (const auto& [key, other] : all.tracks) {
      if (other.blocking && other.device == track.device) join(track.clock, other.clock);
    }
  } else if (track.blocking) {
    for (const auto& [key, other] : all.tracks) {
      if (other.legacy && other.device == track.device) join(track.clock, other.clock);
    }
  }
}

void number(Order& all, StreamWork& work, std::size_t slot, WorkClock& clock) {
  work.slot = slot;
  work.number = ++all.numbers[slot];
  if (clock.size() <= slot) clock.resize(slot + 1, 0);
  clock[slot] = work.number;
  work.before = clock;
}

void discard_answer() { answer_discarded = true; }
bool discards_answer() { return std::exchange(answer_discarded, false); }

void host_waited_for_stream(cudaStream_t stream) {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return;
  if (track->legacy) advance(all, *track);
  host_knows(all, track->clock);
}

void host_waited_for_device(int device) {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  WorkClock clock;
  for (auto& [key, track] : all.tracks) {
    if (track.device != device) continue;
    join(clock, track.clock);
    track.vain_wait.clear();
  }
  if (const auto gone = all.gone.find(device); gone != all.gone.end()) join(clock, gone->second);
  all.host_vain_wait.clear();
  host_knows(all, clock);
}

void note_stream(cudaStream_t stream) {
  if (!follows_streams()) return;
  std::string place = place_of(program_call());
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  all.created[stream] = std::move(place);
  (void)track_of(all, stream);
}

void forget_stream(cudaStream_t stream) {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  all.created.erase(stream);
  const auto at = all.tracks.find(stream);
  if (at == all.tracks.end()) return;
  const Track& track = at->second;
  join(all.gone[track.device], track.clock);
  if (track.blocking) {  // the default stream still waits for it
    for (auto& [key, other] : all.tracks) {
      if (other.legacy && other.device == track.device) join(other.clock, track.clock);
    }
  }
  all.free_slots.push_back(track.slot);
  all.tracks.erase(at);
}

void note_record(cudaEvent_t event, cudaStream_t stream, bool captured) {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  EventState& state = all.events[event];
  state.recorded = true;
  Track* const track = track_of(all, stream);
  if (track == nullptr || captured) return;
  advance(all, *track);
  state.clock = track->clock;
}

namespace {

/// Records a wait for an event that has not been recorded, which returns immediately. Returns a
/// text for reports.
std::string note_vain_wait(EventState& state, const ProgramCall& call) {
  state.waited = true;
  state.wait = call;
  const std::string place = place_of(call);
  return call.name + (place.empty() ? "" : " at " + place) +
         " waits for nothing: its event has not been recorded by then";
}

}  // namespace

void note_wait(cudaStream_t stream, cudaEvent_t event) {
  if (!follows_streams()) return;
  Order& all = order();
  const ProgramCall call = program_call();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return;
  EventState& state = all.events[event];
  if (event->shared != nullptr) {
    // The event may represent work of other processes, which may have waited for any work of this
    // process.
    for (const auto& [key, other] : all.tracks) join(track->clock, other.clock);
  } else if (!state.recorded) {
    track->vain_wait = note_vain_wait(state, call);
  } else {
    advance(all, *track);
    join(track->clock, state.clock);
  }
}

void note_host_wait(cudaEvent_t event, bool by_query) {
  if (!follows_streams()) return;
  Order& all = order();
  {
    const std::lock_guard lock(all.mutex);
    const EventState& state = all.events[event];
    if (event->shared != nullptr) {
      for (const auto& [key, track] : all.tracks) host_knows(all, track.clock);
      return;
    }
    if (state.recorded) return host_knows(all, state.clock);
  }
  const ProgramCall call = program_call();
  const std::lock_guard lock(all.mutex);
  std::string vain = note_vain_wait(all.events[event], call);
  if (!by_query) all.host_vain_wait = std::move(vain);
}

void forget_event(cudaEvent_t event) {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  const auto at = all.events.find(event);
  if (at == all.events.end()) return;
  if (at->second.waited && !at->second.recorded) report_unrecorded_event(at->second.wait);
  all.events.erase(at);
}

void report_unrecorded_events() {
  if (!follows_streams()) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  for (const auto& [event, state] : all.events) {
    if (state.waited && !state.recorded) report_unrecorded_event(state.wait);
  }
  all.events.clear();
}

}  // namespace rung::cuda

/// Called at load time by each source that is compiled with --default-stream per-thread.
extern "C" __attribute__((visibility("default"))) void rung_emulate_per_thread_streams() {
  rung::cuda::default_is_per_thread = true;
}
