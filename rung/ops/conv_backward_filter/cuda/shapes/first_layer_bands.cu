// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer bands
//
// Idea     A block owns bands of rows of y and keeps dw, or 64 filters of it, in the registers of
//          mma.sync over all its bands. Pixels are the k axis, and a pair of k is one column of two
//          rows of y, a few rows apart, not two adjacent columns: x is staged once per band as
//          words of two elements of one column, so that a lane gathers any tap at any stride as one
//          word. Two rows of dy are copied to shared memory three stages ahead and paired in
//          registers, once for all terms.
// Changes  Against first_layer_tensor_cores: x is staged without copies per shift and residue; dy
//          is copied asynchronously, 16 bytes at a time at any alignment of its rows, instead of
//          one piece ahead, by elements if rows are odd; the warps of a block add their sums, which
//          leaves a slice per block.
// Cost     20 words of shared memory per mma of 16 pixels, two rows and 32 filters by 80 terms; dy
//          is read once, x 1.1 to 1.6 times. Filters are padded to 32, terms to 32 or 80.
// Limits   f16 and bf16, up to 4 channels, one group, images of two dimensions; columns of stride
//          up to 4, up to 512 terms; a band's rows of x must fit in shared memory. Error bound as
//          tensor_cores.
#include "rung/device/ptx.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/slices.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int band_warps = 8;
constexpr int band_threads = 32 * band_warps;
constexpr int band_blocks = 2;    // per SM
constexpr int band_stages = 3;    // of dy in shared memory
constexpr int role_filters = 32;  // of a warp: two operands A of 16 rows
constexpr int role_operands = role_filters / 16;
constexpr int band_piece = 16;            // columns of two rows: the k of two mma
constexpr int stage_elements = 2 * 4096;  // filters times columns of two rows of y

/// Order of dy in global memory and in a stage.
enum class ResultOrder {
  columns,  // a line is a row of y of a filter
  quads,    // the same; every line starts at a multiple of four elements
  filters,  // a line is a pixel
};

constexpr int chunk_of(int filters) { return stage_elements / 2 / filters; }
/// Elements from line to line of a stage: lines of adjacent filters are 8 banks apart, and a line
/// has room for the elements before its first one in the same 16 bytes.
constexpr int line_pitch(int filters, ResultOrder order) {
  return order == ResultOrder::filters ? filters + 8 : chunk_of(filters) + 16;
}
constexpr int lines_of(int filters, ResultOrder order) {
  return 2 * (order == ResultOrder::filters ? chunk_of(filters) : filters);
}
constexpr int stage_bytes(int filters, ResultOrder order) {
  return 2 * lines_of(filters, order) * line_pitch(filters, order);
}

/// Bands of rows of y, strips of columns, and the words that a block stages of x: word (c, h, v)
/// pairs row h of the band with row h + pair_rows * stride.
struct RowBands {
  int pair_rows;                 // of y; a band has twice as many
  int columns;                   // of y in a strip
  int height, width;             // of the words
  int pitch, plane;              // words from row to row and from channel to channel
  int term_roles;                // of a block's warps
  int filter_parts, term_parts;  // of blocks
  std::int64_t bands, strips, tasks;
  bool copied;  // dy by asynchronous copies of 16 bytes, not by elements
};

/// Position in a block's bands: columns from `chunk` on of a pair of rows of y.
template <class T, int Filters>
struct BandCursor {
  std::int64_t task, n;
  int o, v;  // of the band and strip
  int row, rows, chunk;

