// SPDX-License-Identifier: Apache-2.0
// conv / tensor cores
//
// Idea     implicit_gemm on tensor cores, for f16 and bf16 with channels last: 8 channels of a tap
//          are 16 contiguous bytes of x and of w, so that strips of both are copied as they lie,
//          and a warp multiplies 16 x 8 x 16 elements by one instruction (mma.sync), its operands
//          brought by ldmatrix. Rows are pixels, columns filters: both have their terms contiguous.
// Changes  against implicit_gemm: 16-byte loads, each decoded once for 8 terms; sums of 2048
//          multiply-adds per instruction; half the bytes.
// Cost     128 pixels x 64 filters per block, 32 terms per step: per multiply-add 1/64 of an
//          element of x and 1/128 of one of w. The next step's loads are in flight in registers
//          while this one is multiplied.
// Limits   contiguous channels, a multiple of 8 per group, all 16-byte aligned; extents of up to
//          2^28. Tensor cores truncate when they add: twice the error bound of f32.
// Tried    -
// Source   PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
#include "rung/device/ptx_matrix.hpp"
#include "rung/ops/conv/cuda/detail/layer.hpp"
#include "rung/ops/conv/cuda/detail/tiles.hpp"
#include "rung/ops/conv/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile_pixels = 128;
constexpr int tile_filters = 64;
constexpr int tile_terms = 32;
constexpr int chunk = 8;  // channels of a load
constexpr int chunks = tile_terms / chunk;
constexpr int warp_pixels = 32;  // 4 x 2 warps
constexpr int warp_filters = 32;
constexpr int pixel_fragments = warp_pixels / 16;
constexpr int filter_fragments = warp_filters / 8;
constexpr int pixel_slots = tile_pixels * chunks / block_threads;
/// Rows of 80 bytes: the eight that ldmatrix reads at a time lie in different banks.
constexpr int row_length = tile_terms + chunk;

template <class T>
struct Stage {
  alignas(16) T pixels[tile_pixels][row_length];
  alignas(16) T filters[tile_filters][row_length];
};
template <class T>
struct Layout {
  Stage<T> stage[2];
  Entry table[table_entries];  // of chunks of 8 terms
};

/// Where a pixel's first tap would lie.
struct PixelPlace {
  std::int64_t base;
  int d, h, v;
};

template <class T>
using Eight = RawPack<T, chunk>;

template <class T>
__device__ __forceinline__ Eight<T> eight_zeros() {
  Eight<T> zeros{};
  return zeros;
}

template <class T>
__global__ void __launch_bounds__(block_threads) conv_tensor_cores(Gathered g) {
  auto& memory = shared<Layout<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, tile_filters));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * tile_filters;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * tile_pixels;
  const T* const x = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
  const T* const w = static_cast<const T*>(g.w) + group * g.w_group + first_filter * g.w_strides[0];

  // Four neighbouring threads copy the 64 bytes of a row.
  const int column = thread % chunks;
  PixelPlace place[pixel_slots];
#pragma unroll
  for (int slot = 0; slot < pixel_slots; ++slot) {
    std::int64_t index = first_pixel + thread / chunks + slot * (block_threads / chunks);
    if (index >= g.pixels()) {
      place[slot] = {0, outside, outside, outside};
      continue;
    }
    const auto start = [&](int axis, std::int64_t o) {
      return static_cast<int>(o * g.axis[axis].step + g.axis[axis].start);
    };
    PixelPlace made{};
    made.v = start(2, take_axis(index, g.axis[2].places));
    made.h = start(1, take_axis(index, g.axis[1].places));
    made.d = start(0, take_axis(index, g.axis[0].places));
    made.base = index * g.x_strides[0] + made.d * g.x_strides[2] + made.h * g.x_strides[3] +
                made.v * g.x_strides[4];
    place[slot] = made;
  }
  const int filter_row = thread / chunks;
  const bool has_filter = first_filter + filter_row < g.m;
  const std::int64_t all_chunks = g.terms() / chunk;

  const auto refill = [&](std::int64_t first) {
    std::int64_t index = first + thread;
    Entry made{0, -1, outside, outside, outside, 0};
    if (index < all_chunks) {
      const std::int64_t q = take_axis(index, g.q / chunk) * chunk;
      const std::int64_t v = take_axis(index, g.axis[2].kernel);
      const std::int64_t h = take_axis(index, g.axis[1].kernel);
      const std::int64_t d = index;
      made.d = static_cast<int>(d * g.axis[0].between);
      made.h = static_cast<int>(h * g.axis[1].between);
      made.v = static_cast<int>(v * g.axis[2].between);
      made.image = q + made.d * g.x_strides[2] + made.h * g.x_strides[3] + made.v * g.x_strides[4];
      made.other = q + d * g.w_strides[2] + h * g.w_strides[3] + v * g.w_strides[4];
    }
    memory.table[thread] = made;
    __syncthreads();
  };
  Eight<T> of_pixels[pixel_slots];
  Eight<T> of_filter;
  const auto load = [&](int first) {
    const Entry entry = memory.table[first + column];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const PixelPlace& at = place[slot];
      const bool inside =
          static_cast<unsigned>(at.d + entry.d) < static_cast<unsigned>(g.axis[0].extent) &&
          static_cast<unsigned>(at.h + entry.h) < static_cast<unsigned>(g.axis[1].extent) &&
          static_cast<unsigned>(at.v + entry.v) < static_cast<unsigned>(g.axis[2].extent);
      of_pixels[slot] = inside ? load_raw<chunk>(x + at.base + entry.image) : eight_zeros<T>();
    }
    of_filter = has_filter && entry.other >= 0
                    ? load_raw<chunk>(w + filter_row * g.w_strides[0] + entry.other)
                    : eight_zeros<T>();
  };

  float sums[pixel_fragments][filter_fragments][4] = {};
  refill(0);
  load(0);
  int stage = 0;
  for (std::int64_t k = 0; k < all_chunks; k += chunks, stage ^= 1) {
    Stage<T>& here = memory.stage[stage];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const int row = thread / chunks + slot * (block_threads / chunks);
      store_raw(&here.pixels[row][column * chunk], of_pixels[slot]);
    }
    store_raw(&here.filters[filter_row][column * chunk], of_filter);
    __syncthreads();
    const std::int64_t next = k + chunks;
    if (next < all_chunks) {
      const int at = static_cast<int>(next % table_entries);
      if (at == 0) refill(next);
      load(at);
    }
