// SPDX-License-Identifier: Apache-2.0
// Conflicts of work in flight with other work, with accesses of the host, and with frees.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream_state.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/record/host_watch.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// Maximum amount of tracked work in flight. Older work is dropped, and its conflicts are missed.
constexpr std::size_t max_in_flight = 512;

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

}  // namespace

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

namespace {

/// Handles accesses of host code, called by hooks.
void host_accessed(std::uintptr_t address, std::size_t bytes, record::HostAccess access,
                   const void* behind) {
  if (simt::in_kernel()) return;
  const void* const memory = reinterpret_cast<const void*>(address);
  const ByteRange range{address, address + bytes};
  if (running_work() != nullptr && running_work()->host_code) {
    running_work()->signals |= access == record::HostAccess::atomic;
    const Allocation found = find(memory);
    if (found.begin == nullptr || found.type == cudaMemoryTypeDevice) {
      const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      const bool own = address >= here && address < running_work()->stack_end;
      running_work()->signals |= access == record::HostAccess::write && !own;
      running_work()->host_code_seen = true;
      return;
    }
    running_work()->host_code_seen = true;
    WorkBytes& mine = running_work()->bytes;
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

void note_free(const void* memory, std::size_t bytes) {
  if (!follows_streams() || bytes == 0) return;
  const ProgramCall call = program_call();
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  const ByteRanges freed = {byte_range(memory, bytes)};
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
  const ByteRanges gone = {byte_range(memory, bytes)};
  const std::lock_guard lock(all.mutex);
  for (const StreamWorkRef& work : all.in_flight) {
    remove(work->bytes.reads, gone);
    remove(work->bytes.writes, gone);
    remove(work->bytes.atomics, gone);
  }
}

}  // namespace rung::cuda
