// SPDX-License-Identifier: Apache-2.0
// gemm / SIMD tile
//
// Idea     the register tile in vectors: 6 x 4 vectors of C (AVX-512: 6 x 64 f32; AVX2: 6 x 2
//          vectors, 6 x 16 f32) stay in registers through all of k. A step of k loads 4 vectors of
//          a row of B and broadcasts 6 elements of A for 24 FMAs.
// Changes  against cache_and_register_tiled: the machine's widest vectors and all of its registers,
//          but no cache blocking. 8 times as fast with AVX-512: 4 times as many f32 per vector as
//          the compiler's 16 bytes, and two operations per FMA. Two FMAs start per cycle with a
//          latency of 4, so at least 8 independent sums are needed.
// Cost     2 m n k operations. B is read once, A n / 64 times, C written once.
// Limits   f32, C = A B, contiguous rows of B and C; one thread. Rows of a strip of B a power of
//          two apart map to few sets of L1 and L2 and evict each other, and each row is on a page
//          of its own (TLB misses).
// Source   K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
#include <algorithm>
#include <cstdint>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::store_as_n;

constexpr int mr = 6;                               // rows of a tile
constexpr int nr = HWY_TARGET <= HWY_AVX3 ? 4 : 2;  // vectors per row of a tile

/// Computes a tile of C with `rows` rows and `columns` <= nr vectors of elements.
template <int rows>
void simd_tile(const float* a, std::int64_t a_row, std::int64_t a_column, const float* b,
               std::int64_t b_row, float* c, std::int64_t c_row, std::int64_t k,
               std::int64_t columns) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool full = columns == nr * lanes;
  V sum[rows][nr];
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    V row[nr];
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) {
      // At the edge of B, columns beyond the last load as zeros.
      const auto count =
          static_cast<std::size_t>(std::clamp<std::int64_t>(columns - j * lanes, 0, lanes));
      row[j] = full ? hn::LoadU(d, b + j * lanes) : load_as_n(d, b + j * lanes, count);
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; ++i) {
      const V element = hn::Set(d, a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < nr; ++j) sum[i][j] = hn::MulAdd(element, row[j], sum[i][j]);
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) {
      const auto count =
          static_cast<std::size_t>(std::clamp<std::int64_t>(columns - j * lanes, 0, lanes));
      if (full) {
        hn::StoreU(sum[i][j], d, c + i * c_row + j * lanes);
      } else if (count > 0) {
        store_as_n(sum[i][j], d, c + i * c_row + j * lanes, count);
      }
    }
  }
}

/// Multiplies one matrix of the batch, strip by strip of B.
void simd_product(const RowMajorProduct& call, const float* a, const float* b, float* c) {
  const auto width = static_cast<std::int64_t>(nr * hn::Lanes(hn::ScalableTag<float>()));
  for (std::int64_t j = 0; j < call.n; j += width) {
    const std::int64_t columns = std::min(width, call.n - j);
    std::int64_t i = 0;
    for (; i + mr <= call.m; i += mr) {
      simd_tile<mr>(a + i * call.a.row, call.a.row, call.a.column, b + j, call.b.row,
                    c + i * call.c.row + j, call.c.row, call.k, columns);
    }
    for (; i < call.m; ++i) {
      simd_tile<1>(a + i * call.a.row, call.a.row, call.a.column, b + j, call.b.row,
                   c + i * call.c.row + j, call.c.row, call.k, columns);
    }
  }
}

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/gemm/cpu/detail/steps.hpp"

namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(simd_product);

void run(const Gemm::Args& args, Context&) {
  const RowMajorProduct call = row_major_product(args);
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    HWY_DYNAMIC_DISPATCH(simd_product)
    (call, static_cast<const float*>(call.a.data) + batch * call.a.batch,
     static_cast<const float*>(call.b.data) + batch * call.b.batch,
     static_cast<float*>(call.c.data) + batch * call.c.batch);
  }
}

const Rung<Gemm> self{{.name = "simd_tile",
                       .step = 55,
                       .after = "cache_and_register_tiled",
                       .teaching = true,
                       .supports = supports_plain_f32,
                       .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
