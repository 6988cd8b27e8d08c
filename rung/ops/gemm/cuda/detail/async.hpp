// SPDX-License-Identifier: Apache-2.0
// Host side of the rungs that copy with cp.async: selection of an operand's access.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

#include "rung/ops/gemm/cuda/detail/pipeline.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Returns the access of an operand. Wide copies need whole aligned groups along `outer`, the axis
/// shared with C.
inline TileAccess access_of(const View<const float, 3>& operand, int outer, int depth) {
  constexpr std::int64_t width = 4;
  const bool wide = operand.strides[outer] == 1 && operand.shape[outer] % width == 0 &&
                    operand.strides[depth] % width == 0 && operand.strides[0] % width == 0 &&
                    reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
  if (wide) return TileAccess::wide;
  if (operand.strides[depth] == 1) return TileAccess::along_depth;
  return operand.strides[outer] == 1 ? TileAccess::along_outer : TileAccess::any;
}

/// Calls f.template operator()<access of A, access of B>() for one of eight combinations: if either
/// access is `any`, both are; if either is `along_outer`, a wide one is `along_outer`, too.
template <class F>
void with_access(const Product32& p, F&& f) {
  constexpr TileAccess along_depth = TileAccess::along_depth;
  constexpr TileAccess along_outer = TileAccess::along_outer;
  constexpr TileAccess wide = TileAccess::wide;
  const TileAccess a = access_of(p.a, 1, 2);
  const TileAccess b = access_of(p.b, 2, 1);
  if (a == TileAccess::any || b == TileAccess::any) {
    return f.template operator()<TileAccess::any, TileAccess::any>();
  }
  if (a == along_depth) {
    if (b == along_depth) return f.template operator()<along_depth, along_depth>();
    return b == wide ? f.template operator()<along_depth, wide>()
                     : f.template operator()<along_depth, along_outer>();
  }
  if (b == along_depth) {
    return a == wide ? f.template operator()<wide, along_depth>()
                     : f.template operator()<along_outer, along_depth>();
  }
  a == wide&& b == wide ? f.template operator()<wide, wide>()
                        : f.template operator()<along_outer, along_outer>();
}

/// Calls f.template operator()<access of A, access of B>() for operands that are contiguous along
/// an axis: nine combinations, so that one unaligned operand costs the other no wide copies.
template <class F>
void with_contiguous_access(const Product32& p, F&& f) {
  const auto with = [](TileAccess access, auto&& next) {
    if (access == TileAccess::wide) return next.template operator()<TileAccess::wide>();
    if (access == TileAccess::along_depth) {
      return next.template operator()<TileAccess::along_depth>();
    }
    next.template operator()<TileAccess::along_outer>();
  };
  with(access_of(p.a, 1, 2), [&]<TileAccess a>() {
    with(access_of(p.b, 2, 1), [&]<TileAccess b>() { f.template operator()<a, b>(); });
  });
}

/// Calls f like with_access(), for one of five combinations: `along_outer` becomes `any`.
template <class F>
void with_few_accesses(const Product32& p, F&& f) {
  with_access(p, [&]<TileAccess a, TileAccess b>() {
    if constexpr (a == TileAccess::along_outer || b == TileAccess::along_outer) {
      f.template operator()<TileAccess::any, TileAccess::any>();
    } else {
      f.template operator()<a, b>();
    }
  });
}

/// Returns the rates key of a call by its copies: "short k" if k is shorter than a stage, where the
/// stores of C dominate, "any strides" if an operand's rows are contiguous along neither axis or
/// not aligned, "along k" if both are copied element by element along k, else "".
inline const char* copies_path(const Gemm::Args& args) {
  constexpr std::int64_t stage = 16;
  if (args.k() < stage) return "short k";
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const TileAccess a = access_of(p.a, 1, 2);
  const TileAccess b = access_of(p.b, 2, 1);
  const auto by_elements = [](TileAccess access) {
    return access == TileAccess::any || access == TileAccess::along_outer;
  };
  if (by_elements(a) || by_elements(b)) return "any strides";
  return a == TileAccess::along_depth && b == TileAccess::along_depth ? "along k" : "";
}

/// Returns the work of the SM with the most blocks, in tiles. The tiles from `whole` on are split
/// into slices.
inline double turns_of(std::int64_t tiles, const Context& context, std::int64_t slices = 1,
                       std::int64_t whole = 0) {
  const double sms = context.info().sms;
  const auto count = static_cast<double>(slices);
  return std::ceil(static_cast<double>(slices == 1 ? tiles : whole) / sms) +
         (slices == 1 ? 0 : std::ceil(static_cast<double>(tiles - whole) * count / sms) / count);
}

/// Returns the seconds of a tile's kernel with wide copies, at a share `peak` of the cores' rate,
/// without the combination of slices:
///
///   launch + max(compute, memory) + start
///
/// compute    of the SM with the most blocks: with 133 tiles on 132 SMs, one works twice as long as
///            it would with 132. Fewer blocks than an SM has room for hide less latency
/// start      the first tile's latency, and a tile's epilogue: 6.6 to 7.5 us in all for the
///            smallest products on an H100
inline double tile_seconds(const TileShape& tile, double peak, const Gemm::Args& args,
                           const Context& context, std::int64_t slices = 1,
                           std::int64_t whole = 0) {
  constexpr double start = 2e-6;
  constexpr double block_start_steps = 32;  // steps of k that filling and draining a block cost
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const std::int64_t tiles =
      tiles_of(p.m(), tile.rows) * tiles_of(p.n(), tile.columns) * args.batch();
  const double turns = turns_of(tiles, context, slices, whole);
  const double most =
      std::ceil(static_cast<double>(slices == 1 ? tiles : whole) / sms) +
      (slices == 1 ? 0 : std::ceil(static_cast<double>((tiles - whole) * slices) / sms));
  const double hidden =
      0.5 + 0.5 * std::min(1.0, most / static_cast<double>(tile.groups == 1 ? tile.blocks : 1));
  const auto k = static_cast<double>(args.alpha == 0 ? 0 : args.k());
  const double compute = 2.0 * static_cast<double>(std::int64_t{tile.rows} * tile.columns) *
                         (turns * k + most * block_start_steps) /
                         (rates.operations_per_second / sms * peak * hidden);
  return launch_seconds + std::max(compute, Gemm::cost(args).bytes / rates.bytes_per_second) +
         start;
}

