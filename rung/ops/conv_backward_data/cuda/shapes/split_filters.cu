// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / split filters
//
// Idea     The teams of a block compute the same tile of dx, of all its one to four channels, each
//          from other filters; their sums are added in shared memory in a fixed order. A team, one
//          of eight warps or of 16 halves of warps, copies dy and the weights of its next two
//          filters by cp.async while it multiplies another one.
// Changes  Against first_layer: eight times as many threads per position of dx, so that small
//          images fill the GPU, and no barrier between filters.
// Cost     Per thread and filter the loads and multiply-adds of first_layer, and one copy of four
//          bytes per 32 staged elements; at the end one store and load of each sum. Filters that
//          are contiguous in dy are loaded eight at a time instead, with a barrier per eight.
// Limits   Up to 4 channels, one group, images of two dimensions, columns of stride 1, 2 or 4
//          without dilation. f32, f16, bf16.
#include "rung/cpu/split.hpp"  // types: float f16 bf16
#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET::split_filters {

constexpr int max_threads = 256;
constexpr int max_lanes = 32;  // per team
constexpr int group = 8;       // contiguous filters per load: one per team
constexpr int stages = 3;      // staged filters per team, of which two are in flight
constexpr int held = 2;        // packs of `group` filters that a thread loads ahead
constexpr int cells = 4;       // per thread, in a row; a cell has one column of dx per phase
constexpr int long_taps = 4;   // taps per window if a row of taps has several windows
constexpr int nowhere = -0x7fffffff - 1;             // offset of an element in the padding
constexpr std::int64_t max_extent = 1 << 12;         // of filters and strides: prevents overflow
constexpr std::int64_t max_offset = 0x7fffffff;      // within an image of dy and a filter of w
constexpr std::int64_t sm_shared_bytes = 227 << 10;  // of a block or of all blocks of an SM
constexpr std::int64_t instructions_per_copy = 5;    // offset, test, address, size, copy

/// Tile of dx that a block computes, and its staged part of dy.
///
/// Row h of dx is row u = h + padding of the padded image; row o of dy contributes, by tap t, to
/// row u = stride o + dilation t. Columns likewise, without dilation, but `shift` empty slots in
/// front of a row's taps align the thread's first column with a cell: slot = tap + shift.
struct SplitTile {
  int across, down;            // active lanes of a team
  int across_step, down_step;  // between the lanes of neighbors; one of them is 1
  int lanes, teams;            // per team, per block
  int taps, windows;           // taps per phase and window; windows per row of taps
  int shift;
  int height, pitch;  // rows and columns of dy, per filter
  int record;         // floats per staged filter: dy [row][column], then its weights
  bool contiguous;    // filters are contiguous in dy
  std::int64_t bands, strips;

  RUNG_HD [[nodiscard]] int positions() const { return height * pitch; }
};

/// Returns a / b, rounded up; b is positive, a may be negative.
__device__ __forceinline__ std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) {
  return a < 0 ? -(-a / b) : ceil_div(a, b);
}

/// Returns the number of rows of dx per thread: of a stride of 4 a row has 16 columns per thread.
RUNG_HD constexpr int rows_of(std::int64_t stride) { return stride <= 2 ? 2 : 1; }

/// Taps per phase and window of the kernel for filters of 3 x 3 with equal strides of 1 or 2 and
/// no dilation, or, of a stride of 4, for up to four columns. All others have long_taps.
constexpr int short_taps(std::int64_t stride) { return stride == 1 ? 3 : stride == 2 ? 2 : 1; }

/// Returns the distance between the first and the last tap of an axis.
RUNG_HD constexpr std::int64_t reach_of(const ConvAxis& axis) {
  return (axis.kernel - 1) * axis.dilation;
}

/// Returns the number of floats of a window's weights, [tap][phase][channel], rounded up to whole
/// packs.
RUNG_HD constexpr int weights_per_window(int channels, int stride, int taps) {
  return round_up(taps * stride * channels, 4);
}

