// SPDX-License-Identifier: Apache-2.0
// Device limits of launch shapes.
#include "rung/core/launch_shape.hpp"

#include "rung/core/error.hpp"

namespace rung {
namespace {

std::string to_string(const LaunchExtent& extent) {
  return std::to_string(extent.x) + "x" + std::to_string(extent.y) + "x" + std::to_string(extent.z);
}

void require_extent(const LaunchShape& shape, const char* what, std::int64_t given,
                    std::int64_t least, std::int64_t most) {
  if (given >= least && given <= most) return;
  throw Error(ErrorCode::device, std::string("launch: ") + what + " is " + std::to_string(given) +
                                     ", accepted are " + std::to_string(least) + " to " +
                                     std::to_string(most) + " (" + describe(shape) + ")");
}

/// Throws if the cluster exceeds 16 blocks, the limit of an H100 and H200 (8 blocks are portable,
/// and larger clusters leave fewer blocks resident), if the device has no clusters, or if the grid
/// is not a multiple of the cluster.
void check_cluster(const LaunchShape& shape, const Context& context) {
  constexpr std::int64_t max_blocks = 16;
  require_extent(shape, "cluster.x", shape.cluster.x, 1, max_blocks);
  require_extent(shape, "cluster.y", shape.cluster.y, 1, max_blocks);
  require_extent(shape, "cluster.z", shape.cluster.z, 1, max_blocks);
  const std::int64_t blocks = blocks_in(shape.cluster);
  if (blocks == 1) return;
  require_extent(shape, "the number of blocks in a cluster", blocks, 1, max_blocks);
  if (context.info().compute_capability < 90) {
    throw Error(ErrorCode::device,
                "launch: clusters need compute capability 9.0 (" + describe(shape) + ")");
  }
  const LaunchExtent& grid = shape.grid;
  const LaunchExtent& cluster = shape.cluster;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    throw Error(ErrorCode::device,
                "launch: the cluster's extents do not divide the grid's (" + describe(shape) + ")");
  }
}

}  // namespace

std::string describe(const LaunchShape& shape) {
  return "grid " + to_string(shape.grid) + ", block " + to_string(shape.block) + ", " +
         std::to_string(shape.shared_bytes) + " bytes of shared memory" +
         (shape.cooperative ? ", cooperative" : "") +
         (blocks_in(shape.cluster) > 1 ? ", clusters of " + to_string(shape.cluster) : "") +
         ", at " + shape.where.file_name() + ":" + std::to_string(shape.where.line());
}

bool check_launch(const LaunchShape& shape, Backend compiled_for, const Context& context) {
  if (context.backend() != compiled_for) {
    throw Error(ErrorCode::internal, std::string("launch: this kernel is compiled for ") +
                                         to_string(compiled_for) + ", the context is " +
                                         to_string(context.backend()) + " (" + describe(shape) +
                                         ")");
  }
  constexpr std::int64_t max_blocks_x = 0x7fffffff;
  constexpr std::int64_t max_blocks_yz = 0xffff;
  constexpr std::int64_t max_threads = 1024;
  constexpr std::int64_t max_threads_z = 64;
  require_extent(shape, "block.x", shape.block.x, 1, max_threads);
  require_extent(shape, "block.y", shape.block.y, 1, max_threads);
  require_extent(shape, "block.z", shape.block.z, 1, max_threads_z);
  require_extent(shape, "the number of threads in a block",
                 shape.block.x * shape.block.y * shape.block.z, 1, max_threads);
  require_extent(shape, "grid.x", shape.grid.x, 0, max_blocks_x);
  require_extent(shape, "grid.y", shape.grid.y, 0, max_blocks_yz);
  require_extent(shape, "grid.z", shape.grid.z, 0, max_blocks_yz);
  require_extent(shape, "the dynamic shared memory in bytes",
                 static_cast<std::int64_t>(shape.shared_bytes), 0,
                 static_cast<std::int64_t>(context.info().shared_per_block));
  check_cluster(shape, context);
  return shape.grid.x != 0 && shape.grid.y != 0 && shape.grid.z != 0;
}

}  // namespace rung
