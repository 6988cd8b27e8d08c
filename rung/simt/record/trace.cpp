// SPDX-License-Identifier: Apache-2.0
// Recording of accesses: the slow path, and insertion of new steps into a list.
#include <algorithm>
#include <bit>

#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

namespace {

/// Position of a lane whose warp has no list. Matches no access.
Step unattached[2];

/// Number of turns of yielded lanes before the lanes that are ahead of them proceed. A lane that
/// has only executed many loads (32 per turn) or atomics is at most one list behind, and catches up
/// within these turns; a lane that waits for a lane ahead of it never does.
constexpr int turns_before_release = RequestList::capacity / 32 + 8;

/// Keeps the thread's last written value. Not inlined, since at most context switches there is
/// none.
[[gnu::noinline]] void keep_last_value() { keep_value(); }

}  // namespace

Step* Recorder::no_list() { return unattached; }

void Recorder::show(const Thread& thread) {
  leave();
  thread_ = &thread;
  Block& block = *thread.block;
  block_ = block.record.get();
  warp_ = &block_->warps[static_cast<std::size_t>(thread.warp - block.warps.data())];
  tracer.block = warp_->entered[thread.lane];
  tracer.follows = counting_;
  tracer.stack = reinterpret_cast<std::uintptr_t>(thread.fiber->bottom);
  tracer.stack_bytes = counting_ ? 0 : static_cast<std::uint32_t>(thread.fiber->size);
  Step* const cursor = warp_->cursors[thread.lane];
  tracer.last = cursor != nullptr ? cursor : unattached;
  if (cursor != nullptr) {
    tracer.unit = warp_->list->units_of(thread.lane) + warp_->list->index_of(cursor);
    tracer.values = warp_->list->values();
  }
}

/// Saves the running thread's position in its list.
void Recorder::leave() {
  if (tracer.written != nullptr) [[unlikely]]
    keep_last_value();
  if (warp_ == nullptr) return;
  warp_->entered[thread_->lane] = tracer.block;
  if (tracer.last == unattached) return;
  warp_->cursors[thread_->lane] = tracer.last;
  warp_->list->reach(tracer.last);
}

void Recorder::exited(const Thread& thread) {
  trace_entered_block();  // always fits; see RequestList::capacity
  leave();
  const Warp& warp = *thread.warp;
  if (warp.exited == ~std::uint32_t{0}) {
    flush(*block_, *warp_);
  } else if (warp_->ahead != 0 && nobody_follows(warp)) {
    release_ahead(*block_, *warp_);
  }
  if (thread.block->live == 0) end_block(*block_);
  warp_ = nullptr;
  tracer.last = nullptr;
  tracer.follows = false;
}

bool Recorder::nobody_follows(const Warp& warp) const {
  for (std::uint32_t left = ~warp.exited; left != 0; left &= left - 1) {
    const Thread& lane = *warp.lanes[__builtin_ctz(left)];
    if (lane.wait == Wait::none && &lane != thread_) return false;
  }
  return true;
}

void Recorder::attach(WarpRecord& warp) {
  if (idle_.empty()) {
    lists_.push_back(std::make_unique<RequestList>());
    idle_.push_back(lists_.back().get());
  }
  warp.list = idle_.back();
  idle_.pop_back();
  if (checking_) warp.list->keep_values();
}

void Recorder::wait_for_lanes() {
  if (nobody_follows(*thread_->warp)) {
    release_ahead(*block_, *warp_);
    return;
  }
  if (warp_->ahead == 0) ahead_.push_back({block_, warp_});
  warp_->ahead |= 1u << thread_->lane;
  worker_.wait_for_lanes();
}

void Recorder::release_ahead(BlockRecord& block, WarpRecord& warp) {
  flush(block, warp);
  std::erase_if(ahead_, [&](const Ahead& one) { return one.warp == &warp; });
  const Warp& lanes = block.block->warps[static_cast<std::size_t>(&warp - block.warps.data())];
  for (std::uint32_t left = std::exchange(warp.ahead, 0); left != 0; left &= left - 1) {
    Thread& thread = *lanes.lanes[__builtin_ctz(left)];
    thread.wait = Wait::none;
    worker_.make_ready(thread);
  }
}

bool Recorder::release_ahead(bool all) {
  std::vector<Ahead> released;
  std::erase_if(ahead_, [&](Ahead& one) {
    const bool now = all || ++one.turns > turns_before_release;
    if (now) released.push_back(one);
    return now;
  });
  for (const Ahead& one : released) {
    if (one.warp->ahead != 0) release_ahead(*one.block, *one.warp);
  }
  return !released.empty();
}

bool Recorder::trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size,
                            Access access, bool valued) {
  const bool is_block = access == Access::basic_block;
  if (suspicion_.thread == thread_) {
    if (is_block) return false;  // the suspected access precedes the block
    settle(address);
  }
  if (!is_block && count_local(address, site, log_size)) return false;
  for (;;) {
    if (warp_->list == nullptr) attach(*warp_);
    RequestList& list = *warp_->list;
    if (tracer.last == unattached) {
      tracer.last = list.start();
      tracer.values = list.values();
    }
    list.reach(tracer.last);
    const Spot spot = find(list, address, site, log_size);
    const bool ends = thread_->wait == Wait::exited;
    if (spot.match == 0 && list.full() && !ends) {
      wait_for_lanes();
      continue;
    }
    if (!is_block && tracer.block != 0 && spot.match != 0 &&
        counts_[list.target(spot.match).enters].site != tracer.block) {
      // The lane has come from another basic block than the lanes before it.
      trace_slowly(0, tracer.block, 0, Access::basic_block);
      continue;
    }
    const std::uint32_t index =
        spot.match != 0 ? spot.match : insert(list, spot.before, address, site, log_size, access);
    tracer.last = &list.step(index);
    tracer.unit = list.units_of(thread_->lane) + index;
    *tracer.unit = static_cast<std::uint32_t>((address - tracer.last->base) >> log_size);
    if (spot.match == 0) {
      Target& target = list.target(index);
      target.valued = valued;
      if (tracer.block != 0) target.enters = site_index(tracer.block);
      follows_ |= tracer.block != 0;
    }
    tracer.block = 0;
    list.reach(tracer.last);
    return true;
  }
}

