// SPDX-License-Identifier: Apache-2.0
// Aligning lanes: which step of the list is the one that a lane takes now.
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// Which step the access fits, or behind which it is a new one.
///
/// Lanes that went different ways meet again as on a chip that lets those behind catch up: code at
/// lower addresses goes first. A lane that has gone back, round a loop, goes on where the list goes
/// back to the same place, unless that is behind other code of an outer loop.
Recorder::Spot Recorder::find(const RequestList& list, std::uintptr_t address, std::uintptr_t site,
                              int log_size) const {
  const std::uint32_t here = list.index_of(tracer.last);
  const auto match = [&](std::uint32_t i) {
    return i != 0 && fits(list.step(i), address, site, log_size);
  };
  // What a list before has left comes next, perhaps: a lane that starts has not looked there.
  if (list.linear() && match(here + 1)) return {.match = here + 1};
  std::uint32_t i = list.after(here);
  if (match(i)) return {.match = i};
  if (i == 0 || !list.may_hold(site)) return {.before = behind_lower(list, here, site)};
  const std::uintptr_t last = tracer.last->site;
  if (((site | last) & place_bit) != 0) {
    // Operations have no order: one that comes soon is the same.
    for (int look = 0; look < 16 && i != 0; ++look, i = list.after(i)) {
      if (match(i)) return {.match = i};
    }
    return {.before = here};
  }
  if (site <= last) {
    for (std::uintptr_t way = last; i != 0 && list.step(i).site > way; i = list.after(i)) {
      way = list.step(i).site;
    }
    if (match(i)) return {.match = i};
    return {.before = here};
  }
  const std::uint32_t before = behind_lower(list, here, site);
  for (i = list.after(before); i != 0 && list.step(i).site == site; i = list.after(i)) {
    if (match(i)) return {.match = i};
    if (!list.target(i).continues) break;
  }
  return {.before = before};
}

/// The last step before the one that must not come before this site.
std::uint32_t Recorder::behind_lower(const RequestList& list, std::uint32_t here,
                                     std::uintptr_t site) {
  if (list.step(here).site >= site || (site & place_bit) != 0) return here;
  for (std::uint32_t i = list.after(here); i != 0 && list.step(i).site < site; i = list.after(i)) {
    here = i;
  }
  return here;
}

}  // namespace rung::simt::record
