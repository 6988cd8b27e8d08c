// SPDX-License-Identifier: Apache-2.0
// Records the sectors of global memory that warps access, for the cache model.
#include "rung/simt/record/cache_trace.hpp"

#include <algorithm>
#include <utility>

#include "rung/simt/record/coverage.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

void Recorder::keep_sectors(WarpRecord& warp, const Request& request) {
  using Run = SectorRun::Kind;
  const Access access = request.step.access;
  const bool in_a_row = request.progression && (request.stride == 1 || request.stride == -1);
  const Run store = in_a_row ? Run::store : Run::partial_store;
  const Run kind = is_atomic(access)                 ? Run::atomic
                   : is_counted_write(access)        ? store
                   : access == Access::volatile_read ? Run::uncached_load
                                                     : Run::load;
  const auto sector = [&](std::uint32_t unit) {
    return (request.step.base + (std::uint64_t{unit} << request.step.log_size)) >> sector_shift;
  };
  bool continues = request.target.continues;
  const auto keep = [&](std::uint64_t first, std::uint64_t count, std::uint64_t stride) {
    warp.trace.emplace_back(first, count, kind, continues, request.step.site_index, stride != 1);
    if (stride != 1) warp.trace.push_back(SectorRun::stride(stride));
    continues = true;
  };
  const std::size_t before = warp.trace.size();
  const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
  if (request.progression && step >= -32 && step <= 32) {
    const std::uint64_t one = sector(request.units[0]), other = sector(request.units[31]);
    keep(std::min(one, other), std::max(one, other) - std::min(one, other) + 1, 1);
  } else if (request.halves && step >= -32 && step <= 32) {
    constexpr int half = warp_lanes / 2;
    const auto ends = [&](int lane) {
      const std::uint64_t one = sector(request.units[lane]);
      const std::uint64_t other = sector(request.units[lane + half - 1]);
      return std::pair(std::min(one, other), std::max(one, other));
    };
    auto [first, last] = ends(0);
    auto [next, end] = ends(half);
    if (next < first) {
      std::swap(first, next);
      std::swap(last, end);
    }
    if (next <= last + 1) {
      keep(first, std::max(last, end) - first + 1, 1);
    } else {
      keep(first, last - first + 1, 1);
      keep(next, end - next + 1, 1);
    }
  } else {
    std::uint64_t sectors[32];
    int count = 0;
    const auto add = [&](std::uint32_t unit) { sectors[count++] = sector(unit); };
    if (request.progression) {
      for (std::uint32_t i = 0; i < warp_lanes; ++i) {
        add(request.units[0] + i * static_cast<std::uint32_t>(request.stride));
      }
    } else {
      for_each_lane(request.lanes, [&](int lane) { add(request.units[lane]); });
    }
    std::sort(sectors, sectors + count);
    count = static_cast<int>(std::unique(sectors, sectors + count) - sectors);
    // Finds the longest run with a constant stride; a run of two sectors must be contiguous.
    for (int first = 0, behind = 0; first < count; first = behind) {
      behind = first + 1;
      if (behind == count) {
        keep(sectors[first], 1, 1);
        continue;
      }
      const std::uint64_t stride = sectors[behind] - sectors[first];
      while (behind < count && sectors[behind] - sectors[behind - 1] == stride) ++behind;
      if (stride != 1 && behind - first == 2) behind = first + 1;
      keep(sectors[first], static_cast<std::uint64_t>(behind - first),
           behind - first == 1 ? 1 : stride);
    }
  }
  if (!launch_->may_keep(warp.trace.size() - before)) warp.trace = {};
}

void Recorder::keep_traces(BlockRecord& block) {
  const dialect::dim3& grid = launch_->launch.grid;
  const dialect::uint3& index = block.block->index;
  BlockTrace trace;
  trace.number = index.x + std::uint64_t{grid.x} * (index.y + std::uint64_t{grid.y} * index.z);
  for (WarpRecord& warp : block.warps)
    trace.warps.emplace_back(warp.trace.begin(), warp.trace.end());
  launch_->keep(std::move(trace));
}

}  // namespace rung::simt::record
