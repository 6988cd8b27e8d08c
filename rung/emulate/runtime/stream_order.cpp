// SPDX-License-Identifier: Apache-2.0
// Vector clocks of streams, events and the host, and the work in flight.
#include "rung/emulate/runtime/stream_order.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/record/footprint.hpp"
#include "rung/simt/record/host_watch.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// Maximum amount of tracked work in flight. Older work is dropped, and its conflicts are missed.
constexpr std::size_t max_in_flight = 512;
// Maximum number of launches whose footprints are kept for unrecorded repetitions.
constexpr std::size_t max_known_launches = 1024;
// Number of slots above which slots of destroyed streams are reused, even if their work may still
// be in flight.
constexpr std::size_t max_slots = 1024;

void join(WorkClock& clock, const WorkClock& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

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
Order& order() {
  static Order& one = *new Order;  // never destroyed, since static destructors may free memory
  return one;
}

thread_local StreamWork* running = nullptr;
/// Addresses that identify the calling thread's default streams, one per device.
thread_local char per_thread[max_devices];
std::atomic<bool> default_is_per_thread = false;  // see rung_emulate_per_thread_streams()

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

/// Orders the stream's next work after all work that must precede it.
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

/// Assigns the slot's next number to the work, and adds the work to `clock`, the clock of all work
/// that precedes it.
void number(Order& all, StreamWork& work, std::size_t slot, WorkClock& clock) {
  work.slot = slot;
  work.number = ++all.numbers[slot];
  if (clock.size() <= slot) clock.resize(slot + 1, 0);
  clock[slot] = work.number;
  work.before = clock;
}

/// Watches host accesses to the memory used by work in flight.
void renew_watch(Order& all) {
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  if (all.callbacks != 0) {
    begin = 0;
    end = ~std::uintptr_t{0};
  } else if (!all.in_flight.empty()) {
    const ByteRanges visible = host_visible_memory();
    for (const StreamWorkRef& work : all.in_flight) {
      for (const ByteRanges* ranges :
           {&work->bytes.reads, &work->bytes.writes, &work->bytes.atomics}) {
        for (const ByteRange& one : visible) {
          if (first_common(*ranges, {one}) == 0) continue;
          begin = std::min(begin, one.begin);
          end = std::max(end, one.end);
        }
      }
    }
  }
  record::host_watch.bytes = 0;
  record::host_watch.begin = begin;
  record::host_watch.bytes = begin < end ? end - begin : 0;
}

void host_knows(Order& all, const WorkClock& clock) {
  join(all.host, clock);
  const std::size_t before = all.in_flight.size();
  std::erase_if(all.in_flight,
                [&](const StreamWorkRef& one) { return one->is_known_to(all.host); });
  if (all.in_flight.size() != before) renew_watch(all);
}

/// First byte that two operations access and at least one of them writes.
struct Conflict {
  std::uintptr_t address = 0;  // 0: none
  bool first_writes = false, second_writes = false;
};
Conflict conflict_of(const WorkBytes& first, const WorkBytes& second) {
  Conflict found;
  const auto look = [&](const ByteRanges& one, const ByteRanges& other, bool one_writes,
                        bool other_writes) {
    const std::uintptr_t address = first_common(one, other);
    if (address == 0 || (found.address != 0 && found.address <= address)) return;
    found = {address, one_writes, other_writes};
  };
  look(first.writes, second.writes, true, true);
  look(first.writes, second.atomics, true, true);
  look(first.atomics, second.writes, true, true);
  look(first.writes, second.reads, true, false);
  look(first.reads, second.writes, false, true);
  look(first.atomics, second.reads, true, false);
  look(first.reads, second.atomics, false, true);
  return found;
}

/// Reports conflicts of the work with work in flight, and adds the work to the work in flight. The
/// caller must hold the lock.
void commit(Order& all, const StreamWorkRef& work) {
  if (work->bytes.empty() || work->is_known_to(all.host)) return;
  std::vector<std::pair<StreamWorkRef, Conflict>> found;
  for (const StreamWorkRef& other : all.in_flight) {
    if (other == work || work->is_known_to(other->before)) continue;
    if (work->polls || other->polls) continue;
    if (other->is_known_to(work->before)) {
      // Later work that conflicts with `other` is not ordered after this work either, and is
      // reported for this work.
      WorkBytes& old = other->bytes;
      remove(old.reads, work->bytes.reads);
      remove(old.reads, work->bytes.writes);
      remove(old.writes, work->bytes.writes);
      remove(old.atomics, work->bytes.writes);
      remove(old.atomics, work->bytes.atomics);
      continue;
    }
    // One operation may wait for the other through a flag that both access atomically.
    if (first_common(work->bytes.atomics, other->bytes.atomics) != 0) continue;
    const Conflict conflict = conflict_of(other->bytes, work->bytes);
    if (conflict.address != 0) found.emplace_back(other, conflict);
  }
  std::erase_if(all.in_flight, [](const StreamWorkRef& one) { return one->bytes.empty(); });
  all.in_flight.push_back(work);
  if (all.in_flight.size() > max_in_flight) all.in_flight.pop_front();
  // Reports only the last conflict with each stream: earlier conflicts follow from the same missing
  // wait.
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    const auto& [other, conflict] = *at;
    if (other->is_known_to(work->before)) continue;
    report_unordered(*other, *work, conflict.address, conflict.first_writes,
                     conflict.second_writes);
    join(work->before, other->before);
    for (auto& [key, track] : all.tracks) {
      if (track.slot == work->slot) join(track.clock, other->before);
    }
  }
  renew_watch(all);
}

