// SPDX-License-Identifier: Apache-2.0
// gemm / packed SIMD, one thread
//
// Idea     the two operands are copied, block by block, into the very order in which a vector
//          micro-kernel reads them; the micro-kernel keeps a 14 x 32 tile of C (AVX-512) in
//          registers.
// Changes  against packed_b: A is packed too, in blocks that stay in L2 while many strips of B, in
//          L3, go by; every type, stride and epilogue; a kernel for each number of rows and
//          vectors, so that edges cost what they are; C is prefetched while its tile is made.
// Cost     2 m n k operations. Memory: A once for each nc columns, B once, C twice for each kc of
//          k.
// Limits   one thread. Packing copies what a small product reads only a few times.
// Tried    block sizes: see BlockLimits. Transposing A into panels in place of copying its rows:
//          the same at 2048, -2 % at 512. Fetching all of a tile's C at its start: -10 %, see
//          detail/tile-inl.hpp.
// Source   K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008;
//          F. Van Zee and R. van de Geijn, BLIS, 2015 (the loops around the micro-kernel).
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

template <class T>
void packed_simd(const Call& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  const Blocking block = make_blocking(call, ks, block_limits());
  const bool staged = !call.direct();
  const std::int64_t a_size = block.mc * copied_row<T>(block.kc);

  T* b = static_cast<T*>(
      context.workspace((block.kc * block.nc + a_size +
                         (staged ? std::min(call.m, block.staged_rows) * block.nc : 0)) *
                        sizeof(T)));
  T* a = b + block.kc * block.nc;
  const std::int64_t rows_at_once = staged ? block.staged_rows : call.m;

  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    Sums<T> sums = make_sums(call, ks, batch, a + a_size, block.nc);
    for (std::int64_t j = 0; j < call.n; j += block.nc) {
      const std::int64_t columns = std::min(block.nc, call.n - j);
      for (std::int64_t group = 0; group < call.m; group += rows_at_once) {
        const std::int64_t end = std::min(call.m, group + rows_at_once);
        if (staged) sums.i0 = group, sums.j0 = j;
        for (std::int64_t p = 0; p < call.k; p += block.kc) {
          const std::int64_t k = std::min(block.kc, call.k - p);
          pack_b(call, ks, batch, p, k, j, columns, b);
          for (std::int64_t i = group; i < end; i += block.mc) {
            const std::int64_t rows = std::min(block.mc, end - i);
            const PackedA<T> packed = pack_a(call, ks, batch, i, rows, p, k, a);
            multiply_block(sums, {i, rows, k, p == 0, p + k == call.k}, packed, b, j, columns);
          }
        }
      }
    }
  }
}

double estimate(const Gemm::Args& args, const Context&) {
  return packed_seconds(make_call(args), 1);
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  if (args.c.empty()) return;
  if (call.in == DType::f64) {
    packed_simd<double>(call, context);
  } else {
    packed_simd<float>(call, context);
  }
}

const Rung<Gemm> self{
    {.name = "packed_simd", .step = 60, .after = "packed_b", .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