  __device__ __forceinline__ void open(const FilterGradient<T>& p, const RowBands& tile) {
    n = task;
    v = static_cast<int>(take_axis(n, tile.strips)) * tile.columns;
    o = static_cast<int>(take_axis(n, tile.bands)) * 2 * tile.pair_rows;
    row = 0;
    chunk = 0;
    rows = smaller(tile.pair_rows, static_cast<int>(p.g.axis[1].out) - o);
  }
  [[nodiscard]] __device__ __forceinline__ bool starts_band() const {
    return row == 0 && chunk == 0;
  }
  __device__ __forceinline__ void advance(const FilterGradient<T>& p, const RowBands& tile) {
    chunk += chunk_of(Filters);
    if (chunk < tile.columns && v + chunk < static_cast<int>(p.g.axis[2].out)) return;
    chunk = 0;
    if (++row < rows) return;
    ++task;
    open(p, tile);
  }
};

/// Copies the lines of a stage; elements that do not exist are zero. A line that is copied 16 bytes
/// at a time starts where its first 16 bytes in global memory do.
template <class T, int Filters, ResultOrder Order>
__device__ __forceinline__ void copy_results(const FilterGradient<T>& p, const RowBands& tile,
                                             const BandCursor<T, Filters>& at,
                                             std::int64_t first_filter, T* to) {
  constexpr int chunk = chunk_of(Filters);
  constexpr int pitch = line_pitch(Filters, Order);
  constexpr int lines = lines_of(Filters, Order);
  const auto filters = static_cast<int>(smaller(p.g.filters - first_filter, std::int64_t{Filters}));
  const auto out_rows = static_cast<int>(p.g.axis[1].out);
  const int columns = smaller(static_cast<int>(p.g.axis[2].out) - at.v - at.chunk, chunk);
  const T* const first = p.dy + at.n * p.dy_strides[0] + first_filter * p.dy_strides[1] +
                         (at.o + at.row) * p.dy_strides[3] + (at.v + at.chunk) * p.dy_strides[4];
  const bool has_second = at.o + at.row + tile.pair_rows < out_rows;
  const std::int64_t second = tile.pair_rows * p.dy_strides[3];
  if (!tile.copied) {
    for (int i = static_cast<int>(threadIdx.x); i < 2 * Filters * chunk; i += band_threads) {
      const int column = i % chunk;
      const int filter = i / chunk % Filters;
      const int half = i / (chunk * Filters);
      const bool exists = column < columns && filter < filters && (half == 0 || has_second);
      to[(half * Filters + filter) * pitch + column] =
          exists ? first[filter * p.dy_strides[1] + half * second + column * p.dy_strides[4]]
                 : zero<T>();
    }
    return;
  }
  constexpr bool by_pixel = Order == ResultOrder::filters;
  constexpr int units = by_pixel ? Filters / 8 : chunk / 8 + 1;
  for (int i = static_cast<int>(threadIdx.x); i < lines * units; i += band_threads) {
    const int line = i / units;
    const int unit = i - line * units;
    const int half = line / (lines / 2);
    const int index = line - half * (lines / 2);  // of the filter, or of the column
    const T* from = first + half * second + index * p.dy_strides[by_pixel ? 4 : 1];
    int valid = 0;
    if ((half == 0 || has_second) && index < (by_pixel ? columns : filters)) {
      const auto before = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % 16) / 2;
      from += unit * 8 - before;
      valid = clamped((by_pixel ? filters : columns + before) - unit * 8, 0, 8);
    }
    ptx::async_copy<16>(to + line * pitch + unit * 8, valid > 0 ? from : p.dy, 2 * valid);
  }
}

