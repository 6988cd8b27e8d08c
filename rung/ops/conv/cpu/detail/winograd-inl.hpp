// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering F(M x M, 3 x 3): a tile of M x M pixels of y is computed from a tile
// of (M + 2) x (M + 2) of x by (M + 2)^2 multiplications instead of 9 M M:
//
//   Y = A^T ((G g G^T) . (B^T d B)) A          . elementwise, summed over channels
//
// A rung provides the one-dimensional transforms G, B and A, and the sums over channels: a matrix
// product, filters by tiles, for each of the (M + 2)^2 positions of a transformed tile.
#if defined(RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#undef RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_WINOGRAD_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "rung/ops/conv/shared/cpu/gather-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {

using WinogradTag = hn::ScalableTag<float>;
using WinogradVector = hn::Vec<WinogradTag>;

/// Computes c[i][j] (+)= sum over channels q of filters[q][i] tiles[q][j], at one position.
template <int Rows, int Vectors>
HWY_NOINLINE void sum_channels(const float* filters, std::int64_t channels, const float* tiles,
                               float* c, bool add) {
  constexpr int columns = panel_columns<float>;
  RegisterTile<Rows, Vectors, float> tile;
  add ? tile.load(c, columns) : tile.clear();
  for (std::int64_t q = 0; q < channels; ++q, filters += Rows, tiles += columns) {
    tile.add(tiles, [&](int i) { return filters[i]; });
  }
  tile.store(c, columns);
}

