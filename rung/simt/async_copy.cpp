// SPDX-License-Identifier: Apache-2.0
// cp.async: delayed copies from global to shared memory.
#include "rung/simt/async_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "rung/simt/copy_engine.hpp"
#include "rung/simt/mbarrier.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {

void carry_out(const AsyncCopy& copy) {
  if (copy.valid != 0) {  // if no bytes are valid, the source is not dereferenced
    std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.valid));
  }
  std::memset(copy.to + copy.valid, 0, static_cast<std::size_t>(copy.bytes - copy.valid));
}

namespace {

/// Returns true if copies complete at issue instead of as late as possible.
bool early(const Worker& worker, Block& block) {
  if (worker.order() == ThreadOrder::Kind::reverse) return true;
  return worker.order() == ThreadOrder::Kind::random && next_random(block.random) % 2 == 0;
}

void issue(Worker& worker, AsyncCopy copy) {
  Thread& self = worker.current();
  copy.group = self.copy_group;
  copy.done = early(worker, *self.block);
  record::note(copy.from, static_cast<std::size_t>(copy.valid), record::Access::source, copy.place);
  record::note(copy.to, static_cast<std::size_t>(copy.bytes), record::Access::copy, copy.place);
  if (copy.done) carry_out(copy);
  self.copies.push_back(copy);
}

/// Performs the pending copies of the groups before `group`.
void complete_before(Worker& worker, Thread& thread, std::uint32_t group) {
  worker.copies().land_copies(worker, thread, group);
  record::Recorder* const recorder = worker.recorder();
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && copy->group < group; ++copy) {
    if (!copy->done) carry_out(*copy);
    if (recorder == nullptr) continue;
    // The copy may have read and written at any time since its issue, so writers of its source and
    // readers of its destination must be ordered after its completion here.
    record::note_access(copy->from, static_cast<std::size_t>(copy->valid),
                        record::Access::source_done,
                        record::site_of(copy->place) | record::source_bit);
    record::note_access(copy->to, static_cast<std::size_t>(copy->bytes), record::Access::landed,
                        record::site_of(copy->place) | record::landing_bit);
  }
  thread.copies.erase(thread.copies.begin(), copy);
}

bool aligned(const void* address, int bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<unsigned>(bytes) == 0;
}

}  // namespace

void async_copy(void* to, const void* from, int bytes, int valid, Place place) {
  Worker& here = running_worker("cp.async");
  Thread& self = here.current();
  if (valid < 0 || valid > bytes) {
    here.blame("simulated GPU: cp.async: " + std::to_string(valid) + " valid bytes of " +
                   std::to_string(bytes),
               self, &place);
    here.abandon();
  }
  if (!aligned(to, bytes) || (valid != 0 && !aligned(from, bytes))) {
    here.blame("simulated GPU: misaligned address: cp.async of " + std::to_string(bytes) +
                   " bytes needs both addresses aligned to as many",
               self, &place);
    here.abandon();
  }
  const std::byte* arena = self.block->shared;
  auto* target = static_cast<std::byte*>(to);
  if (target < arena || target + bytes > arena + shared_room(here.launch())) {
    here.blame("simulated GPU: cp.async writes outside the block's shared memory", self, &place);
    here.abandon();
  }
  issue(here, {target, static_cast<const std::byte*>(from), bytes, valid, 0, false, place});
}

void async_copy_bytes(void* to, const void* from, std::size_t bytes, Place place) {
  if (bytes == 0) return;
  const int all = static_cast<int>(bytes);
  issue(running_worker("memcpy_async"),
        {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), all, all, 0, false,
         place});
}

void async_arrive(std::uint64_t* barrier, bool counted, Place place) {
  Worker& here = running_worker("cp.async.mbarrier.arrive");
  Thread& self = here.current();
  std::uint32_t bytes = 0;
  for (const AsyncCopy& copy : self.copies) bytes += static_cast<std::uint32_t>(copy.bytes);
  if (bytes == 0) {
    if (counted) mbarrier_arrive(barrier, 0, place);
    return;
  }
  // Announces the bytes before the arrival, since the arrival may complete the phase.
  mbarrier_expect(barrier, bytes, place);
  LateLoad load{CopyShape{bytes}, self.block, nullptr, nullptr, barrier, place};
  load.copies = std::exchange(self.copies, {});
  here.copies().issue_copies(here, std::move(load));
  if (counted) mbarrier_arrive(barrier, 0, place);
}

void async_read(const void* from, std::size_t bytes, Place place) {
  record::note(from, bytes, record::Access::read, place);
}

bool in_own_shared_memory(const void* address, std::size_t bytes) {
  const Worker& here = running_worker("memcpy_async");
  const std::byte* const begin = here.current().block->shared;
  const auto* const first = static_cast<const std::byte*>(address);
  return first >= begin && first + bytes <= begin + shared_room(here.launch());
}

void async_commit() { ++running_worker("cp.async.commit_group").current().copy_group; }

void async_wait_group(int pending) {
  Worker& here = running_worker("cp.async.wait_group");
  Thread& self = here.current();
  // Groups 0 .. copy_group - 1 are committed.
  const std::uint32_t keep = static_cast<std::uint32_t>(pending);
  complete_before(here, self, self.copy_group > keep ? self.copy_group - keep : 0);
}

void async_wait_all() {
  Worker& here = running_worker("cp.async.wait_all");
  Thread& self = here.current();
  ++self.copy_group;
  complete_before(here, self, self.copy_group);
}

}  // namespace rung::simt