/// Returns true for the thread's own memory, whose addresses differ by lane. Such accesses are not
/// recorded, since they would fill the list.
bool Recorder::is_local(std::uintptr_t address) const {
  const Fiber& stack = *thread_->fiber;
  return address - reinterpret_cast<std::uintptr_t>(stack.bottom) < stack.size;
}

bool Recorder::count_local(std::uintptr_t address, std::uintptr_t site, int log_size) {
  if (!is_local(address)) return false;
  if (counting_) {
    SiteCount& count = counts_[site_index(site)];
    ++count.local_accesses;
    count.counters.local_bytes += std::uint64_t{1} << log_size;
  }
  return true;
}

std::uint32_t Recorder::insert(RequestList& list, std::uint32_t before, std::uintptr_t address,
                               std::uintptr_t site, int log_size, Access access) {
  // An access to other memory by the same code belongs to the same request, so its step is inserted
  // behind the request's first step.
  const std::uint32_t follower = list.after(before);
  const bool continues = follower != 0 && list.step(follower).site == site;
  if (continues) before = follower;
  const Step& last = list.step(before);
  const std::uint32_t clock = last.clock + (last.access == Access::marker ? 1 : 0);
  const std::uint32_t at = list.insert(before, site);
  Step& step = list.step(at);
  step.clock = before == 0 ? 0 : clock;
  step.log_size = static_cast<std::uint8_t>(log_size);
  step.access = access;
  step.site_index = site_index(site);
  Target& target = list.target(at);
  target = {.continues = continues};
  place(step, target, address, 1u << log_size);
  return at;
}

std::uint16_t Recorder::site_index(std::uintptr_t site) {
  const auto [at, fresh] = numbers_.try_emplace(site, 0);
  if (fresh) {
    at->second = launch_->number_of(site);
    if (counts_.size() <= at->second) counts_.resize(at->second + std::size_t{1});
    counts_[at->second].site = site;
  }
  return at->second;
}

void Recorder::flush(BlockRecord& block, WarpRecord& warp, bool aligned) {
  if (warp.list == nullptr) return;
  RequestList& list = *warp.list;
  if (&warp == warp_) leave();
  ++stretch_;
  known_.reset();
  if (follows_) stand_as_before(warp);
  std::uint32_t clock = 0;
  if (checking_ && warp.compared) find_guesses(list);
  std::uint32_t position = 0;
  Clocks known;
  VectorClockRef remote;
  const bool learns = !warp.lessons.empty();
  if (learns) begin_lessons(warp, known, remote);
  for (std::uint32_t i = list.after(0); i != 0; i = list.after(i)) {
    ++position;
    Request request{list.step(i), list.target(i)};
    list.gather(i, request);
    if (request.lanes == 0) continue;
    if (request.target.valued && checking_) request.values = list.values_at(i);
    if (request.target.enters != 0) follow(warp, list, i, request.lanes);
    if (request.step.access == Access::basic_block) continue;
    if (warp.exchanges != nullptr) watch(block, warp, request);
    if (counting_) count(warp, request, aligned);
    if (overlaps_.any()) overlaps_.note(request);
    if (keeps_footprint_) footprint_.note(request);
    if (samples_) fingerprint(block, warp, request);
    if (checking_) check(block, warp, request, position);
    if (request.step.access == Access::marker) {
      clock = std::max(clock, request.step.clock + 1);
      if (learns) pass_lessons(block, warp, request);
      pass_flights(block, warp, request);
    }
  }
  if (learns) {
    warp.lessons.clear();
    warp.known = known;
    warp.remote = std::move(remote);
    known_.reset();
  }
  requests_ += position;
  guesses_.clear();
  warp.compared = false;
  warp.clock += clock;
  if (follows_) remember_stands(list, warp);
  list.reset(clock != 0);
  idle_.push_back(&list);
  warp.list = nullptr;
  std::fill(std::begin(warp.cursors), std::end(warp.cursors), nullptr);
  if (&warp == warp_) tracer.last = unattached;
}

void trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size,
                  Access access) noexcept {
  this_worker->recorder()->trace_slowly(address, site, log_size, access);
}

bool trace_write_slowly(std::uintptr_t address, std::uintptr_t site, int log_size) noexcept {
  return this_worker->recorder()->trace_slowly(address, site, log_size, Access::write, true);
}

void note_access(const void* address, std::size_t bytes, Access access,
                 std::uintptr_t site) noexcept {
  keep_value();
  trace_entered_block();  // a basic block cannot be matched by the order of operations
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  // Splits the access into aligned powers of two.
  for (std::size_t at = 0; at < bytes;) {
    int log_size = 4;
    while ((number + at) % (1u << log_size) != 0 || at + (1u << log_size) > bytes) --log_size;
    trace(number + at, site, log_size, access);
    at += 1u << log_size;
  }
}

}  // namespace rung::simt::record
