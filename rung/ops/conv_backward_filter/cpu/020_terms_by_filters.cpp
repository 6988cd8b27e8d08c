// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / terms by filters
//
// Idea     dw is a matrix product over the pixels of all images: its rows are terms (a channel and
//          a tap), its columns filters. Per 128 pixels, the terms' elements of x and the filters'
//          elements of dy are gathered into the caches, and conv's tiles sum six terms by four
//          vectors of filters in registers.
// Changes  Against naive: 24 independent chains of additions instead of one; x is gathered once per
//          64 filters, dy once per 576 terms.
// Cost     24 multiply-adds per 4 loads and 6 broadcasts, and gathering a term per pixel, one
//          element at a time if its pixels are not contiguous (strides). With channels last a
//          pixel's channels are copied unchanged, and the tile reads the six terms of a pixel from
//          adjacent addresses.
// Limits   None; one thread. If dw is small, pixels are partitioned into slices, whose sums are
//          added in order. The number of slices depends on the shape alone, so that any number of
//          threads returns the same bits.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: the tiles
using conv_layer::Gathered;
namespace {

constexpr std::int64_t max_terms = 576;      // per block: 64 channels of 3 x 3
constexpr std::int64_t pixels_a_time = 128;  // a panel of dy is then 32 KiB
constexpr std::int64_t min_slice = 2048;     // minimum pixels per slice
constexpr std::int64_t max_slices = 16;

/// Minimum number of channels that are copied as one run; with fewer, elements are gathered.
constexpr std::int64_t few_channels = 8;

/// Computes c[i][j] (+)= sum over pixels k of rows[i][k] panel[k][j]; rows are `row` elements
/// apart, pixels `pixel`.
template <int Rows, int Vectors, class T>
HWY_NOINLINE void sum_pixels(const T* rows, std::int64_t row, std::int64_t pixel,
                             std::int64_t count, const T* panel, T* c, bool add) {
  constexpr int columns = panel_columns<T>;
  RegisterTile<Rows, Vectors, T> tile;
  add ? tile.load(c, columns) : tile.clear();
  for (std::int64_t k = 0; k < count; ++k, rows += pixel, panel += columns) {
    tile.add(panel, [&](int i) { return rows[i * row]; });
  }
  tile.store(c, columns);
}

template <class T, class In>
class Product {
 public:
  explicit Product(const ConvBackwardFilter::Args& args) : args_(args) {
    const ConvGeometry& geometry = args.geometry;
    conv_layer::set_strides(g_.x_strides, args.x);
    g_.images = geometry.images;
    g_.q = geometry.group_channels();
    for (int axis = 0; axis < 3; ++axis) {
      g_.axis[axis] = conv_layer::forward_axis(geometry.axis[axis]);
    }
    channels_inside_ = args.x.strides[1] == 1 && g_.q >= few_channels;
    filters_ = geometry.group_filters();
    filter_blocks_ = ceil_div(filters_, std::int64_t{columns});
    term_blocks_ = ceil_div(g_.terms(), max_terms);
    terms_ = round_up(ceil_div(g_.terms(), term_blocks_), std::int64_t{tile_rows});
    term_blocks_ = ceil_div(g_.terms(), terms_);
    const std::int64_t blocks = geometry.groups * filter_blocks_ * term_blocks_;
    slices_ = std::clamp<std::int64_t>(g_.pixels() / min_slice, 1,
                                       std::max<std::int64_t>(1, max_slices / blocks));
  }

  /// Returns the bytes for the sums of all slices; 0 if there is only one slice.
  [[nodiscard]] std::size_t shared_bytes() const {
    if (slices_ == 1) return 0;
    return static_cast<std::size_t>(args_.geometry.groups * filter_blocks_ * term_blocks_ *
                                    slices_ * terms_ * columns) *
           sizeof(T);
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    const std::int64_t sums = slices_ == 1 ? terms_ * columns : 0;
    return static_cast<std::size_t>((terms_ + columns) * pixels_a_time + sums) * sizeof(T);
  }

  void run(const cpu::Team& team, std::byte* shared, std::byte* own) const {
    T* const all = reinterpret_cast<T*>(shared);
    T* const rows = reinterpret_cast<T*>(own);
    T* const panel = rows + terms_ * pixels_a_time;
    const std::int64_t blocks = args_.geometry.groups * filter_blocks_ * term_blocks_;
    if (slices_ == 1) {
      T* const sums = panel + columns * pixels_a_time;
      const cpu::Range mine = team.share(blocks);
      for (std::int64_t block = mine.begin; block < mine.end; ++block) {
        sum_slice(block, 0, rows, panel, sums);
        write(block, sums);
      }
      return;
    }
    const cpu::Range share = team.share(blocks * slices_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      sum_slice(task / slices_, task % slices_, rows, panel, all + task * terms_ * columns);
    }
    team.wait();
    const cpu::Range finished = team.share(blocks);
    for (std::int64_t block = finished.begin; block < finished.end; ++block) {
      write(block, all + block * slices_ * terms_ * columns);
    }
  }

 private:
  static constexpr int columns = panel_columns<T>;

  struct TermBlock {
    std::int64_t group, filter, filters, term, terms;
  };
  [[nodiscard]] TermBlock block_of(std::int64_t index) const {
    const std::int64_t term = index % term_blocks_ * terms_;
    const std::int64_t filter = index / term_blocks_ % filter_blocks_ * columns;
    return {index / term_blocks_ / filter_blocks_, filter,
            std::min<std::int64_t>(columns, filters_ - filter), term,
            std::min(terms_, g_.terms() - term)};
  }

