// SPDX-License-Identifier: Apache-2.0
// Branches: the basic blocks that lanes of a warp enter, and the branches at which lanes diverge.
// In the list of accesses a basic block is a step of its own, or a mark at the step of its first
// access. The successors of a block, by lane, show whether it ended in a divergent branch.
#include <algorithm>
#include <bit>
#include <iterator>

#include "rung/simt/record/condition.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/record/source.hpp"

namespace rung::simt::record {
namespace {

/// Positions from this value on refer to the previous list.
constexpr std::uint32_t before = RequestList::room;

using Answer = SiteCount::Answer;

bool is_test(SiteCount& block) {
  Answer& known = block.part_of_condition;
  if (known == Answer::unknown) known = is_part_of_condition(block.site) ? Answer::yes : Answer::no;
  return known == Answer::yes;
}

}  // namespace

std::uint16_t Recorder::stood_at(const RequestList& list, std::uint32_t stand) const {
  return stand < before ? list.target(stand).enters : left_at_[stand - before];
}

/// Returns true if these convergent lanes enter a block that only contains the next test of a
/// condition, while lanes that were convergent with them have left the condition. The lanes then
/// keep their position.
bool Recorder::tests_on(const RequestList& list, std::uint32_t index, std::uint32_t lanes) {
  if (list.step(index).access != Access::basic_block) return false;
  SiteCount& block = counts_[list.target(index).enters];
  if (!is_test(block)) return false;
  const auto one = static_cast<std::size_t>(std::countr_zero(lanes));
  const std::uint32_t stand = stands_[one];
  // A condition only jumps forward; a backward jump is a loop.
  if (stand == 0 || block.site <= tested_[one]) return false;
  const Way& way = ways_[stand];
  bool together = true;
  bool some_elsewhere = way.stretch == stretch_ && way.to != block.site;
  for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
    const bool here = (lanes >> lane & 1) != 0;
    together &= !here || stands_[lane] == stand;
    some_elsewhere |= !here && stands_[lane] == stand;
  }
  if (!together || !some_elsewhere) return false;
  for (; lanes != 0; lanes &= lanes - 1) tested_[std::countr_zero(lanes)] = block.site;
  return true;
}

/// Records that lanes that were convergent at `stand` enter basic block `to`.
void Recorder::go_on(WarpRecord& warp, const RequestList& list, std::uint32_t stand,
                     std::uintptr_t to) {
  SiteCount& from = counts_[stood_at(list, stand)];
  Way& way = ways_[stand];
  if (way.stretch != stretch_) {
    way = {.stretch = stretch_, .to = to};
    ++from.ways;
  } else if (way.to != to && !way.parted) {
    way.parted = true;
    ++from.partings;
    // Branches within the simulator's functions are not counted: on a GPU such a function may be
    // one instruction.
    if (!warp.diverged) warp.diverged = source_of(from.site).of_a_kernel;
  }
  from.went(to);
}

void Recorder::follow(WarpRecord& warp, const RequestList& list, std::uint32_t index,
                      std::uint32_t lanes) {
  SiteCount& block = counts_[list.target(index).enters];
  const std::uintptr_t here = block.site;
  const bool all = lanes == warp.launched;
  ++block.counters.basic_blocks;
  ++warp.visits;
  block.counters.basic_block_lanes += static_cast<std::uint64_t>(std::popcount(lanes));
  if (all && together_ != 0) {
    go_on(warp, list, together_, here);
    together_ = index;
    return;
  }
  if (together_ != 0) {
    for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
      stands_[lane] = (warp.launched >> lane & 1) != 0 ? together_ : 0;
    }
  }
  together_ = all ? index : 0;
  if (!all && tests_on(list, index, lanes)) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (stands_[lane] != 0) go_on(warp, list, stands_[lane], here);
    stands_[lane] = index;
    tested_[lane] = 0;
  }
}

void Recorder::stand_as_before(const WarpRecord& warp) {
  std::fill(std::begin(tested_), std::end(tested_), 0);
  together_ = warp.together != 0 ? before : 0;
  left_at_[0] = warp.together;
  if (together_ != 0) return;
  for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
    const WarpRecord::Stand& stand = warp.stands[lane];
    left_at_[lane] = stand.site;
    stands_[lane] =
        stand.first_lane < 0 ? 0 : before + static_cast<std::uint32_t>(stand.first_lane);
  }
}

void Recorder::remember_stands(const RequestList& list, WarpRecord& warp) const {
  warp.together = together_ != 0 ? stood_at(list, together_) : std::uint16_t{0};
  if (together_ != 0) return;
  for (std::size_t lane = 0; lane < std::size(stands_); ++lane) {
    const std::uint32_t stand = stands_[lane];
    if (stand == 0) continue;
    std::size_t first = 0;
    while (stands_[first] != stand) ++first;
    warp.stands[lane] = {.site = stood_at(list, stand),
                         .first_lane = static_cast<std::int8_t>(first)};
  }
}

}  // namespace rung::simt::record
