// SPDX-License-Identifier: Apache-2.0
// conv / f16 arithmetic
//
// Idea     f16 elements are multiplied as they are, two per instruction (fma.rn.f16x2): a word
//          holds two neighboring channels of a pixel, another the same channels of a filter. Sums
//          of f16 would stop growing at 2048 times what is added; so only 8 multiply-adds are
//          summed in each half of a word, and then added to a sum in f32.
// Changes  against implicit_gemm: 16-byte loads, half the bytes in shared memory, 2 multiply-adds
//          per instruction; the conversions, 4 instructions, are paid once for 16 multiply-adds.
// Cost     8 instructions for 16 multiply-adds, and 4 for their promotion: 3/4 of an instruction
//          per multiply-add, where f32 takes one and its conversions.
// Limits   |error| <= 8.1 2^-11 sum |w x| + 2^-24 n, instead of what conv.hpp promises of f32 sums:
//          a lesson, which is never picked. Products whose sums of 8 exceed 65504 become infinite.
//          f16; contiguous channels, a multiple of 8 per group, all 16-byte aligned.
// Tried    -
// Source   CUDA C++ Programming Guide, "Arithmetic instructions": results per clock and SM.
#include "rung/device/ptx/half_multiply.hpp"
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// A thread's 8 pixels x 4 filters. Lanes have neighboring pixels: rows of 80 bytes, of which
/// eight at a time are in different banks; half a warp reads the same filter.
struct HalfProduct {
  static constexpr int pixels = 8;
  static constexpr int filters = 4;
  static constexpr int lanes = 16;          // adjacent pixels
  static constexpr int words = 4;           // of 16 bytes: eight terms
  static constexpr int terms_per_half = 8;  // between two promotions
  static_assert(pixels * lanes == tile_pixels && filters * lanes == tile_filters);
  static_assert(tile_terms % (2 * terms_per_half) == 0);

  float sums[pixels][filters] = {};

  __device__ __forceinline__ void add(const Stage<f16>& here) {
    const int pixel = static_cast<int>(threadIdx.x) % lanes;
    const int filter = static_cast<int>(threadIdx.x) / lanes;
#pragma unroll 1
    for (int depth = 0; depth < tile_terms; depth += 2 * terms_per_half) {
      std::uint32_t halves[pixels][filters] = {};
#pragma unroll
      for (int part = 0; part < 2 * terms_per_half; part += 2 * words) {
        Pack<std::uint32_t, words> of_filter[filters];
#pragma unroll
        for (int j = 0; j < filters; ++j) {
          of_filter[j] = words_at(&here.filters[filter + lanes * j][depth + part]);
        }
#pragma unroll
        for (int i = 0; i < pixels; ++i) {
          const Pack<std::uint32_t, words> of_pixel =
              words_at(&here.pixels[pixel + lanes * i][depth + part]);
#pragma unroll
          for (int j = 0; j < filters; ++j) {
#pragma unroll
            for (int word = 0; word < words; ++word) {
              halves[i][j] =
                  ptx::multiply_add_halves(of_pixel[word], of_filter[j][word], halves[i][j]);
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < pixels; ++i) {
#pragma unroll
        for (int j = 0; j < filters; ++j) {
          sums[i][j] += ptx::half_of<0>(halves[i][j]);
          sums[i][j] += ptx::half_of<1>(halves[i][j]);
        }
      }
    }
  }

  template <class F>
  __device__ __forceinline__ void for_each_pixel(F&& f) const {
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      f(static_cast<int>(threadIdx.x) % lanes + lanes * i, [&](auto&& put) {
#pragma unroll
        for (int j = 0; j < filters; ++j) {
          put(static_cast<int>(threadIdx.x) / lanes + lanes * j, sums[i][j]);
        }
      });
    }
  }

 private:
  static __device__ __forceinline__ Pack<std::uint32_t, words> words_at(const f16* from) {
    return load_wide<words>(reinterpret_cast<const std::uint32_t*>(from));
  }
};

__global__ void __launch_bounds__(block_threads, 2) conv_f16_arithmetic(Gathered g) {
  tensor_tile<f16, false, HalfProduct>(g);
}

Support supports(const Conv::Args& args, const Context&) {
  if (args.x.dtype != DType::f16) return unsupported("f16");
  const std::int64_t channels = args.geometry.group_channels();
  if (channels < chunk || !in_eights(args.x, channels) || !in_eights(args.w, channels)) {
    return unsupported("contiguous channels, in multiples of 8 and aligned to 16 bytes");
  }
  return supports_tensor_tiles(conv_layer::forward(args));
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  launch(context, tensor_grid<f16>(g), conv_f16_arithmetic, g);
}

const Rung<Conv> self{{.name = "f16_arithmetic",
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