/// Tiles of a layer of 3 x 3 filters, stride and dilation 1, f32, of images of two dimensions, and
/// their transforms. Transform has `pixels`, M, and functions on vectors of tiles: filter(),
/// input(), output(), load() and store().
///
/// A panel is 64 tiles, of any rows and images, so that its vectors are full. The stride from
/// position to position of its transformed tiles and sums is padded by one cache line: with powers
/// of two, 36 positions would share one set of L1 and of L2.
template <class Transform>
class WinogradTiles {
 public:
  explicit WinogradTiles(const Gathered& g)
      : layer(g),
        tiles_down(ceil_div(g.axis[1].places, pixels)),
        tiles_across(ceil_div(g.axis[2].places, pixels)),
        panels(ceil_div(g.images * tiles_down * tiles_across, columns)),
        filter_place(round_up(g.m * g.q, 16) + a_line),
        tile_place(g.q * columns + a_line) {}

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<float>({layer.groups, area, filter_place});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return conv_layer::bytes_of<float>({area, tile_place + sum_place});
  }

  using V = WinogradVector;
  static constexpr int pixels = Transform::pixels;
  static constexpr int size = pixels + 2;
  static constexpr int area = size * size;
  static constexpr int lanes = lanes_of<float>;
  static constexpr int columns = panel_columns<float>;
  static constexpr std::int64_t a_line = 16;
  /// Filters per block: a multiple of a tile's rows. Their sums at all positions of a transformed
  /// tile stay in L2.
  static constexpr std::int64_t filters_a_time = 524288 / 4 / (area * columns * 6) * 6;
  static constexpr std::int64_t sum_place = filters_a_time * columns + a_line;
  /// Channels per block: their transformed tiles, at one position, stay in L1 beside the weights.
  static constexpr std::int64_t channels_a_time = 32768 / 4 / columns;
  static constexpr int line_length = columns * pixels;

  /// Part of a panel: tiles that are neighbors in one row of tiles of one image.
  struct TileRun {
    std::int64_t n, down, across;
    int column, count;
  };
  struct Panel {
    std::int64_t group;
    int count;
    int run_count = 0;
    TileRun runs[columns];
  };
  [[nodiscard]] Panel panel_of(std::int64_t index) const {
    const std::int64_t first = index % panels * columns;
    Panel panel;
    panel.group = index / panels;
    panel.count = static_cast<int>(
        std::min<std::int64_t>(columns, layer.images * tiles_down * tiles_across - first));
    for (int column = 0; column < panel.count;) {
      TileRun& run = panel.runs[panel.run_count++];
      const std::int64_t tile = first + column;
      run.across = tile % tiles_across;
      run.down = tile / tiles_across % tiles_down;
      run.n = tile / tiles_across / tiles_down;
      run.column = column;
      run.count =
          static_cast<int>(std::min<std::int64_t>(panel.count - column, tiles_across - run.across));
      column += run.count;
    }
    return panel;
  }

  /// Transforms up to six filters from `first` on: [group][place][six][channel][filter].
  HWY_NOINLINE void transform_filters(std::int64_t group, std::int64_t first,
                                      float* filters) const {
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, layer.m - first);
    const auto* w =
        static_cast<const float*>(layer.w) + group * layer.w_group + first * layer.w_strides[0];
    float* to = filters + group * area * filter_place + first * layer.q;
    const WinogradTag d;
    std::int64_t q = 0;
    std::int64_t filter = 0;
    for (std::int64_t at = 0; at < rows * layer.q; at += lanes, to += lanes) {
      alignas(64) float taps[9][lanes] = {};
      const auto some = static_cast<int>(std::min<std::int64_t>(lanes, rows * layer.q - at));
      for (int lane = 0; lane < some; ++lane) {
        const float* from = w + filter * layer.w_strides[0] + q * layer.w_strides[1];
        for (int k = 0; k < 3; ++k) {
          for (int l = 0; l < 3; ++l) {
            taps[k * 3 + l][lane] = from[k * layer.w_strides[3] + l * layer.w_strides[4]];
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
          store_as_n(made[j], d, to + (i * size + j) * filter_place,
                     static_cast<std::size_t>(some));
        }
      }
    }
  }

  /// Rows of a panel's tiles: `first` has the first M elements of each tile in a row, `next` the
  /// two that follow. Elements that belong to no tile, in the last vector and in `next`, must be
  /// finite.
  struct Lines {
    alignas(64) float first[size][line_length];
    alignas(64) float next[size][line_length];
  };

  /// Transforms channel q of a panel: tiles[place][channel][column].
  HWY_NOINLINE void transform_input(const Panel& panel, std::int64_t q, Lines& lines,
                                    float* tiles) const {
    for (int r = 0; r < panel.run_count; ++r) {
      const TileRun& run = panel.runs[r];
      const float* plane = static_cast<const float*>(layer.x) +
                           (panel.group * layer.q + q) * layer.x_strides[1] +
                           run.n * layer.x_strides[0];
      for (int i = 0; i < size; ++i) {
        const std::int64_t h = run.down * pixels + layer.axis[1].start + i;
        const float* row =
            h < 0 || h >= layer.axis[1].extent ? nullptr : plane + h * layer.x_strides[3];
        const std::int64_t o = run.across * pixels;
        gather_run(layer.axis[2], row, layer.x_strides[4], o, 0, run.count * pixels,
                   lines.first[i] + run.column * pixels);
        gather_run(layer.axis[2], row, layer.x_strides[4], o + pixels, 0,
                   (run.count - 1) * pixels + 2, lines.next[i] + run.column * pixels);
      }
    }
    const WinogradTag d;
    for (int first = 0; first < panel.count; first += lanes) {
      V rows[size][size];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        V loaded[size];
        Transform::load(lines.first[i] + first * pixels, lines.next[i] + first * pixels, loaded);
        Transform::input(loaded, rows[i]);
      }
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) {
        V column[size], made[size];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::input(column, made);
        float* to = tiles + j * tile_place + q * columns + first;
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i, to += size * tile_place) hn::StoreU(made[i], d, to);
      }
    }
  }

  /// Transforms sums[place][filter][column] of filter m of a group, and stores them to y.
  HWY_NOINLINE void transform_output(const Panel& panel, std::int64_t m, const float* sums) const {
    const std::int64_t k = panel.group * layer.m + m;
    float* const y = static_cast<float*>(layer.y) + k * layer.y_strides[1];
    float bias;
    copy_bias<float, float>(layer, k, 1, &bias);
    alignas(64) float lines[pixels][line_length];
    const WinogradTag d;
    for (int first = 0; first < panel.count; first += lanes) {
      V rows[size][pixels];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        V loaded[size];
#pragma GCC unroll 6
        for (int j = 0; j < size; ++j) {
          loaded[j] = hn::LoadU(d, sums + (i * size + j) * sum_place + first);
        }
        Transform::output(loaded, rows[i]);
      }
      V made[pixels][pixels];
#pragma GCC unroll 6
      for (int j = 0; j < pixels; ++j) {
        V column[size], to[pixels];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) column[i] = rows[i][j];
        Transform::output(column, to);
#pragma GCC unroll 6
        for (int i = 0; i < pixels; ++i) made[i][j] = hn::Add(to[i], hn::Set(d, bias));
      }
#pragma GCC unroll 6
      for (int i = 0; i < pixels; ++i) Transform::store(made[i], lines[i] + first * pixels);
    }
    const auto used = static_cast<int>(round_up(panel.count, lanes)) * pixels;
    for (int i = 0; i < pixels; ++i) activate(layer.activation, lines[i], used);
    for (int r = 0; r < panel.run_count; ++r) {
      const TileRun& run = panel.runs[r];
      const std::int64_t width =
          std::min(std::int64_t{run.count} * pixels, layer.axis[2].places - run.across * pixels);
      float* to = y + run.n * layer.y_strides[0] + run.down * pixels * layer.y_strides[3] +
                  run.across * pixels * layer.y_strides[4];
      for (int i = 0; i < pixels && run.down * pixels + i < layer.axis[1].places; ++i) {
        store_strided(lines[i] + run.column * pixels, to + i * layer.y_strides[3],
                      layer.y_strides[4], static_cast<int>(width));
      }
    }
  }

  const Gathered& layer;
  std::int64_t tiles_down;
  std::int64_t tiles_across;
  std::int64_t panels;
  std::int64_t filter_place;  // elements from position to position
  std::int64_t tile_place;
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