  void sum_slice(std::int64_t index, std::int64_t slice, T* rows, T* panel, T* sums) const {
    const TermBlock block = block_of(index);
    const In* image =
        static_cast<const In*>(args_.x.data) + block.group * g_.q * args_.x.strides[1];
    const In* dy = static_cast<const In*>(args_.dy.data) +
                   (block.group * filters_ + block.filter) * args_.dy.strides[1];
    const int filters = static_cast<int>(block.filters);
    const cpu::Range pixels =
        cpu::part_of(g_.pixels(), static_cast<int>(slice), static_cast<int>(slices_));
    std::memset(panel, 0, static_cast<std::size_t>(columns * pixels_a_time) * sizeof(T));
    if (pixels.size() == 0) {
      std::memset(sums, 0, static_cast<std::size_t>(terms_ * columns) * sizeof(T));
    }
    Run runs[pixels_a_time];
    for (std::int64_t first = pixels.begin; first < pixels.end; first += pixels_a_time) {
      const int count = static_cast<int>(std::min(pixels_a_time, pixels.end - first));
      const int run_count = runs_of(g_, first, count, runs);
      gather_results(dy, runs, run_count, filters, panel);
      const bool add = first != pixels.begin;
      // With channels last, a pixel's terms are contiguous; otherwise a term's pixels are.
      const std::int64_t row = channels_inside_ ? 1 : pixels_a_time;
      const std::int64_t pixel = channels_inside_ ? terms_ : 1;
      if (channels_inside_) {
        gather_pixels(image, runs, run_count, block, rows);
      } else {
        gather_terms(g_, image, runs, run_count, block.term, block.terms, rows, pixels_a_time);
      }
      for (std::int64_t i = 0; i < block.terms; i += tile_rows) {
        const auto some = static_cast<int>(std::min<std::int64_t>(tile_rows, block.terms - i));
        with_tile<T>(some, filters, [&](auto height, auto vectors) {
          sum_pixels<height, vectors>(rows + i * row, row, pixel, count, panel, sums + i * columns,
                                      add);
        });
      }
    }
  }

  /// Gathers rows[pixel][term] from contiguous channels, with terms in the order t0 t1 t2 q.
  void gather_pixels(const In* image, const Run* runs, int run_count, const TermBlock& block,
                     T* rows) const {
    for (std::int64_t at = 0; at < block.terms;) {
      const auto [q, t] = term_at(g_, block.term + at, false);
      const int some = static_cast<int>(std::min(g_.q - q, block.terms - at));
      for (int r = 0; r < run_count; ++r) {
        const Run& run = runs[r];
        const In* row = row_of(g_, image + q, run, t[0], t[1]);
        for (int i = 0; i < run.count; ++i) {
          T* to = rows + (run.column + i) * terms_ + at;
          const std::int64_t from = row == nullptr ? -1 : g_.axis[2].source(run.o[2] + i, t[2]);
          if (from < 0) {
            std::memset(to, 0, static_cast<std::size_t>(some) * sizeof(T));
          } else {
            copy_strided(to, row + from * g_.x_strides[4], 1, some);
          }
        }
      }
      at += some;
    }
  }

  /// Gathers panel[pixel][filter] of dy.
  void gather_results(const In* dy, const Run* runs, int run_count, int filters, T* panel) const {
    const Extents& strides = args_.dy.strides;
    for (int r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      const In* from = dy + run.n * strides[0] + run.o[0] * strides[2] + run.o[1] * strides[3] +
                       run.o[2] * strides[4];
      copy_matrix(from, strides[4], strides[1], run.count, filters, panel + run.column * columns,
                  columns);
    }
  }

  /// Adds the sums of a block's slices in order, and stores them to dw.
  void write(std::int64_t index, T* sums) const {
    const TermBlock block = block_of(index);
    add_slices(sums, block.terms * columns, slices_, terms_ * columns);
    const auto dw = args_.dw.view<In, 5>();
    for (std::int64_t i = 0; i < block.terms; ++i) {
      const auto [q, t] = term_at(g_, block.term + i, !channels_inside_);
      for (std::int64_t j = 0; j < block.filters; ++j) {
        dw(block.group * filters_ + block.filter + j, q, t[0], t[1], t[2]) =
            static_cast<In>(sums[i * columns + j]);
      }
    }
  }

  const ConvBackwardFilter::Args& args_;
  Gathered g_;  // axes and strides of x only
  bool channels_inside_;
  std::int64_t filters_;
  std::int64_t filter_blocks_;
  std::int64_t term_blocks_;
  std::int64_t terms_;  // per block
  std::int64_t slices_;
};

}  // namespace

void terms_by_filters(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class In>() {
    run_layer(Product<Accumulator<In>, In>(args), context, threads);
  });
}

}  // namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace conv_backward_filter_cpu {
HWY_EXPORT(terms_by_filters);
void terms_by_filters_on(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  HWY_DYNAMIC_DISPATCH(terms_by_filters)(args, context, threads);
}

Work facts(const ConvBackwardFilter::Args& args, int threads) {
  constexpr std::int64_t vector = 16;
  const conv_layer::Gathered g = conv_layer::of_filters(args);
  return conv_cpu::pixel_facts(g, g.terms() * std::max(vector, g.m), 0, threads);
}
int threads_of(const ConvBackwardFilter::Args& args, const Context& context) {
  return conv_cpu::threads_for(ConvBackwardFilter::cost(args).operations / 2, context.threads());
}
}  // namespace conv_backward_filter_cpu

namespace {

Work work(const ConvBackwardFilter::Args& args, const Context&) {
  return conv_backward_filter_cpu::facts(args, 1);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::terms_by_filters_on(args, context, 1);
}

const Rung<ConvBackwardFilter> self{
    {.name = "terms_by_filters", .step = 20, .after = "naive", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
