// SPDX-License-Identifier: Apache-2.0
// Fingerprints of blocks: a hash of their accesses without addresses, and a sum of the addresses.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "rung/simt/random.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {
namespace {

/// Odd weights per lane, so that weighted sums distinguish patterns of lanes.
struct LaneWeights {
  std::uint64_t of[warp_lanes];
  constexpr LaneWeights() : of() {
    for (std::uint64_t lane = 0; lane < warp_lanes; ++lane) of[lane] = mix(lane + 1) | 1;
  }
};
constexpr LaneWeights lane_weights;

/// Returns a hash of the lanes' units relative to unit `first`.
std::uint64_t pattern_of(const Request& request, std::uint32_t first) {
  if (request.progression) return static_cast<std::uint32_t>(request.stride);
  if (request.halves) {
    const std::uint64_t apart = request.units[warp_lanes / 2] - first;
    return mix(apart << 32 | static_cast<std::uint32_t>(request.stride));
  }
  std::uint64_t sum = 0;
  for_each_lane(request.lanes, [&](int lane) {
    sum += (std::uint64_t{request.units[lane]} - first) * lane_weights.of[lane];
  });
  return mix(sum + 1);
}

/// Returns true for accesses that may synchronize blocks, and for texture fetches, whose address is
/// unknown.
bool may_order_blocks(const Request& request) {
  if (request.step.access == Access::texture) return true;
  if (request.target.where != Where::global) return false;
  return !is_plain_write(request.step.access) && !is_plain_read(request.step.access);
}

}  // namespace

void WrittenRanges::add(Region* region, std::uint64_t begin, std::uint64_t end) {
  for (Range& one : ranges_) {
    if (one.region != region) continue;
    one.begin = std::min(one.begin, begin);
    one.end = std::max(one.end, end);
    return;
  }
  ranges_.push_back({region, begin, end});
}

void WrittenRanges::mark_initialized(bool whole) const {
  for (const Range& one : ranges_) {
    if (!one.region->initialized) continue;
    const std::uint64_t begin = whole ? 0 : one.begin;
    const std::uint64_t end = whole ? one.region->memory.bytes : one.end;
    one.region->initialized.set(begin, end - begin, true);
  }
}

void Recorder::fingerprint(BlockRecord& block, WarpRecord& warp, const Request& request) {
  const Step& step = request.step;
  const Where where = request.target.where;
  if (may_order_blocks(request)) launch_->sampling.give_up();
  const auto number = static_cast<std::uint64_t>(&warp - block.warps.data());
  const std::uint64_t place = mix(step.site ^ number << 56 ^ ++warp.requests_so_far << 20);
  const std::uint32_t first = request.progression
                                  ? request.units[0]
                                  : request.units[std::countr_zero(request.lanes) % warp_lanes];
  std::uint64_t shape = place + request.lanes * std::uint64_t{0x9e3779b97f4a7c15u} +
                        (std::uint64_t{step.log_size} << 8 | static_cast<std::uint8_t>(where));
  shape = mix(shape) + mix(pattern_of(request, first) + static_cast<std::uint64_t>(step.access));
  const std::uint64_t offset = std::uint64_t{first} << step.log_size;
  if (where == Where::global || where == Where::constant) {
    block.fingerprint.addresses += (place | 1) * (step.base + offset);
  } else if (where == Where::shared) {
    const auto begin = reinterpret_cast<std::uintptr_t>(request.target.block->block->shared);
    shape += (place | 1) * (step.base - begin + offset);
  }
  block.fingerprint.shape += mix(shape);
  ++block.fingerprint.requests;
  if (where != Where::global || !is_plain_write(step.access)) return;
  std::uint32_t least = first, most = first;
  if (request.progression) {
    least = std::min(first, request.units[warp_lanes - 1]);
    most = std::max(first, request.units[warp_lanes - 1]);
  } else {
    for_each_lane(request.lanes, [&](int lane) {
      least = std::min(least, request.units[lane]);
      most = std::max(most, request.units[lane]);
    });
  }
  Region* const region = request.target.region;
  const std::uint64_t base = step.base - reinterpret_cast<std::uintptr_t>(region->begin());
  ranges_.add(region, base + (std::uint64_t{least} << step.log_size),
              base + ((std::uint64_t{most} + 1) << step.log_size));
  if (!region->initialized) return;
  const auto add = [&](std::uint64_t unit, std::uint64_t units) {
    block.fingerprint.add_written(region, base + (unit << step.log_size),
                                  base + ((unit + units) << step.log_size));
  };
  if (request.progression && request.stride == 1) {
    add(first, warp_lanes);
    return;
  }
  for_each_lane(request.lanes, [&](int lane) {
    const auto shift = static_cast<std::uint32_t>(lane * request.stride);
    add(request.progression ? first + shift : request.units[lane], 1);
  });
}

}  // namespace rung::simt::record
