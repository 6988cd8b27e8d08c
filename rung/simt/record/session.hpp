// SPDX-License-Identifier: Apache-2.0
// The recording session: what its launches have added. Internal to simt/.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "rung/simt/record.hpp"
#include "rung/simt/record/launch_record.hpp"

namespace rung::simt::record {

/// What launches want to know at once.
enum Mode : unsigned { recording = 1, counting = 2, checks = 4 };
extern std::atomic<unsigned> mode;
/// Returns whether a launch has to be followed: a session that neither counts nor checks only keeps
/// what others find.
inline bool follows_launches() {
  return (mode.load(std::memory_order_relaxed) & (counting | checks)) != 0;
}

/// Has the launcher complete a finding (complete_findings()).
void complete(const void* data, const Memory* memory, Finding& finding);
/// What the launcher has given to complete_launches(); null: nothing.
const LaunchSource* launch_source();

/// Returns the GPU whose caches are modeled.
const Chip& modeled_chip();
/// Returns a block's shared memory, dynamic and static, as far as that is known: the gap between
/// them is unowned.
std::uint64_t shared_bytes(const Launch& launch);

/// A launch is done, and this is what was counted, by site; `work` has no totals yet.
void add_launch(const Launch& launch, Work work,
                const std::unordered_map<std::uintptr_t, SiteCount>& counts);

/// A launch has run that was not recorded.
void add_unrecorded(const Launch& launch);
/// How often add() has been called.
std::uint64_t findings_added();

}  // namespace rung::simt::record
