// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM by TMA
//
// Idea     Each phase of the gradient (one with a stride of 1) is a layer of conv: dy by mirrored
//          filters, whose axes of channels and filters are swapped. A small kernel writes these
//          filters; conv's implicit_gemm_tma computes the layer. TMA stores need pixels with a
//          common stride: for a strided layer warps store each phase's pixels without TMA or, if
//          few tiles require split-K, phases are computed into buffers, which a last kernel
//          interleaves.
// Changes  Against tensor_cores: the TMA unrolls dy, and wgmma multiplies.
// Cost     w is read and written once more, which is little compared to dy; dx too if it is
//          interleaved. A launch per phase. Otherwise as conv's.
// Limits   f16 and bf16, channels last, two dimensions at most, 16 phases; filters of a group in
//          multiples of 8, aligned to 16 bytes; with several groups also channels.
// Source   V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep learning, 2016.
#include <cmath>

#include "rung/device/dependent.hpp"
#include "rung/ops/conv/shared/cuda/channels_last.hpp"
#include "rung/ops/conv/shared/cuda/im2col_tensor.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv_backward_data/cuda/detail/im2col_gradient.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;
using conv_layer::Gathered;

constexpr int threads = 256;
constexpr int max_phases = 16;

/// Filters of a phase, and their position after mirroring.
struct TurnedPhase {
  const void* w;
  std::int64_t down, across;   // strides between taps, in elements of w
  std::int64_t rows, columns;  // of taps
  std::int64_t first;          // offset in the mirrored filters
};
struct TurnedPhases {
  std::int64_t groups, m, q;
  std::int64_t w_group, w_channel, w_filter;  // strides in elements of w
  std::int64_t pitch;                         // between taps of mirrored filters
  TurnedPhase of[max_phases];
};

constexpr int turned_tile = 32;
template <class T>
struct TurnedTile {
  T of[turned_tile][turned_tile + 2];  // pitch of 68 bytes: no bank conflicts in a column
};

/// Writes turned[c][taps in reverse][k of the group] of phase blockIdx.z; the padding of rows to
/// the pitch is never read. w is contiguous along its channels, which become rows: tiles of filters
/// x channels of a tap are transposed in shared memory.
template <class T>
__global__ void __launch_bounds__(threads)
    conv_backward_data_turn_filters(T* turned, const __grid_constant__ TurnedPhases phases) {
  ptx::let_next_grid_start();  // which reads the filters
  auto& memory = shared<TurnedTile<T>>();
  const TurnedPhase& phase = phases.of[blockIdx.z];
  turned += phase.first;
  const std::int64_t taps = phase.rows * phase.columns;
  const std::int64_t filter_tiles = ceil_div(phases.q, turned_tile);
  const std::int64_t channel_tiles = ceil_div(phases.m, turned_tile);
  const std::int64_t tiles = phases.groups * taps * channel_tiles * filter_tiles;
  const int lane = static_cast<int>(threadIdx.x) % turned_tile;
  const int first = static_cast<int>(threadIdx.x) / turned_tile;
  constexpr int rows = threads / turned_tile;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    std::int64_t group = tile;
    const std::int64_t filter = take_axis(group, filter_tiles) * turned_tile;
    const std::int64_t channel = take_axis(group, channel_tiles) * turned_tile;
    const std::int64_t across = take_axis(group, phase.columns);
    const std::int64_t down = take_axis(group, phase.rows);
    const T* const w = static_cast<const T*>(phase.w) + group * phases.w_group + down * phase.down +
                       across * phase.across;
#pragma unroll
    for (int row = first; row < turned_tile; row += rows) {
      if (filter + row < phases.q && channel + lane < phases.m) {
        memory.of[row][lane] =
            w[(filter + row) * phases.w_filter + (channel + lane) * phases.w_channel];
      }
    }
    __syncthreads();
    const std::int64_t last = taps - 1 - (down * phase.columns + across);
#pragma unroll
    for (int row = first; row < turned_tile; row += rows) {
      if (filter + lane < phases.q && channel + row < phases.m) {
        T* const to = turned + ((group * phases.m + channel + row) * taps + last) * phases.pitch;
        to[filter + lane] = memory.of[lane][row];
      }
    }
    __syncthreads();
  }
}

/// Buffers of completed phases: images x rows x columns x channels each.
struct MadePhases {
  std::int64_t first[max_phases];  // offset in `made`; -1 if no tap has a result
  int rows, columns;               // strides, at most the extents of dx
};

