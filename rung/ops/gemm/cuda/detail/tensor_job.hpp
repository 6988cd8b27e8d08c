// SPDX-License-Identifier: Apache-2.0
// Host side shared by the rungs on TMA and wgmma: supported calls, tensor maps of the operands, and
// dispatch over four layouts.
#pragma once

#include <cstdint>

#include "rung/device/wgmma_tile.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Returns the work of a persistent kernel with the given tile. If rows of C do not begin at
/// multiples of 16 bytes, lanes store C, an element of which costs as much as a sector; boxes of A
/// and B that straddle L2 lines read one more line.
inline Work tensor_work(const Gemm::Args& args, const Context& context, const TensorTile& tile,
                        int slices) {
  Work work = tile_work(args, context,
                        {.rows = tile.rows,
                         .columns = tile.columns,
                         .depth = tile_depth(args),
                         .resident = tile.resident,
                         .slices = tile.slices_last ? 1 : slices,
                         .cluster = tile.blocks,
                         .stays = true},
                        true);
  const bool aligned = has_aligned_lines(args.a, 128) && has_aligned_lines(args.b, 128);
  const bool boxes = has_aligned_lines(args.c, 16);
  if (!boxes && (slices == 1 || tile.slices_last)) {
    constexpr double sector = 32;
    const double at_once = context.info().sms / tile.blocks;
    const auto tiles = static_cast<double>(tiles_of(args.m(), tile.rows) *
                                           tiles_of(args.n(), tile.columns) * args.batch());
    const auto elements = static_cast<double>(smaller<std::int64_t>(tile.rows, args.m()) *
                                              smaller<std::int64_t>(tile.columns, args.n()));
    // Slices of the last wave's tiles are stored as boxes.
    const double turns = slices == 1 ? std::ceil(tiles / at_once) : std::floor(tiles / at_once);
    work.steps = work.steps + turns * elements / tile.blocks * sector;
  }
  work.path = !boxes ? "C by lanes" : aligned ? "" : "A or B unaligned";
  return work;
}

/// Operand in the axis order of a tensor map: the contiguous axis comes last.
template <class T>
struct MappedOperand {
  bool k_major;
  bool moves;
  View<const T, 3> view;
};
/// Returns the operand for a map. `given`: matrices x outer x k.
template <class T>
MappedOperand<T> mapped_operand(const View<const T, 3>& given, int outer, int depth) {
  MappedOperand<T> operand{given.strides[depth] == 1 || given.shape[depth] == 1, true, given};
  // With one step of k and contiguous rows, either axis counts as contiguous if its strides are
  // supported.
  if (operand.k_major && given.shape[depth] == 1 && given.strides[outer] == 1) {
    operand.k_major = false;
  }
  const int line = operand.k_major ? outer : depth;
  const int along = operand.k_major ? depth : outer;
  operand.view.shape[1] = given.shape[line];
  operand.view.shape[2] = given.shape[along];
  operand.view.strides[1] = given.strides[line];
  operand.view.strides[2] = given.strides[along];
  operand.moves = given.shape[0] > 1 && given.strides[0] != 0;
  if (!operand.moves) operand.view.shape[0] = 1;
  return operand;
}

/// Operands of a product, transposed if needed so that C has contiguous rows.
template <class T>
struct MappedOperands {
  Finish<T> finish;
  MappedOperand<T> a, b;
};
template <class T>
MappedOperands<T> mapped_operands(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  finish.p = with_contiguous_c(finish.p);
  return {finish, mapped_operand(finish.p.a, 1, 2), mapped_operand(finish.p.b, 2, 1)};
}

/// Accepts the sizes that the TMA kernels support, for any types and layout.
inline Support require_mapped_sizes(const Gemm::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  if (args.k() == 0 || args.alpha == 0) return unsupported("there is nothing to multiply");
  if (args.m() > longest_mapped || args.n() > longest_mapped || args.k() > longest_mapped) {
    return unsupported("more than 2^30 rows, columns or steps of k");
  }
  const double tiles = static_cast<double>(tiles_of(args.m(), 128)) *
                       static_cast<double>(tiles_of(args.n(), 64)) *
                       static_cast<double>(args.batch());
  return tiles <= 0x1p31 / 128 ? supported : unsupported("more than 2^24 tiles of C");
}
/// Accepts the sizes of require_mapped_sizes() with the supported types.
inline Support require_mapped_extents(const Gemm::Args& args, const Context& context) {
  const Support sizes = require_mapped_sizes(args, context);
  return sizes ? require_tensor_cores(args) : sizes;
}

