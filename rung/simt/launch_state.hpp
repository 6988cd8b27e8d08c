// SPDX-License-Identifier: Apache-2.0
// What the workers of one launch share: which clusters of blocks are still to be run, the first
// failure, and who waits for whom. Internal to simt/.
//
// Clusters are claimed in order, so that whatever cluster fails, all before it have been claimed
// too and are run to their end: the failure that is reported is the first in order, however many OS
// threads there are. (Where blocks wait for each other the failing one takes those with it that are
// resident on its worker.)
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "rung/simt/block.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt::record {
class LaunchRecord;
}

namespace rung::simt {

/// The linear index of the cluster whose turn comes at `position`.
class ClusterSequence {
 public:
  ClusterSequence(std::uint64_t count, ThreadOrder order);
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t count_;
  ThreadOrder order_;
  std::uint64_t step_ = 1;
  std::uint64_t start_ = 0;
};

/// The failure with the least position among all workers.
class FirstFailure {
 public:
  [[nodiscard]] bool any() const { return before(~std::uint64_t{0} - 1); }
  [[nodiscard]] bool before(std::uint64_t position) const {
    return position_.load(std::memory_order_relaxed) <= position;
  }
  void record(std::uint64_t position, std::exception_ptr failure);
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> position_{~std::uint64_t{0}};
  std::exception_ptr failure_;
};

class LaunchState {
 public:
  LaunchState(const Launch& launch, ThreadOrder order);

  const Launch& launch;
  const ThreadOrder order;
  const int cluster_size;
  const std::uint64_t clusters;
  const ClusterSequence sequence;
  FirstFailure failure;
  record::LaunchRecord* record = nullptr;  // while a session records

  /// How many OS threads are worth having.
  [[nodiscard]] std::uint64_t useful_workers() const;
  /// The index of the block of this rank in the cluster at this position.
  [[nodiscard]] uint3 block_index(std::uint64_t position, int rank) const;

  /// Clusters that one worker has claimed and not yet started.
  struct Claim {
    std::uint64_t begin = 0, end = 0;
  };
  /// Takes the next cluster; false: none is left, or the launch has failed before it. `extra`: not
  /// the worker's only one, so that it must fit the device beside those that run.
  bool claim(Claim& mine, bool extra, std::uint64_t& position);
  void release_cluster() { resident_.fetch_sub(1, std::memory_order_relaxed); }

  /// A worker's part in finding out whether anybody can still go on.
  struct Waiting {
    bool waits = false;
    bool confirmed = false;
    std::uint64_t epoch = 0;
  };
  void join();
  void leave(Waiting& mine);
  /// The worker's threads have all looked and seen no change. Whether that is so everywhere.
  bool all_wait(Waiting& mine);
  void progressed(Waiting& mine);
  /// To be asked after each round of looks, long after all_wait(). Whether every worker has gone
  /// through a whole round since the last of them came to wait: then nothing will ever change.
  bool all_stuck(Waiting& mine);

 private:
  std::uint64_t chunk_ = 1;
  std::uint64_t max_resident_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> resident_{0};

  void begin_epoch() {
    ++epoch_;
    confirmed_ = 0;
  }
  std::mutex mutex_;  // guards what follows
  int workers_ = 0;
  int waiting_ = 0;
  int confirmed_ = 0;
  std::uint64_t epoch_ = 0;
};

/// Clusters that the simulated device holds at once.
std::uint64_t resident_clusters(const Launch& launch);

}  // namespace rung::simt