/// Tiles of C of which the last are divided along k: their tiles of k form one sequence, which
/// `parts` blocks share evenly.
struct StreamedTiles {
  std::int64_t count = 0;
  std::int64_t whole = 0;  // number of first tiles, one block each
  std::int64_t parts = 0;
  std::int64_t k_tiles = 0;  // per tile of C

  [[nodiscard]] std::int64_t streamed() const { return count - whole; }
  /// Returns a bound on the number of partial tiles: each part and each tile begins at most one.
  [[nodiscard]] std::int64_t pieces() const { return streamed() == 0 ? 0 : parts + streamed(); }
};

/// Returns the cycles of an SM per step of k of a tile: those of the multiply-adds, or those of the
/// accesses to shared memory, 32 words each, if there are more. Copies of single elements count
/// twice, and four times if k is contiguous, as a warp's elements are then in several lines.
inline double cycles_of_step(const TileShape& tile, const Product32& p) {
  const auto copies = [](TileAccess access, int extent) {
    const int times = access == TileAccess::wide ? 1 : access == TileAccess::along_outer ? 2 : 4;
    return times * extent / 32.0;
  };
  const double loads = tile.threads() / 32.0 * (tile.thread_rows + tile.thread_columns);
  return std::max(
      tile.rows * tile.columns / 128.0,
      loads + copies(access_of(p.a, 1, 2), tile.rows) + copies(access_of(p.b, 2, 1), tile.columns));
}

/// Returns the seconds of a kernel with streamed tiles: of the busiest SM, of the partial sums and
/// of the launches.
inline double streamed_seconds(const TileShape& tile, const StreamedTiles& tiles,
                               const Gemm::Args& args, const Context& context) {
  constexpr double start = 2e-6;
  constexpr double fill_steps = 32;  // steps of k that filling and draining a block cost
  constexpr double fraction = 0.79;  // of the peak that simt_top's largest tiles reach (H200)
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const double of_step =
      2 * 128 * cycles_of_step(tile, p) * sms / rates.operations_per_second / fraction;
  const double depth = static_cast<double>(tiles.k_tiles) * tile.steps;
  // Fewer blocks than an SM has room for hide less latency.
  const auto busy = [&](double blocks, double steps) {
    const double hidden = 0.5 + 0.5 * std::min(1.0, blocks / tile.blocks);
    return blocks * (steps + fill_steps) * of_step / hidden;
  };
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second;
  if (tiles.streamed() == 0) {
    const double most = std::ceil(static_cast<double>(tiles.count) / sms);
    return launch_seconds + std::max(busy(most, depth), memory) + start;
  }
  const auto parts = static_cast<double>(tiles.parts);
  const double most = std::ceil(parts / sms);
  const double compute = static_cast<double>(tiles.whole) / sms * depth * of_step +
                         busy(most, static_cast<double>(tiles.streamed()) * depth / parts);
  const double partial =
      2.0 * sizeof(float) * static_cast<double>(tiles.pieces() * tile.rows * tile.columns);
  return 2 * launch_seconds + std::max(compute, memory) + partial / rates.bytes_per_second + start;
}

constexpr TileFacts facts_of(const TileShape& tile, std::int64_t slices = 1) {
  return {.rows = tile.rows,
          .columns = tile.columns,
          .depth = tile.steps,
          .resident = tile.blocks,
          .slices = slices};
}

/// Fastest tile for a call, and its estimated time.
struct TileChoice {
  int tile;
  double seconds;
};
template <std::size_t Tiles>
TileChoice choose_tile(const std::array<TileShape, Tiles>& tiles,
                       const std::array<double, Tiles>& fractions, const Gemm::Args& args,
                       const Context& context) {
  TileChoice best{0, 0};
  for (std::size_t i = 0; i < Tiles; ++i) {
    const double seconds = tile_seconds(tiles[i], fractions[i], args, context);
    if (i == 0 || seconds < best.seconds) best = {static_cast<int>(i), seconds};
  }
  return best;
}

/// Launch parameters of a kernel with one pipeline per block.
template <TileShape shape, TileAccess access_a, TileAccess access_b>
constexpr Tiling tiling_of{
    .rows = shape.rows,
    .columns = shape.columns,
    .block = shape.threads(),
    .shared_bytes = sizeof(typename Pipeline<shape, access_a, access_b>::Stages)};

/// Rejects long strides: offsets within a tile have 32 bits, and a tile has up to 256 rows or
/// columns and 32 steps.
inline Support require_short_strides(const Gemm::Args& args, const Context& context) {
  if (const Support f32 = require_f32(args, context); !f32) return f32;
  constexpr std::int64_t longest = std::int64_t{1} << 22;
  for (const ConstTensorRef* operand : {&args.a, &args.b}) {
    if (std::abs(operand->strides[1]) > longest || std::abs(operand->strides[2]) > longest) {
      return unsupported("A and B must have strides of at most 4194304 elements");
    }
  }
  return supported;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