inline Support require_maps(const Gemm::Args& args, const Context& context) {
  if (const Support extents = require_mapped_extents(args, context); !extents) return extents;
  return visit<float, f16, bf16>(args.a.dtype, [&]<class T>() {
    const MappedOperands<T> operands = mapped_operands<T>(args);
    constexpr int box[3] = {1, 64, SwizzledTile<T, 64, true>::depth};
    if (sizeof(T) == 4 && !(operands.a.k_major && operands.b.k_major)) {
      return unsupported("wgmma takes tf32 operands only where k is contiguous in both");
    }
    const Support a = tensor_map_support(operands.a.view, box, Swizzle::bytes_128);
    return a ? tensor_map_support(operands.b.view, box, Swizzle::bytes_128) : a;
  });
}

inline Support require_16_bit_maps(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype == DType::f32) return unsupported("this rung multiplies f16 and bf16");
  return require_maps(args, context);
}

/// Sets up the epilogue of finish_boxes.hpp if it applies: at most one matrix is added, and bias is
/// a vector.
template <class Out, class T>
void map_finish(TensorJob<T>& job) {
  const auto& p = job.finish.p;
  const bool two = p.beta != 0 && p.residual.data != nullptr;
  const bool vector = p.bias.data == nullptr || p.bias.strides[1] == 0 || p.bias.strides[2] == 0;
  if (two || !vector || !map_boxes<Out>(p.c, job.c)) return;
  job.addend = job.c;
  if (p.residual.data != nullptr && !map_boxes<Out>(p.residual, job.addend)) return;
  job.finishes_boxes = true;
  job.adds = p.beta != 0 || p.residual.data != nullptr;
}

/// Partition of C and k into tiles and slices.
struct TensorCut {
  int rows, columns;  // rows and columns of a block's tile, or of a cluster's
  int slices;
  std::int64_t at_once;  // tiles processed concurrently
};

/// Returns the kernel parameters. TileA and TileB are those of the kernel; the maps depend on them.
template <class TileA, class TileB, class T>
TensorJob<T> tensor_job(const MappedOperands<T>& operands, const TensorCut& cut, float* partial) {
  const Product<T, float>& p = operands.finish.p;
  const auto k_tiles = static_cast<int>(tiles_of(p.k(), TileA::depth));
  const auto slice_tiles = static_cast<int>(tiles_of(k_tiles, cut.slices));
  TensorJob<T> job{
      .a = TileA::map(operands.a.view),
      .b = TileB::map(operands.b.view),
      .c = {},
      .finish = cut.slices > 1 ? into_partial_sums(operands.finish, partial) : operands.finish,
      .raster = {.down = static_cast<int>(tiles_of(p.m(), cut.rows)),
                 .along = static_cast<int>(tiles_of(p.n(), cut.columns)),
                 .batch = static_cast<int>(p.c.shape[0]),
                 .slices = static_cast<int>(tiles_of(k_tiles, slice_tiles)),
                 .band = raster_band(cut.at_once, cut.rows, cut.columns)},
      .a_moves = operands.a.moves ? 1 : 0,
      .b_moves = operands.b.moves ? 1 : 0,
      .k_tiles = k_tiles,
      .slice_tiles = slice_tiles,
      .boxes_of_c = false};
  const auto& target = job.finish;
  if constexpr (sizeof(T) == 2) {
    if (target.narrow) {
      job.boxes_of_c = map_c<T>(target.p, job.c);
      if (!job.boxes_of_c) map_finish<T>(job);
      return job;
    }
  }
  map_sums(job, cut.slices > 1);
  if (!job.boxes_of_c && cut.slices == 1) map_finish<float>(job);
  return job;
}

/// Calls f.template operator()<KMajorA, KMajorB>() for the operands' layouts.
template <class T, class F>
void with_majors(const MappedOperands<T>& operands, F&& f) {
  if constexpr (sizeof(T) == 4) {
    f.template operator()<true, true>();
  } else if (operands.a.k_major) {
    operands.b.k_major ? f.template operator()<true, true>() : f.template operator()<true, false>();
  } else {
    operands.b.k_major ? f.template operator()<false, true>()
                       : f.template operator()<false, false>();
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
