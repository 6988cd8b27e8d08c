// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / first layer bands tensor cores
//
// Idea     A block owns bands of rows of y and keeps dw, or 64 filters of it, in the registers of
//          mma.sync over all its bands. Pixels are the k axis, and a pair of k is one column of two
//          rows of y, a few rows apart, not two adjacent columns: x is staged once per band as
//          words of two elements of one column, so that a lane gathers any tap at any stride as one
//          word. Two rows of dy are copied to shared memory two stages ahead and paired in
//          registers, once for all terms.
// Changes  Against first_layer_bands: tensor cores multiply. dy is copied 16 bytes at a time at any
//          alignment of its rows; the warps of a block add their sums, which leaves a slice per
//          block.
// Cost     For 16 columns of two rows, 32 filters and 80 terms, a lane loads 40 words of x and 16
//          (24 if rows are not aligned) of dy from shared memory for 40 mma. dy is read once, x 1.1
//          to 2.5 times. Filters are padded to 32, terms to 32 or 80.
// Limits   f16 and bf16, up to 4 channels, one group, images of two dimensions; columns of stride
//          up to 4, up to 512 terms; a band's rows of x must fit in shared memory. Error bound as
//          tensor_cores.
#include <type_traits>

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
/// pairs row h of the band with row h + apart.
struct RowBands {
  int pair_rows;                 // of y; a band has twice as many
  int columns;                   // of y in a strip
  int height, width;             // of the words
  int pitch, plane;              // words from row to row and from channel to channel
  int apart;                     // rows of x between the two elements of a word
  int line_channels;             // of a line of x that is copied: all or one
  int line_pitch;                // elements from line to line of copied rows of x
  int term_roles;                // of a block's warps
  int filter_parts, term_parts;  // of blocks
  std::int64_t bands, strips, tasks;
  bool copies_x;   // by asynchronous copies of 16 bytes, a band ahead, not by elements
  bool copies_dy;  // likewise, stages ahead
};

/// A stage: columns of two rows of y. `columns` is 0 after a block's last one.
struct BandStage {
  std::int64_t at;   // of dy's first element
  int columns;       // that exist
  int words;         // from the band's first word to that of the first pixel
  bool second;       // the second row exists
  bool starts_band;  // the band's words are to be staged
  bool waits;        // the band before had one stage, so that x was copied with the last group
};

/// The next stage of a block; one thread advances it.
struct BandCursor {
  std::int64_t task, end;
  std::int64_t n;
  int o, v;  // of the band and strip
  int row, rows, chunk, columns;
  bool lone;  // the last band had one stage

  template <class T>
  __device__ __forceinline__ void open(const FilterGradient<T>& p, const RowBands& tile) {
    n = task;
    v = static_cast<int>(take_axis(n, tile.strips)) * tile.columns;
    o = static_cast<int>(take_axis(n, tile.bands)) * 2 * tile.pair_rows;
    row = 0;
    chunk = 0;
    rows = smaller(tile.pair_rows, static_cast<int>(p.g.axis[1].out) - o);
    columns = smaller(tile.columns, static_cast<int>(p.g.axis[2].out) - v);
  }
  /// Returns the current stage and advances to the next one, of `width` columns.
  template <class T>
  __device__ __forceinline__ BandStage take(const FilterGradient<T>& p, const RowBands& tile,
                                            int width) {
    if (task >= end) return {};
    const BandStage stage{
        .at = n * p.dy_strides[0] + (o + row) * p.dy_strides[3] + (v + chunk) * p.dy_strides[4],
        .columns = smaller(columns - chunk, width),
        .words = row * static_cast<int>(p.g.axis[1].stride) * tile.pitch +
                 chunk * static_cast<int>(p.g.axis[2].stride),
        .second = o + row + tile.pair_rows < static_cast<int>(p.g.axis[1].out),
        .starts_band = row == 0 && chunk == 0,
        .waits = row == 0 && chunk == 0 && lone};
    chunk += width;
    if (chunk >= columns) {
      chunk = 0;
      ++row;
    }
    if (row == rows) {
      lone = rows == 1 && columns <= width;
      ++task;
      open(p, tile);
    }
    return stage;
  }
};

/// Returns the number of elements before `from` in the same 16 bytes.
template <class T>
__device__ __forceinline__ int elements_before(const T* from) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % 16 / sizeof(T));
}

