// SPDX-License-Identifier: Apache-2.0
// stencil / simd
//
// Idea     Register tile: the sums of four rows of four vectors (AVX2: two) stay in registers
//          across all taps; a load of x serves four rows of y, a load of a weight four vectors.
//          Rows of x are read in place where all taps are inside the array; other rows are first
//          converted to lines of the type of the sums, with their edges filled in. A ring buffer
//          keeps the lines under the masks.
// Changes  Against tiled: no sum is loaded or stored between taps, and four rows share each load:
//          5x and more. Every type, edge and stride; separable masks are summed along the row when
//          a line is converted, masks of several planes one band of rows at a time, whose lines
//          stay in L2. Results that exceed the caches are written by non-temporal stores.
// Cost     K multiply-adds per element for a mask of K elements, m + n for a separable m x n mask;
//          16 f32 per instruction with AVX-512. x loaded once (and the rows around each band of 128
//          once more), y stored once.
// Limits   Every valid call; one thread. A separable mask of three axes needs a second pass over
//          memory. Every tap along a row is an unaligned load.
#include <algorithm>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/stencil/cpu/detail/passes.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::stencil_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// --- register tile -------------------------------------------------------------------------------

/// Arguments of one block of weighted sums: `rows` adjacent rows of results, 1 or block_rows.
///   out[q][j] = scale * sum of weights[(k * down + i) * across + t] * line(k, q + i)[j + t]
/// over planes k, rows i and taps t of the mask; line(k, r) is lines[k * (down + rows - 1) + r].
template <class T>
struct Weighing {
  const T* const* lines;
  int planes, down, across;  // the mask's extents
  const T* weights;
  T scale;
  T* const* out;
  std::int64_t length;
  bool streams;
};

/// Vectors per row of sums in the main loop. Sums of block_rows rows, the loaded elements and one
/// weight fill the register file.
constexpr int row_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <class T>
using Vector = hn::Vec<hn::ScalableTag<T>>;

/// Four adjacent vectors. Named members: GCC keeps an array in memory here.
template <class T>
struct Four {
  Vector<T> a, b, c, d;
};
template <class T>
struct Sums {
  Four<T> row0, row1, row2, row3;
};

/// Forces one load of `v` for all of its uses: GCC would repeat the load as a memory operand of
/// each.
template <class V>
HWY_INLINE void load_once([[maybe_unused]] V& v) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("" : "+v"(v.raw));
#endif
}

template <int vectors, class T>
HWY_INLINE void load_row(const T* from, Four<T>& x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [&](int i) HWY_ATTR {
    auto v = hn::LoadU(d, from + i * lanes);
    load_once(v);
    return v;
  };
  x.a = load(0);
  if constexpr (vectors > 1) x.b = load(1);
  if constexpr (vectors > 2) x.c = load(2);
  if constexpr (vectors > 2) x.d = load(3);
}

template <int vectors, class T>
HWY_INLINE void add_row(T weight, const Four<T>& x, Four<T>& sum) {
  const auto w = hn::Set(hn::ScalableTag<T>(), weight);
  sum.a = hn::MulAdd(w, x.a, sum.a);
  if constexpr (vectors > 1) sum.b = hn::MulAdd(w, x.b, sum.b);
  if constexpr (vectors > 2) sum.c = hn::MulAdd(w, x.c, sum.c);
  if constexpr (vectors > 2) sum.d = hn::MulAdd(w, x.d, sum.d);
}

template <int vectors, class T>
HWY_INLINE void store_row(const Four<T>& sum, T scale, T* out, bool streams) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  const auto store = [&](Vector<T> v, int i) HWY_ATTR {
    if (streams) {
      hn::Stream(hn::Mul(v, s), d, out + i * lanes);
    } else {
      hn::StoreU(hn::Mul(v, s), d, out + i * lanes);
    }
  };
  store(sum.a, 0);
  if constexpr (vectors > 1) store(sum.b, 1);
  if constexpr (vectors > 2) store(sum.c, 2);
  if constexpr (vectors > 2) store(sum.d, 3);
}