/// Writes the offset of each element of a record, or `nowhere`: for dy from its image and filter,
/// of which row `o` and column `v` are staged first, for weights from the filter.
template <class T, int Channels, int Stride, int Taps>
__device__ __forceinline__ void find_offsets(const View<const T, 5>& dy, const View<const T, 5>& w,
                                             const ConvGeometry& g, const SplitTile& tile,
                                             int* offsets, std::int64_t o, std::int64_t v) {
  constexpr int per_window = weights_per_window(Channels, Stride, Taps);
  const int positions = tile.positions();
  for (int i = static_cast<int>(threadIdx.x); i < tile.record; i += static_cast<int>(blockDim.x)) {
    std::int64_t offset = nowhere;
    if (i < positions) {
      const std::int64_t oh = o + i / tile.pitch;
      const std::int64_t ow = v + i % tile.pitch;
      const bool inside = oh >= 0 && oh < g.axis[1].out && ow >= 0 && ow < g.axis[2].out;
      if (inside) offset = oh * dy.strides[3] + ow * dy.strides[4];
    } else {
      const int in_window = (i - positions) % per_window;
      const int line = (i - positions) / per_window / tile.windows;
      const int window = (i - positions) / per_window % tile.windows;
      const int c = in_window % Channels;
      const int slot = window * Taps * Stride + in_window / Channels - tile.shift;
      const bool exists = in_window < Taps * Stride * Channels && c < g.channels && slot >= 0 &&
                          slot < g.axis[2].kernel;
      if (exists) offset = c * w.strides[1] + line * w.strides[3] + slot * w.strides[4];
    }
    offsets[i] = static_cast<int>(offset);
  }
}

/// Copies elements [begin, end) of a record from the filter at `from`, by the lanes of a team. f32
/// arrives with the thread's next async_wait.
template <class T>
__device__ __forceinline__ void copy_elements(float* to, const T* from, const int* offsets,
                                              int begin, int end, int lane, int lanes) {
  if constexpr (sizeof(T) == sizeof(float)) {
    for (int i = begin + lane; i < end; i += lanes) {
      const int offset = offsets[i];
      const bool exists = offset != nowhere;
      ptx::async_copy<4>(to + i, from + (exists ? offset : 0), exists ? 4 : 0);
    }
  } else {
    constexpr int batch = 4;  // loads in flight per thread
    for (int first = begin + lane; first < end; first += batch * lanes) {
      float values[batch];
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        const int i = first + u * lanes;
        const int offset = i < end ? offsets[i] : nowhere;
        values[u] = offset != nowhere ? convert<float>(from[offset]) : 0.0F;
      }
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        const int i = first + u * lanes;
        if (i < end) to[i] = values[u];
      }
    }
  }
}

/// Loads `filters` contiguous filters of an element of dy; the others are zero.
template <class T>
__device__ __forceinline__ Pack<T, group> load_filters(const T* from, int offset, int filters) {
  if (offset != nowhere && filters == group && is_wide_aligned<T, group>(from + offset)) {
    return load_wide<group>(from + offset);
  }
  return load<group>(from + (offset != nowhere ? offset : 0), offset != nowhere ? filters : 0);
}

/// Adds the products of a row of dy by a window of a row of taps; slots [begin, end) have a tap,
/// in any case those from Stride - 1 to least_end - 1.
template <int Channels, int Stride, int Taps, int Width, int Weights>
__device__ __forceinline__ void multiply_row(const Pack<float, Width>& dy_row,
                                             const Pack<float, Weights>& weight, int begin, int end,
                                             int least_end,
                                             float (&sums)[Channels][cells * Stride]) {
#pragma unroll
  for (int slot = 0; slot < Taps * Stride; ++slot) {
    if ((slot >= Stride - 1 || slot >= begin) && (slot < least_end || slot < end)) {
#pragma unroll
      for (int c = 0; c < Channels; ++c) {
#pragma unroll
        for (int cell = 0; cell < cells; ++cell) {
          sums[c][cell * Stride + slot % Stride] +=
              weight[slot * Channels + c] * dy_row[cell + Taps - 1 - slot / Stride];
        }
      }
    }
  }
}