/// Handles accesses of host code, called by hooks.
void host_accessed(std::uintptr_t address, std::size_t bytes, record::HostAccess access,
                   const void* behind) {
  if (simt::in_kernel()) return;
  const void* const memory = reinterpret_cast<const void*>(address);
  const ByteRange range{address, address + bytes};
  if (running != nullptr && running->host_code) {
    running->signals |= access == record::HostAccess::atomic;
    const Allocation found = find(memory);
    if (found.begin == nullptr || found.type == cudaMemoryTypeDevice) {
      const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      const bool own = address >= here && address < running->stack_end;
      running->signals |= access == record::HostAccess::write && !own;
      running->host_code_seen = true;
      return;
    }
    running->host_code_seen = true;
    WorkBytes& mine = running->bytes;
    insert(access == record::HostAccess::read    ? mine.reads
           : access == record::HostAccess::write ? mine.writes
                                                 : mine.atomics,
           range);
    return;
  }
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  if (access == record::HostAccess::atomic) {
    // The host polls or sets a flag; it may have synchronized with any work that accesses the flag.
    WorkClock learned;
    for (const StreamWorkRef& work : all.in_flight) {
      const bool shared = first_common(work->bytes.reads, {range}) != 0 ||
                          first_common(work->bytes.writes, {range}) != 0 ||
                          first_common(work->bytes.atomics, {range}) != 0;
      if (shared) join(learned, work->before);
    }
    if (!learned.empty()) host_knows(all, learned);
    return;
  }
  WorkBytes mine;
  (access == record::HostAccess::write ? mine.writes : mine.reads).push_back(range);
  for (auto at = all.in_flight.rbegin(); at != all.in_flight.rend(); ++at) {
    StreamWork& work = **at;
    if (work.polls) continue;
    const Conflict conflict = conflict_of(work.bytes, mine);
    // A plain write may signal a polling kernel.
    if (access == record::HostAccess::write && first_common(work.bytes.atomics, {range}) != 0) {
      continue;
    }
    if (conflict.address == 0) continue;
    report_host_too_early(work, conflict.address, conflict.first_writes,
                          access == record::HostAccess::write, behind, all.host_vain_wait);
    // Reported once, since further early accesses by the host follow from the first.
    const WorkClock clock = work.before;
    host_knows(all, clock);
    return;
  }
}

}  // namespace

bool follows_streams() {
  static const bool wanted = [] {
    const char* const value = std::getenv("RUNG_EMULATE_STREAMS");
    return value == nullptr || value[0] != '0';
  }();
  if (!wanted || !record::checking()) return false;
  if (record::host_watch.accessed.load(std::memory_order_relaxed) == nullptr) {
    record::host_watch.accessed = host_accessed;
  }
  return true;
}

ProgramCall program_call() {
  static const auto is_ours = [](const Dl_info& info) {
    const std::string_view path = info.dli_fname != nullptr ? info.dli_fname : "";
    return path.substr(path.rfind('/') + 1).starts_with("librung");
  };
  void* frames[24];
  const int count = backtrace(frames, static_cast<int>(std::size(frames)));
  ProgramCall call;
  const char* name = nullptr;
  std::size_t outside = 0;
  for (int i = 0; i < count && outside < call.code.size(); ++i) {
    Dl_info info{};
    if (dladdr(static_cast<char*>(frames[i]) - 1, &info) == 0) continue;
    if (is_ours(info)) {
      if (outside == 0) name = info.dli_sname;
    } else {
      call.code[outside++] = frames[i];
    }
  }
  if (name != nullptr) {
    call.name = plain_name(name);
    call.name = call.name.substr(0, call.name.find('('));
    if (call.name == "rung::cuda::copy_symbol") call.name = "a copy of a symbol";
  }
  return call;
}

