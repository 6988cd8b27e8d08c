// SPDX-License-Identifier: Apache-2.0
// conv / Winograd F(4x4, 3x3)
//
// Idea     A larger tile: 4 x 4 pixels take 144 multiplications directly, 36 as transformed tiles
//          of 6 x 6.
// Changes  Against winograd_2: 4 times fewer multiplications than direct_simd, instead of 2.25.
// Cost     Transforms multiply by 4, 5, 8 and divide by 24; the transformed x has 2.25 times the
//          size of x.
// Limits   As winograd_2; the interpolation points -2 and 2 make the error larger: the worst case
//          is (C/G + 24) u 3000 sum of max |w| max |x|; in practice some four bits are lost.
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
struct Transform4 {
  using V = WinogradVector;
  static constexpr int pixels = 4, size = 6;
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
    // 14 two-vector permutations; LoadInterleaved4 takes twice as many.
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

struct Winograd4 : WinogradTiles<Transform4> {
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

void winograd_4(const Gathered& g, Context& context, int threads) {
  run_layer(Winograd4(g), context, threads);
}
}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(winograd_4);
}

namespace {

Work work(const Conv::Args& args, const Context& context) {
  return conv_cpu::winograd_facts(args, 4, context.threads());
}

void run(const Conv::Args& args, Context& context) {
  using namespace conv_cpu;
  HWY_DYNAMIC_DISPATCH(winograd_4)(conv_layer::forward(args), context, context.threads());
}

const Rung<Conv> self{{.name = "winograd_4",
                       .after = "winograd_2",
                       .supports = conv_cpu::takes_winograd,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
