// SPDX-License-Identifier: Apache-2.0
// State that the workers of one launch share: the clusters still to be run, the first failure, and
// deadlock detection. Internal to simt/.
//
// Clusters are claimed in order, so when a cluster fails, all earlier clusters have been claimed
// and run to completion: the reported failure is the first in order, whatever the number of OS
// threads. (If blocks wait for each other, a failing block also ends the other resident blocks of
// its worker.)
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

/// Maps `position` in the launch's order to the linear index of a cluster.
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

/// The failure with the lowest position among all workers.
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

  /// Returns the number of OS threads that the launch can keep busy.
  [[nodiscard]] std::uint64_t useful_workers() const;
  /// Returns the index of the block of this rank in the cluster at this position.
  [[nodiscard]] uint3 block_index(std::uint64_t position, int rank) const;

  /// Clusters that one worker has claimed and not started.
  struct Claim {
    std::uint64_t begin = 0, end = 0;
  };
  /// Claims the next cluster. Returns false if none is left or an earlier cluster has failed.
  /// `extra`: the worker already runs a cluster, so the new one must fit on the device beside the
  /// resident clusters.
  bool claim(Claim& mine, bool extra, std::uint64_t& position);
  void release_cluster() { resident_.fetch_sub(1, std::memory_order_relaxed); }

  /// State of one worker in deadlock detection.
  struct Waiting {
    bool waits = false;
    bool confirmed = false;
    std::uint64_t epoch = 0;
  };
  void join();
  void leave(Waiting& mine);
  /// Records that all threads of the worker have polled without a change. Returns true if the
  /// threads of all workers have.
  bool all_wait(Waiting& mine);
  void progressed(Waiting& mine);
  /// Records a further round of polls, long after all_wait(). Returns true if every worker has
  /// completed a whole round since the last worker began to wait: no change can then come from a
  /// thread.
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
  std::mutex mutex_;  // guards the members below
  int workers_ = 0;
  int waiting_ = 0;
  int confirmed_ = 0;
  std::uint64_t epoch_ = 0;
};

/// Returns the number of clusters that are resident on the simulated device at once.
std::uint64_t resident_clusters(const Launch& launch);

}  // namespace rung::simt