StreamWorkRef enqueue_work(cudaStream_t stream, cudaGraphNodeType type) {
  if (!follows_streams()) return nullptr;
  auto work = std::make_shared<StreamWork>();
  if (type != cudaGraphNodeTypeKernel) work->call = program_call();
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return nullptr;
  work->stream = track->text;
  work->default_stream = track->legacy;
  work->host_code = type == cudaGraphNodeTypeHost;
  work->synchronous = stream == synchronous();
  work->vain_wait = track->vain_wait;
  advance(all, *track);
  number(all, *work, track->slot, track->clock);
  return work;
}

std::vector<StreamWorkRef> enqueue_nodes(cudaStream_t stream, const CUgraphExec_st& graph,
                                         WorkClock& last) {
  if (!follows_streams()) return {};
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return {};
  all.other_streams = true;  // branches of a graph act like streams
  advance(all, *track);
  join(track->clock, last);
  const WorkClock begin = track->clock;
  const auto index_of = [&](cudaGraphNode_t node) {
    std::size_t i = 0;
    while (i < graph.nodes.size() && graph.nodes[i].get() != node &&
           graph.nodes[i]->instead_of != node) {
      ++i;
    }
    return i;
  };
  std::vector<std::vector<std::size_t>> after(graph.nodes.size());
  for (const auto& [from, to] : graph.edges) {
    const std::size_t first = index_of(from), second = index_of(to);
    if (first < after.size() && second < after.size()) after[second].push_back(first);
  }
  std::vector<StreamWorkRef> works;
  std::vector<bool> continued(after.size(), false);
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < after.size(); ++i) {
    auto work = std::make_shared<StreamWork>();
    const CUgraphNode_st& node = *graph.nodes[i];
    work->call = node.call;
    work->host_code = node.type == cudaGraphNodeTypeHost;
    work->stream = "a graph";
    work->in_graph = true;
    WorkClock clock = begin;
    bool follows = false;
    std::size_t slot = 0;
    for (const std::size_t one : after[i]) {
      if (one >= works.size()) continue;  // impossible: nodes are sorted
      join(clock, works[one]->before);
      if (follows || continued[one]) continue;
      follows = continued[one] = true;
      slot = works[one]->slot;
    }
    if (!follows) {
      slot = new_slot(all);
      slots.push_back(slot);
    }
    number(all, *work, slot, clock);
    join(track->clock, work->before);
    works.push_back(std::move(work));
  }
  all.free_slots.insert(all.free_slots.end(), slots.begin(), slots.end());
  last = track->clock;
  return works;
}

RunningWork::RunningWork(StreamWorkRef work) : work_(std::move(work)), outer_(running) {
  if (work_ == nullptr) return;
  running = work_.get();
  if (!work_->host_code) return;
  work_->stack_end = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  ++all.callbacks;
  renew_watch(all);
}

RunningWork::~RunningWork() {
  if (work_ == nullptr) return;
  running = outer_;
  if (const Task* const task = running_task(); task != nullptr) work_->polls = task->loose;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  if (work_->host_code) --all.callbacks;
  commit(all, work_);
  // A host function may have signaled other threads, unless it is known to have written only
  // watched memory.
  const bool told = work_->host_code && (work_->signals || !work_->host_code_seen);
  if (work_->waits || told) host_knows(all, work_->before);
  if (work_->host_code) renew_watch(all);
}

namespace {

ByteRange range_of(const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {begin, begin + bytes};
}

}  // namespace

void work_reads(const void* memory, std::size_t bytes) {
  if (running != nullptr && !running->from_pageable) {
    insert(running->bytes.reads, range_of(memory, bytes));
  }
}
void work_writes(const void* memory, std::size_t bytes) {
  if (running != nullptr && !running->to_pageable) {
    insert(running->bytes.writes, range_of(memory, bytes));
  }
}

void commit_work() {
  if (running == nullptr) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  commit(all, running->shared_from_this());
}