/// Stages the words of x for the band from row h0 and column v0 on, with zeros around the image. A
/// warp copies one row of a channel at a time.
template <class T>
__device__ __forceinline__ void stage_words(const FilterGradient<T>& p, const RowBands& tile,
                                            std::uint32_t* words, std::int64_t n, int h0, int v0) {
  constexpr int at_once = 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto in_rows = static_cast<int>(p.g.axis[1].in);
  const auto in_columns = static_cast<int>(p.g.axis[2].in);
  const int apart = tile.pair_rows * static_cast<int>(p.g.axis[1].stride);
  const int lines = static_cast<int>(p.g.channels) * tile.height;
  for (int line = static_cast<int>(threadIdx.x) / 32; line < lines; line += band_warps) {
    const int c = line / tile.height;
    const int row = line - c * tile.height;
    const int h = h0 + row;
    const bool has_low = h >= 0 && h < in_rows;
    const bool has_high = h + apart >= 0 && h + apart < in_rows;
    const T* const low = p.x + n * p.x_strides[0] + c * p.x_strides[1] + h * p.x_strides[3];
    const T* const high = low + apart * p.x_strides[3];
    std::uint32_t* const to = words + c * tile.plane + row * tile.pitch;
    for (int first = lane; first < tile.width; first += 32 * at_once) {
      T values[2][at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int column = first + 32 * u;
        const int v = v0 + column;
        const bool inside = column < tile.width && v >= 0 && v < in_columns;
        values[0][u] = inside && has_low ? low[v * p.x_strides[4]] : zero<T>();
        values[1][u] = inside && has_high ? high[v * p.x_strides[4]] : zero<T>();
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int column = first + 32 * u;
        if (column >= tile.width) continue;
        to[column] = std::uint32_t{values[0][u].bits} | std::uint32_t{values[1][u].bits} << 16;
      }
    }
  }
}

/// Loads the operands A of a piece of a stage: a[i][m] multiplies columns 4 t + 2 i (its columns
/// 2 t and 2 t + 1 of k) and 4 t + 2 i + 1 (2 t + 8 and 2 t + 9) of filters 16 m on.
template <class T, int Filters, ResultOrder Order>
__device__ __forceinline__ void load_results(std::uint32_t (&a)[2][role_operands][4],
                                             const FilterGradient<T>& p, const RowBands& tile,
                                             const T* stage, int filter, int column,
                                             unsigned start) {
  constexpr int pitch = line_pitch(Filters, Order);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (Order == ResultOrder::filters) {
    // Row r of a matrix is a pair's row of y, r % 2, at column 4 (r / 2) + 2 i or the next one.
    const int half = lane % 2;
    const int at = column + lane % 8 / 2 * 4 + lane / 16;
    const T* const line =
        stage + (half * chunk_of(Filters) + at) * pitch + filter + lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int m = 0; m < role_operands; ++m) {
        ptx::load_matrix<4, true>(a[i][m], line + 2 * i * pitch + 16 * m);
      }
    }
  } else {
    const auto step = static_cast<unsigned>(p.dy_strides[1]);
    const unsigned second =
        static_cast<unsigned>(tile.pair_rows) * static_cast<unsigned>(p.dy_strides[3]);
#pragma unroll
    for (int m = 0; m < role_operands; ++m) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const int own = filter + 16 * m + 8 * upper + lane / 4;
        std::uint32_t four[2][2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned before =
              tile.copied
                  ? (start + static_cast<unsigned>(own) * step + (half == 1 ? second : 0)) % 8
                  : 0;
          const T* const from = stage + (half * Filters + own) * pitch + column + lane % 4 * 4;
          if constexpr (Order == ResultOrder::quads) {
            const auto pack = load_wide<2>(reinterpret_cast<const std::uint32_t*>(from + before));
            four[half][0] = pack[0];
            four[half][1] = pack[1];
          } else {
            const auto* const words = reinterpret_cast<const std::uint32_t*>(from) + before / 2;
            const unsigned shift = 16 * (before % 2);
            const std::uint32_t middle = words[1];
            four[half][0] = __funnelshift_r(words[0], middle, shift);
            four[half][1] = __funnelshift_r(middle, words[2], shift);
          }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          a[i][m][upper] = (four[0][i] & 0xffffU) | four[1][i] << 16;
          a[i][m][2 + upper] = four[0][i] >> 16 | (four[1][i] & 0xffff0000U);
        }
      }
    }
  }
}

