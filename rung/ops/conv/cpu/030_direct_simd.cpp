// SPDX-License-Identifier: Apache-2.0
// conv / direct SIMD
//
// Idea     A matrix product whose second matrix is never stored as a whole: the elements of x that
//          64 pixels need for some 128 terms are gathered into L1, and all filters use them from
//          L1; six filters by four vectors of pixels are summed in registers. With channels last
//          the pixels are the rows, read in place, and panels hold packed weights.
// Changes  Against im2col_gemm: no unrolled matrix of kh kw times x in memory; sums stay in
//          registers; supports every type, stride, group count and layout.
// Cost     24 multiply-adds per 4 loads and 6 broadcasts; x is gathered once per 512 filters. The
//          unused columns of a partial panel are computed too.
// Limits   None; one thread. Layers of one filter per group leave 5 of the 6 rows of a register
//          tile empty.
// Source   K. Chellapilla, S. Puri & P. Simard, High performance convolutional neural networks for
//          document processing, 2006 (im2col); S. Chetlur et al., cuDNN, 2014 (its implicit form).
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace {

/// Computes c[i][j] (+)= sum over terms k of row[i][k] panel[k][j].
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_terms(const T* const* row, std::int64_t terms, const T* panel, T* c,
                            bool add) {
  constexpr int columns = panel_columns<T>;
  RegisterTile<Rows, Vectors, T> tile;
  const T* from[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) from[i] = row[i];
  add ? tile.load(c, columns) : tile.clear();
  for (std::int64_t k = 0; k < terms; ++k, panel += columns) {
    tile.add(panel, [&](int i) { return from[i][k]; });
  }
  tile.store(c, columns);
}

/// Multiplies any number of rows by a panel, six at a time; row(i) returns the start of row i.
template <class T, class Row>
void multiply(std::int64_t rows, int used, std::int64_t terms, const T* panel, T* c, bool add,
              const Row& row) {
  for (std::int64_t first = 0; first < rows; first += tile_rows) {
    const int some = static_cast<int>(std::min<std::int64_t>(tile_rows, rows - first));
    const T* from[tile_rows];
    for (int i = 0; i < some; ++i) from[i] = row(first + i);
    with_tile<T>(some, used, [&](auto height, auto vectors) {
      sum_terms<height, vectors>(from, terms, panel, c + first * panel_columns<T>, add);
    });
  }
}

/// Maximum number of terms of a panel: a panel of 32 KiB stays in L1 beside the rows.
template <class T>
constexpr std::int64_t max_chunk = 32768 / static_cast<std::int64_t>(panel_columns<T> * sizeof(T));

/// Algorithm for channels first. A panel is terms by pixels, gathered; rows are filters, whose
/// weights are read in place if a filter's terms are contiguous in w.
template <class T, class In>
class PixelColumns {
 public:
  PixelColumns(const Gathered& g, int threads)
      : g_(g),
        in_place_(std::is_same_v<T, In> && weights_contiguous(g)),
        chunk_(even_chunk(g.terms(), max_chunk<T>)),
        panels_(ceil_div(g.pixels(), std::int64_t{columns})) {
    // A gathered panel serves up to 512 filters of a group. With fewer than two panels per thread
    // the filters are split into more blocks, which gather the panel again, for parallelism.
    constexpr std::int64_t max_filters = 512;  // filters; their sums stay in L2
    std::int64_t blocks = ceil_div(g.m, max_filters);
    const std::int64_t wanted = ceil_div(std::int64_t{threads} * 2, panels_ * g.groups);
    blocks = std::max(blocks, std::min(wanted, ceil_div(g.m, std::int64_t{tile_rows})));
    block_ = round_up(ceil_div(g.m, blocks), std::int64_t{tile_rows});
    blocks_ = ceil_div(g.m, block_);
  }

  [[nodiscard]] std::size_t shared_bytes() const {
    if (in_place_) return 0;
    return conv_layer::bytes_of<T>({round_up(g_.groups * g_.m * g_.terms(), 64)});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return static_cast<std::size_t>((chunk_ + block_) * columns) * sizeof(T);
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const packed = reinterpret_cast<T*>(shared);
    if (!in_place_) {
      const cpu::Range share = team.share(g_.groups * g_.m);
      for (std::int64_t row = share.begin; row < share.end; ++row) {
        const In* from =
            static_cast<const In*>(g_.w) + row / g_.m * g_.w_group + row % g_.m * g_.w_strides[0];
        pack_filters(g_, from, 1, packed + row * g_.terms());
      }
      team.wait();
    }
    const cpu::Range share = team.share(g_.groups * panels_ * blocks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      make(task / blocks_ / panels_, task / blocks_ % panels_ * columns, task % blocks_ * block_,
           packed, reinterpret_cast<T*>(own));
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;

  static bool weights_contiguous(const Gathered& g) {
    std::int64_t expected = 1;
    const std::int64_t extents[] = {g.q, g.axis[0].kernel, g.axis[1].kernel, g.axis[2].kernel};
    for (int axis = 3; axis >= 0; --axis) {
      if (extents[axis] != 1 && g.w_strides[1 + axis] != expected) return false;
      expected *= extents[axis];
    }
    return true;
  }

  /// Computes a panel of pixels from `pixel` on, for filters from `first` on.
  void make(std::int64_t group, std::int64_t pixel, std::int64_t first, const T* packed,
            T* panel) const {
    T* const sums = panel + chunk_ * columns;
    const std::int64_t filters = std::min(block_, g_.m - first);
    Run runs[columns];
    const int count = static_cast<int>(std::min<std::int64_t>(columns, g_.pixels() - pixel));
    const int run_count = runs_of(g_, pixel, count, runs);
    // Lanes beyond the last pixel must be finite, although their sums are never read.
    const int used = static_cast<int>(round_up(count, lanes_of<T>));
    if (used != count) {
      std::memset(panel, 0, static_cast<std::size_t>(chunk_ * columns) * sizeof(T));
    }
    const In* image = static_cast<const In*>(g_.x) + group * g_.q * g_.x_strides[1];
    const T* weights = packed + (group * g_.m + first) * g_.terms();
    std::int64_t row_step = g_.terms();
    if constexpr (std::is_same_v<T, In>) {
      if (in_place_) {
        row_step = g_.w_strides[0];
        weights = static_cast<const T*>(g_.w) + group * g_.w_group + first * row_step;
      }
    }
    for (std::int64_t term = 0; term == 0 || term < g_.terms(); term += chunk_) {
      const std::int64_t terms = std::min(chunk_, g_.terms() - term);
      gather_terms<T>(g_, image, runs, run_count, term, terms, panel, columns);
      multiply(filters, count, terms, panel, sums, term != 0,
               [&](std::int64_t i) { return weights + i * row_step + term; });
    }
    write_filters<T, In>(g_, group * g_.m + first, filters, runs, run_count, used, sums);
  }

  const Gathered& g_;
  bool in_place_;
  std::int64_t chunk_;
  std::int64_t panels_;
  std::int64_t block_;  // filters per block
  std::int64_t blocks_;
};

/// Algorithm for channels last. A panel is terms by 64 filters, packed once; rows are pixels, whose
/// channels are contiguous in place. If a group has few channels or the type is smaller than T, the
/// terms of 48 pixels are gathered first.
template <class T, class In>
class ChannelColumns {
 public:
  explicit ChannelColumns(const Gathered& g)
      : g_(g),
        direct_(std::is_same_v<T, In> && g.x_strides[1] == 1 && g.q >= few_channels),
        chunk_(even_chunk(direct_ ? g.q : g.terms(), max_chunk<T>)),
        strips_(ceil_div(g.pixels(), strip)),
        blocks_(ceil_div(g.m, std::int64_t{columns})),
        lines_(g.x_strides[1] == 1 && g.x_strides[4] == g.q && g.axis[2].between == 1 &&
               g.axis[2].divisor == 1),
        inside_(inside(g.axis[2])) {}

  [[nodiscard]] std::size_t shared_bytes() const {
    return conv_layer::bytes_of<T>({g_.groups, blocks_, g_.terms(), columns});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return static_cast<std::size_t>(rows_length() + strip * columns) * sizeof(T);
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const packed = reinterpret_cast<T*>(shared);
    const std::int64_t panel = g_.terms() * columns;
    const cpu::Range panels = team.share(g_.groups * blocks_);
    for (std::int64_t i = panels.begin; i < panels.end; ++i) pack(i, packed + i * panel);
    T* const rows = reinterpret_cast<T*>(own);
    if (direct_) std::fill(rows, rows + chunk_, T{0});  // zeros, read by taps in the padding
    team.wait();
    const cpu::Range share = team.share(g_.groups * strips_ * blocks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t group = task / blocks_ / strips_, block = task % blocks_;
      make(group, block, task / blocks_ % strips_ * strip,
           packed + (group * blocks_ + block) * panel, rows, rows + rows_length());
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;
  static constexpr std::int64_t strip = 48;  // pixels; their sums stay in L2 beside the panel
  /// Minimum number of channels for reading rows in place: with fewer, row pointers change too
  /// often.
  static constexpr std::int64_t few_channels = 8;

  [[nodiscard]] std::int64_t rows_length() const {
    return round_up(direct_ ? chunk_ : strip * chunk_, 64);
  }

  /// Packs panel `index` as [tap][channel][filter], with zeros beyond the last filter.
  void pack(std::int64_t index, T* to) const {
    const std::int64_t first = index % blocks_ * columns;
    const std::int64_t count = std::min<std::int64_t>(columns, g_.m - first);
    const In* from =
        static_cast<const In*>(g_.w) + index / blocks_ * g_.w_group + first * g_.w_strides[0];
    if (count < columns) std::fill(to, to + g_.terms() * columns, T{0});
    for_each_tap(g_, [&](const auto& t) {
      copy_matrix(from + weight_at(g_, t), g_.w_strides[1], g_.w_strides[0], g_.q, count, to,
                  columns);
      to += g_.q * columns;
    });
  }

  struct Pixel {
    const In* image;
    std::int64_t o[3];
  };
  /// Returns the first channel that a tap of a pixel reads; null if the tap is in the padding.
  [[nodiscard]] const In* tap_of(const Pixel& pixel, const std::int64_t (&t)[3]) const {
    const In* at = pixel.image;
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t from = g_.axis[axis].source(pixel.o[axis], t[axis]);
      if (from < 0) return nullptr;
      at += from * g_.x_strides[2 + axis];
    }
    return at;
  }

  /// Computes 48 pixels from `first` on, for a panel of filters.
  void make(std::int64_t group, std::int64_t block, std::int64_t first, const T* panel, T* rows,
            T* sums) const {
    const std::int64_t count = std::min(strip, g_.pixels() - first);
    const int filters = static_cast<int>(std::min<std::int64_t>(columns, g_.m - block * columns));
    Run run[strip];
    Pixel pixels[strip];
    const int run_count = runs_of(g_, first, static_cast<int>(count), run);
    for (int r = 0; r < run_count; ++r) {
      const In* image = static_cast<const In*>(g_.x) + run[r].n * g_.x_strides[0] +
                        group * g_.q * g_.x_strides[1];
      for (int i = 0; i < run[r].count; ++i) {
        pixels[run[r].column + i] = {image, {run[r].o[0], run[r].o[1], run[r].o[2] + i}};
      }
    }
    if (g_.terms() == 0) std::fill(sums, sums + count * columns, T{0});
    bool add = false;
    if constexpr (std::is_same_v<T, In>) {
      if (direct_) {
        for_each_tap(g_, [&](const auto& t) {
          const T* from[strip];
          for (std::int64_t i = 0; i < count; ++i) from[i] = tap_of(pixels[i], t);
          for (std::int64_t q = 0; q < g_.q; q += chunk_, add = true) {
            const std::int64_t terms = std::min(chunk_, g_.q - q);
            multiply(count, filters, terms, panel, sums, add,
                     [&](std::int64_t i) { return from[i] == nullptr ? rows : from[i] + q; });
            panel += terms * columns;
          }
        });
      }
    }
    for (std::int64_t term = 0; !direct_ && term < g_.terms(); term += chunk_, add = true) {
      const std::int64_t terms = std::min(chunk_, g_.terms() - term);
      for (std::int64_t i = 0; i < count; ++i) gather(pixels[i], term, terms, rows + i * chunk_);
      multiply(count, filters, terms, panel, sums, add,
               [&](std::int64_t i) { return rows + i * chunk_; });
      panel += terms * columns;
    }
    finish(group * g_.m + block * columns, filters, count, sums);
    In* y = static_cast<In*>(g_.y) + (group * g_.m + block * columns) * g_.y_strides[1];
    for (int r = 0; r < run_count; ++r) {
      In* to = y + result_at(g_, run[r].n, run[r].o);
      for (int i = 0; i < run[r].count; ++i, to += g_.y_strides[4]) {
        store_strided(sums + (run[r].column + i) * columns, to, g_.y_strides[1], filters);
      }
    }
  }

  /// Gathers terms [term, term + terms) of a pixel, one tap after another.
  void gather(const Pixel& pixel, std::int64_t term, std::int64_t terms, T* to) const {
    TermIndex at = term_at(g_, term, false);
    const bool lines = lines_ && inside_.begin <= pixel.o[2] && pixel.o[2] < inside_.end;
    while (terms > 0) {
      const In* from = tap_of(pixel, at.t);
      const std::int64_t taps = lines ? g_.axis[2].kernel - at.t[2] : 1;
      const int some = static_cast<int>(std::min(terms, taps * g_.q - at.q));
      if (from == nullptr) {
        std::fill(to, to + some, T{0});
      } else if (some < few_channels) {
        for (int i = 0; i < some; ++i) to[i] = static_cast<T>(from[(at.q + i) * g_.x_strides[1]]);
      } else {
        copy_strided(to, from + at.q * g_.x_strides[1], g_.x_strides[1], some);
      }
      to += some;
      terms -= some;
      at.q = 0;
      at.t[2] += taps - 1;
      next_tap(g_, at.t);
    }
  }

  void finish(std::int64_t filter, int filters, std::int64_t count, T* sums) const {
    const hn::ScalableTag<T> d;
    if (g_.bias == nullptr && g_.activation == Activation::none) return;
    T bias[columns] = {};
    copy_bias<T, In>(g_, filter, filters, bias);
    for (std::int64_t i = 0; i < count; ++i, sums += columns) {
      for (int j = 0; j < filters; j += lanes_of<T>) {
        hn::StoreU(hn::Add(hn::LoadU(d, sums + j), hn::LoadU(d, bias + j)), d, sums + j);
      }
      activate(g_.activation, sums, static_cast<int>(round_up(filters, lanes_of<T>)));
    }
  }

  const Gathered& g_;
  bool direct_;
  std::int64_t chunk_;
  std::int64_t strips_;
  std::int64_t blocks_;
  bool lines_;         // taps of a row, with all their channels, are contiguous
  cpu::Range inside_;  // pixels of a row whose taps are all within the image
};

}  // namespace

void direct_simd(const Gathered& g, Context& context, int threads) {
  visit<float, double, f16, bf16>(g.dtype, [&]<class In>() {
    using T = Accumulator<In>;
    // Packing is rejected if rounding up to whole panels would multiply the weights' memory.
    const auto packed = static_cast<double>(round_up(g.m, panel_columns<T>) * g.groups) *
                        static_cast<double>(g.terms());
    if (channels_are_columns(g) && fits_tensors(g, packed)) {
      run_layer(ChannelColumns<T, In>(g), context, threads);
    } else {
      run_layer(PixelColumns<T, In>(g, threads), context, threads);
    }
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_cpu {
HWY_EXPORT(direct_simd);
void direct_on(const Gathered& g, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(direct_simd)(g, context, threads);
}

Work direct_facts(const Gathered& g, int threads) {
  constexpr std::int64_t rows_of_tile = 6;
  return pixel_facts(g, g.terms() * std::max(rows_of_tile, g.m),
                     channels_are_columns(g) ? g.taps() : g.terms(), threads);
}
}  // namespace conv_cpu

namespace {

Work work(const Conv::Args& args, const Context&) {
  return conv_cpu::direct_facts(conv_layer::forward(args), 1);
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::direct_on(conv_layer::forward(args), context, 1);
}

const Rung<Conv> self{
    {.name = "direct_simd", .step = 30, .after = "im2col_gemm", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
