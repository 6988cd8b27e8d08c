// SPDX-License-Identifier: Apache-2.0
// Failure messages of the simulated GPU: kernel, block, thread, and source location.
#include <map>
#include <string_view>

#include "rung/core/text.hpp"
#include "rung/simt/mbarrier.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

std::string coordinates(const uint3& v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

std::string extents(const dim3& v) {
  return std::to_string(v.x) + "x" + std::to_string(v.y) + "x" + std::to_string(v.z);
}

bool polls_mbarrier(const Thread& thread) {
  return thread.wait == Wait::none && thread.mbarrier != nullptr &&
         std::string_view(thread.operation) == "mbarrier_try_wait";
}

std::string what_it_waits_for(const Thread& thread) {
  std::string text = thread.operation;
  if (thread.place.line() != 0) text += " at " + to_string(thread.place);
  const Warp& warp = *thread.warp;
  if (thread.wait == Wait::warp) {
    // Lanes of the mask that have not arrived at this operation: the cause of the deadlock.
    std::string missing;
    for (std::uint32_t left = thread.mask & ~warp.exited; left != 0; left &= left - 1) {
      const Thread& other = *warp.lanes[__builtin_ctz(left)];
      const bool here = other.wait == Wait::warp && other.mask == thread.mask;
      if (!here) missing += (missing.empty() ? "" : ", ") + std::to_string(other.lane);
    }
    text += " for lanes " + missing;
  } else if (thread.wait == Wait::barrier) {
    const Barrier& barrier = thread.block->barriers[thread.barrier];
    const int expected = barrier.expected == 0 ? thread.block->live : barrier.expected;
    text += ", where " + std::to_string(barrier.arrived) + " of " + std::to_string(expected) +
            " threads have arrived";
  } else if (thread.wait == Wait::cluster) {
    const Cluster& cluster = *thread.block->cluster;
    text += ", where " + std::to_string(cluster.arrived) + " of " + std::to_string(cluster.live) +
            " threads of the cluster have arrived";
  } else if (thread.wait == Wait::mbarrier || polls_mbarrier(thread)) {
    text +=
        " for parity " + std::to_string(thread.parity) + ", " + what_is_missing(*thread.mbarrier);
  } else if (thread.wait == Wait::none) {
    text += ", without a change";
  }
  return text;
}

}  // namespace

std::string kernel_name(const Launch& launch) {
  return launch.name != nullptr ? launch.name(launch.data) : symbol_name(launch.kernel);
}

std::string to_string(const Place& place) {
  return printable(place.file_name()) + ":" + std::to_string(place.line());
}

std::string where(const Launch& launch, const Thread& thread, const Place* place) {
  std::string text = "\n  kernel " + kernel_name(launch) + "\n  block " +
                     coordinates(thread.block->index) + " of " + extents(launch.grid) +
                     ", thread " + coordinates(thread.index) + " of " + extents(launch.block);
  if (place != nullptr && place->line() != 0) text += "\n  at " + to_string(*place);
  return text;
}

void Worker::blame_deadlock() {
  // Threads that wait for the same object, reported in one line: the first thread and their number.
  struct Group {
    std::uint64_t threads = 0;
    const Thread* first = nullptr;
  };
  // Sorted with polling threads first, since other threads often wait for a polling thread.
  std::map<std::pair<bool, std::string>, Group> groups;
  const Thread* example = nullptr;
  for_each_block([&](const Block& block) {
    for (const Thread& thread : block.threads) {
      if (thread.wait == Wait::exited) continue;
      Group& group = groups[{thread.wait != Wait::none, what_it_waits_for(thread)}];
      if (group.threads++ == 0) group.first = &thread;
      if (example == nullptr) example = &thread;
    }
  });
  std::string what = "simulated GPU: deadlock: no thread can run";
  for (const auto& [key, group] : groups) {
    const std::string& text = key.second;
    what += "\n  " + std::to_string(group.threads) +
            (group.threads == 1 ? " thread waits in " : " threads wait in ") + text + " (block " +
            coordinates(group.first->block->index) + ", thread " + coordinates(group.first->index) +
            ")";
  }
  what += "\n  " + std::to_string(threads_ - live_) + " of " + std::to_string(threads_) +
          " threads have exited";
  blame(what, *example, nullptr);
}

}  // namespace rung::simt
