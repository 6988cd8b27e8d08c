// SPDX-License-Identifier: Apache-2.0
// conv / Winograd F(2x2, 3x3)
//
// Idea     A tile of 2 x 2 pixels of a 3 x 3 filter takes 36 multiplications. Transformed (tiles of
//          x by additions, filters by additions and halvings) it takes 16: one per element of a
//          tile of 4 x 4. For each of the 16 positions, the sum over channels is a matrix product.
// Changes  Against direct_simd: 2.25 times fewer multiplications. All threads.
// Cost     The transformed x has four times the size of x; 32 additions per tile and channel, 24
//          per filter.
// Limits   f32, 3 x 3, stride and dilation 1, two dimensions, and only with the option `winograd`:
//          cancellation gives |error| <= (C/G + 24) u 64 sum of max |w| max |x|; in practice one
//          bit is lost.
// Source   S. Winograd, Arithmetic complexity of computations, 1980; A. Lavin & S. Gray, Fast
//          algorithms for convolutional neural networks, 2015.
#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/conv/cpu/detail/winograd-inl.hpp"
#include "rung/ops/conv/cpu/detail/winograd.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {

/// One-dimensional transforms of vectors of tiles.
struct Transform2 {
  using V = WinogradVector;
  static constexpr int pixels = 2, size = 4;
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
  /// Loads elements j of a row of a vector of tiles: each tile's first two from `line`, the other
  /// two, which overlap the next tile, from `next`.
  static HWY_INLINE void load(const float* line, const float* next, V (&to)[size]) {
    const WinogradTag d;
    hn::LoadInterleaved2(d, line, to[0], to[1]);
    hn::LoadInterleaved2(d, next, to[2], to[3]);
  }
  static HWY_INLINE void store(const V (&from)[2], float* line) {
    hn::StoreInterleaved2(from[0], from[1], WinogradTag(), line);
  }
};

struct Winograd2 : WinogradTiles<Transform2> {
  using WinogradTiles::WinogradTiles;

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    auto* const filters = reinterpret_cast<float*>(shared);
    const std::int64_t sixes = ceil_div(layer.m, std::int64_t{tile_rows});
    const cpu::Range packing = team.share(layer.groups * sixes);
    for (std::int64_t i = packing.begin; i < packing.end; ++i) {
      transform_filters(i / sixes, i % sixes * tile_rows, filters);
    }
    team.wait();
    auto* const tiles = reinterpret_cast<float*>(own);
    const cpu::Range share = team.share(layer.groups * panels);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const Panel panel = panel_of(i);
      Lines lines{};
      for (std::int64_t q = 0; q < layer.q; ++q) transform_input(panel, q, lines, tiles);
      multiply(panel, filters + panel.group * area * filter_place, tiles,
               tiles + area * tile_place);
    }
  }

  /// Multiplies filters by tiles, summed over channels, at each position of the transformed tiles.
  void multiply(const Panel& panel, const float* filters, const float* tiles, float* sums) const {
    for (std::int64_t m = 0; m < layer.m; m += filters_a_time) {
      const std::int64_t some = std::min(filters_a_time, layer.m - m);
      for (int place = 0; place < area; ++place) {
        const float* const w = filters + place * filter_place + m * layer.q;
        const float* const x = tiles + place * tile_place;
        for (std::int64_t q = 0; q == 0 || q < layer.q; q += channels_a_time) {
          const std::int64_t channels = std::min(channels_a_time, layer.q - q);
          for (std::int64_t i = 0; i < some; i += tile_rows) {
            const auto left = static_cast<int>(std::min<std::int64_t>(tile_rows, some - i));
            with_tile<float>(left, panel.count, [&](auto rows, auto vectors) {
              sum_channels<rows, vectors>(w + i * layer.q + q * rows, channels, x + q * columns,
                                          sums + place * sum_place + i * columns, q != 0);
            });
          }
        }
      }
      for (std::int64_t i = 0; i < some; ++i) transform_output(panel, m + i, sums + i * columns);
    }
  }
};

}  // namespace

void winograd_2(const Gathered& g, Context& context, int threads) {
  run_layer(Winograd2(g), context, threads);
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(winograd_2);
}

namespace {

Work work(const Conv::Args& args, const Context& context) {
  return conv_cpu::winograd_facts(args, 2, context.threads());
}

void run(const Conv::Args& args, Context& context) {
  using namespace conv_cpu;
  HWY_DYNAMIC_DISPATCH(winograd_2)(conv_layer::forward(args), context, context.threads());
}

const Rung<Conv> self{{.name = "winograd_2",
                       .after = "direct_simd",
                       .supports = conv_cpu::takes_winograd,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