/// Adds the taps of one line to the sums of rows `first` to `last`. Row q uses `across` weights
/// from weights[-q * across] on.
template <int first, int last, int vectors, class T>
HWY_INLINE void weigh_line(const T* from, const T* weights, int across, Sums<T>& sums) {
  for (int tap = 0; tap < across; ++tap, ++from, ++weights) {
    Four<T> x;
    load_row<vectors>(from, x);
    if constexpr (first <= 0) add_row<vectors>(weights[0], x, sums.row0);
    if constexpr (first <= 1 && last >= 1) add_row<vectors>(weights[-across], x, sums.row1);
    if constexpr (first <= 2 && last >= 2) add_row<vectors>(weights[-2 * across], x, sums.row2);
    if constexpr (last >= 3) add_row<vectors>(weights[-3 * across], x, sums.row3);
  }
}

/// Adds line r of the lines under the masks of four rows to the sums of the rows whose mask
/// contains it.
template <int vectors, class T>
HWY_INLINE void weigh_line_of(int r, int down, const T* from, const T* weights, int across,
                              Sums<T>& sums) {
  const int first = std::max(0, r - down + 1);
  switch (first * 4 + std::min(r, 3)) {
    case 0 * 4 + 0:
      return weigh_line<0, 0, vectors>(from, weights, across, sums);
    case 0 * 4 + 1:
      return weigh_line<0, 1, vectors>(from, weights, across, sums);
    case 0 * 4 + 2:
      return weigh_line<0, 2, vectors>(from, weights, across, sums);
    case 0 * 4 + 3:
      return weigh_line<0, 3, vectors>(from, weights, across, sums);
    case 1 * 4 + 1:
      return weigh_line<1, 1, vectors>(from, weights, across, sums);
    case 1 * 4 + 2:
      return weigh_line<1, 2, vectors>(from, weights, across, sums);
    case 1 * 4 + 3:
      return weigh_line<1, 3, vectors>(from, weights, across, sums);
    case 2 * 4 + 2:
      return weigh_line<2, 2, vectors>(from, weights, across, sums);
    case 2 * 4 + 3:
      return weigh_line<2, 3, vectors>(from, weights, across, sums);
    default:
      return weigh_line<3, 3, vectors>(from, weights, across, sums);
  }
}

/// Computes the results from column j on: `vectors` vectors, or, with one vector, its first `valid`
/// lanes.
template <class T, int rows, int vectors>
HWY_INLINE void weigh_columns(const Weighing<T>& w, std::int64_t j, std::int64_t valid) {
  const hn::ScalableTag<T> d;
  const auto zero = hn::Zero(d);
  const Four<T> none{zero, zero, zero, zero};
  Sums<T> sums{none, none, none, none};
  const T* const* line = w.lines;
  const T* weights = w.weights;
  for (int k = 0; k < w.planes; ++k, weights += w.down * w.across) {
    for (int r = 0; r < w.down + rows - 1; ++r, ++line) {
      if constexpr (rows == 1) {
        weigh_line<0, 0, vectors>(*line + j, weights + r * w.across, w.across, sums);
      } else {
        weigh_line_of<vectors>(r, w.down, *line + j, weights + r * w.across, w.across, sums);
      }
    }
  }
  if (valid < static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto store = [&](const Four<T>& sum, int q) HWY_ATTR {
      cpu::HWY_NAMESPACE::store_as_n(hn::Mul(sum.a, hn::Set(d, w.scale)), d, w.out[q] + j,
                                     static_cast<std::size_t>(valid));
    };
    store(sums.row0, 0);
    if constexpr (rows > 1) {
      store(sums.row1, 1);
      store(sums.row2, 2);
      store(sums.row3, 3);
    }
    return;
  }
  store_row<vectors>(sums.row0, w.scale, w.out[0] + j, w.streams);
  if constexpr (rows > 1) {
    store_row<vectors>(sums.row1, w.scale, w.out[1] + j, w.streams);
    store_row<vectors>(sums.row2, w.scale, w.out[2] + j, w.streams);
    store_row<vectors>(sums.row3, w.scale, w.out[3] + j, w.streams);
  }
}