template <class T, int Filters, int Groups, ResultOrder Order>
__global__ void __launch_bounds__(band_threads, band_blocks)
    conv_backward_filter_first_layer_bands(const __grid_constant__ FilterGradient<T> p,
                                           const __grid_constant__ RowBands tile) {
  constexpr int filter_roles = Filters / role_filters;
  constexpr int chunk = chunk_of(Filters);
  constexpr int stage_size = stage_bytes(Filters, Order) / 2;
  const ConvAxis& rows = p.g.axis[1];
  const ConvAxis& columns = p.g.axis[2];
  const auto stride = static_cast<int>(columns.stride);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4;  // as in mma's layouts of registers
  const int t = lane % 4;
  const int roles = filter_roles * tile.term_roles;
  const int shares = band_warps / roles;  // warps of the same role, which share the pixels
  const int role = warp % roles;
  const int share = warp / roles;
  const std::int64_t first_filter = std::int64_t{blockIdx.x} % tile.filter_parts * Filters;
  const int own_filter = role % filter_roles * role_filters;
  const int first_term =
      (static_cast<int>(blockIdx.x) / tile.filter_parts * tile.term_roles + role / filter_roles) *
      Groups * 8;
  T* const stages = &shared<T>();
  auto* const words = reinterpret_cast<std::uint32_t*>(stages + band_stages * stage_size);

  // Each term's word of its first pixel. Terms that do not exist read the last one.
  int base[Groups];
#pragma unroll
  for (int j = 0; j < Groups; ++j) {
    int rest = smaller(first_term + j * 8 + g, static_cast<int>(p.terms) - 1);
    const auto across = static_cast<int>(columns.kernel);
    const auto down = static_cast<int>(rows.kernel);
    const int b = rest % across * static_cast<int>(columns.dilation);
    rest /= across;
    const int a = rest % down * static_cast<int>(rows.dilation);
    base[j] = rest / down * tile.plane + a * tile.pitch + b + 4 * t * stride;
  }

  float sums[role_operands][Groups][4] = {};
  const std::int64_t end = tile.tasks * (std::int64_t{blockIdx.y} + 1) / gridDim.y;
  BandCursor<T, Filters> ahead{};
  ahead.task = tile.tasks * std::int64_t{blockIdx.y} / gridDim.y;
  ahead.open(p, tile);
  BandCursor<T, Filters> at = ahead;
  const auto copy_ahead = [&](int stage) {
    if (ahead.task < end) {
      copy_results<T, Filters, Order>(p, tile, ahead, first_filter, stages + stage * stage_size);
      ahead.advance(p, tile);
    }
    ptx::async_commit();
  };
#pragma unroll
  for (int stage = 0; stage < band_stages - 1; ++stage) copy_ahead(stage);

  int stage = 0;
  while (at.task < end) {
    if (at.starts_band()) {
      __syncthreads();  // the words of the last band have been read
      stage_words(p, tile, words, at.n,
                  at.o * static_cast<int>(rows.stride) - static_cast<int>(rows.padding),
                  at.v * stride - static_cast<int>(columns.padding));
    }
    ptx::async_wait<band_stages - 2>();
    __syncthreads();
    copy_ahead(stage == 0 ? band_stages - 1 : stage - 1);
    const int valid = smaller(static_cast<int>(columns.out) - at.v - at.chunk, chunk);
    const bool has_second = at.o + at.row + tile.pair_rows < static_cast<int>(rows.out);
    const auto start = static_cast<unsigned>(
        reinterpret_cast<std::uintptr_t>(p.dy) / 2 + at.n * p.dy_strides[0] +
        first_filter * p.dy_strides[1] + (at.o + at.row) * p.dy_strides[3] + at.v + at.chunk);
    for (int column = share * band_piece; column < valid; column += shares * band_piece) {
      std::uint32_t a[2][role_operands][4];
      load_results<T, Filters, Order>(a, p, tile, stages + stage * stage_size, own_filter, column,
                                      start);
      const std::uint32_t* const from = words +
                                        at.row * static_cast<int>(rows.stride) * tile.pitch +
                                        (at.chunk + column) * stride;
      const auto multiply = [&]<bool Edge>() {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // Pixels that do not exist are replaced by zero in x, too: an infinity of x times zero
          // would be NaN.
          std::uint32_t mask[2];
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            mask[k] = column + 4 * t + 2 * i + k >= valid ? 0 : has_second ? ~0U : 0xffffU;
          }
#pragma unroll
          for (int j = 0; j < Groups; ++j) {
            const std::uint32_t* const pixel = from + base[j] + 2 * i * stride;
            std::uint32_t values[2] = {pixel[0], pixel[stride]};
            if constexpr (Edge) {
              values[0] &= mask[0];
              values[1] &= mask[1];
            }
#pragma unroll
            for (int m = 0; m < role_operands; ++m) {
              ptx::mma<T>(sums[m][j], a[i][m], values);
            }
          }
        }
      };
      if (has_second && column + band_piece <= valid) {
        multiply.template operator()<false>();
      } else {
        multiply.template operator()<true>();
      }
    }
    at.advance(p, tile);
    stage = stage == band_stages - 1 ? 0 : stage + 1;
  }
  ptx::async_wait<0>();

  // The last share's sums are added to those of the one before, and so on.
  auto* const parts =
      reinterpret_cast<float*>(stages) + role * role_operands * Groups * 4 * 32 + lane;
  for (int other = shares - 1; other > 0; --other) {
    __syncthreads();
    const bool gives = share == other;
    const bool takes = share == other - 1;
#pragma unroll
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) __syncthreads();
#pragma unroll
      for (int m = 0; m < role_operands; ++m) {
#pragma unroll
        for (int j = 0; j < Groups; ++j) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float* const part = parts + ((m * Groups + j) * 4 + i) * 32;
            if (pass == 0 && gives) *part = sums[m][j][i];
            if (pass == 1 && takes) sums[m][j][i] += *part;
          }
        }
      }
    }
  }
  if (share > 0) return;
