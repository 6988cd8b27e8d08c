// SPDX-License-Identifier: Apache-2.0
//
// The table of kernels of one target; included by kernels_f32.cpp and kernels_f64.cpp (two
// files, so that they compile together).
#if defined(RUNG_OPS_GEMM_CPU_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_KERNELS_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_KERNELS_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_KERNELS_INL_HPP_
#endif

#include "rung/cpu/prefetch.hpp"
#include "rung/ops/gemm/cpu/detail/finish-inl.hpp"
#include "rung/ops/gemm/cpu/detail/pack-inl.hpp"
#include "rung/ops/gemm/cpu/detail/sliver-inl.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {

template <class T, Source a, Source b, int vectors>
TileFunction<T>* const* tiles_of() {
  return tile_table<T, vectors == 2 ? tile_rows : narrow_tile_rows, vectors, a, b>();
}

template <class T>
void fill_tiles(Kernels<T>& k) {
  k.lanes = lanes<T>();
  k.tile_rows = tile_rows;
  k.narrow_tile_rows = narrow_tile_rows;
  // Not with AVX2: on a 2-core Emerald Rapids vCPU 2 % to 3 % less at 2048 and 4096 cubed. f64 on
  // Zen 4, too: beside others who kept the caches busy, 1024 cubed came from .78 to .92 of the
  // ceiling and 2048 from .86 to .89 (2-core vCPU, one thread; two: .89 to .90, .87 to .91), f32
  // neither gained nor lost.
  const bool asks = cpu::asks_for_lines() || (sizeof(T) == 8 && cpu::asks_memory_for_lines());
  k.asks_for_lines = HWY_TARGET == HWY_AVX3 && asks;
  k.sliver_columns = sliver_columns<T>;
  k.sliver_rows = sliver_rows;
  k.slivers = sliver_table<T>();
  constexpr Source p = Source::packed;
  constexpr Source s = Source::strided;
  k.tiles[0][0][0] = tiles_of<T, p, p, 1>();
  k.tiles[0][0][1] = k.asks_for_lines
                         ? tile_table<T, tile_rows, 2, p, p, Distance::far, Fetching::asked>()
                         : tiles_of<T, p, p, 2>();
  k.tiles[0][1][0] = tiles_of<T, p, s, 1>();
  k.tiles[0][1][1] = tiles_of<T, p, s, 2>();
  k.tiles[1][0][0] = tiles_of<T, s, p, 1>();
  k.tiles[1][0][1] = tiles_of<T, s, p, 2>();
  k.tiles[1][1][0] = tiles_of<T, s, s, 1>();
  k.tiles[1][1][1] = tiles_of<T, s, s, 2>();
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
