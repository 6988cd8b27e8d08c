// SPDX-License-Identifier: Apache-2.0
// conv / f16 arithmetic
//
// Idea     f16 elements are multiplied two per instruction (fma.rn.f16x2): one 32-bit word holds
//          two adjacent channels of a pixel, another the same channels of a filter. f16 sums stop
//          growing at 2048 times the addend, so only 8 multiply-adds accumulate in each half of a
//          word before they are added to an f32 sum.
// Changes  against implicit_gemm: 16-byte loads, half the bytes in shared memory, 2 multiply-adds
//          per instruction; 4 conversion instructions per 16 multiply-adds.
// Cost     8 instructions per 16 multiply-adds, and 4 for their conversion: 3/4 of an instruction
//          per multiply-add. f32 arithmetic takes one, plus its conversions.
// Limits   |error| <= 8.1 2^-11 sum |w x| + 2^-24 n, more than conv.hpp promises, so it is never
//          chosen; products whose sums of 8 exceed 65504 become infinite. f16; contiguous channels,
//          a multiple of 8 per group, all 16-byte aligned.
// Source   CUDA C++ Programming Guide, "Arithmetic instructions": results per clock and SM.
#include "rung/device/ptx/half_multiply.hpp"
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

// Tile of a thread: 8 pixels x 4 filters. Lanes have adjacent pixels: rows of 80 bytes, eight of
// which are in different banks; half a warp reads the same filter.
constexpr int pixels = 8;
constexpr int filters = 4;
constexpr int lanes = 16;          // adjacent pixels
constexpr int words = 4;           // of 16 bytes: eight terms
constexpr int terms_per_half = 8;  // between two conversions to f32
static_assert(pixels * lanes == tile_pixels && filters * lanes == tile_filters);
static_assert(tile_terms % (2 * terms_per_half) == 0);

__device__ __forceinline__ Pack<std::uint32_t, words> words_at(const f16* from) {
  return load_wide<words>(reinterpret_cast<const std::uint32_t*>(from));
}

/// Computes a layer, one tile per block. blockIdx.x counts tiles of pixels, blockIdx.y tiles of
/// filters of all groups.
__global__ void __launch_bounds__(block_threads, 2) conv_f16_arithmetic(Gathered g) {
  using T = f16;
  constexpr TermSlices slices;  // one slice
  auto& memory = shared<TensorStrips<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, tile_filters));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * tile_filters;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * tile_pixels;
  if (first_pixel >= g.pixels()) return;
  const T* const x = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
  const T* const w = static_cast<const T*>(g.w) + group * g.w_group + first_filter * g.w_strides[0];

  // Four adjacent threads copy 64 bytes per step of a pixel, and of a filter.
  const int row = thread / chunks;
  const int column = thread % chunks * chunk;
  constexpr int rows_apart = block_threads / chunks;
  GatheredPixel pixel[pixel_slots];
#pragma unroll
  for (int slot = 0; slot < pixel_slots; ++slot) {
    pixel[slot] = gathered_pixel(g, first_pixel + row + slot * rows_apart);
  }
  const bool has_filter = first_filter + row < g.m;
  const TermRange terms = terms_of_block(slices, g.terms(), tile_terms);
  const std::int64_t first_chunk = terms.begin / chunk;
  const std::int64_t all_chunks = terms.end / chunk;
  // Held in registers: in shared memory the layer would be loaded again for each chunk.
  const auto depth = static_cast<unsigned>(g.axis[0].extent);
  const auto height = static_cast<unsigned>(g.axis[1].extent);
  const auto width = static_cast<unsigned>(g.axis[2].extent);
  const std::int64_t w_filter = g.w_strides[0];

  const auto decode = [&](std::int64_t first) {  // 256 chunks of eight terms, one per thread
    memory.table[thread] = gathered_term<true, chunk>(g, first + thread, all_chunks);
    __syncthreads();
  };
  // Chunks of a step, held in registers while the previous step is multiplied.
  Eight<T> of_x[pixel_slots] = {};
  Eight<T> of_w = {};
  const auto load = [&](int first) {
    // The implicit matrix: x if the chunk's tap of the pixel is inside the image, else zeros.
    const Entry term = memory.table[first + column / chunk];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const int d = pixel[slot].d + term.d;
      const int h = pixel[slot].h + term.h;
      const int v = pixel[slot].v + term.v;
      const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                          static_cast<unsigned>(v) < width;
      of_x[slot] = inside ? load_raw<chunk>(x + pixel[slot].base + term.image) : eight_zeros<T>();
    }
    of_w = has_filter && term.other >= 0 ? load_raw<chunk>(w + row * w_filter + term.other)
                                         : eight_zeros<T>();
  };

  const int own_pixel = thread % lanes;
  const int own_filter = thread / lanes;
  float sums[pixels][filters] = {};
  if (first_chunk < all_chunks) {
    decode(first_chunk);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = first_chunk; k < all_chunks; k += chunks, stage ^= 1) {
    Stage<T>& here = memory.stage[stage];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      store_raw(&here.pixels[row + slot * rows_apart][column], of_x[slot]);
    }
    store_raw(&here.filters[row][column], of_w);
    __syncthreads();  // one per step: the next step uses the other stage
    const std::int64_t next = k + chunks;
    if (next < all_chunks) {
      const int at = static_cast<int>((next - first_chunk) % table_entries);
      if (at == 0) decode(next);
      load(at);
    }
#pragma unroll 1
    for (int first = 0; first < tile_terms; first += 2 * terms_per_half) {
      std::uint32_t halves[pixels][filters] = {};
#pragma unroll
      for (int part = first; part < first + 2 * terms_per_half; part += 2 * words) {
        Pack<std::uint32_t, words> of_filter[filters];
#pragma unroll
        for (int j = 0; j < filters; ++j) {
          of_filter[j] = words_at(&here.filters[own_filter + lanes * j][part]);
        }
#pragma unroll
        for (int i = 0; i < pixels; ++i) {
          const auto of_pixel = words_at(&here.pixels[own_pixel + lanes * i][part]);
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

  const LayerEpilogue<T> epilogue(g, slices, group);
#pragma unroll
  for (int i = 0; i < pixels; ++i) {
    const std::int64_t index = first_pixel + own_pixel + lanes * i;
    if (index >= g.pixels()) continue;
    const std::int64_t place = epilogue.place(index);
#pragma unroll
    for (int j = 0; j < filters; ++j) {
      epilogue.store(place, first_filter + own_filter + lanes * j, sums[i][j]);
    }
  }
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