#pragma unroll
  for (int m = 0; m < role_operands; ++m) {
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t filter = first_filter + own_filter + m * 16 + i / 2 * 8 + g;
        const int term = first_term + j * 8 + 2 * t + i % 2;
        if (filter < p.g.filters && term < p.terms) {
          p.sums[(blockIdx.y * p.g.filters + filter) * p.terms + term] = sums[m][j][i];
        }
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    conv_backward_filter_first_layer_bands_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

constexpr int few_band_groups = 4;    // of eight terms per warp
constexpr int many_band_groups = 10;  // as many as registers hold
constexpr std::int64_t most_band_terms = 512;
constexpr std::int64_t most_band_extent = 1 << 12;  // of windows and strides: prevents overflow
constexpr std::int64_t most_word_bytes = 52 << 10;  // two blocks fit in an SM

int filters_of_block(const ConvGeometry& g) { return g.filters > role_filters ? 64 : 32; }

int groups_of_warp(const ConvGeometry& g) {
  return g.channels * g.taps() <= 8 * few_band_groups ? few_band_groups : many_band_groups;
}

std::int64_t word_bytes(const ConvGeometry& g, const RowBands& tile) {
  return 4 * g.channels * tile.plane;
}

RowBands row_bands(const ConvGeometry& g) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& across = g.axis[2];
  const std::int64_t out_rows = larger(down.out, std::int64_t{1});
  const std::int64_t out_columns = larger(across.out, std::int64_t{1});
  const std::int64_t chunk = chunk_of(filters_of_block(g));
  const std::int64_t terms = g.channels * g.taps();
  RowBands tile{};
  const std::int64_t parts = ceil_div(terms, std::int64_t{8} * groups_of_warp(g));
  tile.term_roles = parts <= 2 ? static_cast<int>(parts) : 4;
  tile.term_parts = static_cast<int>(ceil_div(parts, std::int64_t{tile.term_roles}));
  tile.filter_parts = static_cast<int>(
      ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{filters_of_block(g)}));
  tile.pair_rows = out_rows > 2 ? 2 : 1;
  tile.strips = 1;
  while (true) {
    const std::int64_t even = ceil_div(out_columns, tile.strips);
    const std::int64_t width =
        tile.strips == 1 ? round_up(even, std::int64_t{band_piece}) : round_up(even, chunk);
    tile.columns = static_cast<int>(width);
    tile.height = static_cast<int>((tile.pair_rows - 1) * down.stride +
                                   (down.kernel - 1) * down.dilation + 1);
    tile.width =
        static_cast<int>((width - 1) * across.stride + (across.kernel - 1) * across.dilation + 1);
    // The words of eight adjacent terms are in different banks.
    const auto pitch = [](std::int64_t words, std::int64_t residue) {
      return static_cast<int>(words + (residue % 8 + 8 - words % 8) % 8);
    };
    tile.pitch = pitch(tile.width, across.kernel);
    tile.plane = pitch(std::int64_t{tile.height} * tile.pitch, across.kernel * down.kernel);
    if (word_bytes(g, tile) <= most_word_bytes || width <= chunk) break;
    ++tile.strips;
  }
  tile.strips = ceil_div(out_columns, std::int64_t{tile.columns});
  tile.bands = ceil_div(out_rows, std::int64_t{2} * tile.pair_rows);
  tile.tasks = across.out == 0 || down.out == 0 ? 0 : g.images * tile.bands * tile.strips;
  return tile;
}

