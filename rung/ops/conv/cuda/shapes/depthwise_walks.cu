// SPDX-License-Identifier: Apache-2.0
// conv / depthwise walks
//
// Idea     A thread walks down two or four adjacent columns of a depthwise layer of stride 1. The
//          weights, and the sums of the results whose windows contain the current row of x, stay in
//          registers. If channels are contiguous, a thread computes a 4-byte word of them, and a
//          warp loads 128 contiguous bytes; the weights of a block's channels pass through shared
//          memory.
// Changes  Against depthwise: an element of x is loaded and converted once per thread, not once per
//          window row or column; no weight is loaded in the loop; the next row is loaded before the
//          current row is multiplied.
// Cost     With 7 x 7 taps and 16-bit channels last, 8 loads, 16 conversions and 196 multiply-adds
//          per row. A walk loads Kernel - 1 rows more than it computes, so that walks are as long
//          as the number of SMs allows.
// Limits   one filter per channel, images of two dimensions, stride 1, no dilation; f32, f16, bf16.
//          5 x 5 and 7 x 7 taps, and 3 x 3 of 16-bit types if channels are contiguous.
#include "rung/device/activate_all.hpp"
#include "rung/ops/conv/shared/cuda/rungs.hpp"
#include "rung/ops/conv/shared/cuda/walks.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Partition of a layer into walks. A block has `words` channel words, or one if channels are not
/// innermost; blockIdx.y counts blocks of words.
struct Walks {
  int words;
  int run, runs;  // rows of y per walk, and walks per column
  int columns;    // groups of columns per row
  std::int64_t count;
  LaunchExtent grid;
};

/// Weights of a block as [tap][channel]. The padding avoids bank conflicts of adjacent taps.
template <int Kernel, int Lanes>
struct WalkWeights {
  float of[Kernel * Kernel][max_walk_words * Lanes + Lanes];
};

/// Blocks per SM.
template <int Kernel, int Lanes>
constexpr int walk_blocks = Kernel* Lanes > 10  ? 2
                            : Kernel* Lanes > 6 ? 3
                                                : 5;

