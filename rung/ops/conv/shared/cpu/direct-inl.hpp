// SPDX-License-Identifier: Apache-2.0
// A gathered layer by tiles, in two orientations. Nothing the size of a tensor is rearranged but
// the weights.
//
// Pixels as columns, for channels first: a panel holds some terms of 64 pixels, gathered into L1
// while a core needs them; a filter's weights, which are contiguous, are the rows.
// Channels as columns, for channels last: channel_columns-inl.hpp.
#if defined(RUNG_OPS_CONV_CPU_DIRECT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_DIRECT_INL_HPP_
#undef RUNG_OPS_CONV_CPU_DIRECT_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_DIRECT_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/channel_columns-inl.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixels-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixels.hpp"
#include "rung/ops/conv/shared/cpu/planes-inl.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class In>
class PixelColumns {
 public:
  PixelColumns(const Gathered& g, int threads)
      : g_(g),
        in_place_(std::is_same_v<T, In> && weights_contiguous(g)),
        chunk_(even_chunk(g.terms(), chunk_terms<T>)),
        panels_(ceil_div(g.pixels(), std::int64_t{columns})) {
    // All filters of a group share what is gathered, unless there are too few panels for the team.
    std::int64_t blocks = ceil_div(g.m, max_filters);
    const std::int64_t wanted = ceil_div(std::int64_t{threads} * 2, panels_ * g.groups);
    blocks = std::max(blocks, std::min(wanted, ceil_div(g.m, std::int64_t{tile_rows})));
    block_ = round_up(ceil_div(g.m, blocks), std::int64_t{tile_rows});
    blocks_ = ceil_div(g.m, block_);
  }

  [[nodiscard]] std::size_t weight_bytes() const {
    if (in_place_) return 0;
    return conv_layer::bytes_of<T>({round_up(g_.groups * g_.m * g_.terms(), 64)});
  }
  [[nodiscard]] std::size_t thread_bytes() const {
    return static_cast<std::size_t>((chunk_ + block_) * columns) * sizeof(T);
  }

  void run(const cpu::Team& team, std::byte* memory) const {
    T* packed = reinterpret_cast<T*>(memory);
    if (!in_place_) {
      const cpu::Range share = team.share(g_.groups * g_.m);
      for (std::int64_t row = share.begin; row < share.end; ++row) pack(row, packed);
      team.wait();
    }
    T* panel = reinterpret_cast<T*>(memory + weight_bytes() +
                                    static_cast<std::size_t>(team.rank()) * thread_bytes());
    const cpu::Range share = team.share(g_.groups * panels_ * blocks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const std::int64_t group = task / blocks_ / panels_;
      const std::int64_t first = task % blocks_ * block_;
      make(group, task / blocks_ % panels_ * columns, first, std::min(block_, g_.m - first), packed,
           panel, panel + chunk_ * columns);
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

  /// A filter's weights, in the order of terms.
  void pack(std::int64_t row, T* packed) const {
    const In* from =
        static_cast<const In*>(g_.w) + row / g_.m * g_.w_group + row % g_.m * g_.w_strides[0];
    T* to = packed + row * g_.terms();
    for (std::int64_t q = 0; q < g_.q; ++q) {
      for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0) {
        for (std::int64_t t1 = 0; t1 < g_.axis[1].kernel; ++t1) {
          const In* line = from + q * g_.w_strides[1] + t0 * g_.w_strides[2] + t1 * g_.w_strides[3];
          for (std::int64_t t2 = 0; t2 < g_.axis[2].kernel; ++t2) {
            *to++ = static_cast<T>(line[t2 * g_.w_strides[4]]);
          }
        }
      }
    }
  }

  void make(std::int64_t group, std::int64_t pixel, std::int64_t first, std::int64_t filters,
            const T* packed, T* panel, T* sums) const {
    Run runs[columns];
    const int count = static_cast<int>(std::min<std::int64_t>(columns, g_.pixels() - pixel));
    const int run_count = runs_of(g_, pixel, count, runs);
    // What a partial vector has beyond the pixels must be numbers, though no one reads the sums.
    const int used = static_cast<int>(round_up(count, lanes_of<T>));
    if (used != count)
      std::memset(panel, 0, static_cast<std::size_t>(chunk_ * columns) * sizeof(T));
    const In* image = static_cast<const In*>(g_.x) + group * g_.q * g_.x_strides[1];
    const T* weights = packed + group * g_.m * g_.terms();
    std::int64_t row_step = g_.terms();
    if constexpr (std::is_same_v<T, In>) {
      if (in_place_) {
        weights = static_cast<const T*>(g_.w) + group * g_.w_group;
        row_step = g_.w_strides[0];
      }
    }
    weights += first * row_step;
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
  std::int64_t block_ = 1;
  std::int64_t blocks_ = 1;
};

template <class Layer>
void run_layer(const Gathered& g, Context& context, int threads) {
  const Layer layer(g, threads);
  auto* memory = static_cast<std::byte*>(context.workspace(
      layer.weight_bytes() + static_cast<std::size_t>(threads) * layer.thread_bytes()));
  cpu::run_team(threads, [&](const cpu::Team& team) { layer.run(team, memory); });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