struct BandGrid {
  std::int64_t parts, slices;  // blocks
};
BandGrid band_grid(const RowBands& tile) {
  const std::int64_t parts = std::int64_t{tile.filter_parts} * tile.term_parts;
  return {.parts = parts,
          .slices = clamped(band_blocks * two_for_each / 2 / parts, std::int64_t{1},
                            larger(tile.tasks, std::int64_t{1}))};
}

/// Returns whether lines of dy can be copied 16 bytes at a time, and their order.
struct ResultLines {
  ResultOrder order;
  bool copied;
};
ResultLines result_lines(const ConvBackwardFilter::Args& args) {
  const auto multiples = [&](int along, std::int64_t unit) {
    bool all = true;
    for (const int axis : {0, 1, 3, 4}) {
      all = all && (axis == along || args.dy.shape[axis] == 1 || args.dy.strides[axis] % unit == 0);
    }
    return all;
  };
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.dy.data) % 16 == 0;
  if (aligned && args.dy.strides[1] == 1 && args.geometry.filters > 1 && multiples(1, 8)) {
    return {ResultOrder::filters, true};
  }
  // A pointer rounded down to 16 bytes must not leave the tensor.
  bool forward = args.dy.strides[4] == 1;
  for (const int axis : {0, 1, 3}) forward = forward && args.dy.strides[axis] >= 0;
  if (!aligned || !forward) return {ResultOrder::quads, false};
  return {multiples(4, 4) ? ResultOrder::quads : ResultOrder::columns, true};
}

std::int64_t band_bytes(const ConvGeometry& g, const RowBands& tile, ResultOrder order) {
  return std::int64_t{band_stages} * stage_bytes(filters_of_block(g), order) + word_bytes(g, tile);
}

Support supports_bands(const ConvBackwardFilter::Args& args, const Context& context) {
  const ConvGeometry& g = args.geometry;
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  if (context.info().compute_capability < 80) {
    return unsupported("mma.sync of bf16 needs compute capability 8.0");
  }
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (g.channels < 1 || g.channels > 4) return unsupported("1 to 4 channels");
  if (g.channels * g.taps() > most_band_terms || g.filters > (1 << 16)) {
    return unsupported("up to 512 terms and 65536 filters");
  }
  if (g.axis[2].stride > 4) return unsupported("columns of stride up to 4");
  for (const ConvAxis* axis : {&g.axis[1], &g.axis[2]}) {
    if (axis->stride > most_band_extent || (axis->kernel - 1) * axis->dilation > most_band_extent) {
      return unsupported("windows and strides of up to 4096");
    }
  }
  if (band_bytes(g, row_bands(g), ResultOrder::columns) >
      static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("the rows of x that a band reads must fit in shared memory");
  }
  return supports_sliced(args, larger(g.filters, std::int64_t{1}));
}

