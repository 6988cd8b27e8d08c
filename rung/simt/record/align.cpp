// SPDX-License-Identifier: Apache-2.0
// Alignment of lanes: finds the list step that corresponds to a lane's access.
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// Returns the step that the access matches, or the step behind which to insert a new step.
///
/// Divergent lanes reconverge as on a GPU that lets trailing lanes catch up: code at lower
/// addresses executes first. A lane that jumped back in a loop matches the list's next backward
/// jump to the same site, unless code of an outer loop precedes that jump.
Recorder::Spot Recorder::find(const RequestList& list, std::uintptr_t address, std::uintptr_t site,
                              int log_size) const {
  const std::uint32_t here = list.index_of(tracer.last);
  const auto match = [&](std::uint32_t i) {
    return i != 0 && fits(list.step(i), address, site, log_size);
  };
  // In a linear list the next slot may be a leftover step of the previous list, to which no lane
  // has compared its access yet.
  if (list.linear() && match(here + 1)) return {.match = here + 1};
  std::uint32_t i = list.after(here);
  if (match(i)) return {.match = i};
  if (i == 0 || !list.may_hold(site)) return {.before = behind_lower(list, here, site)};
  const std::uintptr_t last = tracer.last->site;
  if (((site | last) & place_bit) != 0) {
    // Operations of the simulator have no address order: the first matching step among the next 16
    // is used.
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

/// Returns the last of the consecutive steps from `here` on whose sites are below `site`; `here` if
/// there is none.
std::uint32_t Recorder::behind_lower(const RequestList& list, std::uint32_t here,
                                     std::uintptr_t site) {
  if (list.step(here).site >= site || (site & place_bit) != 0) return here;
  for (std::uint32_t i = list.after(here); i != 0 && list.step(i).site < site; i = list.after(i)) {
    here = i;
  }
  return here;
}

}  // namespace rung::simt::record
