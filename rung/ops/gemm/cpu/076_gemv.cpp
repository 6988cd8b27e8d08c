// SPDX-License-Identifier: Apache-2.0
// gemm / matrix times vector
//
// Idea     one row (or column) of C: two operations for each element of the matrix, which is
//          therefore read at the speed of memory and nothing else matters. Along contiguous rows of
//          B, eight of them at a time are added to C; along contiguous columns, four dot products
//          run in parallel.
// Changes  against few_rows: no packing, no staging of a tile; the hardware's prefetchers get few,
//          long streams and need help only where a page begins.
// Cost     the matrix once.
// Limits   f32 and f64; the matrix contiguous in one direction.
// Tried    on a 2-core Zen 5 vCPU: 2, 4, 6 or 16 rows at a time -45, -10, -9 and -15 %; four
//          vectors of sums: none; for prefetching see detail/gemv-inl.hpp.
// Source   the BLAS's gemv.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"
#include "rung/ops/gemm/cpu/detail/gemv-inl.hpp"

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(gemv_f32);
HWY_EXPORT(gemv_f64);

constexpr std::int64_t max_k = 1 << 20;

template <class T>
void gemv(const Call& call, Context& context) {
  // One core takes most of the memory's bandwidth; two take a half more.
  const double bytes = static_cast<double>(call.n * call.k * call.batch) * sizeof(T);
  const int threads = bytes < 256 << 10 ? 1 : context.threads();
  // Sums of 4096 columns stay in L1, beside the streams.
  const std::int64_t run = std::min<std::int64_t>(4096, round_up(call.n, 64));
  const bool copy_x = call.b.column != 1 && call.a.column != 1;
  const std::int64_t x_size = copy_x ? round_up(call.k, 64) : 0;
  T* workspace =
      static_cast<T*>(context.workspace((threads * run + x_size * call.batch) * sizeof(T)));
  T* copy = workspace + threads * run;
  if (copy_x) {
    for (std::int64_t p = 0; p < call.k; ++p) {
      copy[p] = *static_cast<const T*>(at(call.a, call.in, 0, 0, p));
    }
  }
  cpu::run_team(threads, [&](const cpu::Team& team) {
    const std::int64_t line = 64 / sizeof(T);  // no two threads write to one
    const bool by_matrix = call.batch >= team.size();
    const cpu::Range matrices = by_matrix ? team.share(call.batch) : cpu::Range{0, call.batch};
    cpu::Range lines{0, ceil_div(call.n, line)};
    if (!by_matrix) lines = team.share(lines.end);
    T* y = workspace + team.rank() * run;
    for (std::int64_t batch = matrices.begin; batch < matrices.end; ++batch) {
      const T* x = copy_x ? copy : static_cast<const T*>(at(call.a, call.in, batch, 0, 0));
      const std::int64_t end = std::min(lines.end * line, call.n);
      if constexpr (std::is_same_v<T, double>) {
        HWY_DYNAMIC_DISPATCH(gemv_f64)(call, batch, lines.begin * line, end, x, y, run);
      } else {
        HWY_DYNAMIC_DISPATCH(gemv_f32)(call, batch, lines.begin * line, end, x, y, run);
      }
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const Call call = make_call(args);
  if (call.m != 1) return unsupported("C has more than one row and column");
  if (call.in != call.out || (call.in != DType::f32 && call.in != DType::f64)) {
    return unsupported("takes f32 or f64 throughout");
  }
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.b.column != 1) {
    if (call.b.row != 1) return unsupported("the matrix is contiguous in neither direction");
    if (call.a.column != 1 && (call.k > max_k || call.batch > 1)) {
      return unsupported("the vector is strided, and long or one of several");
    }
  }
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  const double n = static_cast<double>(call.n), k = static_cast<double>(call.k);
  // Starting on a row of the matrix, or on a dot product; reading it from a cache, or from memory.
  constexpr double a_matrix = 20e-9, a_row = 1.3e-9, a_column = 1.5e-9;
  constexpr double cached_bytes = 1 << 20, cache_rate = 100e9, memory_rate = 40e9;
  const double lines = call.b.column == 1 ? k * a_row : n * a_column;
  const double bytes = n * k * static_cast<double>(size_of(call.in));
  const double reading =
      bytes <= cached_bytes ? bytes / cache_rate : bytes / memory_rate / context.threads();
  return a_matrix + static_cast<double>(call.batch) * (a_matrix + lines + reading);
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  visit<float, double>(call.in, [&]<class T>() { gemv<T>(call, context); });
}

const Rung<Gemm> self{{.name = "gemv",
                       .step = 76,
                       .after = "few_rows",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