Work work_of_bands(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const RowBands tile = row_bands(g);
  const BandGrid grid = band_grid(tile);
  const std::int64_t filters = filters_of_block(g);
  const std::int64_t chunk = chunk_of(filters_of_block(g));
  const std::int64_t groups = groups_of_warp(g);
  const std::int64_t roles = filters / role_filters * tile.term_roles;
  const std::int64_t bands = ceil_div(tile.tasks, grid.slices);
  const std::int64_t chunks = ceil_div(std::int64_t{tile.columns}, chunk) * tile.pair_rows;
  const std::int64_t pieces =
      ceil_div(std::int64_t{tile.columns}, std::int64_t{band_piece}) * tile.pair_rows;
  const std::int64_t words = g.channels * tile.height * ceil_div(std::int64_t{tile.width}, 32);
  const std::int64_t batches = ceil_div(g.channels * tile.height, std::int64_t{band_warps}) *
                               ceil_div(std::int64_t{tile.width}, 256);
  const double products = 2.0 * static_cast<double>(pieces * band_piece) * 32 * 8 *
                          static_cast<double>(groups * roles * grid.parts);
  return {.bytes = ConvBackwardFilter::cost(args).bytes +
                   8 * static_cast<double>(grid.slices) * static_cast<double>(args.dw.size()),
          .operations = 2 * products * static_cast<double>(tile.tasks),
          .launches = 2,
          .blocks = grid.parts * grid.slices,
          .resident = band_blocks,
          .rounds = bands * (batches + chunks),
          // Instructions of a warp, over four: copies, pieces and words.
          .steps = bands * (chunks * 32 + pieces * roles * (groups + 6) + words / 2)};
}

void run_bands(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  RowBands tile = row_bands(g);
  const BandGrid grid = band_grid(tile);
  const ResultLines lines = result_lines(args);
  tile.copied = lines.copied;
  visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = in_slices<T>(args, context, grid.slices);
    const LaunchShape shape{
        .grid = {grid.parts, grid.slices},
        .block = band_threads,
        .shared_bytes = static_cast<std::size_t>(band_bytes(g, tile, lines.order))};
    const auto in_order = [&]<int Filters, int Groups, ResultOrder Order>() {
      if (lines.order != Order) return;
      launch(context, shape, conv_backward_filter_first_layer_bands<T, Filters, Groups, Order>, p,
             tile);
    };
    const auto start = [&]<int Filters, int Groups>() {
      in_order.template operator()<Filters, Groups, ResultOrder::columns>();
      in_order.template operator()<Filters, Groups, ResultOrder::quads>();
      in_order.template operator()<Filters, Groups, ResultOrder::filters>();
    };
    const bool few = groups_of_warp(g) == few_band_groups;
    if (filters_of_block(g) == 32) {
      few ? start.template operator()<32, few_band_groups>()
          : start.template operator()<32, many_band_groups>();
    } else {
      few ? start.template operator()<64, few_band_groups>()
          : start.template operator()<64, many_band_groups>();
    }
    launch(context, sum_grid(p), conv_backward_filter_first_layer_bands_add_slices<T>, p,
           args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "first_layer_bands",
                                     .after = "first_layer_tensor_cores",
                                     .backend = device_backend,
                                     .supports = supports_bands,
                                     .work = work_of_bands,
                                     .run = run_bands}};

}  // namespace
}  // namespace rung
