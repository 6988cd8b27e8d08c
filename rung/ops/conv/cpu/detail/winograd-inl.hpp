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
#include "rung/ops/conv/cpu/detail/gather-inl.hpp"
#include "rung/ops/conv/cpu/detail/tile-inl.hpp"

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
  static constexpr float filter[size][3] = {
      {1, 0, 0}, {.5F, .5F, .5F}, {.5F, -.5F, .5F}, {0, 0, 1}};
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
  /// Elements j of the tiles of a line, a vector of tiles.
  static HWY_INLINE void load(const float* line, V (&to)[size]) {
    const WinogradTag d;
    hn::LoadInterleaved2(d, line, to[0], to[1]);
    hn::LoadInterleaved2(d, line + 2, to[2], to[3]);
  }
  static HWY_INLINE void store(const V (&from)[2], float* line) {
    hn::StoreInterleaved2(from[0], from[1], WinogradTag(), line);
  }
};

template <>
struct Winograd<4> {
  using V = WinogradVector;
  static constexpr int size = 6;
  static constexpr float sixth = 1.0F / 6, twelfth = 1.0F / 12, less = 1.0F / 24;
  static constexpr float filter[size][3] = {
      {.25F, 0, 0},           {-sixth, -sixth, -sixth}, {-sixth, sixth, -sixth},
      {less, twelfth, sixth}, {less, -twelfth, sixth},  {0, 0, 1}};
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
  static HWY_INLINE void load(const float* line, V (&to)[size]) {
    const WinogradTag d;
    V unused_2, unused_3;
    hn::LoadInterleaved4(d, line, to[0], to[1], to[2], to[3]);
    hn::LoadInterleaved4(d, line + 4, to[4], to[5], unused_2, unused_3);
  }
  static HWY_INLINE void store(const V (&from)[4], float* line) {
    hn::StoreInterleaved4(from[0], from[1], from[2], from[3], WinogradTag(), line);
  }
};

/// A layer of 3 x 3 filters, stride and dilation 1, f32, of images of two dimensions.
template <int M>
class WinogradLayer {
 public:
  explicit WinogradLayer(const Gathered& g)
      : g_(g),
        down_(ceil_div(g.axis[1].places, M)),
        across_(ceil_div(g.axis[2].places, M)),
        panels_(ceil_div(g.images * down_ * across_, columns)) {}