/// Interleaves the phases into dx, Width channels at a time.
template <class T, int Width>
__global__ void __launch_bounds__(threads)
    conv_backward_data_interleave(const T* made, MadePhases phases, View<T, 5> dx,
                                  std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t channels = dx.shape[1];
  for (; i < count; i += step) {
    std::int64_t image = i;
    const std::int64_t c = take_axis(image, channels / Width) * Width;
    const auto w = static_cast<int>(take_axis(image, dx.shape[4]));
    const auto h = static_cast<int>(take_axis(image, dx.shape[3]));
    const int down = h % phases.rows;
    const int across = w % phases.columns;
    const std::int64_t first = phases.first[down * phases.columns + across];
    const std::int64_t height = (dx.shape[3] - down - 1) / phases.rows + 1;
    const std::int64_t width = (dx.shape[4] - across - 1) / phases.columns + 1;
    const std::int64_t pixel = (image * height + h / phases.rows) * width + w / phases.columns;
    Pack<T, Width> values;
#pragma unroll
    for (int l = 0; l < Width; ++l) values[l] = zero<T>();
    if (first >= 0) values = load_wide<Width>(made + first + pixel * channels + c);
    store_wide(&dx(image, c, 0, h, w), values);
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the elements between taps of a mirrored filter.
std::int64_t pitch_of(const Gathered& g) { return round_up(g.q, std::int64_t{8}); }

Gathered phase_of(const ConvBackwardData::Args& args, std::int64_t index) {
  const auto element = static_cast<std::int64_t>(size_of(args.dx.dtype));
  return conv_layer::phase_layer(conv_layer::transposed(args), index, element);
}

/// Returns a phase as a layer of conv with the filters at `turned`. Its result is dense at `to`,
/// or, if `to` is null, at the phase's positions of dx.
Conv::Args phase_as_layer(const ConvBackwardData::Args& args, const Gathered& phase,
                          const void* turned, void* to) {
  const ConvGeometry& g = args.geometry;
  Conv::Args made;
  made.axes = args.axes;
  made.geometry = {.images = g.images,
                   .channels = g.filters,
                   .filters = g.channels,
                   .groups = g.groups,
                   .axis = {}};
  for (int axis = 0; axis < 3; ++axis) {
    const conv_layer::SourceAxis& one = phase.axis[axis];
    made.geometry.axis[axis] = {.in = one.extent,
                                .out = one.places,
                                .kernel = one.kernel,
                                .stride = 1,
                                .padding = -(one.start + (one.kernel - 1) * one.between),
                                .dilation = -one.between};
  }
  const std::int64_t pitch = pitch_of(phase);
  const std::int64_t across = phase.axis[2].kernel;
  const std::int64_t taps = phase.taps() * pitch;
  made.x = args.dy;
  made.w = {turned, args.w.dtype,
            Extents{g.channels, phase.q, phase.axis[0].kernel, phase.axis[1].kernel, across},
            Extents{taps, 1, taps, across * pitch, pitch}, args.w.device};
  const std::int64_t height = phase.axis[1].places;
  const std::int64_t width = phase.axis[2].places;
  if (to == nullptr) {
    made.y = {phase.y, args.dx.dtype, Extents{g.images, g.channels, 1, height, width},
              Extents{phase.y_strides[0], phase.y_strides[1], phase.y_strides[2],
                      phase.y_strides[3], phase.y_strides[4]},
              args.dx.device};
    return made;
  }
  made.y = {to, args.dx.dtype, Extents{g.images, g.channels, 1, height, width},
            Extents{height * width * g.channels, 1, height * width * g.channels, width * g.channels,
                    g.channels},
            args.dx.device};
  return made;
}

/// Calls f(phase, layer), with placeholder addresses in the layer, for each phase that has terms.
template <class F>
void for_each_layer(const ConvBackwardData::Args& args, F&& f) {
  const std::int64_t phases = conv_layer::phases_of(conv_layer::transposed(args));
  for (std::int64_t i = 0; i < phases; ++i) {
    const Gathered phase = phase_of(args, i);
    if (phase.q > 0)
      f(phase, phase_as_layer(args, phase, unallocated_memory(),
                              phases == 1 ? nullptr : unallocated_memory()));
  }
}

/// Returns whether phases are stored to dx directly: each has terms, and there are enough tiles
/// without slices.
bool is_direct(const ConvBackwardData::Args& args, const Context& context) {
  if (args.dx.shape[1] > 1 && args.dx.strides[1] != 1) return false;
  const std::int64_t phases = conv_layer::phases_of(conv_layer::transposed(args));
  std::int64_t direct = 0;
  for_each_layer(args, [&](const Gathered&, const Conv::Args& layer) {
    if (im2col_partial_bytes(layer, context) == 0) ++direct;
  });
  return direct == phases;
}

template <class T>
void interleave(const ConvBackwardData::Args& args, Context& context, const T* made,
                const MadePhases& phases) {
  constexpr int width = vector_width<T>;
  const View<T, 5> dx = args.dx.view<T, 5>();
  bool wide = dx.strides[1] == 1 && dx.shape[1] % width == 0 && is_wide_aligned<T, width>(dx.data);
  for (const int axis : {0, 3, 4}) {
    wide = wide && (dx.shape[axis] == 1 || dx.strides[axis] % width == 0);
  }
  const std::int64_t count = args.dx.size() / (wide ? width : 1);
  launch(context,
         {.grid = smaller(ceil_div(count, threads), std::int64_t{0x7fffffff}), .block = threads},
         wide ? conv_backward_data_interleave<T, width> : conv_backward_data_interleave<T, 1>, made,
         phases, dx, count);
}

/// Workspace of the gradient: partial sums, mirrored filters of all phases, buffers of phases.
struct GradientMemory {
  TurnedPhases turned;
  std::int64_t most;  // maximum tiles of a phase
  bool whole;         // phases are stored to dx directly
  std::int64_t first_turned, first_made, bytes;
};
constexpr std::int64_t buffer_line = 64;  // elements: each buffer begins at a cache line

GradientMemory memory_of(const ConvBackwardData::Args& args, const Context& context) {
  const Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  const auto element = static_cast<std::int64_t>(size_of(args.dx.dtype));
  GradientMemory memory{.turned = {.groups = g.groups,
                                   .m = g.m,
                                   .q = g.q,
                                   .w_group = g.w_group,
                                   .w_channel = g.w_strides[0],
                                   .w_filter = g.w_strides[1],
                                   .pitch = pitch_of(g),
                                   .of = {}},
                        .most = 0,
                        .whole = phases == 1 || is_direct(args, context),
                        .first_turned = 0,
                        .first_made = 0,
                        .bytes = 0};
  std::size_t partial = 0;
  for_each_layer(args, [&](const Gathered&, const Conv::Args& layer) {
    partial = larger(partial, im2col_partial_bytes(layer, context));
  });
  std::int64_t filters = 0;
  for (std::int64_t i = 0; i < phases; ++i) {
    const Gathered phase = phase_of(args, i);
    memory.turned.of[i] = {.w = phase.w,
                           .down = phase.w_strides[3],
                           .across = phase.w_strides[4],
                           .rows = phase.q > 0 ? phase.axis[1].kernel : 0,
                           .columns = phase.q > 0 ? phase.axis[2].kernel : 0,
                           .first = filters};
    // Throws if all phases would need more memory than the address space.
    const Extents all{max_phases, args.geometry.channels, phase.taps(), pitch_of(phase), 64};
    filters = round_up(filters + all.product() / (max_phases * 64), buffer_line);
    memory.most = larger(memory.most, phase.groups * phase.taps() * ceil_div(phase.m, turned_tile) *
                                          ceil_div(phase.q, turned_tile));
  }
  memory.first_turned = static_cast<std::int64_t>(round_up(partial, std::size_t{4096}));
  memory.first_made =
      memory.first_turned + round_up(Extents{filters, element}.product(), std::int64_t{4096});
  memory.bytes =
      memory.first_made + (memory.whole ? 0 : (args.dx.size() + phases * buffer_line) * element);
  return memory;
}

}  // namespace

Support conv_cuda::supports_data_tma(const ConvBackwardData::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dx.empty() || args.dy.empty()) return unsupported("there is nothing to multiply");
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  const ConvGeometry& g = args.geometry;
  if (g.filters > longest || g.channels > longest || g.taps() > longest) {
    return unsupported("up to 2^30 channels, filters and taps");
  }
  if (conv_layer::phases_of(conv_layer::transposed(args)) > max_phases) {
    return unsupported("strides that leave up to 16 phases");
  }
  Support all = supported;
  for_each_layer(args, [&](const Gathered&, const Conv::Args& layer) {
    if (all) all = supports_im2col_tma(layer, context);
  });
  return all;
}

