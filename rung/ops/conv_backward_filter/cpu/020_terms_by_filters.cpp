// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / terms by filters
//
// Idea     dw is a matrix product over pixels, of all images: its rows are terms - a channel and a
//          tap - and its columns filters. For 128 pixels at a time, what the terms need of x and
//          what the filters' results have in dy is gathered into the caches, and six terms by four
//          vectors of filters are summed in registers by conv's tiles.
// Changes  against naive: 24 chains of additions at once instead of one; x is gathered once per 64
//          filters, dy once per 576 terms.
// Cost     24 multiply-adds per 4 loads and 6 broadcasts, and per pixel the gathering of a term,
//          one element at a time where its pixels are not contiguous (strides). With channels last
//          a pixel's channels are copied as they lie, and the tile reads its rows by columns.
// Limits   every valid call; one thread. Where dw is small, pixels are cut into slices, whose sums
//          are added in their order: how many depends on the shape alone, so that any number of
//          threads gives the same bits.
// Tried    -
// Source   -
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/shared/cpu/direct-inl.hpp"
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_backward_filter_cpu::HWY_NAMESPACE {
using namespace conv_cpu::HWY_NAMESPACE;  // NOLINT: the tiles
using conv_layer::Gathered;
namespace {

constexpr std::int64_t max_terms = 576;      // of a block: 64 channels of 3 x 3
constexpr std::int64_t pixels_a_time = 128;  // a panel of dy is then 32 KiB
constexpr std::int64_t min_slice = 2048;     // pixels that are worth a slice
constexpr std::int64_t max_slices = 16;

template <int Vectors, class T>
void turned_multiply(const T* rows, std::int64_t terms, std::int64_t pitch, std::int64_t count,
                     const T* panel, T* c, bool add) {
  std::int64_t i = 0;
  for (; i + tile_rows <= terms; i += tile_rows) {
    turned_tile<tile_rows, Vectors>(rows + i, pitch, count, panel, c + i * panel_columns<T>, add);
  }
  for (; i < terms; ++i) {
    turned_tile<1, Vectors>(rows + i, pitch, count, panel, c + i * panel_columns<T>, add);
  }
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

  /// The sums of all slices stay here; there are several of few blocks only.
  [[nodiscard]] std::size_t slice_bytes() const {
    if (slices_ == 1) return 0;
    return static_cast<std::size_t>(args_.geometry.groups * filter_blocks_ * term_blocks_ *
                                    slices_ * terms_ * columns) *
           sizeof(T);
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    const std::int64_t sums = slices_ == 1 ? terms_ * columns : 0;
    return static_cast<std::size_t>((terms_ + columns) * pixels_a_time + sums) * sizeof(T);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* const all = reinterpret_cast<T*>(memory);
    T* const rows = reinterpret_cast<T*>(memory + slice_bytes() +
                                         static_cast<std::size_t>(team.rank()) * thread_bytes());
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

  struct Block {
    std::int64_t group, filter, filters, term, terms;
  };
  [[nodiscard]] Block block_of(std::int64_t index) const {
    const std::int64_t term = index % term_blocks_ * terms_;
    const std::int64_t filter = index / term_blocks_ % filter_blocks_ * columns;
    return {index / term_blocks_ / filter_blocks_, filter,
            std::min<std::int64_t>(columns, filters_ - filter), term,
            std::min(terms_, g_.terms() - term)};
  }

  void sum_slice(std::int64_t index, std::int64_t slice, T* rows, T* panel, T* sums) const {
    const Block block = block_of(index);
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
      if (channels_inside_) {
        gather_pixels(image, runs, run_count, block, rows);
        const auto turned = filters <= lanes_of<T>       ? turned_multiply<1, T>
                            : filters <= 2 * lanes_of<T> ? turned_multiply<2, T>
                                                         : turned_multiply<panel_vectors, T>;
        turned(rows, block.terms, terms_, count, panel, sums, add);
        continue;
      }
      gather_terms<T>(g_, image, runs, run_count, block.term, block.terms, rows, pixels_a_time);
      multiply(block.terms, filters, count, panel, sums, add,
               [&](std::int64_t i) { return rows + i * pixels_a_time; });
    }
  }

  /// rows[pixel][term] of contiguous channels: terms in the order t0 t1 t2 q.
  void gather_pixels(const In* image, const Run* runs, int run_count, const Block& block,
                     T* rows) const {
    for (std::int64_t at = 0; at < block.terms;) {
      const std::int64_t q = (block.term + at) % g_.q;
      const int some = static_cast<int>(std::min(g_.q - q, block.terms - at));
      std::int64_t t[3];
      std::int64_t rest = (block.term + at) / g_.q;
      for (int axis = 2; axis >= 0; --axis) {
        t[axis] = rest % g_.axis[axis].kernel;
        rest /= g_.axis[axis].kernel;
      }
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

  /// panel[pixel][filter] of dy.
  void gather_results(const In* dy, const Run* runs, int run_count, int filters, T* panel) const {
    const Extents& strides = args_.dy.strides;
    for (int r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      const In* from = dy + run.n * strides[0] + run.o[0] * strides[2] + run.o[1] * strides[3] +
                       run.o[2] * strides[4];
      T* to = panel + run.column * columns;
      if (strides[1] == 1) {
        for (int i = 0; i < run.count; ++i) {
          copy_strided(to + i * columns, from + i * strides[4], 1, filters);
        }
        continue;
      }
      for (int j = 0; j < filters; ++j) {
        const In* line = from + j * strides[1];
        for (int i = 0; i < run.count; ++i)
          to[i * columns + j] = static_cast<T>(line[i * strides[4]]);
      }
    }
  }

  /// The sums of the slices of a block, one after the other, to dw.
  void write(std::int64_t index, T* sums) const {
    const Block block = block_of(index);
    const std::int64_t size = block.terms * columns;
    for (std::int64_t slice = 1; slice < slices_; ++slice) {
      const T* other = sums + slice * terms_ * columns;
      for (std::int64_t i = 0; i < size; ++i) sums[i] += other[i];
    }
    const auto dw = args_.dw.view<In, 5>();
    for (std::int64_t i = 0; i < block.terms; ++i) {
      std::int64_t rest = block.term + i;
      std::int64_t q = 0;
      if (channels_inside_) {
        q = rest % g_.q;
        rest /= g_.q;
      }
      std::int64_t t[3];
      for (int axis = 2; axis >= 0; --axis) {
        t[axis] = rest % g_.axis[axis].kernel;
        rest /= g_.axis[axis].kernel;
      }
      if (!channels_inside_) q = rest;
      for (std::int64_t j = 0; j < block.filters; ++j) {
        dw(block.group * filters_ + block.filter + j, q, t[0], t[1], t[2]) =
            static_cast<In>(sums[i * columns + j]);
      }
    }
  }

  const ConvBackwardFilter::Args& args_;
  Gathered g_;  // x alone: its axes and strides
  bool channels_inside_;
  std::int64_t filters_;
  std::int64_t filter_blocks_;
  std::int64_t term_blocks_;
  std::int64_t terms_;  // of a block
  std::int64_t slices_;
};

}  // namespace

void terms_by_filters(const ConvBackwardFilter::Args& args, Context& context, int threads) {
  visit<float, double, f16, bf16>(args.dw.dtype, [&]<class In>() {
    const Product<Accumulator<In>, In> product(args);
    auto* memory = static_cast<std::byte*>(context.workspace(
        product.slice_bytes() + static_cast<std::size_t>(threads) * product.thread_bytes()));
    cpu::run_team(threads, [&](const cpu::Team& team) { product.run(team, memory); });
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

double seconds(const ConvBackwardFilter::Args& args, int threads) {
  // Of multiply-adds in full tiles, of gathering a term of a pixel, and of what a team costs.
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double one_by_one = 0.5e-9, in_runs = 0.12e-9, a_result = 0.8e-9, a_start = 1e-6,
                   a_thread = 2e-6;
  const ConvGeometry& g = args.geometry;
  const double pixels = static_cast<double>(g.images) * static_cast<double>(g.results());
  const double terms = static_cast<double>(g.group_channels()) * static_cast<double>(g.taps());
  const double filters = std::max(16.0, static_cast<double>(g.group_filters()));
  // With channels last a pixel's channels are copied as they lie.
  const bool inside = args.x.strides[1] == 1 && g.group_channels() >= 8;
  const double a_term = inside ? in_runs : one_by_one;
  // Terms are gathered for each 64 filters, results for each 576 terms.
  const double gathered =
      terms * std::ceil(filters / 64) * a_term + filters * std::ceil(terms / 576) * a_result;
  const double work =
      static_cast<double>(g.groups) * pixels * (terms * filters * 2 / rate + gathered);
  return a_start + work / threads + (threads > 1 ? a_thread : 0);
}
}  // namespace conv_backward_filter_cpu

namespace {

double estimate(const ConvBackwardFilter::Args& args, const Context&) {
  return conv_backward_filter_cpu::seconds(args, 1);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::terms_by_filters_on(args, context, 1);
}

const Rung<ConvBackwardFilter> self{
    {.name = "terms_by_filters", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
#endif