#pragma unroll
    for (int depth = 0; depth < tile_terms; depth += 16) {
      std::uint32_t a[pixel_fragments][4];
      std::uint32_t b[filter_fragments][2];
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
        const int row = warp / 2 * warp_pixels + i * 16 + lane % 16;
        ptx::load_matrix(a[i], &here.pixels[row][depth + lane / 16 * 8]);
      }
#pragma unroll
      for (int j = 0; j < filter_fragments; ++j) {
        const int row = warp % 2 * warp_filters + j * 8 + lane % 8;
        ptx::load_matrix(b[j], &here.filters[row][depth + lane / 8 % 2 * 8]);
      }
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
        for (int j = 0; j < filter_fragments; ++j) {
          if constexpr (std::is_same_v<T, f16>) {
            ptx::mma_m16n8k16_f16(sums[i][j], a[i], b[j], sums[i][j]);
          } else {
            ptx::mma_m16n8k16_bf16(sums[i][j], a[i], b[j], sums[i][j]);
          }
        }
      }
    }
  }

  T* const y = static_cast<T*>(g.y) + group * g.m * g.y_strides[1];
  const auto* bias = static_cast<const T*>(g.bias);
#pragma unroll
  for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::int64_t index = first_pixel + warp / 2 * warp_pixels + i * 16 + half * 8 + lane / 4;
      if (index >= g.pixels()) continue;
      std::int64_t at = take_axis(index, g.axis[2].places) * g.y_strides[4];
      at += take_axis(index, g.axis[1].places) * g.y_strides[3];
      at += take_axis(index, g.axis[0].places) * g.y_strides[2];
      at += index * g.y_strides[0];
#pragma unroll
      for (int j = 0; j < filter_fragments; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const std::int64_t filter =
              first_filter + warp % 2 * warp_filters + j * 8 + lane % 4 * 2 + e;
          if (filter >= g.m) continue;
          float sum = sums[i][j][half * 2 + e];
          if (bias != nullptr) {
            sum += convert<float>(bias[(group * g.m + filter) * g.bias_stride]);
          }
          y[at + filter * g.y_strides[1]] = convert<T>(activate(g.activation, sum));
        }
      }
    }
  }
}

/// Eight channels wherever they begin: 16 bytes, aligned.
bool in_eights(const ConstTensorRef& tensor, std::int64_t channels) {
  bool all = channels % chunk == 0 && tensor.strides[1] == 1 &&
             reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  for (const int axis : {0, 2, 3, 4}) {
    all = all && (tensor.shape[axis] == 1 || tensor.strides[axis] % chunk == 0);
  }
  return all;
}

Support supports(const Conv::Args& args, const Context&) {
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  const std::int64_t channels = args.geometry.group_channels();
  if (channels < chunk || !in_eights(args.x, channels) || !in_eights(args.w, channels)) {
    return unsupported("contiguous channels, in multiples of 8 and aligned to 16 bytes");
  }
  const Gathered g = conv_layer::forward(args);
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  const bool fits = ceil_div(g.m, tile_filters) * g.groups <= 0xffff &&
                    ceil_div(g.pixels(), tile_pixels) <= 0x7fffffff;
  return fits ? supported : unsupported("more tiles than a grid has blocks");
}

double estimate(const Conv::Args& args, const Context& context) {
  // Nominal rates are those of f32; tensor cores have some fifteen times as much, of which this
  // reaches a third.
  const auto filters = static_cast<double>(args.geometry.group_filters());
  const double rows =
      static_cast<double>(round_up(args.geometry.group_filters(), std::int64_t{tile_filters}));
  return estimate_seconds(Conv::cost(args), {.peak = 5.0 * filters / rows}, context);
}

void run(const Conv::Args& args, Context& context) {
  const Gathered g = conv_layer::forward(args);
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    launch(context,
           {.grid = {ceil_div(g.pixels(), tile_pixels), ceil_div(g.m, tile_filters) * g.groups},
            .block = block_threads,
            .shared_bytes = sizeof(Layout<T>)},
           conv_tensor_cores<T>, g);
  });
}

const Rung<Conv> self{{.name = "tensor_cores",
                       .step = 110,
                       .after = "implicit_gemm",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
