// SPDX-License-Identifier: Apache-2.0
// Recording session: accumulates the results of its launches. Internal to simt/.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "rung/simt/record.hpp"
#include "rung/simt/record/launch_record.hpp"

namespace rung::simt::record {

/// Bit flags of the active session, read by launches.
enum Mode : unsigned { recording = 1, counting = 2, checks = 4 };
extern std::atomic<unsigned> mode;
/// Returns true if launches must be recorded. A session without counters and checks only collects
/// findings from other sources.
inline bool follows_launches() {
  return (mode.load(std::memory_order_relaxed) & (counting | checks)) != 0;
}

/// Calls the launcher's completer (see complete_findings()) on a finding.
void complete(const void* data, const Memory* memory, Finding& finding);
/// Returns the callbacks given to complete_launches(); null if there are none.
const LaunchSource* launch_source();

/// Returns the GPU whose caches are modeled.
const Chip& modeled_chip();
/// Returns the size of a block's dynamic and static shared memory that is in use so far. The gap
/// between the two parts is out of bounds.
std::uint64_t shared_bytes(const Launch& launch);

/// Adds a completed launch with its counts by site; the counter totals in `work` must be zero.
void add_launch(const Launch& launch, Work work,
                const std::unordered_map<std::uintptr_t, SiteCount>& counts);

/// Adds a launch that was not recorded.
void add_unrecorded(const Launch& launch);
/// Returns the number of add() calls so far.
std::uint64_t findings_added();

}  // namespace rung::simt::record