/// Adds the products of a staged filter: `image` is its dy, from the thread's first column on,
/// `weights` are its weights.
template <int Channels, int Stride, int Taps>
__device__ __forceinline__ void multiply_filter(
    const float* image, const float* weights, const ConvGeometry& g, const SplitTile& tile, int own,
    float (&sums)[rows_of(Stride)][Channels][cells * Stride]) {
  constexpr int own_rows = rows_of(Stride);
  constexpr int width = round_up(Taps + cells - 1, 4);
  constexpr int per_window = weights_per_window(Channels, Stride, Taps);
  const int stride_down = static_cast<int>(g.axis[1].stride);
  const int dilation_down = static_cast<int>(g.axis[1].dilation);
  const int reach = static_cast<int>(reach_of(g.axis[1]));
  const int slots = static_cast<int>(reach_of(g.axis[2])) + 1 + tile.shift;
  if constexpr (Stride <= 2 && Taps == short_taps(Stride)) {
    // 3 x 3: the taps of each staged row are known, as `own` is even for a stride of 2.
    constexpr int kernel = 3;
    image += (own - (kernel - 1)) / Stride * tile.pitch;
    Pack<float, per_window> weight[kernel];
#pragma unroll
    for (int tap = 0; tap < kernel; ++tap) {
      weight[tap] = load_wide<per_window>(weights + tap * per_window);
    }
#pragma unroll
    for (int j = 0; j * Stride < kernel - 1 + own_rows; ++j) {
      const Pack<float, width> dy_row = load_wide<width>(image + j * tile.pitch);
#pragma unroll
      for (int r = 0; r < own_rows; ++r) {
        const int tap = kernel - 1 + r - j * Stride;
        if (tap < 0 || tap >= kernel) continue;
        multiply_row<Channels, Stride, Taps>(dy_row, weight[tap], tile.shift, slots, kernel,
                                             sums[r]);
      }
    }
    return;
  }
  // The thread's rows of dx read the staged rows `low` to `high`.
  const int low = ceil_div(larger(own - reach, 0), stride_down);
  const int high = (own + own_rows - 1) / stride_down;
  for (int j = low; j <= high; ++j) {
    for (int window = 0; window < tile.windows; ++window) {
      const int begin = window == 0 ? tile.shift : 0;
      const int end = slots - window * Taps * Stride;
      const Pack<float, width> dy_row =
          load_wide<width>(image + j * tile.pitch + Taps * (tile.windows - 1 - window));
#pragma unroll
      for (int r = 0; r < own_rows; ++r) {
        const int distance = own + r - j * stride_down;
        if (distance < 0 || distance > reach) continue;
        const int tap = dilation_down == 1 ? distance : distance / dilation_down;
        if (tap * dilation_down != distance) continue;
        const Pack<float, per_window> weight =
            load_wide<per_window>(weights + (tap * tile.windows + window) * per_window);
        multiply_row<Channels, Stride, Taps>(dy_row, weight, begin, end, 0, sums[r]);
      }
    }
  }
}

