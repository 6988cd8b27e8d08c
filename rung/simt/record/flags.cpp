// SPDX-License-Identifier: Apache-2.0
// Flags: an atomic or volatile write after a fence releases, a read acquires.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <mutex>
#include <thread>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Site of all fences, which are marks in a warp's list that lanes pass one after another.
constexpr std::uintptr_t fence_site = place_bit | 1;

constexpr std::size_t lock_count = 64;
std::atomic<bool> locks[lock_count];  // an address's lock is selected by its hash
constinit thread_local std::atomic<bool>* held = nullptr;

}  // namespace

void AtomicOrder::hold(std::uintptr_t address) {
  release();
  std::atomic<bool>& lock = locks[address / 16 % lock_count];
  while (lock.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  held = &lock;
}

void AtomicOrder::release() {
  if (held == nullptr) return;
  held->store(false, std::memory_order_release);
  held = nullptr;
}

void Recorder::acquire_own_lanes(const VectorClockRef& from) {
  const Clocks* const own = from != nullptr ? from->of(block_->number) : nullptr;
  if (own == nullptr) return;
  std::uint32_t& told = warp_->told[thread_->lane];
  warp_->any_told = true;
  told = std::max(told, (*own)[static_cast<std::size_t>(warp_ - block_->warps.data())]);
}

void Recorder::fence(bool device) {
  launch_->sampling.give_up();  // blocks of the launch may wait for each other
  const std::uint32_t lane = 1u << thread_->lane;
  if ((warp_->pending_lanes & lane) != 0) {
    // The fence turns preceding relaxed reads into acquires.
    flush(*block_, *warp_, false);
    acquire(*block_, *warp_, warp_->pending);
    acquire_own_lanes(warp_->pending);
    warp_->pending_lanes &= ~lane;
    if (warp_->pending_lanes == 0) warp_->pending = warp_->last_pending = nullptr;
  }
  warp_->fenced |= lane;
  // The flag does not release writes between the fence and the flag.
  warp_->fence_clock[thread_->lane] = clock_now();
  trace_entered_block();
  if (checking_) trace_slowly(0, fence_site, 0, Access::marker);
  if (device) {
    warp_->fenced_for_all |= lane;
    block_->fenced = true;
  }
}

void Recorder::read_flag(std::uintptr_t flag, bool acquires) {
  if (!launch_->flags.any.load(std::memory_order_acquire)) return;
  VectorClockRef acquired, acquired_in_block;
  {
    LaunchRecord::Flags& flags = launch_->flags;
    const std::lock_guard lock(flags.mutex);
    if (const auto at = flags.at.find(flag); at != flags.at.end()) {
      acquired = at->second.released;
      if (at->second.block == block_->number) acquired_in_block = at->second.in_block;
      block_->partial = true;
    }
  }
  if (!acquires) {
    if (acquired != warp_->last_pending || acquired_in_block != nullptr) {
      warp_->pending = join(warp_->pending, join(acquired, acquired_in_block));
      warp_->last_pending = acquired;
    }
    if (warp_->pending != nullptr) warp_->pending_lanes |= 1u << thread_->lane;
    return;
  }
  if (acquired != warp_->acquired || acquired_in_block != warp_->acquired_in_block) {
    // Checks the preceding accesses with the clocks before the acquire.
    flush(*block_, *warp_, false);
    acquire(*block_, *warp_, acquired);
    acquire(*block_, *warp_, acquired_in_block);
    warp_->acquired = acquired;
    warp_->acquired_in_block = acquired_in_block;
  }
  acquire_own_lanes(acquired);
  acquire_own_lanes(acquired_in_block);
}

void Recorder::before_atomic(std::uintptr_t address, int log_size, Access access, int order,
                             std::uintptr_t site, bool compares, AtomicOrder* in_order) {
  keep_value();
  trace_entered_block();
  trace(address, site, log_size, access);
  if (!checking_ || is_local(address)) return;
  Target& target = warp_->list->target(warp_->list->index_of(tracer.last));
  if (target.where != Where::global && target.where != Where::shared) return;
  // Shared memory needs no lock: all blocks that can access it run on one OS thread.
  if (in_order != nullptr && target.where == Where::global) in_order->hold(address);
  target.compares |= compares;
  warp_->compared |= compares;
  if (compares) note_guess(target, address);
  // An atomic function without a memory order is assumed to acquire: formally a fence is required,
  // but many programs omit it. A volatile read of global memory does not acquire: it bypasses
  // caches only for the flag itself, and a later plain read may return stale cached data, as about
  // half of such reads do on an H200.
  if (!is_store(access)) {
    const bool kept = access == Access::volatile_read && target.where == Where::global;
    const bool stated = order != unstated_order;
    read_flag(address, stated ? order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE : !kept);
  }
  if (is_read(access)) return;
  const std::uint32_t lane = 1u << thread_->lane;
  const bool releases = order >= __ATOMIC_RELEASE;
  if (releases || (warp_->fenced & lane) != 0) {
    warp_->released_to_all =
        (releases && !is_of_block(access)) || (warp_->fenced_for_all & lane) != 0;
    warp_->fenced &= ~lane;
    warp_->fenced_for_all &= ~lane;
    const std::uint32_t upto = releases ? clock_now() : warp_->fence_clock[thread_->lane];
    flush(*block_, *warp_, false);
    warp_->released = vector_clock(upto);
    tick(*block_, *warp_);
  }
  if (warp_->released == nullptr) return;
  LaunchRecord::Flags& flags = launch_->flags;
  const std::lock_guard lock(flags.mutex);
  flags.any.store(true, std::memory_order_release);
  LaunchRecord::Flag& flag = flags.at[address];
  if (warp_->released_to_all) {
    flag.released = join(flag.released, warp_->released);
  } else {
    if (flag.block != block_->number) flag.in_block = nullptr;
    flag.block = block_->number;
    flag.in_block = join(flag.in_block, warp_->released);
  }
}

void before_atomic(const void* address, std::size_t bytes, Access access, int order,
                   std::uintptr_t site, bool compares, AtomicOrder* in_order) noexcept {
  this_worker->recorder()->before_atomic(reinterpret_cast<std::uintptr_t>(address),
                                         std::countr_zero(bytes), access, order, site, compares,
                                         in_order);
}

void fence(bool device) noexcept {
  if (tracer.last != nullptr) this_worker->recorder()->fence(device);
}

}  // namespace rung::simt::record
