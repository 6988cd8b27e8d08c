// SPDX-License-Identifier: Apache-2.0
// Layers of f16 and bf16 with channels last, as the TMA unrolls them for tensor cores; shared by
// conv's rung implicit_gemm_tma and the gradients' rungs of this name.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/im2col.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_job.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr std::int64_t max_groups = 16;  // one launch per group

/// Returns the elements from one pixel of a tensor to the next, through rows and images; 0 if there
/// is no common stride.
inline std::int64_t pixel_stride(const ConstTensorRef& y) {
  std::int64_t stride = 0;
  std::int64_t before = 1;
  for (const int axis : {4, 3, 2, 0}) {
    const std::int64_t extent = y.shape[axis];
    if (extent == 1) continue;
    if (stride == 0) {
      stride = y.strides[axis] / before;
    } else if (y.strides[axis] != stride * before) {
      return 0;
    }
    before *= extent;
  }
  return stride == 0 ? y.shape[1] : stride;
}

/// Returns x of a group: images x rows x columns x channels.
template <class T>
View<const T, 4> image_of(const ConstTensorRef& x, std::int64_t channels, std::int64_t group) {
  return {static_cast<const T*>(x.data) + group * channels * x.strides[1],
          {x.shape[0], x.shape[3], x.shape[4], channels},
          {x.strides[0], x.strides[3], x.strides[4], x.strides[1]}};
}
/// Returns the im2col window of `pixels` pixels and `channels` channels. It ends at the last
/// pixel's first tap, so that the paddings at its two ends may differ.
inline Im2colWindow window_of(const ConvGeometry& g, int pixels, int channels) {
  Im2colWindow window{.channels = channels, .pixels = pixels};
  for (int axis = 0; axis < 2; ++axis) {
    const ConvAxis& one = g.axis[1 + axis];
    constexpr std::int64_t far = 1 << 20;  // far outside the image, but fits in an int
    const std::int64_t last = (one.out - 1) * one.stride - one.padding;
    window.lower[axis] = static_cast<int>(clamped(-one.padding, -far, far));
    window.upper[axis] = static_cast<int>(clamped(last - (one.in - 1), -far, far));
    window.steps[axis] = static_cast<int>(smaller(one.stride, far));
  }
  return window;
}

/// Sets up the TMA store of the job's result: of 16-bit elements, or of partial sums.
template <class T>
void map_result(gemm_cuda::TensorJob<T>& job) {
  if (job.finish.narrow) {
    job.boxes_of_c = gemm_cuda::map_c<T>(job.finish.p, job.c);
  } else {
    gemm_cuda::map_sums(job, true);
  }
}

/// Returns the work of a product of `outputs` elements by persistent blocks, one per SM. A tile is
/// split into `slices` work items; each group takes one launch.
inline Work persistent_facts(const Cost& cost, const gemm_cuda::TensorTile& tile,
                             std::int64_t tiles, std::int64_t k_tiles, std::int64_t depth,
                             int slices, std::int64_t groups, std::int64_t outputs,
                             const Context& context) {
  const std::int64_t of_slice = ceil_div(k_tiles, std::int64_t{slices});
  const std::int64_t works = tiles * ceil_div(k_tiles, of_slice);
  const std::int64_t blocks = smaller<std::int64_t>(works, context.info().sms);
  const std::int64_t rounds = groups * ceil_div(works, blocks) * of_slice;
  return {
      .bytes = cost.bytes + (slices > 1 ? 8.0 * slices * static_cast<double>(outputs) : 0),
      .operations = 2.0 * static_cast<double>(rounds * blocks * depth) * tile.rows * tile.columns,
      .launches = groups * (slices > 1 ? 2 : 1),
      .blocks = blocks,
      .rounds = rounds};
}

/// Functions of conv's rung implicit_gemm_tma, which conv_backward_data calls on its phases.
/// `partial` has im2col_partial_bytes(); if null, the context's workspace is used.
Support supports_im2col_tma(const Conv::Args& args, const Context& context);
/// Returns whether the rung supports a layer whose pixels of y need not have a common stride. Such
/// a layer has contiguous channels, no bias and no activation; it is computed in one slice.
Support supports_scattered_tma(const Conv::Args& args, const Context& context);
Work im2col_tma_facts(const Conv::Args& args, const Context& context);
std::size_t im2col_partial_bytes(const Conv::Args& args, const Context& context);
void run_im2col_tma(const Conv::Args& args, Context& context, void* partial);

}  // namespace rung::conv_cuda::inline RUNG_TARGET