template <class T, int Channels, int Stride, int Taps>
__global__ void __launch_bounds__(max_threads, 2)
    conv_backward_data_split_filters(View<const T, 5> dy, View<const T, 5> w, View<T, 5> dx,
                                     const __grid_constant__ ConvGeometry g,
                                     const __grid_constant__ SplitTile tile) {
  constexpr int columns = cells * Stride;  // of dx, per thread
  constexpr int own_rows = rows_of(Stride);
  const ConvAxis& rows = g.axis[1];
  const int lane = static_cast<int>(threadIdx.x) % tile.lanes;
  const int team = static_cast<int>(threadIdx.x) / tile.lanes;
  const int place = smaller(lane, tile.across * tile.down - 1);  // others repeat the last lane
  const int across = place / tile.across_step % tile.across;
  const int down = place / tile.down_step % tile.down;
  float* const ring = &shared<float>();
  int* const offsets = reinterpret_cast<int*>(ring + stages * tile.teams * tile.record);

  std::int64_t n = blockIdx.x;
  const std::int64_t strip = take_axis(n, tile.strips) * tile.across;
  const std::int64_t band = take_axis(n, tile.bands) * tile.down;
  const std::int64_t u = rows.padding / own_rows * own_rows + band * own_rows;
  const std::int64_t o = ceil_ratio(u - reach_of(rows), rows.stride);
  const std::int64_t v = strip * cells + (g.axis[2].padding + tile.shift) / Stride -
                         (std::int64_t{Taps} * tile.windows - 1);
  find_offsets<T, Channels, Stride, Taps>(dy, w, g, tile, offsets, o, v);
  __syncthreads();

  // The thread's first row of dx, counted from the row that tap 0 of the first staged row writes.
  const int own = static_cast<int>(u - o * rows.stride) + down * own_rows;
  const int positions = tile.positions();
  const int filters = static_cast<int>(g.filters);
  const int steps = ceil_div(filters, tile.teams);
  const T* const image = dy.data + n * dy.strides[0];
  const auto staged = [&](int step, int of_team) {
    return ring + (step % stages * tile.teams + of_team) * tile.record;
  };
  float sums[own_rows][Channels][columns] = {};
  // Copies a team's filter: without its dy, if filters are contiguous.
  const auto copy_filter = [&](int step) {
    const int k = step * tile.teams + team;
    if (k < filters) {
      float* const to = staged(step, team);
      if (!tile.contiguous) {
        copy_elements(to, image + k * dy.strides[1], offsets, 0, positions, lane, tile.lanes);
      }
      copy_elements(to, w.data + k * w.strides[0], offsets, positions, tile.record, lane,
                    tile.lanes);
    }
    // A group even without copies, so that a wait always refers to the same step.
    ptx::async_commit();
  };
  // Contiguous filters: a thread loads a position of dy for all teams.
  const int thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  const auto load_position = [&](int step, int i) {
    return load_filters(image + step * group, offsets[i], smaller(filters - step * group, group));
  };
  const auto store_position = [&](int step, int i, const Pack<T, group>& values) {
#pragma unroll
    for (int f = 0; f < group; ++f) staged(step, f)[i] = convert<float>(values[f]);
  };

  const int distance = tile.contiguous ? 1 : stages - 1;
  for (int step = 0; step < distance; ++step) copy_filter(step);
  if (tile.contiguous) {
    for (int i = thread; i < positions; i += threads) store_position(0, i, load_position(0, i));
  }
  for (int step = 0; step < steps; ++step) {
    // This step's filters have arrived, and no thread reads those of the step before.
    if (tile.contiguous) {
      ptx::async_wait_all();
      __syncthreads();
    } else {
      ptx::async_wait<stages - 2>();
      __syncwarp();
    }
    copy_filter(step + distance);
    const bool ahead = tile.contiguous && step + 1 < steps;
    Pack<T, group> values[held];
    if (ahead) {
#pragma unroll
      for (int l = 0; l < held; ++l) {
        const int i = thread + l * threads;
        if (i < positions) values[l] = load_position(step + 1, i);
      }
    }
    if (step * tile.teams + team < filters) {
      const float* const from = staged(step, team);
      multiply_filter<Channels, Stride, Taps>(from + across * cells, from + positions, g, tile, own,
                                              sums);
    }
    if (ahead) {
#pragma unroll
      for (int l = 0; l < held; ++l) {
        const int i = thread + l * threads;
        if (i < positions) store_position(step + 1, i, values[l]);
      }
      for (int i = thread + held * threads; i < positions; i += threads) {
        store_position(step + 1, i, load_position(step + 1, i));
      }
    }
  }
  ptx::async_wait_all();

  // Each team stores its sums, [team][row and channel][pack][lane], then adds those of some rows.
  constexpr int packs = columns / 4;
  constexpr int lines = own_rows * Channels;
  __syncthreads();  // no warp reads the ring
#pragma unroll
  for (int line = 0; line < lines; ++line) {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      Pack<float, 4> four;
#pragma unroll
      for (int i = 0; i < 4; ++i) four[i] = sums[line / Channels][line % Channels][4 * p + i];
      store_wide(ring + 4 * (((team * lines + line) * packs + p) * tile.lanes + lane), four);
    }
  }
  __syncthreads();
  const auto staged_sums = [&](int from, int line, int p) {
    return load_wide<4>(ring + 4 * (((from * lines + line) * packs + p) * tile.lanes + lane));
  };
  const std::int64_t column = (strip + across) * columns;
  const int valid = static_cast<int>(smaller(g.axis[2].in - column, std::int64_t{columns}));
  if (lane >= tile.across * tile.down || valid <= 0) return;
  if (Channels > 1 && dx.strides[1] == 1 && dx.strides[4] == Channels) {
    // Channels last: a lane adds and stores all channels of four columns.
    for (int item = team; item < own_rows * packs; item += tile.teams) {
      const std::int64_t h = u + down * own_rows + item / packs - rows.padding;
      const int first = 4 * (item % packs);
      if (h < 0 || h >= rows.in || first >= valid) continue;
      float totals[4][Channels] = {};
      for (int from = 0; from < tile.teams; ++from) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
          const Pack<float, 4> four = staged_sums(from, item / packs * Channels + c, item % packs);
#pragma unroll
          for (int i = 0; i < 4; ++i) totals[i][c] += four[i];
        }
      }
      T* const to = &dx(n, 0, 0, h, column + first);
      const bool wide = first + 4 <= valid && is_wide_aligned<T, 4>(to);