  [[nodiscard]] std::size_t filter_bytes() const {
    return conv_layer::bytes_of<float>({g_.groups, area, round_up(g_.m * g_.q, 16)});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<float>({area, g_.q + filters_a_time, columns}) +
           slack * sizeof(float);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    auto* filters = reinterpret_cast<float*>(memory);
    const cpu::Range of_filters = team.share(g_.groups * g_.m);
    for (std::int64_t i = of_filters.begin; i < of_filters.end; ++i) transform_filter(i, filters);
    team.wait();
    auto* tiles = reinterpret_cast<float*>(memory + filter_bytes() +
                                           static_cast<std::size_t>(team.rank()) * thread_bytes());
    const cpu::Range share = team.share(g_.groups * panels_);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      make(i / panels_, i % panels_ * columns, filters, tiles, tiles + area * g_.q * columns);
    }
  }

 private:
  using Transform = Winograd<M>;
  using V = WinogradVector;
  static constexpr int size = Transform::size;
  static constexpr int area = size * size;
  static constexpr int lanes = lanes_of<float>;
  static constexpr int columns = panel_columns<float>;
  /// A multiple of a tile's rows whose sums, for all places of a transformed tile, stay in L2.
  static constexpr std::int64_t filters_a_time = 12;
  /// Vectors are loaded whole: beyond the last sum, too.
  static constexpr std::int64_t slack = 64;
  static constexpr std::int64_t line_length = columns * M + 2 * lanes * M;

  /// Tiles that are neighbours in one row of tiles of one image.
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

  /// [group][place][filter][channel]
  void transform_filter(std::int64_t index, float* filters) const {
    const std::int64_t group = index / g_.m;
    const auto* w =
        static_cast<const float*>(g_.w) + group * g_.w_group + index % g_.m * g_.w_strides[0];
    float* to = filters + (group * area * g_.m + index % g_.m) * g_.q;
    for (std::int64_t q = 0; q < g_.q; ++q, w += g_.w_strides[1]) {
      float rows[size][3];
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < 3; ++j) {
          rows[i][j] = 0;
          for (int k = 0; k < 3; ++k) {
            rows[i][j] += Transform::filter[i][k] * w[k * g_.w_strides[3] + j * g_.w_strides[4]];
          }
        }
      }
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
          const float* f = Transform::filter[j];
          to[(i * size + j) * g_.m * g_.q + q] =
              rows[i][0] * f[0] + rows[i][1] * f[1] + rows[i][2] * f[2];
        }
      }
    }
  }

  /// tiles[place][channel][column]
  void transform_input(const float* image, const TileRun& run, std::int64_t q, float* tiles) const {
    alignas(64) float lines[size][line_length];
    const int count = run.count * M + 2;
    const Run at{run.n, {0, run.down * M, run.across * M}, 0, count};
    for (int i = 0; i < size; ++i) {
      const std::int64_t h = at.o[1] + g_.axis[1].start + i;
      const float* row =
          h < 0 || h >= g_.axis[1].extent
              ? nullptr
              : image + q * g_.x_strides[1] + run.n * g_.x_strides[0] + h * g_.x_strides[3];
      gather_run(g_.axis[2], row, g_.x_strides[4], at.o[2], 0, count, lines[i]);
      // What partial vectors load behind it must be numbers, though it is overwritten.
      std::fill(lines[i] + count, lines[i] + round_up(run.count, lanes) * M + 4, 0.0F);
    }
    for (int first = 0; first < run.count; first += lanes) {
      V rows[size][size];
      for (int i = 0; i < size; ++i) {
        V loaded[size];
        Transform::load(lines[i] + first * M, loaded);
        Transform::input(loaded, rows[i]);
      }
      for (int j = 0; j < size; ++j) {
        V column[size], made[size];
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::input(column, made);
        float* to = tiles + (j * g_.q + q) * columns + run.column + first;
        const int room = columns - run.column - first;
        for (int i = 0; i < size; ++i, to += size * g_.q * columns) {
          if (room >= lanes) {
            hn::StoreU(made[i], WinogradTag(), to);
          } else {
            cpu::HWY_NAMESPACE::store_as_n(made[i], WinogradTag(), to,
                                           static_cast<std::size_t>(room));
          }
        }
      }
    }
  }

  /// sums[place][filter][column] of one filter, to y.
  void transform_output(const TileRun& run, const float* sums, float bias, float* y) const {
    alignas(64) float lines[M][line_length];
    const WinogradTag d;
    for (int first = 0; first < run.count; first += lanes) {
      V rows[size][M];
      for (int i = 0; i < size; ++i) {
        V loaded[size];
        for (int j = 0; j < size; ++j) {
          loaded[j] =
              hn::LoadU(d, sums + (i * size + j) * filters_a_time * columns + run.column + first);
        }
        Transform::output(loaded, rows[i]);
      }
      V made[M][M];
      for (int j = 0; j < M; ++j) {
        V column[size], to[M];
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::output(column, to);
        for (int i = 0; i < M; ++i) made[i][j] = hn::Add(to[i], hn::Set(d, bias));
      }
      for (int i = 0; i < M; ++i) Transform::store(made[i], lines[i] + first * M);
    }
    const std::int64_t width =
        std::min(std::int64_t{run.count} * M, g_.axis[2].places - run.across * M);
    for (int i = 0; i < M && run.down * M + i < g_.axis[1].places; ++i) {
      activate(g_.activation, lines[i], static_cast<int>(round_up(run.count, lanes)) * M);
      store_strided(lines[i],
                    y + run.n * g_.y_strides[0] + (run.down * M + i) * g_.y_strides[3] +
                        run.across * M * g_.y_strides[4],
                    g_.y_strides[4], static_cast<int>(width));
    }
  }

  void make(std::int64_t group, std::int64_t first, const float* filters, float* tiles,
            float* sums) const {
    TileRun runs[columns];
    const int run_count = runs_of_tiles(first, runs);
    const int count = runs[run_count - 1].column + runs[run_count - 1].count;
    const float* image = static_cast<const float*>(g_.x) + group * g_.q * g_.x_strides[1];
    for (std::int64_t q = 0; q < g_.q; ++q) {
      for (int r = 0; r < run_count; ++r) transform_input(image, runs[r], q, tiles);
    }
    for (std::int64_t m = 0; m < g_.m; m += filters_a_time) {
      const std::int64_t some = std::min(filters_a_time, g_.m - m);
      for (int place = 0; place < area; ++place) {
        const float* w = filters + ((group * area + place) * g_.m + m) * g_.q;
        multiply(some, count, g_.q, tiles + place * g_.q * columns,
                 sums + place * filters_a_time * columns, false,
                 [&](std::int64_t i) { return w + i * g_.q; });
      }
      for (std::int64_t i = 0; i < some; ++i) {
        const std::int64_t k = group * g_.m + m + i;
        const float bias =
            g_.bias == nullptr ? 0.0F : static_cast<const float*>(g_.bias)[k * g_.bias_stride];
        for (int r = 0; r < run_count; ++r) {
          transform_output(runs[r], sums + i * columns, bias,
                           static_cast<float*>(g_.y) + k * g_.y_strides[1]);
        }
      }
    }
  }

  const Gathered& g_;
  std::int64_t down_;
  std::int64_t across_;
  std::int64_t panels_;
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
