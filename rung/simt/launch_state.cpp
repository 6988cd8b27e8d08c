// SPDX-License-Identifier: Apache-2.0
// Distributes the clusters of a launch to workers.
#include "rung/simt/launch_state.hpp"

#include <algorithm>
#include <numeric>

#include "rung/simt/random.hpp"

namespace rung::simt {
namespace {

/// Minimum number of simulated threads that justifies waking another OS thread.
constexpr std::uint64_t threads_worth_a_worker = 8192;

std::uint64_t volume(const dim3& extent) { return std::uint64_t{extent.x} * extent.y * extent.z; }

}  // namespace

ClusterSequence::ClusterSequence(std::uint64_t count, ThreadOrder order)
    : count_(count), order_(order) {
  if (order.kind != ThreadOrder::Kind::random) return;
  // position -> (position * step + start) mod count is a permutation if step and count are coprime.
  std::uint64_t state = order.seed;
  start_ = next_random(state) % count;
  do {
    step_ = next_random(state) % count;
  } while (std::gcd(step_, count) != 1);
}

std::uint64_t ClusterSequence::at(std::uint64_t position) const {
  switch (order_.kind) {
    case ThreadOrder::Kind::forward:
      return position;
    case ThreadOrder::Kind::reverse:
      return count_ - 1 - position;
    case ThreadOrder::Kind::random:
      break;
  }
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(position) * step_ + start_) % count_);
}

void FirstFailure::record(std::uint64_t position, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (position >= position_.load(std::memory_order_relaxed)) return;
  position_.store(position, std::memory_order_relaxed);
  failure_ = std::move(failure);
}

LaunchState::LaunchState(const Launch& given, ThreadOrder thread_order)
    : launch(given),
      order(thread_order),
      cluster_size(static_cast<int>(volume(given.cluster))),
      clusters(volume(given.grid) / volume(given.cluster)),
      sequence(clusters, thread_order),
      max_resident_(resident_clusters(given)) {
  // Clusters per chunk: few, for load balance at the end, but enough to amortize the shared
  // counter.
  chunk_ = std::clamp<std::uint64_t>(clusters / (useful_workers() * 16), 1, 64);
}

std::uint64_t LaunchState::useful_workers() const {
  if (launch.cooperative) return 1;  // one worker runs the whole grid
  const std::uint64_t threads = volume(launch.grid) * volume(launch.block);
  const std::uint64_t useful = (threads + threads_worth_a_worker - 1) / threads_worth_a_worker;
  return std::clamp<std::uint64_t>(std::min(useful, clusters), 1,
                                   static_cast<std::uint64_t>(std::max(launch.os_threads, 1)));
}

uint3 LaunchState::block_index(std::uint64_t position, int rank) const {
  const dim3& shape = launch.cluster;
  const std::uint64_t wide = launch.grid.x / shape.x, high = launch.grid.y / shape.y;
  const std::uint64_t cluster = sequence.at(position);
  const unsigned r = static_cast<unsigned>(rank);
  return {static_cast<unsigned>(cluster % wide) * shape.x + r % shape.x,
          static_cast<unsigned>(cluster / wide % high) * shape.y + r / shape.x % shape.y,
          static_cast<unsigned>(cluster / wide / high) * shape.z + r / shape.x / shape.y};
}

bool LaunchState::claim(Claim& mine, bool extra, std::uint64_t& position) {
  if (extra && resident_.load(std::memory_order_relaxed) >= max_resident_) return false;
  if (mine.begin == mine.end) {
    mine.begin = std::min(next_.fetch_add(chunk_, std::memory_order_relaxed), clusters);
    mine.end = std::min(mine.begin + chunk_, clusters);
    if (mine.begin == mine.end) return false;
  }
  if (failure.before(mine.begin)) return false;
  position = mine.begin++;
  resident_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void LaunchState::join() {
  const std::lock_guard lock(mutex_);
  ++workers_;
  begin_epoch();
}

void LaunchState::leave(Waiting& mine) {
  const std::lock_guard lock(mutex_);
  --workers_;
  if (mine.waits) --waiting_;
  mine = {};
  begin_epoch();
}

bool LaunchState::all_wait(Waiting& mine) {
  const std::lock_guard lock(mutex_);
  if (!mine.waits) {
    mine.waits = true;
    ++waiting_;
    begin_epoch();
  }
  return waiting_ == workers_;
}

void LaunchState::progressed(Waiting& mine) {
  if (!mine.waits) return;
  const std::lock_guard lock(mutex_);
  mine.waits = false;
  --waiting_;
  begin_epoch();
}

bool LaunchState::all_stuck(Waiting& mine) {
  const std::lock_guard lock(mutex_);
  if (waiting_ != workers_) return false;
  if (mine.epoch != epoch_) {
    mine.epoch = epoch_;
    mine.confirmed = false;
    return false;
  }
  if (!mine.confirmed) {
    mine.confirmed = true;
    ++confirmed_;
  }
  return confirmed_ == workers_;
}

std::uint64_t resident_clusters(const Launch& launch) {
  const int threads = static_cast<int>(volume(launch.block));
  const int warps = (threads + warp_lanes - 1) / warp_lanes;
  const std::uint64_t by_threads = static_cast<std::uint64_t>(
      std::min(threads_per_multiprocessor / (warps * warp_lanes), blocks_per_multiprocessor));
  const std::uint64_t by_shared =
      shared_bytes_per_multiprocessor / (launch.shared_bytes + shared_bytes_reserved);
  return std::min(by_threads, by_shared) * multiprocessors / volume(launch.cluster);
}

}  // namespace rung::simt