#pragma unroll
      for (int i = 0; i < 4 * Channels; i += 4) {
        Pack<T, 4> four;
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          four[l] = convert<T>(totals[(i + l) / Channels][(i + l) % Channels]);
        }
        if (wide) {
          store_wide(to + i, four);
        } else {
          store(to + i, four, (valid - first) * Channels - i);
        }
      }
    }
    return;
  }
  for (int line = team; line < lines; line += tile.teams) {
    const int c = line % Channels;
    const std::int64_t h = u + down * own_rows + line / Channels - rows.padding;
    if (h < 0 || h >= rows.in) continue;
    float totals[columns] = {};
    for (int from = 0; from < tile.teams; ++from) {
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        const Pack<float, 4> four = staged_sums(from, line, p);
#pragma unroll
        for (int i = 0; i < 4; ++i) totals[4 * p + i] += four[i];
      }
    }
    T* const to = &dx(n, c, 0, h, column);
    Pack<T, columns> row;
#pragma unroll
    for (int i = 0; i < columns; ++i) row[i] = convert<T>(totals[i]);
    if (valid == columns && dx.strides[4] == 1 && is_wide_aligned<T, columns>(to)) {
      store_wide<columns>(to, row);
    } else {
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        if (i < valid) to[i * dx.strides[4]] = row[i];
      }
    }
  }
}

/// Calls the kernel of type T for the layer's channels, stride and taps.
template <class T>
void launch_split(const ConvBackwardData::Args& args, const SplitTile& tile,
                  const LaunchShape& shape, Context& context) {
  const ConvGeometry& g = args.geometry;
  const auto with_channels = [&]<int Channels>() {
    const auto with_stride = [&]<int Stride>() {
      const auto start = [&](auto kernel) {
        launch(context, shape, kernel, args.dy.view<const T, 5>(), args.w.view<const T, 5>(),
               args.dx.view<T, 5>(), g, tile);
      };
      constexpr int few = short_taps(Stride);
      tile.taps == few ? start(conv_backward_data_split_filters<T, Channels, Stride, few>)
                       : start(conv_backward_data_split_filters<T, Channels, Stride, long_taps>);
    };
    if (g.axis[2].stride == 1) with_stride.template operator()<1>();
    if (g.axis[2].stride == 2) with_stride.template operator()<2>();
    if (g.axis[2].stride == 4) with_stride.template operator()<4>();
  };
  if (g.channels == 1) with_channels.template operator()<1>();
  if (g.channels == 2) with_channels.template operator()<2>();
  if (g.channels == 3) with_channels.template operator()<3>();
  if (g.channels == 4) with_channels.template operator()<4>();
}

/// Launches the kernel; compiled with its kernels in T's part of this file.
template <class T>
void launch_type(const ConvBackwardData::Args& args, const SplitTile& tile,
                 const LaunchShape& shape, Context& context);
template <>
void launch_type<RUNG_SPLIT_TYPE>(const ConvBackwardData::Args& args, const SplitTile& tile,
                                  const LaunchShape& shape, Context& context) {
  launch_split<RUNG_SPLIT_TYPE>(args, tile, shape, context);
}

