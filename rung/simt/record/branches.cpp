// SPDX-License-Identifier: Apache-2.0
// Branches: where the lanes of a warp part. Stretches of straight code are steps of the list, as
// accesses are; where lanes went on from one tells how it ended.
#include <iterator>

#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {
namespace {

/// Stands that a list before has left come behind its steps.
constexpr std::uint32_t before = RequestList::capacity + 4;

}  // namespace

void Recorder::follow(const RequestList& list, std::uint32_t index, std::uint32_t lanes) {
  const std::uintptr_t here = list.step(index).site;
  ways_.resize(before + std::size(stands_));
  for (; lanes != 0; lanes &= lanes - 1) {
    std::uint32_t& stands = stands_[__builtin_ctz(lanes)];
    if (stands != 0) {
      SiteCount& from =
          counts_[stands < before ? list.step(stands).site_index : left_at_[stands - before]];
      Way& way = ways_[stands];
      if (way.stretch != stretch_) {
        way = {.stretch = stretch_, .to = here};
        ++from.ways;
      } else if (way.to != here && !way.parted) {
        way.parted = true;
        ++from.partings;
      }
      from.went(here);
    }
    stands = index;
  }
}

void Recorder::stand_as_before(const WarpRecord& warp) {
  for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
    const WarpRecord::Stand& stand = warp.stands[lane];
    left_at_[lane] = stand.site;
    stands_[lane] =
        stand.first_lane < 0 ? 0 : before + static_cast<std::uint32_t>(stand.first_lane);
  }
}

void Recorder::remember_stands(const RequestList& list, WarpRecord& warp) const {
  for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
    const std::uint32_t stands = stands_[lane];
    if (stands == 0) continue;
    std::size_t first = 0;
    while (stands_[first] != stands) ++first;
    warp.stands[lane] = {
        .site = stands < before ? list.step(stands).site_index : left_at_[stands - before],
        .first_lane = static_cast<std::int8_t>(first)};
  }
}

}  // namespace rung::simt::record