/// Copies the lines of a stage, from filter `first_filter` on; elements that do not exist are zero.
/// A line that is copied 16 bytes at a time starts where its first 16 bytes in global memory do.
template <class T, int Filters, ResultOrder Order>
__device__ __forceinline__ void copy_results(const FilterGradient<T>& p, const RowBands& tile,
                                             const BandStage& stage, std::int64_t first_filter,
                                             T* to) {
  constexpr int chunk = chunk_of(Filters);
  constexpr int pitch = line_pitch(Filters, Order);
  constexpr int lines = lines_of(Filters, Order);
  const auto filters = static_cast<int>(smaller(p.g.filters - first_filter, std::int64_t{Filters}));
  const T* const first = p.dy + stage.at + first_filter * p.dy_strides[1];
  const std::int64_t second = tile.pair_rows * p.dy_strides[3];
  if (!tile.copies_dy) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < 2 * Filters * chunk; i += band_threads) {
      const int column = i % chunk;
      const int filter = i / chunk % Filters;
      const int half = i / (chunk * Filters);
      const bool exists = column < stage.columns && filter < filters && (half == 0 || stage.second);
      to[(half * Filters + filter) * pitch + column] =
          exists ? first[filter * p.dy_strides[1] + half * second + column * p.dy_strides[4]]
                 : zero<T>();
    }
    return;
  }
  // A thread copies the same 16 bytes of every lines_at_once-th line.
  constexpr bool by_pixel = Order == ResultOrder::filters;
  constexpr int half_lines = lines / 2;
  constexpr int units = (by_pixel ? Filters : chunk) / 8;
  constexpr int lines_at_once = band_threads / units;
  static_assert(half_lines % lines_at_once == 0);
  const std::int64_t step = p.dy_strides[by_pixel ? 4 : 1];
  const int elements = by_pixel ? filters : stage.columns;
  const int existing = by_pixel ? stage.columns : filters;
  const bool has_second = stage.second;
  const auto copy = [&](const T* from, int half, int line, int unit) {
    const int before = by_pixel ? 0 : elements_before(from);
    const bool exists = line < existing && (half == 0 || has_second);
    const int valid = exists ? clamped(elements + before - unit * 8, 0, 8) : 0;
    ptx::async_copy<16>(to + (half * half_lines + line) * pitch + unit * 8,
                        valid > 0 ? from + (unit * 8 - before) : p.dy, 2 * valid);
  };
  const auto thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const T* from = first + half * second + thread / units * step;
#pragma unroll
    for (int line = 0; line < half_lines; line += lines_at_once) {
      copy(from, half, line + thread / units, thread % units);
      from += lines_at_once * step;
    }
  }
  if constexpr (!by_pixel) {  // the last 16 bytes of lines that do not start at 16 bytes
    if (thread < lines) {
      const int half = thread / half_lines;
      const int line = thread % half_lines;
      copy(first + half * second + line * step, half, line, units);
    }
  }
}

/// Rows and columns of x that a band's words read.
struct BandImage {
  std::int64_t n;
  int h0, v0;     // of the first word
  int low, high;  // columns that exist, from low on
};
template <class T>
__device__ __forceinline__ BandImage image_of(const FilterGradient<T>& p, const RowBands& tile,
                                              std::int64_t task) {
  BandImage image{};
  image.n = task;
  const ConvAxis& down = p.g.axis[1];
  const ConvAxis& across = p.g.axis[2];
  const auto v = static_cast<int>(take_axis(image.n, tile.strips)) * tile.columns;
  const auto o = static_cast<int>(take_axis(image.n, tile.bands)) * 2 * tile.pair_rows;
  image.h0 = o * static_cast<int>(down.stride) - static_cast<int>(down.padding);
  image.v0 = v * static_cast<int>(across.stride) - static_cast<int>(across.padding);
  image.low = larger(image.v0, 0);
  image.high = smaller(image.v0 + tile.width, static_cast<int>(across.in));
  return image;
}
/// Returns the first element of a band's line of x.
template <class T>
__device__ __forceinline__ const T* line_of_x(const FilterGradient<T>& p, const BandImage& image,
                                              int c, int row) {
  return p.x + image.n * p.x_strides[0] + c * p.x_strides[1] + (image.h0 + row) * p.x_strides[3] +
         image.low * p.x_strides[4];
}

