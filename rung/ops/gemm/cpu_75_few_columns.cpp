// SPDX-License-Identifier: Apache-2.0
// gemm / few columns
//
// Idea     with few columns in B, A is the whole cost. It is copied a panel at a time, 24 rows by
//          256 k, to where its rows do not share a set of L1, and broadcast from there; while one
//          panel is multiplied, the next is fetched from memory, a line or two for each k.
// Changes  against packed_simd: tiles one vector wide with 24 rows (25 loads for 24 FMAs); fetching
//          the large operand overlaps with arithmetic instead of preceding it.
// Cost     A once from memory and once through L1; B, packed, from L1 or L2.
// Limits   up to two vectors of columns (32 f32 on AVX-512), rows of A contiguous.
// Tried    on a 2-core Zen 5 vCPU at 4096x16x4096: packed_simd's way, panels fetched when they are
//          packed, -35 %; fetching a line of each of the 24 rows in turn, instead of row after row,
//          -13 %.
// Source   measured here.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu_blocked.hpp"
#include "rung/ops/gemm/cpu_estimate.hpp"
#include "rung/ops/gemm/cpu_few_columns-inl.hpp"

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(panel_f32);
HWY_EXPORT(panel_f64);

template <class T>
PanelFunction<T>* panel_function(int vectors, std::int64_t rows) {
  if constexpr (std::is_same_v<T, double>) {
    return HWY_DYNAMIC_DISPATCH(panel_f64)(vectors, rows);
  } else {
    return HWY_DYNAMIC_DISPATCH(panel_f32)(vectors, rows);
  }
}

constexpr std::int64_t block_k = 256;  // a strip of B and a panel of A: 16 + 24 of 48 KiB of L1

template <class T>
void few_columns(const Call& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const int threads = threads_worth(call, context.threads());
  const int width = strip_width(ks, call.n);
  const int vectors = width / ks.lanes;
  const std::int64_t most = vectors == 1 ? ks.narrow_tile_rows : ks.tile_rows;
  const std::int64_t a_row = copied_row<T>(block_k);
  const std::int64_t sums_size = round_up(most * width, 1024);
  const std::int64_t own = round_up(most * a_row, 1024) + sums_size;
  const std::int64_t b_size = round_up(call.k * width, 1024);
  T* b = static_cast<T*>(context.workspace((b_size + threads * own) * sizeof(T)));
  const int in = static_cast<int>(call.in);
  const std::int64_t row_bytes = call.a.row * static_cast<std::int64_t>(size_of(call.in));

  cpu::run_team(threads, [&](const cpu::Team& team) {
    T* a = b + b_size + team.rank() * own;
    T* staging = a + own - sums_size;
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      team.wait();
      const cpu::Range blocks = team.share(ceil_div(call.k, block_k));
      for (std::int64_t x = blocks.begin; x < blocks.end; ++x) {
        const std::int64_t p = x * block_k;
        pack_b(call, ks, batch, p, std::min(block_k, call.k - p), 0, call.n, b + p * width);
      }
      team.wait();
      Sums<T> sums = make_sums(call, ks, batch, staging, width);
      const cpu::Range rows = team.share(call.m);
      const std::int64_t panels = std::max<std::int64_t>(1, ceil_div(rows.size(), most));
      const std::int64_t step = ceil_div(rows.size(), panels);
      for (std::int64_t i = rows.begin; i < rows.end; i += step) {
        const std::int64_t count = std::min(step, rows.end - i);
        if (sums.staged) sums.i0 = i;
        for (std::int64_t p = 0; p < call.k; p += block_k) {
          const std::int64_t k = std::min(block_k, call.k - p);
          ks.copy[in](at(call.a, call.in, batch, i, p), call.a.row, count, k, a, a_row);
          Panel<T> s{};
          s.tile = {k,
                    a,
                    a_row,
                    1,
                    b + p * width,
                    width,
                    sums.at(i, 0),
                    sums.row,
                    static_cast<int>(call.n),
                    static_cast<T>(call.alpha),
                    sums.beta(p == 0)};
          // The next block of these rows, or the first of the next ones.
          const bool more_k = p + block_k < call.k;
          const std::int64_t next_i = more_k ? i : i + step;
          s.next_rows = static_cast<int>(std::clamp<std::int64_t>(rows.end - next_i, 0, count));
          if (s.next_rows > 0) {
            s.next = static_cast<const char*>(
                at(call.a, call.in, batch, next_i, more_k ? p + block_k : 0));
          }
          s.next_row = row_bytes;
          panel_function<T>(vectors, count)(s);
        }
        sums.finish(i, count, 0, call.n);
      }
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const Call call = make_call(args);
  const int width =
      call.in == DType::f64 ? kernels<double>().tile_columns() : kernels<float>().tile_columns();
  if (call.n > width) return unsupported("more columns than two vectors hold");
  if (call.a.column != 1) return unsupported("takes contiguous rows in A");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.k * width > (1 << 21)) return unsupported("B is more than 8 MiB when packed");
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  const int threads = threads_worth(call, context.threads());
  const double lanes = call.in == DType::f64 ? kernels<double>().lanes : kernels<float>().lanes;
  const double n = static_cast<double>(call.n);
  const double used = n / (std::ceil(n / lanes) * lanes);  // of the vectors
  const double a = static_cast<double>(call.m) * static_cast<double>(call.k);
  return streaming_seconds(call, a, 0.75 * used, threads) + 1e-6;
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  if (call.in == DType::f64) {
    few_columns<double>(call, context);
  } else {
    few_columns<float>(call, context);  // f16 and bf16 too, which are widened while packing
  }
}

const Rung<Gemm> self{{.name = "few_columns",
                       .step = 75,
                       .after = "few_rows",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
