// SPDX-License-Identifier: Apache-2.0
// gemm / packed B
//
// Idea     packing: a strip of B, 256 rows of 64 columns (AVX-512; 16 with AVX2), is copied into
//          the order in which the tile reads it. The packed strip takes 64 KiB and stays in L2 for
//          all rows of A.
// Changes  against simd_tile: k in blocks of kc, and one more pass over B to pack it. The packed
//          strip is contiguous, aligned and zero-padded: no cache-set conflicts, one page per 16
//          rows instead of one per row, no edge handling. C is read and written once per block of
//          k.
// Cost     2 m n k operations. B is read once from memory and, packed, m / 6 times from L2; A is
//          read n / 64 times; C is transferred 2 k / kc times.
// Limits   f32, C = A B, contiguous rows of B and C; one thread. A is read unpacked, once per strip
//          of B.
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
constexpr std::int64_t kc = 256;                    // rows of a packed strip

/// Adds to a tile of C, `rows` rows of `columns` <= nr vectors of elements, or overwrites the tile
/// if `first`. b is packed: k rows of nr vectors.
template <int rows>
void packed_tile(const float* a, std::int64_t a_row, std::int64_t a_column, const float* b,
                 float* c, std::int64_t c_row, std::int64_t k, std::int64_t columns, bool first) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum[rows][nr];
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    V row[nr];
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) row[j] = hn::Load(d, b + j * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < rows; ++i) {
      const V element = hn::Set(d, a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < nr; ++j) sum[i][j] = hn::MulAdd(element, row[j], sum[i][j]);
    }
    a += a_column;
    b += nr * lanes;
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < nr; ++j) {
      const auto count =
          static_cast<std::size_t>(std::clamp<std::int64_t>(columns - j * lanes, 0, lanes));
      float* to = c + i * c_row + j * lanes;
      if (count == 0) continue;
      if (!first) sum[i][j] = hn::Add(sum[i][j], load_as_n(d, to, count));
      store_as_n(sum[i][j], d, to, count);
    }
  }
}

/// Packs k rows of `columns` elements of B into rows of nr vectors, zero-padded.
void pack_strip(const float* b, std::int64_t b_row, std::int64_t k, std::int64_t columns,
                float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t p = 0; p < k; ++p, b += b_row) {
    for (std::int64_t j = 0; j < nr * lanes; j += lanes, to += lanes) {
      const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(columns - j, 0, lanes));
      hn::Store(load_as_n(d, b + std::min(j, columns), count), d, to);
    }
  }
}

/// Multiplies one matrix of the batch: block by block of k, strip by strip of B.
void packed_product(const RowMajorProduct& call, const float* a, const float* b, float* c,
                    float* strip) {
  const auto width = static_cast<std::int64_t>(nr * hn::Lanes(hn::ScalableTag<float>()));
  for (std::int64_t p = 0; p == 0 || p < call.k; p += kc) {
    const std::int64_t k = std::min(kc, call.k - p);
    for (std::int64_t j = 0; j < call.n; j += width) {
      const std::int64_t columns = std::min(width, call.n - j);
      pack_strip(b + p * call.b.row + j, call.b.row, k, columns, strip);
      const float* from = a + p * call.a.column;
      std::int64_t i = 0;
      for (; i + mr <= call.m; i += mr) {
        packed_tile<mr>(from + i * call.a.row, call.a.row, call.a.column, strip,
                        c + i * call.c.row + j, call.c.row, k, columns, p == 0);
      }
      for (; i < call.m; ++i) {
        packed_tile<1>(from + i * call.a.row, call.a.row, call.a.column, strip,
                       c + i * call.c.row + j, call.c.row, k, columns, p == 0);
      }
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
HWY_EXPORT(packed_product);

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  constexpr std::size_t strip_elements = 256 * 64;  // kc rows of the widest target's nr vectors
  auto* strip = static_cast<float*>(context.workspace(strip_elements * sizeof(float)));
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    HWY_DYNAMIC_DISPATCH(packed_product)
    (call, static_cast<const float*>(call.a.data) + batch * call.a.batch,
     static_cast<const float*>(call.b.data) + batch * call.b.batch,
     static_cast<float*>(call.c.data) + batch * call.c.batch, strip);
  }
}

const Rung<Gemm> self{{.name = "packed_b",
                       .step = 57,
                       .after = "simd_tile",
                       .teaching = true,
                       .supports = supports_plain_f32,
                       .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
