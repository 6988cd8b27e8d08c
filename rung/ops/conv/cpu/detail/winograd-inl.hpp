// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering F(M x M, 3 x 3): a tile of M x M pixels of y comes of a tile of
// (M + 2) x (M + 2) of x by as many multiplications, instead of 9 M M:
//
//   Y = A^T ((G g G^T) . (B^T d B)) A          . elementwise, summed over channels
//
// For each of the (M + 2)^2 places of a transformed tile, the sum over channels is a matrix product
// of filters by tiles: conv's own tiles multiply it.
#if defined(RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#undef RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using WinogradTag = hn::ScalableTag<float>;
using WinogradVector = hn::Vec<WinogradTag>;

/// The transforms of one dimension, of vectors of tiles.
template <int M>
struct Winograd;

template <>
struct Winograd<2> {
  using V = WinogradVector;
  static constexpr int size = 4;
  static HWY_INLINE void filter(const V (&g)[3], V (&to)[size]) {
    const V half = hn::Set(WinogradTag(), .5F);
    const V outer = hn::Mul(half, hn::Add(g[0], g[2]));
    to[0] = g[0];
    to[1] = hn::MulAdd(half, g[1], outer);
    to[2] = hn::NegMulAdd(half, g[1], outer);
    to[3] = g[2];
  }
  static HWY_INLINE void input(const V (&d)[size], V (&to)[size]) {
    to[0] = hn::Sub(d[0], d[2]);
    to[1] = hn::Add(d[1], d[2]);
    to[2] = hn::Sub(d[2], d[1]);
    to[3] = hn::Sub(d[1], d[3]);
  }
  static HWY_INLINE void output(const V (&m)[size], V (&to)[2]) {
    to[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
    to[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
  }
  /// Elements j of a row of a vector of tiles: the first two of each from `line`, the others, which
  /// are the next tile's too, from `next`.
  static HWY_INLINE void load(const float* line, const float* next, V (&to)[size]) {
    const WinogradTag d;
    hn::LoadInterleaved2(d, line, to[0], to[1]);
    hn::LoadInterleaved2(d, next, to[2], to[3]);
  }
  static HWY_INLINE void store(const V (&from)[2], float* line) {
    hn::StoreInterleaved2(from[0], from[1], WinogradTag(), line);
  }
};

template <>
struct Winograd<4> {
  using V = WinogradVector;
  static constexpr int size = 6;
  static HWY_INLINE void filter(const V (&g)[3], V (&to)[size]) {
    const WinogradTag tag;
    const V sixth = hn::Set(tag, 1.0F / 6), twelfth = hn::Set(tag, 1.0F / 12);
    const V near = hn::Mul(sixth, hn::Add(g[0], g[2]));
    const V far = hn::MulAdd(sixth, g[2], hn::Mul(hn::Set(tag, 1.0F / 24), g[0]));
    to[0] = hn::Mul(hn::Set(tag, .25F), g[0]);
    to[1] = hn::Neg(hn::MulAdd(sixth, g[1], near));
    to[2] = hn::MulSub(sixth, g[1], near);
    to[3] = hn::MulAdd(twelfth, g[1], far);
    to[4] = hn::NegMulAdd(twelfth, g[1], far);
    to[5] = g[2];
  }
  static HWY_INLINE void input(const V (&d)[size], V (&to)[size]) {
    const WinogradTag tag;
    const V two = hn::Set(tag, 2), four = hn::Set(tag, 4), five = hn::Set(tag, 5);
    to[0] = hn::MulAdd(four, d[0], hn::NegMulAdd(five, d[2], d[4]));
    const V a = hn::NegMulAdd(four, d[2], d[4]);
    const V b = hn::NegMulAdd(four, d[1], d[3]);
    to[1] = hn::Add(a, b);
    to[2] = hn::Sub(a, b);
    const V c = hn::Sub(d[4], d[2]);
    const V e = hn::Mul(two, hn::Sub(d[3], d[1]));
    to[3] = hn::Add(c, e);
    to[4] = hn::Sub(c, e);
    to[5] = hn::MulAdd(four, d[1], hn::NegMulAdd(five, d[3], d[5]));
  }
  static HWY_INLINE void output(const V (&m)[size], V (&to)[4]) {
    const WinogradTag tag;
    const V two = hn::Set(tag, 2), four = hn::Set(tag, 4), eight = hn::Set(tag, 8);
    const V a = hn::Add(m[1], m[2]), b = hn::Sub(m[1], m[2]);
    const V c = hn::Add(m[3], m[4]), e = hn::Sub(m[3], m[4]);
    to[0] = hn::Add(hn::Add(m[0], a), c);
    to[1] = hn::MulAdd(two, e, b);
    to[2] = hn::MulAdd(four, c, a);
    to[3] = hn::Add(hn::MulAdd(eight, e, b), m[5]);
  }
  static HWY_INLINE void load(const float* line, const float* next, V (&to)[size]) {
    const WinogradTag d;
#if HWY_TARGET <= HWY_AVX3
    // By permutations of two vectors: 14 of them, where LoadInterleaved4 takes twice as many.
    constexpr int lanes = lanes_of<float>;
    const auto even = [&](V low, V high) { return hn::ConcatEven(d, high, low); };
    const auto odd = [&](V low, V high) { return hn::ConcatOdd(d, high, low); };
    const V a = hn::LoadU(d, line), b = hn::LoadU(d, line + lanes);
    const V c = hn::LoadU(d, line + 2 * lanes), e = hn::LoadU(d, line + 3 * lanes);
    const V even_ab = even(a, b), odd_ab = odd(a, b), even_ce = even(c, e), odd_ce = odd(c, e);
    to[0] = even(even_ab, even_ce);
    to[1] = even(odd_ab, odd_ce);
    to[2] = odd(even_ab, even_ce);
    to[3] = odd(odd_ab, odd_ce);
    const V f = hn::LoadU(d, next), g = hn::LoadU(d, next + lanes);
    const V h = hn::LoadU(d, next + 2 * lanes), i = hn::LoadU(d, next + 3 * lanes);
    to[4] = even(even(f, g), even(h, i));
    to[5] = even(odd(f, g), odd(h, i));
#else
    V unused_2, unused_3;
    hn::LoadInterleaved4(d, line, to[0], to[1], to[2], to[3]);
    hn::LoadInterleaved4(d, next, to[4], to[5], unused_2, unused_3);
#endif
  }
  static HWY_INLINE void store(const V (&from)[4], float* line) {
    hn::StoreInterleaved4(from[0], from[1], from[2], from[3], WinogradTag(), line);
  }
};

/// A layer of 3 x 3 filters, stride and dilation 1, f32, of images of two dimensions.
///
/// A panel is 64 tiles, of any rows and images: all its vectors are full. Its transformed tiles and
/// sums are read with strides from place to place. A line more than their size keeps these strides
/// off powers of two, with which 36 places meet in one set of L1 and of L2.
template <int M>
class WinogradLayer {
 public:
  explicit WinogradLayer(const Gathered& g)
      : g_(g),
        down_(ceil_div(g.axis[1].places, M)),
        across_(ceil_div(g.axis[2].places, M)),
        panels_(ceil_div(g.images * down_ * across_, columns)),
        filter_place_(round_up(g.m * g.q, 16) + a_line),
        tile_place_(g.q * columns + a_line) {}

  [[nodiscard]] std::size_t filter_bytes() const {
    return conv_layer::bytes_of<float>({g_.groups, area, filter_place_});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<float>({area, tile_place_ + sum_place});
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    auto* filters = reinterpret_cast<float*>(memory);
    const std::int64_t row_tiles = ceil_div(g_.m, std::int64_t{tile_rows});
    const cpu::Range of_filters = team.share(g_.groups * row_tiles);
    for (std::int64_t i = of_filters.begin; i < of_filters.end; ++i) {
      transform_filters(i / row_tiles, i % row_tiles * tile_rows, filters);
    }
    team.wait();
    auto* tiles = reinterpret_cast<float*>(memory + filter_bytes() +
                                           static_cast<std::size_t>(team.rank()) * thread_bytes());
    const cpu::Range share = team.share(g_.groups * panels_);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      make(i / panels_, i % panels_ * columns, filters, tiles, tiles + area * tile_place_);
    }
  }

 private:
  using Transform = Winograd<M>;
  using V = WinogradVector;
  static constexpr int size = Transform::size;
  static constexpr int area = size * size;
  static constexpr int lanes = lanes_of<float>;
  static constexpr int columns = panel_columns<float>;
  static constexpr std::int64_t a_line = 16;
  /// A multiple of a tile's rows whose sums, for all places of a transformed tile, stay in L2.
  static constexpr std::int64_t filters_a_time = 524288 / 4 / (area * columns * 6) * 6;
  static constexpr std::int64_t sum_place = filters_a_time * columns + a_line;
  /// As many channels of a place as L1 holds beside the weights.
  static constexpr std::int64_t channels_a_time = 32768 / 4 / columns;
  static constexpr int line_length = columns * M;

  /// Tiles that are neighbors in one row of tiles of one image.
  struct TileRun {
    std::int64_t n, down, across;
    int column, count;
  };
  int runs_of_tiles(std::int64_t first, TileRun* runs) const {
    const std::int64_t all = g_.images * down_ * across_;
    const int count = static_cast<int>(std::min<std::int64_t>(columns, all - first));
    int made = 0;
    for (int column = 0; column < count;) {
      TileRun& run = runs[made++];
      const std::int64_t tile = first + column;
      run.across = tile % across_;
      run.down = tile / across_ % down_;
      run.n = tile / across_ / down_;
      run.column = column;
      run.count = static_cast<int>(std::min<std::int64_t>(count - column, across_ - run.across));
      column += run.count;
    }
    return made;
  }

  /// A tile's filters from `first` on: [group][place][tile][channel][filter].
  void transform_filters(std::int64_t group, std::int64_t first, float* filters) const {
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, g_.m - first);
    const auto* w = static_cast<const float*>(g_.w) + group * g_.w_group + first * g_.w_strides[0];
    float* to = filters + group * area * filter_place_ + first * g_.q;
    const WinogradTag d;
    std::int64_t q = 0;
    std::int64_t filter = 0;
    for (std::int64_t at = 0; at < rows * g_.q; at += lanes, to += lanes) {
      alignas(64) float taps[9][lanes] = {};
      const auto some = static_cast<int>(std::min<std::int64_t>(lanes, rows * g_.q - at));
      for (int lane = 0; lane < some; ++lane) {
        const float* from = w + filter * g_.w_strides[0] + q * g_.w_strides[1];
        for (int k = 0; k < 3; ++k) {
          for (int l = 0; l < 3; ++l) {
            taps[k * 3 + l][lane] = from[k * g_.w_strides[3] + l * g_.w_strides[4]];
          }
        }
        if (++filter < rows) continue;
        filter = 0;
        ++q;
      }
      V down[3][size];
      for (int l = 0; l < 3; ++l) {
        const V column[3] = {hn::Load(d, taps[l]), hn::Load(d, taps[3 + l]),
                             hn::Load(d, taps[6 + l])};
        Transform::filter(column, down[l]);
      }
      for (int i = 0; i < size; ++i) {
        const V row[3] = {down[0][i], down[1][i], down[2][i]};
        V made[size];
        Transform::filter(row, made);
        for (int j = 0; j < size; ++j) {
          cpu::HWY_NAMESPACE::store_as_n(made[j], d, to + (i * size + j) * filter_place_,
                                         static_cast<std::size_t>(some));
        }
      }
    }
  }

