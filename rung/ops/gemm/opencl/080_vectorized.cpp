// SPDX-License-Identifier: Apache-2.0
// gemm / vectorized: the host side of 080_vectorized.cl.
#include "rung/ops/gemm/opencl/080_vectorized.cl.hpp"

#include "rung/ops/gemm/opencl/detail/product.hpp"

namespace rung {
namespace {

constexpr std::int64_t tile = 128, items = 256;
constexpr std::size_t local_bytes = std::size_t{2} * 8 * (tile + 4) * sizeof(float);

bool has_contiguous_rows(const ConstTensorRef& matrix) {
  return matrix.strides[2] == 1 || matrix.shape[2] <= 1;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support plain = gemm_opencl::require_plain_f32(args, context); !plain) return plain;
  if (!has_contiguous_rows(args.a)) return unsupported("A's rows must be contiguous");
  if (!has_contiguous_rows(args.b)) return unsupported("B's rows must be contiguous");
  const opencl::Limits& device = opencl::limits(context);
  if (device.group_items < items || device.side_items < items || device.local_bytes < local_bytes) {
    return unsupported(
        "needs work-groups of 256 items and 8.3 KB of local memory, more than the "
        "device has");
  }
  return supported;
}

void run(const Gemm::Args& args, Context& context) {
  gemm_opencl::launch_product(args, context, {.source = source, .name = "gemm_vectorized"}, tile,
                              tile, {items, 1, 1});
}

const Rung<Gemm> self{{.name = "vectorized",
                       .step = 80,
                       .after = "register_tile_1d",
                       .backend = Backend::opencl,
                       .supports = supports,
                       .tile = {.rows = tile, .columns = tile},
                       .run = run},
                      source.path};

}  // namespace
}  // namespace rung