template <class T, int rows, int vectors>
HWY_NOINLINE void weigh(const Weighing<T>& w) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t j = 0;
  for (; j + vectors * lanes <= w.length; j += vectors * lanes) {
    weigh_columns<T, rows, vectors>(w, j, lanes);
  }
  for (; j < w.length; j += lanes) weigh_columns<T, rows, 1>(w, j, w.length - j);
}

// --- rows and planes -----------------------------------------------------------------------------

/// Computes the tiles of one pass on one thread.
template <class S>
class MaskedSums {
 public:
  MaskedSums(const Args& args, S* scratch)
      : args_(args),
        lines_(args, scratch),
        spare_(scratch + Lines<S>::buffers() * lines_.length),
        ring_(spare_ + lines_.length),
        weights_(scratch + scratch_elements<S>(args) -
                 std::max(args.taps(), args.rows().taps + args.columns().taps)) {
    copy_weights();
  }

  void run(cpu::Range range) {
    for (std::int64_t tile = range.begin; tile < range.end; ++tile) {
      lines_.for_each_segment(tile, [&]() HWY_ATTR { args_.depth().taps > 1 ? planes() : rows(); });
    }
    lines_.finish();
  }

 private:
  /// Computes the rows of a tile of one plane. Each line is converted when the first mask reaches
  /// it.
  void rows() {
    const std::int64_t plane = lines_.first_plane;
    const int taps = args_.rows().taps;
    const std::int64_t held = taps + block_rows - 1;
    std::int64_t made = 0;
    for (std::int64_t row = 0; row < lines_.rows; row += block_of(row)) {
      for (; made < row + taps + block_of(row) - 1; ++made) {
        const std::int64_t at = made % held;
        found_[at] = make(plane, lines_.first_row + made - args_.rows().origin, at);
      }
      block(plane, row, [&](int, int i) { return found_[(row + i) % held]; });
    }
  }

  /// Computes a band of rows, plane by plane: each line is converted once for all planes.
  void planes() {
    const int depth = args_.depth().taps;
    const std::int64_t under = lines_.rows + args_.rows().taps - 1;
    std::int64_t made = 0;
    for (std::int64_t plane = 0; plane < lines_.planes; ++plane) {
      for (; made < plane + depth; ++made) {
        for (std::int64_t i = 0; i < under; ++i) {
          const std::int64_t at = made % depth * under + i;
          found_[at] = make(lines_.first_plane + made - args_.depth().origin,
                            lines_.first_row + i - args_.rows().origin, at);
        }
      }
      for (std::int64_t row = 0; row < lines_.rows; row += block_of(row)) {
        block(lines_.first_plane + plane, row,
              [&](int k, int i) { return found_[(plane + k) % depth * under + row + i]; });
      }
    }
  }

  /// Returns the number of rows computed together from `row` of the tile on: block_rows or 1.
  [[nodiscard]] int block_of(std::int64_t row) const {
    return lines_.rows - row >= block_rows ? block_rows : 1;
  }

  /// Computes a block of rows of y. line(k, i) returns line i under the masks in plane k.
  template <class Line>
  void block(std::int64_t plane, std::int64_t row, const Line& line) {
    const int rows = block_of(row);
    const int under = args_.rows().taps + rows - 1;
    const S* lines[Stencil::max_taps * (Stencil::max_taps + block_rows - 1)];
    for (int k = 0; k < args_.depth().taps; ++k) {
      for (int i = 0; i < under; ++i) lines[k * under + i] = line(k, i);
    }
    S* out[block_rows];
    const std::int64_t first = lines_.first_row + row;
    for (int q = 0; q < rows; ++q) out[q] = lines_.result(plane, first + q, q);
    const Weighing<S> weighing{.lines = lines,
                               .planes = args_.depth().taps,
                               .down = args_.rows().taps,
                               .across = args_.is_separable() ? 1 : args_.columns().taps,
                               .weights = weights_,
                               .scale = static_cast<S>(args_.scale),
                               .out = out,
                               .length = lines_.columns,
                               .streams = lines_.streams};
    rows == 1 ? weigh<S, 1, 4>(weighing) : weigh<S, block_rows, row_vectors>(weighing);
    for (int q = 0; q < rows; ++q) lines_.store(plane, first + q, q);
  }

