// SPDX-License-Identifier: Apache-2.0
// conv / depthwise
//
// Idea     A filter per channel: no reuse between filters and a few multiply-adds per element, a
//          memory-bound stencil. If channels are contiguous, a thread computes 16 bytes of them,
//          which have the same taps: loads are wide and one index computation serves 4 or 8
//          elements. Otherwise a thread computes four or eight pixels of a column, whose windows
//          overlap. Filters of 3 x 3 and, with stride 2, 5 x 5 and 7 x 7 keep their weights in
//          registers: a thread loads each row of x once and adds it to all pixels that use it.
// Changes  Against every_call: a quarter or an eighth of the loads and the address arithmetic.
//          Against implicit_gemm: no tiles with 15 of 16 rows empty.
// Cost     kh kw loads per 16 bytes of y, from the L1 cache; x from memory once. In columns, with
//          3 x 3 and stride 1: per 8 pixels 30 loads, two thirds of which hit L1, 72 multiply-adds
//          and no division.
// Limits   one filter per channel (C = K = G), images of two dimensions; f32, f16, bf16.
// Source   F. Chollet, Xception: Deep learning with depthwise separable convolutions, 2017.
#include "rung/ops/conv/shared/cuda/rungs.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_blocks = 0x7fffffff;
constexpr int column_pixels = 4;
/// Pixels of a column per thread, for a filter size known at compile time.
template <int Stride>
constexpr int run_pixels = 8 / Stride;

/// Pixels of a column per thread for packs of channels, which take more registers.
template <int Stride>
constexpr int pack_pixels = 4 / Stride;