namespace {

/// Returns the work of a phase. If a pixel's channels are no multiple of 16 bytes, eight warps
/// store it without TMA: a lane stores its eight channels of 64 one by one, or in two vectors if
/// there are a multiple of four channels and pixels have a common stride.
Work phase_facts(const Conv::Args& layer, const Context& context) {
  Work work = im2col_tma_facts(layer, context);
  const ConvGeometry& g = layer.geometry;
  const std::int64_t channels = g.group_filters();
  if (channels % 8 == 0) return work;
  const double pixels = static_cast<double>(g.groups * g.images * g.results()) / work.blocks;
  const auto pieces = static_cast<double>(ceil_div(channels, std::int64_t{64}));
  const int stores = channels % 4 == 0 && pixel_stride(layer.y) > 0 ? 2 : 8;
  work.rounds = work.rounds + stores * std::ceil(pixels / 32) * pieces;
  return work;
}

}  // namespace

/// Returns the work of a layer: mirroring of the filters, the phases, and interleaving of buffers.
Work conv_cuda::data_tma_facts(const ConvBackwardData::Args& args, const Context& context) {
  const bool whole =
      conv_layer::phases_of(conv_layer::transposed(args)) == 1 || is_direct(args, context);
  Work all = {.operations = 0, .launches = whole ? 1 : 2};
  for_each_layer(args, [&](const Gathered&, const Conv::Args& layer) {
    all = in_turn(all, phase_facts(layer, context));
  });
  const std::int64_t moved = args.w.size() + (whole ? 0 : args.dx.size());
  all.bytes = ConvBackwardData::cost(args).bytes +
              2 * static_cast<double>(moved) * static_cast<double>(size_of(args.w.dtype));
  return all;
}