#if RUNG_SPLIT_ONCE
namespace {

/// Returns the multiply-adds of a thread and filter.
std::int64_t products_of(const ConvGeometry& g) {
  const std::int64_t taps = g.axis[1].kernel * (reach_of(g.axis[2]) + 1);
  return ceil_div(cells * rows_of(g.axis[2].stride) * g.channels * taps, g.axis[1].stride);
}

/// Sets the arrangement of a team's lanes, and the numbers that follow from it.
void set_lanes(SplitTile& tile, const ConvGeometry& g, int lanes, std::int64_t across) {
  const ConvAxis& rows = g.axis[1];
  const std::int64_t pieces = ceil_div(g.axis[2].in, cells * g.axis[2].stride);
  const std::int64_t own_rows = rows_of(g.axis[2].stride);
  const std::int64_t pieces_down = ceil_div(rows.in + rows.padding % own_rows, own_rows);
  tile.lanes = lanes;
  tile.strips = ceil_div(pieces, across);
  tile.across = static_cast<int>(ceil_div(pieces, tile.strips));
  tile.bands = ceil_div(pieces_down, std::int64_t{lanes / tile.across});
  tile.down = static_cast<int>(ceil_div(pieces_down, tile.bands));
  tile.height = static_cast<int>((reach_of(rows) + tile.down * own_rows - 1) / rows.stride + 1);
  tile.pitch = cells * (tile.across - 1) + tile.taps * (tile.windows - 1) +
               round_up(tile.taps + cells - 1, 4);
}

/// Returns the shared memory wavefronts of a team's loads of 16 bytes of dy: of eight lanes at a
/// time, as many as have different addresses in the same banks.
int wavefronts_of(const SplitTile& tile, const ConvGeometry& g) {
  constexpr int lanes_at_once = 8;
  const int stride_down = static_cast<int>(g.axis[1].stride);
  const int own_rows = rows_of(g.axis[2].stride);
  int wavefronts = 0;
  for (int first = 0; first < tile.lanes; first += lanes_at_once) {
    int packs[lanes_at_once];
    int most = 1;
    for (int lane = 0; lane < lanes_at_once; ++lane) {
      const int place = smaller(first + lane, tile.across * tile.down - 1);
      const int row = ceil_div(place / tile.down_step % tile.down * own_rows, stride_down);
      packs[lane] = row * tile.pitch / 4 + place / tile.across_step % tile.across;
      int same = 1;
      for (int other = 0; other < lane; ++other) {
        const int apart = packs[lane] - packs[other];
        if (apart != 0 && apart % lanes_at_once == 0) ++same;
      }
      most = larger(most, same);
    }
    wavefronts += most;
  }
  return wavefronts;
}

/// Sets the arrangement with the fewest instructions per filter; then the order of lanes, and four
/// more columns per row of dy, by the fewest bank conflicts.
void set_best_lanes(SplitTile& tile, const ConvGeometry& g, int lanes) {
  std::int64_t least = 0;
  SplitTile best{};
  for (const int across : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32}) {
    if (across > lanes) break;
    set_lanes(tile, g, lanes, across);
    const std::int64_t copies = ceil_div(tile.positions(), lanes);
    const std::int64_t instructions =
        tile.strips * tile.bands * (products_of(g) + instructions_per_copy * copies);
    if (across == 1 || instructions < least) {
      least = instructions;
      best = tile;
    }
  }
  int fewest = 0;
  for (const int columns : {0, 4}) {
    for (const bool down_first : {false, true}) {
      SplitTile one = best;
      one.pitch += columns;
      one.across_step = down_first ? best.down : 1;
      one.down_step = down_first ? 1 : best.across;
      const int wavefronts = wavefronts_of(one, g);
      if (fewest > 0 && wavefronts >= fewest) continue;
      fewest = wavefronts;
      tile = one;
    }
  }
}

std::int64_t blocks_of_split(const ConvGeometry& g, const SplitTile& tile) {
  return g.images * tile.bands * tile.strips;
}

/// Returns whether filters are 3 x 3, with equal strides and no dilation.
bool is_three_by_three(const ConvGeometry& g) {
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  return rows.kernel == 3 && columns.kernel == 3 && rows.stride == columns.stride &&
         rows.dilation == 1 && columns.dilation == 1;
}

/// Returns the layer's tile. A team is half a warp if whole warps leave SMs idle.
SplitTile split_tile(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& axis = g.axis[2];
  SplitTile tile{};
  tile.shift = static_cast<int>((axis.stride - axis.padding % axis.stride) % axis.stride);
  const std::int64_t taps = ceil_div(reach_of(axis) + 1 + tile.shift, axis.stride);
  const bool is_short = axis.stride == 4 ? taps == 1 : is_three_by_three(g);
  tile.taps = is_short ? short_taps(axis.stride) : long_taps;
  tile.windows = static_cast<int>(ceil_div(taps, std::int64_t{tile.taps}));
  tile.contiguous = args.dy.strides[1] == 1 && g.filters > group / 2;
  set_best_lanes(tile, g, max_lanes);
  if (blocks_of_split(g, tile) < context.info().sms) set_best_lanes(tile, g, max_lanes / 2);
  const int most = tile.contiguous ? group : max_threads / tile.lanes;
  const std::int64_t steps = ceil_div(g.filters, std::int64_t{most});
  tile.teams = tile.contiguous ? group : static_cast<int>(ceil_div(g.filters, steps));
  const std::int64_t weights =
      g.axis[1].kernel * tile.windows *
      weights_per_window(static_cast<int>(g.channels), static_cast<int>(axis.stride), tile.taps);
  tile.record = static_cast<int>(tile.positions() + weights);
  return tile;
}

