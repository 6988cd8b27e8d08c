// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, one-dimensional: the host side of 060_register_tile_1d.cl.
#include "rung/ops/gemm/opencl/060_register_tile_1d.cl.hpp"

#include "rung/ops/gemm/opencl/detail/product.hpp"

namespace rung {
namespace {

constexpr std::int64_t columns = 64, steps = 16, thread_rows = 16;
constexpr std::int64_t most_rows = 128;

std::size_t local_bytes(std::int64_t rows) {
  return static_cast<std::size_t>(steps * (rows + 1 + columns)) * sizeof(float);
}

/// Returns the largest number of rows per tile whose work-group the device supports; 0 if none.
std::int64_t tile_rows(const Context& context) {
  const opencl::Limits& device = opencl::limits(context);
  std::int64_t rows = most_rows;
  const auto fits = [&] {
    const auto items = static_cast<std::size_t>(rows / thread_rows * columns);
    return items <= device.group_items && items <= device.side_items &&
           local_bytes(rows) <= device.local_bytes;
  };
  while (rows >= thread_rows && !fits()) rows /= 2;
  return rows >= thread_rows ? rows : 0;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support plain = gemm_opencl::require_plain_f32(args, context); !plain) return plain;
  return tile_rows(context) > 0 ? supported
                                : unsupported(
                                      "needs work-groups of 64 items and 6 KB of local "
                                      "memory, more than the device has");
}

void run(const Gemm::Args& args, Context& context) {
  const std::int64_t rows = tile_rows(context);
  gemm_opencl::launch_product(
      args, context,
      {.source = source,
       .name = "gemm_register_tile_1d",
       .options = "-DROWS=" + std::to_string(rows) + " -DCOLUMNS=" + std::to_string(columns) +
                  " -DSTEPS=" + std::to_string(steps) +
                  " -DTHREAD_ROWS=" + std::to_string(thread_rows)},
      rows, columns, {rows / thread_rows * columns, 1, 1});
}

const Rung<Gemm> self{{.name = "register_tile_1d",
                       .step = 60,
                       .after = "shared_tile",
                       .backend = Backend::opencl,
                       .supports = supports,
                       .tile = {.rows = most_rows, .columns = columns},
                       .run = run},
                      source.path};

}  // namespace
}  // namespace rung
