// SPDX-License-Identifier: Apache-2.0
// Running a launch: which blocks run when, and on which OS thread.
//
// Blocks are claimed in order, so that whatever block fails, all before it have been claimed too
// and are run to their end: the failure that is reported is the first in order, however many OS
// threads there are.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

/// Fewer simulated threads than this are not worth waking another OS thread for.
constexpr std::uint64_t threads_worth_a_worker = 4096;

/// The linear index of the block whose turn comes at `position`.
class BlockSequence {
 public:
  BlockSequence(std::uint64_t count, ThreadOrder order) : count_(count), order_(order) {
    if (order.kind != ThreadOrder::Kind::random) return;
    // position -> (position * step + start) mod count visits each block once when step and count
    // have no common factor.
    std::uint64_t state = order.seed;
    start_ = next_random(state) % count;
    do {
      step_ = next_random(state) % count;
    } while (std::gcd(step_, count) != 1);
  }

  [[nodiscard]] std::uint64_t at(std::uint64_t position) const {
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

 private:
  std::uint64_t count_;
  ThreadOrder order_;
  std::uint64_t step_ = 1;
  std::uint64_t start_ = 0;
};

/// The failure with the least position among all workers.
class FirstFailure {
 public:
  [[nodiscard]] bool before(std::uint64_t position) const {
    return position_.load(std::memory_order_relaxed) <= position;
  }
  void record(std::uint64_t position, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (position >= position_.load(std::memory_order_relaxed)) return;
    position_.store(position, std::memory_order_relaxed);
    failure_ = std::move(failure);
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> position_{~std::uint64_t{0}};
  std::exception_ptr failure_;
};

void run_cooperative(const Launch& launch, const BlockSequence& sequence, std::uint64_t blocks,
                     ThreadOrder order) {
  const std::uint64_t most = resident_blocks(launch);
  if (blocks > most) {
    throw Error(
        ErrorCode::device,
        "launch: a cooperative grid of " + std::to_string(blocks) + " blocks of " +
            std::to_string(std::uint64_t{launch.block.x} * launch.block.y * launch.block.z) +
            " threads and " + std::to_string(launch.shared_bytes) +
            " bytes of shared memory, of which " + std::to_string(most) +
            " can be resident at once");
  }
  std::vector<std::uint64_t> indices(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) indices[i] = sequence.at(i);
  worker().run(launch, order, indices.data(), indices.size());
  worker().check_stacks(launch);
}

}  // namespace

std::uint64_t resident_blocks(const Launch& launch) {
  const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  const int warps = (threads + warp_lanes - 1) / warp_lanes;
  const std::uint64_t by_threads = static_cast<std::uint64_t>(
      std::min(threads_per_multiprocessor / (warps * warp_lanes), blocks_per_multiprocessor));
  const std::uint64_t by_shared =
      shared_bytes_per_multiprocessor / (launch.shared_bytes + shared_bytes_reserved);
  return std::min(by_threads, by_shared) * multiprocessors;
}

void run(const Launch& launch) {
  const ThreadOrder order = thread_order();
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (blocks == 0 || threads == 0) return;
  const BlockSequence sequence(blocks, order);
  if (launch.cooperative) {
    run_cooperative(launch, sequence, blocks, order);
    return;
  }

  const std::uint64_t useful =
      (blocks * threads + threads_worth_a_worker - 1) / threads_worth_a_worker;
  const std::uint64_t workers = std::clamp<std::uint64_t>(
      std::min(useful, blocks), 1, static_cast<std::uint64_t>(std::max(launch.os_threads, 1)));
  // Small enough that the last chunk keeps nobody waiting, large enough to hide the counter.
  const std::uint64_t chunk = std::clamp<std::uint64_t>(blocks / (workers * 16), 1, 64);
  std::atomic<std::uint64_t> next{0};
  FirstFailure failure;
  const auto run_blocks = [&] {
    for (;;) {
      const std::uint64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= blocks) return;
      for (std::uint64_t p = begin; p < std::min(begin + chunk, blocks); ++p) {
        if (failure.before(p)) return;
        try {
          const std::uint64_t index = sequence.at(p);
          worker().run(launch, order, &index, 1);
        } catch (...) {
          failure.record(p, std::current_exception());
        }
      }
    }
  };
  const auto work = [&] {
    run_blocks();
    try {
      worker().check_stacks(launch);
    } catch (...) {
      failure.record(blocks, std::current_exception());  // less telling than any other failure
    }
  };
  // OpenMP's pool keeps its threads, and with them their workers and stacks, between launches.
#pragma omp parallel num_threads(static_cast<int>(workers)) if (workers > 1)
  work();
  failure.rethrow();
}

}  // namespace rung::simt