std::int64_t bytes_of_split(const ConvGeometry& g, const SplitTile& tile) {
  const std::int64_t staged = (std::int64_t{stages} * tile.teams + 1) * tile.record;
  const std::int64_t sums = std::int64_t{tile.teams} * tile.lanes * rows_of(g.axis[2].stride) *
                            g.channels * cells * g.axis[2].stride;
  return 4 * larger(staged, sums);
}

/// Returns the largest offset within the last axes of a tensor, from axis `first` on.
std::int64_t largest_offset(const ConstTensorRef& tensor, int first) {
  std::int64_t offset = 0;
  for (int axis = first; axis < 5; ++axis) {
    const std::int64_t stride = tensor.strides[axis];
    offset += (tensor.shape[axis] - 1) * (stride < 0 ? -stride : stride);
  }
  return offset;
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const ConvAxis& rows = g.axis[1];
  const ConvAxis& columns = g.axis[2];
  if (args.dx.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  if (args.dx.empty() || args.dy.empty()) return unsupported("there is nothing to multiply");
  if (columns.stride > 2 && columns.stride != 4) return unsupported("columns of stride 1, 2 or 4");
  // Weights of 0 between the taps would carry a NaN of dy to pixels that do not read it.
  if (columns.kernel > 1 && columns.dilation > 1) return unsupported("columns without dilation");
  const bool small = reach_of(rows) < max_extent && rows.stride < max_extent &&
                     reach_of(columns) < max_extent && g.filters < (std::int64_t{1} << 30);
  const SplitTile tile = small ? split_tile(args, context) : SplitTile{};
  if (!small ||
      bytes_of_split(g, tile) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported(
        "the rows of dy that a tile reads, of three filters per team, must fit in shared memory");
  }
  if (largest_offset(args.dy, 2) >= max_offset || largest_offset(args.w, 1) >= max_offset) {
    return unsupported("images of dy and filters of up to 2^31 - 1 elements");
  }
  return blocks_of_split(g, tile) <= 0x7fffffff ? supported : unsupported("up to 2^31 - 1 tiles");
}

/// Returns the work of a layer: a team loops over its filters, which it copies and multiplies.
Work work(const ConvBackwardData::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  const SplitTile tile = split_tile(args, context);
  const std::int64_t products = products_of(g);
  const std::int64_t copies = ceil_div(tile.record, tile.lanes);
  const std::int64_t blocks = blocks_of_split(g, tile);
  const std::int64_t threads = std::int64_t{tile.teams} * tile.lanes;
  const bool halves = args.dx.dtype != DType::f32;
  return {.operations = 2.0 * static_cast<double>(blocks * tile.lanes) *
                        static_cast<double>(g.filters) * static_cast<double>(products),
          .blocks = blocks,
          .resident = clamped(sm_shared_bytes / (bytes_of_split(g, tile) + (1 << 10)),
                              std::int64_t{1}, 2 * max_threads / threads),
          .rounds = ceil_div(g.filters, std::int64_t{tile.teams}),
          .steps = g.filters * (products + instructions_per_copy * copies) * tile.lanes / max_lanes,
          .path = tile.contiguous ? "nhwc"
                  : halves        ? "16-bit"
                                  : ""};
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const SplitTile tile = split_tile(args, context);
  const LaunchShape shape{
      .grid = blocks_of_split(args.geometry, tile),
      .block = tile.teams * tile.lanes,
      .shared_bytes = static_cast<std::size_t>(bytes_of_split(args.geometry, tile))};
  visit<float, f16, bf16>(args.dx.dtype,
                          [&]<class T>() { launch_type<T>(args, tile, shape, context); });
}

const Rung<ConvBackwardData> self{{.name = "split_filters",
                                   .after = "first_layer",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::conv_cuda::inline RUNG_TARGET::split_filters