std::size_t conv_cuda::data_tma_bytes(const ConvBackwardData::Args& args, const Context& context) {
  return static_cast<std::size_t>(memory_of(args, context).bytes);
}

void conv_cuda::run_data_tma(const ConvBackwardData::Args& args, Context& context,
                             std::byte* memory) {
  const Gathered g = conv_layer::transposed(args);
  const std::int64_t phases = conv_layer::phases_of(g);
  const auto element = static_cast<std::int64_t>(size_of(args.dx.dtype));
  const auto [turned, most, whole, first_turned, first_made, bytes] = memory_of(args, context);
  MadePhases made{.first = {},
                  .rows = static_cast<int>(conv_layer::phases_along(g.axis[1])),
                  .columns = static_cast<int>(conv_layer::phases_along(g.axis[2]))};
  std::int64_t next = 0;
  visit<f16, bf16>(args.dx.dtype, [&]<class T>() {
    launch(context,
           {.grid = {smaller(most, std::int64_t{0xffff}), 1, phases},
            .block = threads,
            .shared_bytes = sizeof(TurnedTile<T>)},
           conv_backward_data_turn_filters<T>, reinterpret_cast<T*>(memory + first_turned), turned);
    for (std::int64_t i = 0; i < phases; ++i) {
      const Gathered phase = phase_of(args, i);
      made.first[i] = phase.q > 0 ? next : -1;
      if (phase.q == 0) continue;
      const Conv::Args layer =
          phase_as_layer(args, phase, memory + first_turned + turned.of[i].first * element,
                         whole ? nullptr : memory + first_made + next * element);
      next = round_up(next + phase.pixels() * args.geometry.channels, buffer_line);
      run_im2col_tma(layer, context, memory);
    }
    if (!whole) {
      interleave<T>(args, context, reinterpret_cast<const T*>(memory + first_made), made);
    }
  });
}

namespace {

void run(const ConvBackwardData::Args& args, Context& context) {
  const std::size_t bytes = data_tma_bytes(args, context);
  run_data_tma(args, context, static_cast<std::byte*>(context.workspace(bytes)));
}

const Rung<ConvBackwardData> self{{.name = "implicit_gemm_tma",
                                   .step = 200,
                                   .after = "tensor_cores",
                                   .backend = device_backend,
                                   .supports = supports_data_tma,
                                   .work = data_tma_facts,
                                   .run = run}};

}  // namespace
}  // namespace rung