void work_copies(const void* to, const void* from, cudaMemcpyKind kind) {
  if (running == nullptr) return;
  const Allocation target = find(to), source = find(from);
  // Memory outside all allocations is host memory, or a variable of the program.
  const auto is_on_device = [](const Allocation& found, const void* memory, bool named) {
    if (found.begin != nullptr) return found.type == cudaMemoryTypeDevice;
    return named || record::find_memory(memory).bytes != 0;
  };
  const bool to_device =
      is_on_device(target, to, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice);
  const bool from_device = is_on_device(
      source, from, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
  running->to_pageable = !to_device && target.begin == nullptr;
  running->from_pageable = !from_device && source.begin == nullptr;
  running->waits |= running->to_pageable;
  if (!running->synchronous) return;
  const bool same_device = target.device == source.device;
  if (!to_device || !(running->from_pageable || (from_device && same_device))) {
    running->waits = true;
  }
  if (to_device && from_device && same_device) return;
  // The host waits for the stream before a copy; for copies between devices, for the streams of
  // both devices.
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  WorkClock before = running->before;
  --before[running->slot];
  if (to_device && from_device) {
    for (const auto& [key, track] : all.tracks) {
      if (track.slot != running->slot) join(before, track.clock);
    }
  }
  host_knows(all, before);
}

void work_fills(const void* to) {
  if (running == nullptr || find(to).type == cudaMemoryTypeDevice) return;
  running->waits |= running->call.name.find("Async") == std::string::npos &&
                    running->call.name.starts_with("cudaMemset");
}

std::unique_ptr<record::Footprint> begin_kernel_footprint() {
  if (running == nullptr) return nullptr;
  {
    const std::lock_guard lock(order().mutex);
    if (!order().other_streams && host_visible_memory().empty()) return nullptr;
  }
  return std::make_unique<record::Footprint>();
}

void work_accesses(const LaunchConfig& config, const std::string& kernel, const void* key,
                   const Closure& closure, const record::Footprint* footprint) {
  if (running == nullptr) return;
  StreamWork& work = *running;
  if (work.kernel.empty()) {
    work.kernel = kernel;
    if (std::string_view(config.place.file_name()).find("/rung_cuda/") != std::string_view::npos) {
      work.call = program_call();
      work.call.name = "an algorithm of CUB or Thrust";
    } else {
      work.arguments.assign(std::begin(config.arguments), std::end(config.arguments));
      work.call = {.name = "kernel " + kernel,
                   .code = {config.caller},
                   .file = config.place.file_name(),
                   .line = static_cast<int>(config.place.line())};
    }
  }
  std::string what(static_cast<const char*>(closure.arguments), closure.argument_bytes);
  for (const std::uintptr_t word :
       {reinterpret_cast<std::uintptr_t>(key), std::uintptr_t{config.grid.x},
        std::uintptr_t{config.grid.y}, std::uintptr_t{config.grid.z},
        std::uintptr_t{config.block.x}, std::uintptr_t{config.block.y},
        std::uintptr_t{config.block.z}}) {
    what.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  WorkBytes bytes;
  if (footprint != nullptr) {
    bytes = {footprint->ranges(record::Touch::read), footprint->ranges(record::Touch::write),
             footprint->ranges(record::Touch::atomic)};
    // If a byte is accessed in several ways, the strongest kind of access counts.
    remove(bytes.reads, bytes.writes);
    remove(bytes.atomics, bytes.writes);
  }
  {
    Order& all = order();
    const std::lock_guard lock(all.mutex);
    if (footprint == nullptr) {
      // A repeated launch that was not recorded has the same footprint as the recorded launch.
      const auto known = all.known_launches.find(what);
      if (known != all.known_launches.end()) bytes = known->second;
    } else if (all.known_launches.size() < max_known_launches ||
               all.known_launches.contains(what)) {
      all.known_launches[what] = bytes;
    }
  }
  unite(work.bytes.reads, bytes.reads);
  unite(work.bytes.writes, bytes.writes);
  unite(work.bytes.atomics, bytes.atomics);
}

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

void note_allocation(const void* memory, std::size_t bytes, cudaStream_t stream) {
  const StreamWorkRef work = enqueue_work(stream, cudaGraphNodeTypeMemAlloc);
  if (work == nullptr || bytes == 0) return;
  const RunningWork here(work);
  work_writes(memory, bytes);
}

void note_free(const void* memory, std::size_t bytes) {
  if (!follows_streams() || bytes == 0) return;
  const ProgramCall call = program_call();
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  const ByteRanges freed = {range_of(memory, bytes)};
  for (auto at = all.in_flight.rbegin(); at != all.in_flight.rend(); ++at) {
    const WorkBytes& its = (*at)->bytes;
    for (const ByteRanges* ranges : {&its.writes, &its.reads, &its.atomics}) {
      const std::uintptr_t address = first_common(*ranges, freed);
      if (address == 0) continue;
      report_freed_in_flight(**at, address, call);
      return;
    }
  }
}

void forget_bytes(const void* memory, std::size_t bytes) {
  Order& all = order();
  const ByteRanges gone = {range_of(memory, bytes)};
  const std::lock_guard lock(all.mutex);
  for (const StreamWorkRef& work : all.in_flight) {
    remove(work->bytes.reads, gone);
    remove(work->bytes.writes, gone);
    remove(work->bytes.atomics, gone);
  }
}

}  // namespace rung::cuda

/// Called at load time by each source that is compiled with --default-stream per-thread.
extern "C" __attribute__((visibility("default"))) void rung_emulate_per_thread_streams() {
  rung::cuda::default_is_per_thread = true;
}