  /// Rows of a panel's tiles: of each tile the first M elements of a row in `first`, the two that
  /// follow in `next`.
  struct Lines {
    alignas(64) float first[size][line_length];
    alignas(64) float next[size][line_length];
  };

  /// tiles[place][channel][column]
  void transform_input(const float* image, const TileRun* runs, int run_count, int count,
                       std::int64_t q, Lines& lines, float* tiles) const {
    for (int r = 0; r < run_count; ++r) {
      const TileRun& run = runs[r];
      const float* plane = image + q * g_.x_strides[1] + run.n * g_.x_strides[0];
      for (int i = 0; i < size; ++i) {
        const std::int64_t h = run.down * M + g_.axis[1].start + i;
        const float* row = h < 0 || h >= g_.axis[1].extent ? nullptr : plane + h * g_.x_strides[3];
        const std::int64_t o = run.across * M;
        gather_run(g_.axis[2], row, g_.x_strides[4], o, 0, run.count * M,
                   lines.first[i] + run.column * M);
        gather_run(g_.axis[2], row, g_.x_strides[4], o + M, 0, (run.count - 1) * M + 2,
                   lines.next[i] + run.column * M);
      }
    }
    const WinogradTag d;
    for (int first = 0; first < count; first += lanes) {
      V rows[size][size];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        V loaded[size];
        Transform::load(lines.first[i] + first * M, lines.next[i] + first * M, loaded);
        Transform::input(loaded, rows[i]);
      }
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) {
        V column[size], made[size];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::input(column, made);
        float* to = tiles + j * tile_place_ + q * columns + first;
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i, to += size * tile_place_) hn::StoreU(made[i], d, to);
      }
    }
  }

  /// sums[place][filter][column] of one filter, to y.
  void transform_output(const TileRun* runs, int run_count, int count, const float* sums,
                        float bias, float* y) const {
    alignas(64) float lines[M][line_length];
    const WinogradTag d;
    for (int first = 0; first < count; first += lanes) {
      V rows[size][M];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        V loaded[size];
#pragma GCC unroll 6
        for (int j = 0; j < size; ++j) {
          loaded[j] = hn::LoadU(d, sums + (i * size + j) * sum_place + first);
        }
        Transform::output(loaded, rows[i]);
      }
      V made[M][M];
#pragma GCC unroll 6
      for (int j = 0; j < M; ++j) {
        V column[size], to[M];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::output(column, to);
#pragma GCC unroll 6
        for (int i = 0; i < M; ++i) made[i][j] = hn::Add(to[i], hn::Set(d, bias));
      }
#pragma GCC unroll 6
      for (int i = 0; i < M; ++i) Transform::store(made[i], lines[i] + first * M);
    }
    const auto used = static_cast<int>(round_up(count, lanes)) * M;
    for (int i = 0; i < M; ++i) activate(g_.activation, lines[i], used);
    for (int r = 0; r < run_count; ++r) {
      const TileRun& run = runs[r];
      const std::int64_t width =
          std::min(std::int64_t{run.count} * M, g_.axis[2].places - run.across * M);
      float* to = y + run.n * g_.y_strides[0] + run.down * M * g_.y_strides[3] +
                  run.across * M * g_.y_strides[4];
      for (int i = 0; i < M && run.down * M + i < g_.axis[1].places; ++i) {
        store_strided(lines[i] + run.column * M, to + i * g_.y_strides[3], g_.y_strides[4],
                      static_cast<int>(width));
      }
    }
  }

  void make(std::int64_t group, std::int64_t panel, const float* filters, float* tiles,
            float* sums) const {
    TileRun runs[columns];
    const int run_count = runs_of_tiles(panel, runs);
    const int count = runs[run_count - 1].column + runs[run_count - 1].count;
    const float* image = static_cast<const float*>(g_.x) + group * g_.q * g_.x_strides[1];
    // What no tile has must be numbers: of the last vector, and of `next`.
    Lines lines{};
    for (std::int64_t q = 0; q < g_.q; ++q) {
      transform_input(image, runs, run_count, count, q, lines, tiles);
    }
    for (std::int64_t m = 0; m < g_.m; m += filters_a_time) {
      const std::int64_t some = std::min(filters_a_time, g_.m - m);
      for (int place = 0; place < area; ++place) {
        const float* w = filters + (group * area + place) * filter_place_ + m * g_.q;
        for (std::int64_t q = 0; q == 0 || q < g_.q; q += channels_a_time) {
          const std::int64_t channels = std::min(channels_a_time, g_.q - q);
          for (std::int64_t i = 0; i < some; i += tile_rows) {
            const int rows = static_cast<int>(std::min<std::int64_t>(tile_rows, some - i));
            turned_tile_for<float>(rows, count)(w + i * g_.q + q * rows, rows, channels,
                                                tiles + place * tile_place_ + q * columns,
                                                sums + place * sum_place + i * columns, q != 0);
          }
        }
      }
      for (std::int64_t i = 0; i < some; ++i) {
        const std::int64_t k = group * g_.m + m + i;
        float bias;
        copy_bias<float, float>(g_, k, 1, &bias);
        transform_output(runs, run_count, count, sums + i * columns, bias,
                         static_cast<float*>(g_.y) + k * g_.y_strides[1]);
      }
    }
  }

  const Gathered& g_;
  std::int64_t down_;
  std::int64_t across_;
  std::int64_t panels_;
  std::int64_t filter_place_;  // elements from place to place
  std::int64_t tile_place_;
};

template <int M>
void winograd(const Gathered& g, Context& context, int threads) {
  const WinogradLayer<M> layer(g);
  auto* memory = static_cast<std::byte*>(context.workspace(
      layer.filter_bytes() + static_cast<std::size_t>(threads) * layer.thread_bytes()));
  cpu::run_team(threads, [&](const cpu::Team& team) { layer.run(team, memory); });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
