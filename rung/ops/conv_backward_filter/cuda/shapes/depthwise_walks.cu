// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / depthwise walks
//
// Idea     A thread walks down two or four adjacent columns of x in a depthwise layer of stride 1.
//          The sums of all taps, and the rows of dy whose windows contain the current row of x,
//          stay in registers. If channels are contiguous, a thread has a 4-byte word of them, and a
//          warp loads 128 contiguous bytes.
// Changes  Against depthwise: adjacent columns share their loads, and 16-bit channels are loaded in
//          pairs; the next row is loaded before the current row is multiplied.
// Cost     With 7 x 7 taps and 16-bit channels last, 10 loads, 20 conversions, 24 moves and 196
//          multiply-adds per row. A walk loads Kernel - 1 rows of x more than of dy.
// Limits   one filter per channel, 5 x 5 or 7 x 7 taps, images of two dimensions, stride 1, no
//          dilation, rows of dy of 4 or more; f32, f16, bf16.
#include "rung/device/collectives.hpp"
#include "rung/ops/conv/shared/cuda/walks.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int walk_warps = walk_threads / 32;

/// Partition of dy into walks. A block has `words` channel words, or one channel if channels are
/// not innermost.
struct GradientWalks {
  int words;
  int run, runs;  // rows of dy per walk, and walks per column
  int columns;    // groups of columns per row
  std::int64_t count, slices, blocks;
  std::int64_t rounds;  // walks per thread
};

/// Sums of one row of taps of all threads.
template <int Kernel, int Lanes>
struct WalkSums {
  float of[Kernel * Lanes][walk_threads];
};