/// Copies a band's rows of x, as many as exist. A warp copies a line at a time.
template <class T>
__device__ __forceinline__ void copy_image(const FilterGradient<T>& p, const RowBands& tile,
                                           std::int64_t task, T* to) {
  const BandImage image = image_of(p, tile, task);
  const int height = tile.height + tile.apart;
  const int count = (image.high - image.low) * tile.line_channels;
  const int lines = height * static_cast<int>(p.g.channels) / tile.line_channels;
#pragma unroll 1
  for (int line = static_cast<int>(threadIdx.x) / 32; line < lines; line += band_warps) {
    const int c = line / height;
    const int row = line - c * height;
    const int h = image.h0 + row;
    if (count <= 0 || h < 0 || h >= static_cast<int>(p.g.axis[1].in)) continue;
    const T* const from = line_of_x(p, image, c, row);
    const int before = elements_before(from);
    for (int i = 8 * (static_cast<int>(threadIdx.x) % 32); i < count + before; i += 8 * 32) {
      ptx::async_copy<16>(to + line * tile.line_pitch + i, from - before + i,
                          2 * smaller(count + before - i, 8));
    }
  }
}

/// Stages a band's words of x, with zeros around the image: from the rows that were copied, or from
/// global memory. A warp stages one row of a channel at a time.
template <class T>
__device__ __forceinline__ void stage_words(const FilterGradient<T>& p, const RowBands& tile,
                                            std::int64_t task, const T* copied,
                                            std::uint32_t* words) {
  constexpr int at_once = 4;
  const BandImage image = image_of(p, tile, task);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto in_rows = static_cast<int>(p.g.axis[1].in);
  const int height = tile.height + tile.apart;
  const int lines = static_cast<int>(p.g.channels) * tile.height;
#pragma unroll 1
  for (int line = static_cast<int>(threadIdx.x) / 32; line < lines; line += band_warps) {
    const int c = line / tile.height;
    const int row = line - c * tile.height;
    const int h = image.h0 + row;
    const bool has_low = h >= 0 && h < in_rows;
    const bool has_high = h + tile.apart >= 0 && h + tile.apart < in_rows;
    const std::uint32_t mask = (has_low ? 0xffffU : 0) | (has_high ? 0xffff0000U : 0);
    std::uint32_t* const to = words + c * tile.plane + row * tile.pitch;
    // Columns [head, tail) exist.
    const int head = mask == 0 ? tile.width : smaller(image.low - image.v0, tile.width);
    const int tail = clamped(image.high - image.v0, head, tile.width);
    for (int column = lane; column < head; column += 32) to[column] = 0;
    for (int column = tail + lane; column < tile.width; column += 32) to[column] = 0;
    const auto pair = [&](const T* low, const T* high, auto step) {
      if (!has_low) low = high;
      if (!has_high) high = low;
      const auto word = [&](int column) {
        const auto at = (column - head) * step;
        return (std::uint32_t{low[at].bits} | std::uint32_t{high[at].bits} << 16) & mask;
      };
      int first = head + lane;
#pragma unroll 1
      for (; first - lane + 32 * at_once <= tail; first += 32 * at_once) {
        std::uint32_t made[at_once];
#pragma unroll
        for (int u = 0; u < at_once; ++u) made[u] = word(first + 32 * u);
#pragma unroll
        for (int u = 0; u < at_once; ++u) to[first + 32 * u] = made[u];
      }
#pragma unroll 1
      for (; first < tail; first += 32) to[first] = word(first);
    };
    if (tile.copies_x) {
      const bool all = tile.line_channels > 1;
      const int own = all ? 0 : c;
      const T* const from = copied + (own * height + row) * tile.line_pitch + (all ? c : 0);
      const T* const low = from + elements_before(line_of_x(p, image, own, row));
      const T* const high = from + tile.apart * tile.line_pitch +
                            elements_before(line_of_x(p, image, own, row + tile.apart));
      if (all) {
        pair(low, high, tile.line_channels);
      } else {
        pair(low, high, std::integral_constant<int, 1>{});
      }
    } else {
      pair(line_of_x(p, image, c, row), line_of_x(p, image, c, row + tile.apart), p.x_strides[4]);
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
              tile.copies_dy
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

/// Loads the word `bytes` bytes from `words` on.
__device__ __forceinline__ std::uint32_t word_at(const std::uint32_t* words, int bytes) {
  return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const unsigned char*>(words) +
                                                 bytes);
}

/// The stages of dy that a block multiplies or copies, and the next one.
struct alignas(16) BandControl {
  BandStage stages[band_stages + 1];
  BandCursor cursor;
};

/// Returns the number of elements of x that a block copies per band.
RUNG_HD constexpr std::int64_t copied_elements(const ConvGeometry& g, const RowBands& tile) {
  return g.channels / tile.line_channels * (tile.height + tile.apart) * tile.line_pitch;
}

template <class T, int Filters, int Groups, ResultOrder Order>
__global__ void __launch_bounds__(band_threads, band_blocks)
    conv_backward_filter_first_layer_bands_mma(const __grid_constant__ FilterGradient<T> p,
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
  auto& control = shared<BandControl>();
  T* const stages = reinterpret_cast<T*>(&control + 1);
  T* const copied = stages + band_stages * stage_size;
  auto* const words = reinterpret_cast<std::uint32_t*>(copied + copied_elements(p.g, tile));

  // Bytes to each term's word of its first pixel. Terms that do not exist read the last one.
  int base[Groups];
#pragma unroll
  for (int j = 0; j < Groups; ++j) {
    int rest = smaller(first_term + j * 8 + g, static_cast<int>(p.terms) - 1);
    const auto across = static_cast<int>(columns.kernel);
    const auto down = static_cast<int>(rows.kernel);
    const int b = rest % across * static_cast<int>(columns.dilation);
    rest /= across;
    const int a = rest % down * static_cast<int>(rows.dilation);
    base[j] = 4 * (rest / down * tile.plane + a * tile.pitch + b + 4 * t * stride);
#if defined(__CUDACC__)
    // The compiler would keep a quarter of it, and multiply before every load.
    asm("" : "+r"(base[j]));
#endif
  }

  float sums[role_operands][Groups][4] = {};
  constexpr int places = band_stages + 1;
  std::int64_t task = tile.tasks * std::int64_t{blockIdx.y} / gridDim.y;
  if (threadIdx.x == 0) {
    control.cursor.task = task;
    control.cursor.end = tile.tasks * (std::int64_t{blockIdx.y} + 1) / gridDim.y;
    control.cursor.lone = false;
    control.cursor.open(p, tile);
    for (int i = 0; i < band_stages; ++i) control.stages[i] = control.cursor.take(p, tile, chunk);
  }
  __syncthreads();
  const std::int64_t end = tile.tasks * (std::int64_t{blockIdx.y} + 1) / gridDim.y;
  if (tile.copies_x && task < end) copy_image(p, tile, task, copied);
  const auto copy_stage = [&](int place, int stage) {
    const BandStage next = control.stages[place];
    if (next.columns > 0) {
      copy_results<T, Filters, Order>(p, tile, next, first_filter, stages + stage * stage_size);
    }
    ptx::async_commit();
  };
#pragma unroll
  for (int i = 0; i < band_stages - 1; ++i) copy_stage(i, i);

  int stage = 0;
  int place = 0;
  while (true) {
    const BandStage now = control.stages[place];
    if (now.columns == 0) break;
    if (now.waits) {
      ptx::async_wait<0>();
    } else {
      ptx::async_wait<band_stages - 2>();
    }
    __syncthreads();
    if (now.starts_band) {
      stage_words(p, tile, task, copied, words);
      __syncthreads();
      ++task;
      if (tile.copies_x && task < end) copy_image(p, tile, task, copied);
    }
    // The stage before was read before the barrier.
    copy_stage((place + band_stages - 1) % places, stage == 0 ? band_stages - 1 : stage - 1);
    if (threadIdx.x == 0) {
      control.stages[(place + band_stages) % places] = control.cursor.take(p, tile, chunk);
    }
    const auto start = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p.dy) / 2 + now.at +
                                             first_filter * p.dy_strides[1]);
    const std::uint32_t* const first_word = words + now.words;
#pragma unroll 1
    for (int column = share * band_piece; column < now.columns; column += shares * band_piece) {
      std::uint32_t a[2][role_operands][4];
      load_results<T, Filters, Order>(a, p, tile, stages + stage * stage_size, own_filter, column,
                                      start);
      const std::uint32_t* const from = first_word + column * stride;
      const auto multiply = [&]<bool Edge>() {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // Pixels that do not exist are replaced by zero in x, too: an infinity of x times zero
          // would be NaN.
          std::uint32_t mask[2];
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            mask[k] = column + 4 * t + 2 * i + k >= now.columns ? 0 : now.second ? ~0U : 0xffffU;
          }
#pragma unroll
          for (int j = 0; j < Groups; ++j) {
            std::uint32_t values[2] = {word_at(from + 2 * i * stride, base[j]),
                                       word_at(from + (2 * i + 1) * stride, base[j])};
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
      if (now.second && column + band_piece <= now.columns) {
        multiply.template operator()<false>();
      } else {
        multiply.template operator()<true>();
      }
    }
    stage = stage == band_stages - 1 ? 0 : stage + 1;
    place = place == places - 1 ? 0 : place + 1;
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
    conv_backward_filter_first_layer_bands_mma_add_slices(FilterGradient<T> p, std::int64_t count) {
  add_slices<T, false>(p, count);
}

// --- on the host ---------------------------------------------------------------------------------

constexpr int few_band_groups = 4;    // of eight terms per warp
constexpr int many_band_groups = 10;  // as many as registers hold
constexpr std::int64_t most_band_terms = 512;
constexpr std::int64_t most_band_extent = 1 << 12;   // of windows and strides: prevents overflow
constexpr std::int64_t most_band_width = 1 << 14;    // results: a plane of x has below 2^31 words
constexpr std::int64_t most_image_bytes = 51 << 10;  // two blocks fit in an SM

int filters_of_block(const ConvGeometry& g) { return g.filters > role_filters ? 64 : 32; }

int groups_of_warp(const ConvGeometry& g) {
  return g.channels * g.taps() <= 8 * few_band_groups ? few_band_groups : many_band_groups;
}

/// Returns the shared memory of a band's rows of x.
std::int64_t image_bytes(const ConvGeometry& g, const RowBands& tile) {
  return 4 * g.channels * tile.plane + 2 * copied_elements(g, tile);
}

/// Returns the bands of a layer; lines of x have `line_channels` channels.
RowBands row_bands(const ConvGeometry& g, std::int64_t line_channels) {
  const ConvAxis& down = g.axis[1];
  const ConvAxis& across = g.axis[2];
  const std::int64_t out_rows = larger(down.out, std::int64_t{1});
  const std::int64_t out_columns = larger(across.out, std::int64_t{1});
  const std::int64_t chunk = chunk_of(filters_of_block(g));
  RowBands tile{};
  const std::int64_t parts = ceil_div(g.channels * g.taps(), std::int64_t{8} * groups_of_warp(g));
  tile.term_roles = parts <= 2 ? static_cast<int>(parts) : 4;
  tile.term_parts = static_cast<int>(ceil_div(parts, std::int64_t{tile.term_roles}));
  tile.filter_parts = static_cast<int>(
      ceil_div(larger(g.filters, std::int64_t{1}), std::int64_t{filters_of_block(g)}));
  tile.pair_rows = out_rows > 2 ? 2 : 1;
  tile.apart = tile.pair_rows * static_cast<int>(down.stride);
  tile.height =
      static_cast<int>((tile.pair_rows - 1) * down.stride + (down.kernel - 1) * down.dilation + 1);
  tile.line_channels = static_cast<int>(line_channels);
  for (tile.strips = 1;; ++tile.strips) {
    const std::int64_t even = ceil_div(out_columns, tile.strips);
    tile.columns =
        static_cast<int>(round_up(even, tile.strips == 1 ? std::int64_t{band_piece} : chunk));
    tile.width = static_cast<int>((tile.columns - 1) * across.stride +
                                  (across.kernel - 1) * across.dilation + 1);
    // The words of eight adjacent terms are in different banks.
    const auto pitch = [](std::int64_t words, std::int64_t residue) {
      return static_cast<int>(words + (residue % 8 + 8 - words % 8) % 8);
    };
    tile.pitch = pitch(tile.width, across.kernel);
    tile.plane = pitch(std::int64_t{tile.height} * tile.pitch, across.kernel * down.kernel);
    tile.line_pitch = static_cast<int>(round_up(tile.width * line_channels, std::int64_t{8}) + 8);
    if (image_bytes(g, tile) <= most_image_bytes || tile.columns <= chunk) break;
  }
  tile.strips = ceil_div(out_columns, std::int64_t{tile.columns});
  tile.bands = ceil_div(out_rows, std::int64_t{2} * tile.pair_rows);
  tile.tasks = across.out == 0 || down.out == 0 ? 0 : g.images * tile.bands * tile.strips;
  return tile;
}

/// Returns the bands of a call, and whether they are copied 16 bytes at a time: a pointer rounded
/// down to 16 bytes must not leave the tensor.
RowBands row_bands(const ConvBackwardFilter::Args& args) {
  const ConvGeometry& g = args.geometry;
  const auto copies = [](const ConstTensorRef& tensor) {
    bool forward = reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
    for (int axis = 0; axis < 5; ++axis) forward = forward && tensor.strides[axis] >= 0;
    return forward;
  };
  const bool all = g.channels > 1 && args.x.strides[1] == 1 && args.x.strides[4] == g.channels;
  RowBands tile = row_bands(g, all ? g.channels : 1);
  tile.copies_x = copies(args.x) && (all || args.x.strides[4] == 1);
  tile.copies_dy = copies(args.dy);
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

/// Returns the order of dy in memory; clears tile.copies_dy if its lines cannot be copied.
ResultOrder order_of(const ConvBackwardFilter::Args& args, RowBands& tile) {
  const auto multiples = [&](int along, std::int64_t unit) {
    bool all = true;
    for (const int axis : {0, 1, 3, 4}) {
      all = all && (axis == along || args.dy.shape[axis] == 1 || args.dy.strides[axis] % unit == 0);
    }
    return all;
  };
  if (tile.copies_dy && args.dy.strides[1] == 1 && args.geometry.filters > 1 && multiples(1, 8)) {
    return ResultOrder::filters;
  }
  tile.copies_dy = tile.copies_dy && args.dy.strides[4] == 1;
  return !tile.copies_dy || multiples(4, 4) ? ResultOrder::quads : ResultOrder::columns;
}

std::int64_t band_bytes(const ConvGeometry& g, const RowBands& tile, ResultOrder order) {
  return static_cast<std::int64_t>(sizeof(BandControl)) +
         std::int64_t{band_stages} * stage_bytes(filters_of_block(g), order) + image_bytes(g, tile);
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
  if (g.axis[2].out > most_band_width) return unsupported("rows of up to 2^14 results");
  RowBands tile = row_bands(args);
  const ResultOrder order = order_of(args, tile);
  if (band_bytes(g, tile, order) > static_cast<std::int64_t>(context.info().shared_per_block)) {
    return unsupported("the rows of x that a band reads must fit in shared memory");
  }
  return supports_sliced(args, larger(g.filters, std::int64_t{1}));
}

Work work_of_bands(const ConvBackwardFilter::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  RowBands tile = row_bands(args);
  order_of(args, tile);
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
          .rounds = bands * ((tile.copies_x ? 2 : batches) + chunks),
          // Instructions of a block's warps, over 512: copies, pieces and words.
          .steps = bands *
                   (chunks * (tile.copies_dy ? 28 : 96) + pieces * roles * (groups + 6) / 2 +
                    words / 2) /
                   16};
}

void run_bands(const ConvBackwardFilter::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  RowBands tile = row_bands(args);
  const BandGrid grid = band_grid(tile);
  const ResultOrder order = order_of(args, tile);
  visit<f16, bf16>(args.dw.dtype, [&]<class T>() {
    const FilterGradient<T> p = in_slices<T>(args, context, grid.slices);
    const LaunchShape shape{.grid = {grid.parts, grid.slices},
                            .block = band_threads,
                            .shared_bytes = static_cast<std::size_t>(band_bytes(g, tile, order))};
    const auto in_order = [&]<int Filters, int Groups, ResultOrder Order>() {
      if (order != Order) return;
      launch(context, shape, conv_backward_filter_first_layer_bands_mma<T, Filters, Groups, Order>,
             p, tile);
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
    launch(context, sum_grid(p), conv_backward_filter_first_layer_bands_mma_add_slices<T>, p,
           args.dw.size());
  });
}

const Rung<ConvBackwardFilter> self{{.name = "first_layer_bands_tensor_cores",
                                     .after = "first_layer_bands",
                                     .backend = device_backend,
                                     .supports = supports_bands,
                                     .work = work_of_bands,
                                     .run = run_bands}};

}  // namespace
}  // namespace rung