  /// Returns a line of x, summed along the row if the mask is separable.
  const S* make(std::int64_t plane, std::int64_t row, std::int64_t slot) {
    S* out = ring_ + slot * lines_.length;
    if (!args_.is_separable() ||
        (args_.weights == Stencil::Weights::ones && args_.columns().taps == 1)) {
      return lines_.load(plane, row, out);
    }
    const S* const line = lines_.load(plane, row, spare_);
    weigh<S, 1, 4>({.lines = &line,
                    .planes = 1,
                    .down = 1,
                    .across = args_.columns().taps,
                    .weights = weights_ + args_.rows().taps,
                    .scale = S(1),
                    .out = &out,
                    .length = lines_.columns,
                    .streams = false});
    return out;
  }

  /// Copies the mask in C order, or the vectors `down`, then `across`.
  void copy_weights() {
    if (args_.weights == Stencil::Weights::mask) {
      const auto mask = args_.mask.view<const S, 3>();
      S* to = weights_;
      for (int k = 0; k < args_.depth().taps; ++k) {
        for (int i = 0; i < args_.rows().taps; ++i) {
          for (int j = 0; j < args_.columns().taps; ++j) *to++ = mask(k, i, j);
        }
      }
      return;
    }
    const auto copy = [](const ConstTensorRef& from, int taps, S* to) {
      const auto* data = static_cast<const S*>(from.data);
      for (int i = 0; i < taps; ++i) to[i] = data == nullptr ? S(1) : data[i * from.strides[0]];
    };
    copy(args_.down, args_.rows().taps, weights_);
    copy(args_.across, args_.columns().taps, weights_ + args_.rows().taps);
    if (args_.through.data != nullptr) {  // one element: more would be a separate pass
      const S factor = *static_cast<const S*>(args_.through.data);
      for (int i = 0; i < args_.rows().taps; ++i) weights_[i] *= factor;
    }
  }

  const Args& args_;
  Lines<S> lines_;
  S* spare_;
  S* ring_;
  S* weights_;
  const S* found_[Stencil::max_taps * (Stencil::max_taps + max_band_of_planes - 1)];
};

void weigh_f32(const Args& pass, cpu::Range tiles, float* scratch) {
  MaskedSums<float>(pass, scratch).run(tiles);
}
void weigh_f64(const Args& pass, cpu::Range tiles, double* scratch) {
  MaskedSums<double>(pass, scratch).run(tiles);
}

}  // namespace rung::stencil_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace stencil_cpu {
HWY_EXPORT(weigh_f32);
HWY_EXPORT(weigh_f64);
void weigh_tiles(const Args& pass, cpu::Range tiles, float* scratch) {
  HWY_DYNAMIC_DISPATCH(weigh_f32)(pass, tiles, scratch);
}
void weigh_tiles(const Args& pass, cpu::Range tiles, double* scratch) {
  HWY_DYNAMIC_DISPATCH(weigh_f64)(pass, tiles, scratch);
}
}  // namespace stencil_cpu

namespace {

void run(const Stencil::Args& args, Context& context) {
  using namespace stencil_cpu;
  for_each_pass(args, context, 1, []<class S>(const Args& pass, S* scratch) {
    weigh_tiles(pass, {0, tiles_of<S>(pass).count()}, scratch);
  });
}

const Rung<Stencil> self{
    {.name = "simd", .step = 40, .after = "tiled", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
#endif