template <class T, int Kernel, int Lanes, bool ChannelsInnermost>
__global__ void __launch_bounds__(walk_threads, Kernel* Lanes > 10 ? 2 : 3)
    conv_backward_filter_depthwise_walks(const __grid_constant__ FilterGradient<T> p,
                                         const __grid_constant__ GradientWalks walks) {
  static_assert(ChannelsInnermost || Lanes == 1);
  constexpr int across_count = walk_columns(Kernel, Lanes);
  constexpr int window = across_count + Kernel - 1;
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const auto height = static_cast<int>(rows.in);
  const auto width = static_cast<unsigned>(columns.in);
  const auto thread = static_cast<int>(threadIdx.x);
  const int slots = ChannelsInnermost ? walk_threads / walks.words : walk_threads;
  const int slot = ChannelsInnermost ? thread / walks.words : thread;
  const std::int64_t first_channel =
      std::int64_t{blockIdx.x} * (ChannelsInnermost ? walks.words * Lanes : 1);
  const std::int64_t c = first_channel + (ChannelsInnermost ? thread % walks.words * Lanes : 0);
  const bool exists = slot < slots && c < p.g.channels;
  const std::int64_t share = ceil_div(walks.count, walks.slices);
  const std::int64_t end = smaller((blockIdx.y + 1) * share, walks.count);

  float sums[Kernel][Kernel][Lanes] = {};
  for (std::int64_t i = blockIdx.y * share + slot; exists && i < end; i += slots) {
    std::int64_t image = i;  // the rest of the index, finally the image
    const auto column = static_cast<int>(take_axis(image, walks.columns)) * across_count;
    // The last columns overlap the ones before, whose dy is skipped.
    const int ow = smaller(column, static_cast<int>(columns.out) - across_count);
    const int taken = column - ow;
    const auto first = static_cast<int>(take_axis(image, walks.runs)) * walks.run;
    const int results = smaller(walks.run, static_cast<int>(rows.out) - first);
    const int v = ow - static_cast<int>(columns.padding);
    const int top = first - static_cast<int>(rows.padding);  // row of x with the first tap
    // Rows of x, relative to `top`; those in the padding add nothing.
    const int begin = clamped(-top, 0, results + Kernel - 1);
    const int stop = smaller(results + Kernel - 1, height - top);
    const T* x = p.x + c * p.x_strides[1] + image * p.x_strides[0] +
                 (top + begin) * p.x_strides[3] + v * p.x_strides[4];
    const T* dy = p.dy + c * p.dy_strides[1] + image * p.dy_strides[0] +
                  (first + begin) * p.dy_strides[3] + ow * p.dy_strides[4];
    bool inside[window];
#pragma unroll
    for (int j = 0; j < window; ++j) inside[j] = static_cast<unsigned>(v + j) < width;

    const auto load_results = [&](RawPack<T, Lanes>(&to)[across_count], const T* from, int row) {
#pragma unroll
      for (int j = 0; j < across_count; ++j) {
        to[j] = {};
        if (static_cast<unsigned>(row) < static_cast<unsigned>(results) && j >= taken) {
          to[j] = load_raw<Lanes>(from);
        }
        from = in_registers(from + p.dy_strides[4]);
      }
    };
    const auto widen = [&](float(&to)[across_count][Lanes],
                           const RawPack<T, Lanes>(&from)[across_count]) {
#pragma unroll
      for (int j = 0; j < across_count; ++j) {
        const auto& pack = reinterpret_cast<const Pack<T, Lanes>&>(from[j]);
#pragma unroll
        for (int l = 0; l < Lanes; ++l) to[j][l] = convert<float>(pack[l]);
      }
    };
    // other[a]: the row of dy whose tap row a is the current row of x.
    float other[Kernel][across_count][Lanes] = {};
    if (begin > 0) {
#pragma unroll
      for (int a = 0; a < Kernel - 1; ++a) {
        RawPack<T, Lanes> raw[across_count];
        load_results(raw, dy - (1 + a) * p.dy_strides[3], begin - 1 - a);
        widen(other[a], raw);
      }
    }
    RawPack<T, Lanes> next_x[window];
    RawPack<T, Lanes> next_dy[across_count];
    // Loads without branches: the compiler schedules them before the arithmetic of the row before.
    const auto load_row = [&](int row) {
      const T* at = x;
#pragma unroll
      for (int j = 0; j < window; ++j) {
        next_x[j] = {};
        if (row < stop && inside[j]) next_x[j] = load_raw<Lanes>(at);
        at = in_registers(at + p.x_strides[4]);
      }
      load_results(next_dy, dy, row < stop ? row : -1);
      x += p.x_strides[3];
      dy += p.dy_strides[3];
    };
    load_row(begin);
#pragma unroll 1
    for (int row = begin; row < stop; ++row) {
      float of_row[window][Lanes];
#pragma unroll
      for (int j = 0; j < window; ++j) {
        const auto& pack = reinterpret_cast<const Pack<T, Lanes>&>(next_x[j]);
#pragma unroll
        for (int l = 0; l < Lanes; ++l) of_row[j][l] = convert<float>(pack[l]);
      }
#pragma unroll
      for (int a = Kernel - 1; a > 0; --a) {
#pragma unroll
        for (int j = 0; j < across_count; ++j) {
#pragma unroll
          for (int l = 0; l < Lanes; ++l) other[a][j][l] = other[a - 1][j][l];
        }
      }
      widen(other[0], next_dy);
      load_row(row + 1);
      // Rows and columns of dy that do not exist, or that another walk has, are skipped: as zeros,
      // they would make an infinity of x NaN, and spread a NaN to taps that do not read it.
      const auto multiply = [&]<bool AllExist>() {
#pragma unroll
        for (int a = 0; a < Kernel; ++a) {
          if (!AllExist && static_cast<unsigned>(row - a) >= static_cast<unsigned>(results)) {
            continue;
          }
#pragma unroll
          for (int b = 0; b < Kernel; ++b) {
#pragma unroll
            for (int l = 0; l < Lanes; ++l) {
#pragma unroll
              for (int j = 0; j < across_count; ++j) {
                if (!AllExist && j < taken) continue;
                sums[a][b][l] += other[a][j][l] * of_row[j + b][l];
              }
            }
          }
        }
      };
      if (row >= Kernel - 1 && row < results && taken == 0) {
        multiply.template operator()<true>();
      } else {
        multiply.template operator()<false>();
      }
    }
  }

  // The sums of a channel are added in the order of lanes, or slots, and warps.
  auto& shares = shared<WalkSums<Kernel, Lanes>>().of;
  const std::int64_t slice = blockIdx.y;
#pragma unroll
  for (int a = 0; a < Kernel; ++a) {
    if (a > 0) __syncthreads();  // the previous row of taps has been added
    if constexpr (ChannelsInnermost) {
#pragma unroll
      for (int b = 0; b < Kernel; ++b) {
#pragma unroll
        for (int l = 0; l < Lanes; ++l) shares[b * Lanes + l][thread] = sums[a][b][l];
      }
      __syncthreads();
      const int channels = walks.words * Lanes;
      for (int i = thread; i < Kernel * channels; i += walk_threads) {
        const int b = i / channels;
        const int channel = i - b * channels;
        if (first_channel + channel >= p.g.channels) continue;
        float sum = 0;
        for (int s = 0; s < slots; ++s) {
          sum += shares[b * Lanes + channel % Lanes][s * walks.words + channel / Lanes];
        }
        p.sums[((slice * p.g.channels + first_channel + channel) * Kernel + a) * Kernel + b] = sum;
      }
    } else {
#pragma unroll
      for (int b = 0; b < Kernel; ++b) {
        const float of_warp = warp_reduce(sums[a][b][0], [](float s, float t) { return s + t; });
        if (thread % 32 == 0) shares[b][thread / 32] = of_warp;
      }
      __syncthreads();
      if (thread < Kernel) {
        float sum = 0;
        for (int warp = 0; warp < walk_warps; ++warp) sum += shares[thread][warp];
        p.sums[((slice * p.g.channels + first_channel) * Kernel + a) * Kernel + thread] = sum;
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_add_walks(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the partition, which depends on the shape alone: the length of the walks for which the
/// load of a large device's SMs is least. A block costs some rows more, for its reduction.
GradientWalks walks_of(const ConvBackwardFilter::Args& args) {
  constexpr std::int64_t large_device = two_for_each / 2;
  constexpr std::int64_t max_blocks = 8 * large_device;
  constexpr std::int64_t rows_of_reduction = 8;
  const ConvGeometry& g = args.geometry;
  const std::int64_t lanes = lanes_of_words(args.x, args.dy);
  const std::int64_t kernel = g.axis[1].kernel;
  const std::int64_t out = larger(g.axis[1].out, std::int64_t{1});
  GradientWalks walks{};
  walks.words =
      lanes == 0 ? 1 : static_cast<int>(smaller(g.channels / lanes, std::int64_t{max_walk_words}));
  const std::int64_t slots = walk_threads / walks.words;
  walks.blocks = lanes == 0 ? g.channels : ceil_div(g.channels / lanes, walks.words);
  const int together = walk_columns(static_cast<int>(kernel), static_cast<int>(lanes));
  walks.columns = static_cast<int>(ceil_div(g.axis[2].out, together));
  const std::int64_t all = larger(g.images * walks.columns, std::int64_t{1});
  const std::int64_t most = clamped(out / 4, std::int64_t{1}, std::int64_t{64});
  std::int64_t least = 0;
  for (std::int64_t parts = 1; parts <= most; ++parts) {
    const std::int64_t run = ceil_div(out, parts);
    const std::int64_t runs = ceil_div(out, run);
    const std::int64_t count = all * runs;
    const std::int64_t rounds = ceil_div(count * walks.blocks, slots * max_blocks);
    const std::int64_t slices = ceil_div(count, slots * rounds);
    const std::int64_t load = ceil_div(slices * walks.blocks, large_device) *
                              (rounds * (run + kernel - 1) + rows_of_reduction);
    if (least != 0 && load >= least) continue;
    least = load;
    walks.run = static_cast<int>(run);
    walks.runs = static_cast<int>(runs);
    walks.count = count;
    walks.slices = slices;
    walks.rounds = rounds;
  }
  return walks;
}

Support supports_walks(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.dw.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g)) return unsupported("two dimensions");
  if (g.group_channels() != 1 || g.group_filters() != 1) {
    return unsupported("one filter for each channel");
  }
  if (rows.kernel != columns.kernel || (rows.kernel != 5 && rows.kernel != 7)) {
    return unsupported("filters of 5 x 5 and 7 x 7");
  }
  if (rows.stride != 1 || columns.stride != 1 || rows.dilation != 1 || columns.dilation != 1) {
    return unsupported("stride 1 and no dilation");
  }
  if (args.dy.empty() || columns.out < 4) return unsupported("rows of dy of 4 or more");
  const Support sliced = supports_sliced(args, 1);
  if (!sliced) return sliced;
  return walks_of(args).slices <= 0xffff ? supported : unsupported("up to 65535 slices");
}

Work work_of_walks(const ConvBackwardFilter::Args& args, const Context&) {
  const GradientWalks walks = walks_of(args);
  const ConvGeometry& g = args.geometry;
  Work work = register_facts(args, walks.blocks, walks.slices, walk_threads);
  work.resident = 2;
  work.rounds = walks.rounds * walks.run;
  work.steps = walks.rounds * (walks.run + g.axis[1].kernel - 1) * (g.taps() + g.axis[2].kernel);
  return work;
}

void run_walks(const ConvBackwardFilter::Args& args, Context& context) {
  const GradientWalks walks = walks_of(args);
  visit<float, f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = in_slices<T>(args, context, walks.slices);
    const auto start = [&]<int Kernel, int Lanes, bool ChannelsInnermost>() {
      launch(context,
             {.grid = {walks.blocks, walks.slices},
              .block = walk_threads,
              .shared_bytes = sizeof(WalkSums<Kernel, Lanes>)},
             conv_backward_filter_depthwise_walks<T, Kernel, Lanes, ChannelsInnermost>, p, walks);
    };
    constexpr int lanes = 4 / static_cast<int>(sizeof(T));
    const bool large = args.geometry.axis[1].kernel == 7;
    if (lanes_of_words(args.x, args.dy) > 0) {
      large ? start.template operator()<7, lanes, true>()
            : start.template operator()<5, lanes, true>();
    } else {
      large ? start.template operator()<7, 1, false>() : start.template operator()<5, 1, false>();
    }
    launch(context, sum_grid(p), conv_backward_filter_add_walks<T>, p, args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "depthwise_walks",
                                     .after = "depthwise",
                                     .backend = device_backend,
                                     .supports = supports_walks,
                                     .work = work_of_walks,
                                     .run = run_walks}};

}  // namespace
}  // namespace rung