template <class T>
__global__ void __launch_bounds__(threads)
    conv_depthwise_channels(Layer<T> p, std::int64_t packs, std::int64_t count) {
  constexpr int lanes = vector_width<T>;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t c = take_axis(rest, packs) * lanes;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t oh = take_axis(rest, rows.out);
    Pack<float, lanes> sums;
#pragma unroll
    for (int l = 0; l < lanes; ++l) sums[l] = 0;
    for (std::int64_t a = 0; a < rows.kernel; ++a) {
      const std::int64_t h = rows.source(oh, a);
      if (h < 0) continue;
      for (std::int64_t b = 0; b < columns.kernel; ++b) {
        const std::int64_t v = columns.source(ow, b);
        if (v < 0) continue;
        const Pack<float, lanes> x = convert<float>(load_wide<lanes>(&p.x(rest, c, 0, h, v)));
#pragma unroll
        for (int l = 0; l < lanes; ++l) sums[l] += x[l] * convert<float>(p.w(c + l, 0, 0, a, b));
      }
    }
    Pack<T, lanes> made;
#pragma unroll
    for (int l = 0; l < lanes; ++l) made[l] = p.epilogue(sums[l], c + l);
    store_wide(&p.y(rest, c, 0, oh, ow), made);
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    conv_depthwise_columns(Layer<T> p, std::int64_t groups_of_rows, std::int64_t count) {
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t first = take_axis(rest, groups_of_rows) * column_pixels;
    const std::int64_t c = take_axis(rest, p.geometry.channels);
    float sums[column_pixels] = {};
    for (std::int64_t b = 0; b < columns.kernel; ++b) {
      const std::int64_t v = columns.source(ow, b);
      if (v < 0) continue;
      for (std::int64_t a = 0; a < rows.kernel; ++a) {
        const float weight = convert<float>(p.w(c, 0, 0, a, b));
#pragma unroll
        for (int r = 0; r < column_pixels; ++r) {
          const std::int64_t h = rows.source(first + r, a);
          if (h >= 0) sums[r] += weight * convert<float>(p.x(rest, c, 0, h, v));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < column_pixels; ++r) {
      if (first + r < rows.out) p.y(rest, c, 0, first + r, ow) = p.epilogue(sums[r], c);
    }
  }
}

/// Computes Kernel x Kernel filters without dilation. Offsets within a plane have 32 bits.
template <class T, int Kernel, int Stride>
__global__ void __launch_bounds__(threads)
    conv_depthwise_runs(Layer<T> p, std::int64_t groups_of_rows, std::int64_t count) {
  constexpr int pixels = run_pixels<Stride>;
  constexpr int run_rows = (pixels - 1) * Stride + Kernel;  // rows of x
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const auto height = static_cast<unsigned>(rows.in);
  const auto width = static_cast<unsigned>(columns.in);
  const auto down = static_cast<int>(p.x.strides[3]);
  const auto across = static_cast<int>(p.x.strides[4]);
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t first = take_axis(rest, groups_of_rows) * pixels;
    const std::int64_t c = take_axis(rest, p.geometry.channels);
    float weights[Kernel][Kernel];
#pragma unroll
    for (int a = 0; a < Kernel; ++a) {
#pragma unroll
      for (int b = 0; b < Kernel; ++b) weights[a][b] = convert<float>(p.w(c, 0, 0, a, b));
    }
    const T* const plane = &p.x(rest, c, 0, 0, 0);
    const int v = static_cast<int>(ow * Stride - columns.padding);
    const int h = static_cast<int>(first * Stride - rows.padding);
    float sums[pixels] = {};
#pragma unroll
    for (int row = 0; row < run_rows; ++row) {
      const bool exists = static_cast<unsigned>(h + row) < height;
      float x[Kernel];
#pragma unroll
      for (int b = 0; b < Kernel; ++b) {
        const bool inside = exists && static_cast<unsigned>(v + b) < width;
        x[b] = inside ? convert<float>(plane[(h + row) * down + (v + b) * across]) : 0.0F;
      }
#pragma unroll
      for (int r = 0; r < pixels; ++r) {
        const int a = row - r * Stride;
        if (a < 0 || a >= Kernel) continue;
#pragma unroll
        for (int b = 0; b < Kernel; ++b) sums[r] += weights[a][b] * x[b];
      }
    }
    T* const y = &p.y(rest, c, 0, 0, ow);
#pragma unroll
    for (int r = 0; r < pixels; ++r) {
      if (first + r < rows.out) y[(first + r) * p.y.strides[3]] = p.epilogue(sums[r], c);
    }
  }
}

/// Maximum number of packs of channels per block. PackWeights are their weights, as [tap][channel].
constexpr int max_packs = 32;
template <class T, int Kernel>
struct PackWeights {
  alignas(16) float of[Kernel * Kernel][max_packs * vector_width<T>];
};

/// Computes filters like conv_depthwise_runs, on packs of 16 bytes of channels. A block has up to
/// 32 packs, blockIdx.y counts such blocks, and their weights are in shared memory. A thread
/// computes columns of four or two pixels of one pack, one column after another.
template <class T, int Kernel, int Stride>
__global__ void __launch_bounds__(threads)
    conv_depthwise_pack_runs(Layer<T> p, int packs, std::int64_t groups_of_rows,
                             std::int64_t count) {
  constexpr int lanes = vector_width<T>;
  constexpr int pixels = pack_pixels<Stride>;
  constexpr int run_rows = (pixels - 1) * Stride + Kernel;
  auto& weights = shared<PackWeights<T, Kernel>>().of;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const std::int64_t first_channel = std::int64_t{blockIdx.y} * packs * lanes;
  const std::int64_t channels =
      smaller(std::int64_t{packs} * lanes, p.geometry.channels - first_channel);
  for (int i = static_cast<int>(threadIdx.x); i < Kernel * Kernel * channels; i += threads) {
    const int tap = i % (Kernel * Kernel);
    const int channel = i / (Kernel * Kernel);
    weights[tap][channel] =
        convert<float>(p.w(first_channel + channel, 0, 0, tap / Kernel, tap % Kernel));
  }
  __syncthreads();
  const int pack = static_cast<int>(threadIdx.x) % packs;
  const int slots = threads / packs;  // columns per block; remaining threads are idle
  const int slot = static_cast<int>(threadIdx.x) / packs;
  if (slot >= slots || pack * lanes >= channels) return;
  const std::int64_t c = first_channel + pack * lanes;
  const auto height = static_cast<unsigned>(rows.in);
  const auto across_all = static_cast<unsigned>(columns.in);
  const auto down = static_cast<int>(p.x.strides[3]);
  const auto across = static_cast<int>(p.x.strides[4]);
  const std::int64_t step = std::int64_t{gridDim.x} * slots;
  for (std::int64_t i = std::int64_t{blockIdx.x} * slots + slot; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t ow = take_axis(rest, columns.out);
    const std::int64_t first = take_axis(rest, groups_of_rows) * pixels;
    const T* const plane = &p.x(rest, c, 0, 0, 0);
    const int v = static_cast<int>(ow * Stride - columns.padding);
    const int h = static_cast<int>(first * Stride - rows.padding);
    float sums[pixels][lanes] = {};
#pragma unroll
    for (int b = 0; b < Kernel; ++b) {
      if (static_cast<unsigned>(v + b) >= across_all) continue;
      float of_column[Kernel][lanes];
#pragma unroll
      for (int a = 0; a < Kernel; ++a) {
#pragma unroll
        for (int l = 0; l < lanes; l += 4) {
          const Pack<float, 4> four = load_wide<4>(&weights[a * Kernel + b][pack * lanes + l]);
#pragma unroll
          for (int j = 0; j < 4; ++j) of_column[a][l + j] = four[j];
        }
      }
#pragma unroll
      for (int row = 0; row < run_rows; ++row) {
        if (static_cast<unsigned>(h + row) >= height) continue;
        const Pack<float, lanes> x =
            convert<float>(load_wide<lanes>(plane + ((h + row) * down + (v + b) * across)));
#pragma unroll
        for (int r = 0; r < pixels; ++r) {
          const int a = row - r * Stride;
          if (a < 0 || a >= Kernel) continue;
#pragma unroll
          for (int l = 0; l < lanes; ++l) sums[r][l] += of_column[a][l] * x[l];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < pixels; ++r) {
      if (first + r >= rows.out) continue;
      Pack<T, lanes> made;
#pragma unroll
      for (int l = 0; l < lanes; ++l) made[l] = p.epilogue(sums[r][l], c + l);
      store_wide(&p.y(rest, c, 0, first + r, ow), made);
    }
  }
}

/// Calls f.template operator()<Kernel, Stride>() if conv_depthwise_runs supports the layer; returns
/// false otherwise. It has no kernels for 5 x 5 and 7 x 7 taps of stride 1, for which
/// depthwise_walks is faster.
template <class F>
bool with_runs(const Conv::Args& args, F&& f) {
  const ConvAxis& rows = args.geometry.axis[1];
  const ConvAxis& columns = args.geometry.axis[2];
  const std::int64_t kernel = rows.kernel;
  const std::int64_t stride = rows.stride;
  constexpr std::int64_t far = 1 << 28;
  const double plane = static_cast<double>(rows.in) * std::abs(double(args.x.strides[3])) +
                       static_cast<double>(columns.in) * std::abs(double(args.x.strides[4]));
  if (columns.kernel != kernel || columns.stride != stride || rows.dilation != 1 ||
      columns.dilation != 1 || (kernel != 3 && kernel != 5 && kernel != 7) ||
      (stride != 2 && (stride != 1 || kernel != 3)) || rows.padding > far ||
      columns.padding > far || rows.in > far || columns.in > far || plane > 0x7fffffff) {
    return false;
  }
  if (kernel == 3) {
    stride == 1 ? f.template operator()<3, 1>() : f.template operator()<3, 2>();
  } else if (kernel == 5) {
    f.template operator()<5, 2>();
  } else {
    f.template operator()<7, 2>();
  }
  return true;
}

bool in_packs(const Conv::Args& args) {
  const auto lanes = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto aligned = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (const int axis : {0, 3, 4}) {
      whole = whole && (tensor.shape[axis] == 1 || tensor.strides[axis] % lanes == 0);
    }
    return whole;
  };
  return args.geometry.channels % lanes == 0 && aligned(args.x) && aligned(args.y);
}

LaunchShape grid_of(std::int64_t count) {
  return {.grid = smaller(ceil_div(count, threads), max_blocks), .block = threads};
}

/// Grid of conv_depthwise_pack_runs: threads compute runs of `pixels` pixels, `along` runs per
/// column.
struct PackGrid {
  int packs;  // per block
  std::int64_t chunks, along, count, blocks;
};
PackGrid pack_grid(const Conv::Args& args, int pixels, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t all = g.channels * static_cast<std::int64_t>(size_of(args.x.dtype)) / 16;
  PackGrid grid{};
  grid.packs = static_cast<int>(smaller(all, std::int64_t{max_packs}));
  grid.chunks = ceil_div(all, grid.packs);
  grid.along = ceil_div(g.axis[1].out, std::int64_t{pixels});
  grid.count = g.images * g.axis[2].out * grid.along;
  // Blocks loop over runs and load their weights once: 16 blocks per SM.
  grid.blocks =
      smaller(ceil_div(grid.count, threads / grid.packs),
              larger(std::int64_t{16} * context.info().sms / grid.chunks, std::int64_t{1}));
  return grid;
}

}  // namespace

Support conv_cuda::supports_depthwise(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g)) return unsupported("two dimensions");
  if (g.channels > 0x7fffffff) return unsupported("up to 2^31 - 1 channels");
  return g.group_channels() == 1 && g.group_filters() == 1
             ? supported
             : unsupported("one filter for each channel");
}

