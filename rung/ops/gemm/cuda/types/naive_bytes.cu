// SPDX-License-Identifier: Apache-2.0
// gemm / naive bytes
//
// Idea     naive_coalesced for 8-bit operands: e4m3 and e5m2 in any pair, and i8. Sums of 128 steps
//          of k are scaled by their blocks' factors and accumulated.
// Changes  against naive_coalesced: types, and the blocks of k.
// Cost     2 loads per multiply-add, and type conversions, for which GPUs before compute capability
//          8.9 have no instruction.
// Limits   as naive_coalesced. The fallback rung: any strides, any size.
#include <algorithm>

#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/bytes.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr Tiling tiling{.rows = 8, .columns = 32, .block = {32, 8}};
constexpr TileExtents tile_extents{.rows = 1, .columns = 1};

/// Product of e4m3 operands, or e5m2 by flag. A slice of C records its offset, because scale
/// factors are indexed by blocks of 128 columns.
template <class Out>
struct SmallFloatProduct : Product<e4m3, Out> {
  bool a_is_e5m2, b_is_e5m2;
  BlockScales scales;
  std::int64_t first[3];  // offsets of batch, rows, columns
};
template <class Out>
SmallFloatProduct<Out> slice(SmallFloatProduct<Out> p, int axis, std::int64_t first,
                             std::int64_t count) {
  static_cast<Product<e4m3, Out>&>(p) =
      gemm_cuda::slice(static_cast<const Product<e4m3, Out>&>(p), axis, first, count);
  p.first[axis] += first;
  return p;
}

__device__ float widened(e4m3 value, bool is_e5m2) {
  return is_e5m2 ? convert<float>(e5m2::from_bits(value.bits)) : convert<float>(value);
}

template <class Out>
__global__ void gemm_naive_small_floats(SmallFloatProduct<Out> p) {
  const std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= p.m() || column >= p.n()) return;
  const auto a = p.a.at(blockIdx.z);
  const auto b = p.b.at(blockIdx.z);
  const std::int64_t batch = p.first[0] + blockIdx.z;
  const std::int64_t scale_row = p.first[1] + row;
  const std::int64_t scale_column = (p.first[2] + column) / gemm_scale_block;
  float sum = 0;
  for (std::int64_t begin = 0; begin < p.k(); begin += gemm_scale_block) {
    const std::int64_t end = smaller(begin + gemm_scale_block, p.k());
    float partial = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      partial += widened(a(row, k), p.a_is_e5m2) * widened(b(k, column), p.b_is_e5m2);
    }
    const std::int64_t block = begin / gemm_scale_block;
    sum += p.scales.of_a(batch, scale_row, block) * p.scales.of_b(batch, block, scale_column) *
           partial;
  }
  finish(p, static_cast<int>(blockIdx.z), row, column, sum);
}

__global__ void gemm_naive_integers(Product<std::int8_t, std::int32_t> p) {
  const std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= p.m() || column >= p.n()) return;
  const auto a = p.a.at(blockIdx.z);
  const auto b = p.b.at(blockIdx.z);
  std::uint32_t sum = 0;
  for (std::int64_t k = 0; k < p.k(); ++k) {
    sum += static_cast<std::uint32_t>(std::int32_t{a(row, k)} * std::int32_t{b(k, column)});
  }
  finish(p, static_cast<int>(blockIdx.z), row, column, sum);
}

Support supports(const Gemm::Args& args, const Context&) {
  return args.has_bytes() ? supported : unsupported("this rung multiplies 8-bit types");
}

void run(const Gemm::Args& args, Context& context) {
  if (args.a.dtype == DType::i8) {
    return launch_tiles(context, tiling, gemm_naive_integers,
                        product<std::int8_t, std::int32_t>(args));
  }
  visit<float, f16, bf16>(args.c.dtype, [&]<class Out>() {
    const SmallFloatProduct<Out> p{product<e4m3, Out>(as_bytes(args)),
                                   args.a.dtype == DType::e5m2,
                                   args.b.dtype == DType::e5m2,
                                   block_scales(args),
                                   {0, 0, 0}};
    launch_tiles(context, tiling, gemm_naive_small_floats<Out>, p);
  });
}

Work work(const Gemm::Args& args, const Context&) {
  const std::int64_t k = args.alpha == 0 ? 0 : args.k();
  return {
      .blocks = tiles_of(args.m(), tiling.rows) * tiles_of(args.n(), tiling.columns) * args.batch(),
      .resident = 8,
      .rounds = k,
      .steps = k * std::min<std::int64_t>(args.m(), tiling.rows),
      .path = args.a.dtype == DType::i8 ? "i8" : ""};
}

const Rung<Gemm> self{{.name = "naive_bytes",
                       .after = "naive_coalesced",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = tile_extents,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
