// SPDX-License-Identifier: Apache-2.0
// The asynchronous proxy, through which bulk copies and tensor cores access memory. A thread's
// writes are visible to it only after a fence.proxy.async by the writer, or by a thread that has
// acquired the write.
#include <algorithm>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Site of all fence.proxy.async, which are marks in the list like thread fences.
constexpr std::uintptr_t proxy_fence_site = place_bit | 3;

}  // namespace

void Recorder::proxy_fence() {
  if (!checking_) return;
  const std::size_t own = static_cast<std::size_t>(warp_ - block_->warps.data());
  const std::uint8_t lane = thread_->lane;
  warp_->proxy_clock[lane] = clock_now();
  join(block_->proxy_known, warp_->known);
  // Accesses of the fence's own warp are acquired up to the lane's last convergence with other
  // lanes.
  if (warp_->synced[lane] != 0) {
    std::uint32_t& known = block_->proxy_known[own];
    known = std::max(known, warp_->synced[lane] - 1);
  }
  trace_slowly(0, proxy_fence_site, 0, Access::marker);
}

bool Recorder::lacks_fence(const Request& request, const BlockRecord& block,
                           const Cell& write) const {
  if (generic_) return false;
  const Access access = request.step.access;
  if (access != Access::engine_read && access != Access::engine_write) return false;
  if (request.target.where != Where::shared && request.target.where != Where::global) return false;
  if (write.state == Cell::none || write.state == Cell::engine || write.state == Cell::copying) {
    return false;
  }
  if (write.owner != block.number) return false;  // fences in other blocks are not tracked
  return block.warps[write.warp()].proxy_clock[write.thread % 32] < write.clock &&
         block.proxy_known[write.warp()] < write.clock;
}

void Recorder::count_copy(const Place& place, std::uint64_t loaded, std::uint64_t stored) {
  if (!counting_) return;
  Counters& counters = counts_[site_index(site_of(place))].counters;
  ++counters.bulk_copies;
  counters.bulk_load_bytes += loaded;
  counters.bulk_store_bytes += stored;
}

void Recorder::count_product(const Place& place, std::uint64_t operations) {
  if (!counting_) return;
  Counters& counters = counts_[site_index(site_of(place))].counters;
  ++counters.matrix_products;
  counters.matrix_operations += operations;
}

void note_product(int m, int n, int k) {
  Recorder* const recorder = this_worker != nullptr ? this_worker->recorder() : nullptr;
  if (recorder == nullptr) return;
  recorder->count_product(recorder->thread().place,
                          2 * std::uint64_t(m) * std::uint64_t(n) * std::uint64_t(k));
}

void proxy_fence() noexcept {
  if (tracer.last != nullptr) this_worker->recorder()->proxy_fence();
}

}  // namespace rung::simt::record