template <class T, int Kernel, int Lanes, bool ChannelsInnermost>
__global__ void __launch_bounds__(walk_threads, walk_blocks<Kernel, Lanes>)
    conv_depthwise_walks(const __grid_constant__ Layer<T> p, const __grid_constant__ Walks walks) {
  constexpr int across_count = walk_columns(Kernel, Lanes);
  constexpr int window = across_count + Kernel - 1;
  const ConvAxis& rows = p.geometry.axis[1];
  const ConvAxis& columns = p.geometry.axis[2];
  const auto thread = static_cast<int>(threadIdx.x);
  std::int64_t rest = 0;  // the walk's index, finally the image
  std::int64_t c = 0;
  float weights[Kernel][Kernel][Lanes];
  if constexpr (ChannelsInnermost) {
    auto& staged = shared<WalkWeights<Kernel, Lanes>>().of;
    const std::int64_t first = std::int64_t{blockIdx.y} * walks.words * Lanes;
    const auto channels =
        static_cast<int>(smaller(std::int64_t{walks.words} * Lanes, p.geometry.channels - first));
    for (int i = thread; i < Kernel * Kernel * channels; i += walk_threads) {
      const int tap = i % (Kernel * Kernel);
      const int channel = i / (Kernel * Kernel);
      staged[tap][channel] = convert<float>(p.w(first + channel, 0, 0, tap / Kernel, tap % Kernel));
    }
    __syncthreads();
    const int slots = walk_threads / walks.words;  // remaining threads are idle
    const int slot = thread / walks.words;
    const int word = thread % walks.words;
    rest = std::int64_t{blockIdx.x} * slots + slot;
    c = first + word * Lanes;
    if (slot >= slots || word * Lanes >= channels || rest >= walks.count) return;
#pragma unroll
    for (int tap = 0; tap < Kernel * Kernel; ++tap) {
      const Pack<float, Lanes> of_word = load_wide<Lanes>(&staged[tap][word * Lanes]);
#pragma unroll
      for (int l = 0; l < Lanes; ++l) weights[tap / Kernel][tap % Kernel][l] = of_word[l];
    }
  } else {
    rest = std::int64_t{blockIdx.x} * walk_threads + thread;
    if (rest >= walks.count) return;
  }
  const auto ow = static_cast<int>(take_axis(rest, walks.columns)) * across_count;
  const auto first = static_cast<int>(take_axis(rest, walks.runs)) * walks.run;
  if constexpr (!ChannelsInnermost) {
    static_assert(Lanes == 1);
    c = take_axis(rest, p.geometry.channels);
#pragma unroll
    for (int a = 0; a < Kernel; ++a) {
#pragma unroll
      for (int b = 0; b < Kernel; ++b) weights[a][b][0] = convert<float>(p.w(c, 0, 0, a, b));
    }
  }

  const auto height = static_cast<unsigned>(rows.in);
  const auto width = static_cast<unsigned>(columns.in);
  const int v = ow - static_cast<int>(columns.padding);
  // The first rows may be in the padding: they add nothing.
  int h = first - static_cast<int>(rows.padding);
  const int skipped = clamped(-h, 0, Kernel - 1);
  h += skipped;
  const T* from = &p.x(rest, c, 0, 0, 0) + h * p.x.strides[3] + v * p.x.strides[4];
  T* to = &p.y(rest, c, 0, first, ow);
  bool inside[window];
#pragma unroll
  for (int j = 0; j < window; ++j) inside[j] = static_cast<unsigned>(v + j) < width;

  RawPack<T, Lanes> next[window];
  // Loads without branches: the compiler schedules them before the arithmetic of the row before.
  const auto load_row = [&](bool wanted) {
    const bool has_row = wanted && static_cast<unsigned>(h) < height;
    const T* at = from;
#pragma unroll
    for (int j = 0; j < window; ++j) {
      next[j] = {};
      if (has_row && inside[j]) next[j] = load_raw<Lanes>(at);
      at = in_registers(at + p.x.strides[4]);
    }
    from += p.x.strides[3];
    ++h;
  };
  // sums[a]: of the results whose tap row a is the current row.
  float sums[Kernel][across_count][Lanes] = {};
  float bias[Lanes];
#pragma unroll
  for (int l = 0; l < Lanes; ++l) bias[l] = p.epilogue.bias_of(c + l);
  const int left = static_cast<int>(columns.out) - ow;  // columns of y
  const int results = smaller(walks.run, static_cast<int>(rows.out) - first);
  load_row(true);
#pragma unroll 1
  for (int row = 1 - Kernel + skipped; row < results;
       ++row) {  // 0: the first result's last tap row
    float x[window][Lanes];
#pragma unroll
    for (int j = 0; j < window; ++j) {
      const auto& pack = reinterpret_cast<const Pack<T, Lanes>&>(next[j]);
#pragma unroll
      for (int l = 0; l < Lanes; ++l) x[j][l] = convert<float>(pack[l]);
    }
    load_row(row + 1 < results);
#pragma unroll
    for (int a = Kernel - 1; a >= 0; --a) {
#pragma unroll
      for (int i = 0; i < across_count; ++i) {
#pragma unroll
        for (int l = 0; l < Lanes; ++l) {
          float sum = a > 0 ? sums[a - 1][i][l] : 0.0F;
#pragma unroll
          for (int b = 0; b < Kernel; ++b) sum += weights[a][b][l] * x[i + b][l];
          sums[a][i][l] = sum;
        }
      }
    }
    if (row < 0) continue;
    Pack<float, across_count * Lanes> made;
#pragma unroll
    for (int i = 0; i < across_count * Lanes; ++i) {
      made[i] = sums[Kernel - 1][i / Lanes][i % Lanes] + bias[i % Lanes];
    }
    activate_all<T>(p.epilogue.activation, made);
    T* at = to;
#pragma unroll
    for (int i = 0; i < across_count; ++i) {
      Pack<float, Lanes> sum;
#pragma unroll
      for (int l = 0; l < Lanes; ++l) sum[l] = made[i * Lanes + l];
      if (i < left) store_wide(at, convert<T>(sum));
      at = in_registers(at + p.y.strides[4]);
    }
    to += p.y.strides[3];
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether a thread can compute 4-byte words of channels.
bool in_words(const Conv::Args& args) { return lanes_of_words(args.x, args.y) > 0; }

/// Returns the partition: the length of the walks for which the SMs' load is least, given that each
/// walk loads Kernel - 1 more rows than it computes.
Walks walks_of(const Conv::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const auto lanes = in_words(args) ? static_cast<std::int64_t>(4 / size_of(args.x.dtype)) : 1;
  const std::int64_t kernel = g.axis[1].kernel;
  const std::int64_t out = g.axis[1].out;
  Walks walks{};
  walks.words = in_words(args)
                    ? static_cast<int>(smaller(g.channels / lanes, std::int64_t{max_walk_words}))
                    : 1;
  const std::int64_t slots = walk_threads / walks.words;
  const std::int64_t chunks = in_words(args) ? ceil_div(g.channels / lanes, walks.words) : 1;
  const int together = walk_columns(static_cast<int>(kernel), static_cast<int>(lanes));
  walks.columns = static_cast<int>(ceil_div(g.axis[2].out, together));
  const std::int64_t all = g.images * walks.columns * (in_words(args) ? 1 : g.channels);
  std::int64_t least = 0;
  for (std::int64_t runs = 1; runs <= smaller(ceil_div(out, std::int64_t{4}), std::int64_t{64});
       ++runs) {
    const std::int64_t run = ceil_div(out, runs);
    const std::int64_t blocks = ceil_div(all * ceil_div(out, run), slots);
    const std::int64_t load =
        ceil_div(blocks * chunks, std::int64_t{context.info().sms}) * (run + kernel - 1);
    if (least != 0 && load >= least) continue;
    least = load;
    walks.run = static_cast<int>(run);
    walks.runs = static_cast<int>(ceil_div(out, run));
    walks.count = all * walks.runs;
    walks.grid = {blocks, chunks, 1};
  }
  return walks;
}

}  // namespace

Support conv_cuda::supports_depthwise_walks(const Conv::Args& args, const Context& context) {
  const Support depthwise = supports_depthwise(args, context);
  if (!depthwise) return depthwise;
  const ConvAxis& rows = args.geometry.axis[1];
  const ConvAxis& columns = args.geometry.axis[2];
  const std::int64_t kernel = rows.kernel;
  if (columns.kernel != kernel || (kernel != 3 && kernel != 5 && kernel != 7)) {
    return unsupported("filters of 3 x 3, 5 x 5 and 7 x 7");
  }
  if (rows.stride != 1 || columns.stride != 1 || rows.dilation != 1 || columns.dilation != 1) {
    return unsupported("stride 1 and no dilation");
  }
  if (kernel == 3 && (size_of(args.x.dtype) != 2 || !in_words(args))) {
    return unsupported("3 x 3 filters of 16-bit types, with contiguous pairs of channels");
  }
  if (args.y.empty()) return unsupported("there is nothing to compute");
  constexpr std::int64_t far = 1 << 28;
  for (const ConvAxis* axis : {&rows, &columns}) {
    if (axis->padding > far || axis->in > far || axis->out > far) {
      return unsupported("extents and paddings of up to 2^28");
    }
  }
  if (args.geometry.channels > (1 << 20) || args.y.size() > std::int64_t{walk_threads} << 30) {
    return unsupported("up to 2^20 channels, and results for 2^30 blocks");
  }
  return supported;
}

Work conv_cuda::depthwise_walks_facts(const Conv::Args& args, const Context& context) {
  const Walks walks = walks_of(args, context);
  const auto taps = static_cast<double>(args.geometry.taps());
  const auto across = static_cast<double>(args.geometry.axis[2].kernel);
  return {.blocks = walks.grid.x * walks.grid.y,
          .resident = 4,
          .rounds = walks.run,
          .steps = static_cast<double>(walks.run) * (taps + across)};
}

void conv_cuda::run_depthwise_walks(const Conv::Args& args, Context& context) {
  const Walks walks = walks_of(args, context);
  const std::int64_t kernel = args.geometry.axis[1].kernel;
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto start = [&]<int Kernel, int Lanes, bool ChannelsInnermost>() {
      launch(context,
             {.grid = walks.grid,
              .block = walk_threads,
              .shared_bytes = ChannelsInnermost ? sizeof(WalkWeights<Kernel, Lanes>) : 0},
             conv_depthwise_walks<T, Kernel, Lanes, ChannelsInnermost>, layer_of<T>(args), walks);
    };
    constexpr int lanes = 4 / static_cast<int>(sizeof(T));
    if (!in_words(args)) {
      if (kernel == 5) return start.template operator()<5, 1, false>();
      return start.template operator()<7, 1, false>();
    }
    if constexpr (lanes == 2) {
      if (kernel == 3) return start.template operator()<3, lanes, true>();
    }
    if (kernel == 5) return start.template operator()<5, lanes, true>();
    start.template operator()<7, lanes, true>();
  });
}

namespace {

const Rung<Conv> self{{.name = "depthwise_walks",
                       .after = "depthwise",
                       .backend = device_backend,
                       .supports = supports_depthwise_walks,
                       .work = depthwise_walks_facts,
                       .run = run_depthwise_walks}};

}  // namespace
}  // namespace rung
