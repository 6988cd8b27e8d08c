// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU says when a kernel goes wrong: which kernel, block and thread, and where.
#include <map>

#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

std::string coordinates(const uint3& v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

std::string extents(const dim3& v) {
  return std::to_string(v.x) + "x" + std::to_string(v.y) + "x" + std::to_string(v.z);
}

std::string what_it_waits_for(const Thread& thread) {
  std::string text = std::string(thread.operation) + " at " + to_string(thread.place);
  const Warp& warp = *thread.warp;
  if (thread.wait == Wait::warp) {
    // Lanes of the mask that are not in this operation: those that are to blame.
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
  }
  return text;
}

}  // namespace

std::string to_string(const Place& place) {
  return std::string(place.file_name()) + ":" + std::to_string(place.line());
}

std::string where(const Launch& launch, const Thread& thread, const Place* place) {
  std::string text = "\n  kernel " + symbol_name(launch.kernel) + "\n  block " +
                     coordinates(thread.block->index) + " of " + extents(launch.grid) +
                     ", thread " + coordinates(thread.index) + " of " + extents(launch.block);
  if (place != nullptr) text += "\n  at " + to_string(*place);
  return text;
}

void Worker::blame_deadlock() {
  // One line for each thing waited for, with its first thread.
  struct Group {
    std::uint64_t threads = 0;
    const Thread* first = nullptr;
  };
  std::map<std::string, Group> groups;
  const Thread* example = nullptr;
  std::uint64_t exited = 0;
  for (std::size_t i = 0; i < resident_; ++i) {
    for (const Thread& thread : blocks_[i]->threads) {
      if (thread.wait == Wait::exited) {
        ++exited;
        continue;
      }
      Group& group = groups[what_it_waits_for(thread)];
      if (group.threads++ == 0) group.first = &thread;
      if (example == nullptr) example = &thread;
    }
  }
  std::string what = "simulated GPU: deadlock: no thread can run";
  for (const auto& [text, group] : groups) {
    what += "\n  " + std::to_string(group.threads) +
            (group.threads == 1 ? " thread waits in " : " threads wait in ") + text + " (block " +
            coordinates(group.first->block->index) + ", thread " + coordinates(group.first->index) +
            ")";
  }
  what +=
      "\n  " + std::to_string(exited) + " of " + std::to_string(threads_) + " threads have exited";
  blame(what, *example, nullptr);
}

}  // namespace rung::simt
