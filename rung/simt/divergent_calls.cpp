// SPDX-License-Identifier: Apache-2.0
// Detects lanes of one warp that execute the same collective or barrier at different call sites.
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {

/// Called when `lanes` complete a collective. If `apart`, they called it from different call sites,
/// which an H200 allows: records the call site of each lane. Otherwise they are at one call site:
/// reports that divergence has split the collective in two if this site was recorded for lanes of
/// `mask` that have exited since, and another site for all of `lanes`.
void Worker::note_parting(Warp& warp, std::uint32_t mask, std::uint32_t lanes, bool apart) {
  if (!recorder_->launch().checking) return;
  const Thread& first = *warp.lanes[__builtin_ctz(lanes)];
  const auto at = [&](const Place& place) -> Parting& {
    for (Parting& one : warp.partings) {
      if (one.place.line() == place.line()) return one;
    }
    return warp.partings.emplace_back(place, 0);
  };
  if (apart) {
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      at(warp.lanes[lane]->place).lanes |= 1u << lane;
    }
    return;
  }
  const std::uint32_t before = at(first.place).lanes;
  if (before == 0 || (before & lanes) != 0 || (before & mask) != before) return;
  for (const Parting& one : warp.partings) {
    if (&one == &at(first.place) || (one.lanes & lanes) != lanes) continue;
    recorder_->parted(first, before, one.place);
    at(first.place).lanes = 0;  // reported
    return;
  }
}

/// Reports lanes of one warp that wait at the block's barrier at different call sites. Different
/// warps may wait at different call sites.
void Worker::note_split_warps(const Block& block) {
  if (!recorder_->launch().checking) return;
  for (const Warp& warp : block.warps) {
    const Thread* first = nullptr;
    for (const Thread* lane : warp.lanes) {
      if (lane == nullptr || lane->wait != Wait::barrier || lane->barrier != 0) continue;
      if (first == nullptr) first = lane;
      if (!same_place(first->place, lane->place)) recorder_->split(*first, *lane);
    }
  }
}

}  // namespace rung::simt