Work conv_cuda::depthwise_facts(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const auto taps = static_cast<double>(g.taps());
  int stride = 1;
  const bool runs = with_runs(args, [&]<int Kernel, int Stride>() { stride = Stride; });
  if (!in_packs(args)) {
    const int pixels = !runs ? column_pixels : stride == 1 ? run_pixels<1> : run_pixels<2>;
    const std::int64_t columns = g.images * g.channels * g.axis[2].out;
    const std::int64_t count = columns * ceil_div(g.axis[1].out, std::int64_t{pixels});
    return {.blocks = grid_of(count).grid.x, .resident = 4, .rounds = runs ? 1 : taps};
  }
  const std::int64_t packs = args.y.size() * static_cast<std::int64_t>(size_of(args.x.dtype)) / 16;
  const PackGrid grid = pack_grid(args, stride == 1 ? pack_pixels<1> : pack_pixels<2>, context);
  const bool in_runs = runs && grid.chunks <= 0xffff;
  const std::int64_t blocks = in_runs ? grid.blocks * grid.chunks : grid_of(packs).grid.x;
  const double made = static_cast<double>(packs) / static_cast<double>(threads * blocks);
  return {.blocks = blocks, .resident = 4, .rounds = in_runs ? 1 + made : made * taps};
}

void conv_cuda::run_depthwise(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const std::int64_t columns = g.images * g.channels * g.axis[2].out;
    if (in_packs(args)) {
      const std::int64_t all_packs = g.channels / vector_width<T>;
      const bool in_runs = pack_grid(args, 1, context).chunks <= 0xffff &&
                           with_runs(args, [&]<int Kernel, int Stride>() {
                             const PackGrid grid = pack_grid(args, pack_pixels<Stride>, context);
                             launch(context,
                                    {.grid = {grid.blocks, grid.chunks},
                                     .block = threads,
                                     .shared_bytes = sizeof(PackWeights<T, Kernel>)},
                                    conv_depthwise_pack_runs<T, Kernel, Stride>, layer_of<T>(args),
                                    grid.packs, grid.along, grid.count);
                           });
      if (in_runs) return;
      const std::int64_t count = args.y.size() / vector_width<T>;
      return launch(context, grid_of(count), conv_depthwise_channels<T>, layer_of<T>(args),
                    all_packs, count);
    }
    const bool has_runs = with_runs(args, [&]<int Kernel, int Stride>() {
      const std::int64_t along = ceil_div(g.axis[1].out, std::int64_t{run_pixels<Stride>});
      launch(context, grid_of(columns * along), conv_depthwise_runs<T, Kernel, Stride>,
             layer_of<T>(args), along, columns * along);
    });
    if (has_runs) return;
    const std::int64_t along = ceil_div(g.axis[1].out, std::int64_t{column_pixels});
    launch(context, grid_of(columns * along), conv_depthwise_columns<T>, layer_of<T>(args), along,
           columns * along);
  });
}

namespace {

const Rung<Conv> self{{.name = "depthwise",
                       .after = "every_call",
                       .backend = device_backend,
                       .supports = supports_depthwise,
                       .work = depthwise_facts,
                       .run = run_depthwise}};

}  // namespace
}  // namespace rung
