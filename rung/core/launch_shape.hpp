// SPDX-License-Identifier: Apache-2.0
// Launch shapes and their validation. The CUDA and simulated backends both check here, before the
// driver or the simulator sees the launch, so that an invalid launch fails on both with the same
// message. Extents are 64-bit: a grid that is too large is reported, never truncated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung {

/// Blocks of a grid or threads of a block along x, y, z.
struct LaunchExtent {
  std::int64_t x = 1, y = 1, z = 1;
  // NOLINTNEXTLINE(google-explicit-constructor): .grid = blocks reads well
  constexpr LaunchExtent(std::int64_t width = 1, std::int64_t height = 1, std::int64_t depth = 1)
      : x(width), y(height), z(depth) {}
};

/// Shape of a launch: launch(context, {.grid = {columns, rows}, .block = 256}, kernel,
/// arguments...).
struct LaunchShape {
  LaunchExtent grid;
  LaunchExtent block;
  std::size_t shared_bytes = 0;  // dynamic shared memory, as shared<Layout>() needs: sizeof(Layout)
  bool cooperative = false;      // all blocks resident at once, for grid_sync()
  LaunchExtent cluster = {};     // blocks per cluster (ptx/cluster.hpp); divides the grid
  bool dependent = false;        // may start before the preceding grid ends (ptx/hopper.hpp)
  std::source_location where = std::source_location::current();  // of the launch, for messages
};

constexpr std::int64_t blocks_in(const LaunchExtent& cluster) {
  return cluster.x * cluster.y * cluster.z;
}
/// Formats "grid 4x1x1, block 256x1x1, 0 bytes of shared memory, at FILE:LINE".
RUNG_API std::string describe(const LaunchShape& shape);

/// Returns false if the grid is empty and nothing is to be run. Throws Error(device) if the shape
/// exceeds the limits of compute capability 8 and 9 or of the context's device, and Error(internal)
/// if the context's backend is not the one that the kernel was compiled for.
RUNG_API bool check_launch(const LaunchShape& shape, Backend compiled_for, const Context& context);

}  // namespace rung
