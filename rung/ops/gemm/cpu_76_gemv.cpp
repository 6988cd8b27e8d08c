// SPDX-License-Identifier: Apache-2.0
// gemm / matrix times vector
//
// Idea     one row (or column) of C: two operations for each element of the matrix, which is
//          therefore read at the speed of memory and nothing else matters. Along contiguous rows of
//          B, eight of them at a time are added to C; along contiguous columns, four dot products
//          run side by side.
// Changes  against few_rows: no packing, no staging of a tile; the hardware's prefetchers get few,
//          long streams and are left to it.
// Cost     the matrix once.
// Limits   f32 and f64; the matrix contiguous in one direction.
// Tried    on a 2-core Zen 5 vCPU: software prefetches -25 %, as they compete for the miss buffers
//          of L1; 2, 4, 6 or 16 rows at a time -45, -10, -9 and -15 %; four vectors of sums: none.
// Source   the BLAS's gemv.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu_blocked.hpp"
#include "rung/ops/gemm/cpu_estimate.hpp"
#include "rung/ops/gemm/cpu_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

constexpr int streams = 8;  // rows read side by side

// y[j] (+)= sum over p < k of x[p * x_step] * b[p * b_row + j]
template <class T>
void add_rows(std::int64_t k, std::int64_t columns, const T* x, std::int64_t x_step, T alpha,
              const T* b, std::int64_t b_row, T* y) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr std::int64_t step = 2 * lanes<T>();
  for (std::int64_t p = 0; p < k; p += streams) {
    V element[streams];
#pragma GCC unroll 8
    for (int r = 0; r < streams; ++r) {
      element[r] = hn::Set(d, p + r < k ? alpha * x[(p + r) * x_step] : T{0});
    }
    const T* row[streams];  // beyond the last row: the last one again, times zero
#pragma GCC unroll 8
    for (int r = 0; r < streams; ++r) row[r] = b + std::min(p + r, k - 1) * b_row;
    std::int64_t j = 0;
    for (; j + step <= columns; j += step) {
      V sum[2];
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        sum[v] = p == 0 ? hn::Zero(d) : hn::LoadU(d, y + j + v * lanes<T>());
      }
#pragma GCC unroll 8
      for (int r = 0; r < streams; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          sum[v] = hn::MulAdd(element[r], hn::LoadU(d, row[r] + j + v * lanes<T>()), sum[v]);
        }
      }
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) hn::StoreU(sum[v], d, y + j + v * lanes<T>());
    }
    for (; j < columns; ++j) {
      T sum = p == 0 ? T{0} : y[j];
      for (int r = 0; r < streams && p + r < k; ++r) sum += hn::GetLane(element[r]) * row[r][j];
      y[j] = sum;
    }
  }
}

// y[j] = alpha * sum over p < k of x[p] * b[j * b_column + p]
template <class T>
void dot_columns(std::int64_t k, std::int64_t columns, const T* x, T alpha, const T* b,
                 std::int64_t b_column, T* y) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr int side_by_side = 4;
  constexpr int chains = 2;  // sums a column: 8 in all cover the latency of an FMA
  for (std::int64_t j = 0; j < columns; j += side_by_side) {
    const T* column[side_by_side];
    for (int c = 0; c < side_by_side; ++c) column[c] = b + std::min(j + c, columns - 1) * b_column;
    V sum[side_by_side][chains];
#pragma GCC unroll 4
    for (int c = 0; c < side_by_side; ++c) {
#pragma GCC unroll 2
      for (int v = 0; v < chains; ++v) sum[c][v] = hn::Zero(d);
    }
    std::int64_t p = 0;
    for (; p + chains * lanes<T>() <= k; p += chains * lanes<T>()) {
#pragma GCC unroll 2
      for (int v = 0; v < chains; ++v) {
        const V element = hn::LoadU(d, x + p + v * lanes<T>());
#pragma GCC unroll 4
        for (int c = 0; c < side_by_side; ++c) {
          sum[c][v] = hn::MulAdd(element, hn::LoadU(d, column[c] + p + v * lanes<T>()), sum[c][v]);
        }
      }
    }
    for (; p < k; p += lanes<T>()) {
      const auto mask =
          hn::FirstN(d, static_cast<std::size_t>(std::min<std::int64_t>(k - p, lanes<T>())));
      const V element = hn::MaskedLoad(mask, d, x + p);
#pragma GCC unroll 4
      for (int c = 0; c < side_by_side; ++c) {
        sum[c][0] = hn::MulAdd(element, hn::MaskedLoad(mask, d, column[c] + p), sum[c][0]);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < side_by_side; ++c) {
      const T total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[c][0], sum[c][1])));
      if (j + c < columns) y[j + c] = alpha * total;
    }
  }
}

// Columns [begin, end) of C, a run of sums at a time.
template <class T>
void multiply(const Call& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
              const T* x, T* y, std::int64_t run) {
  Sums<T> sums{call, kernels<T>(), batch, true, y, run};
  const T alpha = static_cast<T>(call.alpha);
  for (std::int64_t j = begin; j < end; j += run) {
    const std::int64_t columns = std::min(run, end - j);
    const T* b = static_cast<const T*>(at(call.b, call.in, batch, 0, j));
    if (call.b.column == 1) {
      const T* a = static_cast<const T*>(at(call.a, call.in, batch, 0, 0));
      add_rows(call.k, columns, a, call.a.column, alpha, b, call.b.row, y);
    } else {
      dot_columns(call.k, columns, x, alpha, b, call.b.column, y);
    }
    sums.j0 = j;
    sums.finish(0, 1, j, columns);
  }
}

}  // namespace

void gemv_f32(const Call& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
              const float* x, float* y, std::int64_t run) {
  multiply(call, batch, begin, end, x, y, run);
}
void gemv_f64(const Call& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
              const double* x, double* y, std::int64_t run) {
  multiply(call, batch, begin, end, x, y, run);
}
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(gemv_f32);
HWY_EXPORT(gemv_f64);

constexpr std::int64_t most_k = 1 << 20;

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
    if (call.a.column != 1 && (call.k > most_k || call.batch > 1)) {
      return unsupported("the vector is strided, and long or one of several");
    }
  }
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  return 0.5 * few_rows_seconds(make_call(args), context.threads());
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  if (call.in == DType::f64) {
    gemv<double>(call, context);
  } else {
    gemv<float>(call, context);
  }
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
