// SPDX-License-Identifier: Apache-2.0
//
// The kernels of gemv: along rows, which are added up, or along columns, which are dot products.
#if defined(RUNG_OPS_GEMM_CPU_GEMV_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_GEMV_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_GEMV_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_GEMV_INL_HPP_
#endif

#include "rung/cpu/prefetch.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

constexpr int streams = 8;  // rows read in parallel

// What brings rows of B from memory: the hardware, helped at the ends of pages, or the kernel that
// asks for every line, into L2. 1x4096x4096 on a 2-core Zen 4 vCPU, one thread and two: 23.5 and
// 28.7 GB/s left to the hardware, 28.8 and 38.3 asked for 16 lines ahead (8 lines: 25.5 and 37.1,
// 32 lines: 23.8 and 33.0; into L1 instead: 21.4 and 29.2). The next rows asked for in time, too:
// with two threads 4 % to 9 % against OpenBLAS. From caches all of it costs a tenth or more.
enum class Streaming { left, asked };

// y[j] = sum over r < rows of x[r * x_step] * b[r * b_row + j], plus what is in y unless `first`.
template <int rows, Streaming streaming, class T>
void add_group(std::int64_t columns, const T* x, std::int64_t x_step, T alpha, const T* b,
               std::int64_t b_row, T* y, bool first) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr std::int64_t step = 2 * lanes<T>();
  // The prefetchers of the hardware stop at the end of a page (4 KiB): the first lines of each
  // row's next page are asked for a page ahead, so that its stream has started when it is needed
  // (1x4096x4096 on a 2-core Zen 5 vCPU: +10 %; four lines rather than two: half of that; every
  // line: -25 %, as the requests compete for the miss buffers of L1).
  constexpr std::int64_t page = 4096 / sizeof(T);
  constexpr std::int64_t line = 64 / sizeof(T);
  V element[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) element[r] = hn::Set(d, alpha * x[r * x_step]);
  std::int64_t j = 0;
  for (; j + step <= columns; j += step) {
    if constexpr (streaming == Streaming::asked) {
      // Behind the last column, the rows of the next group begin.
      const std::int64_t behind = j + 16 * line - columns;
      const T* soon = b + (behind < 0 ? j + 16 * line : rows * b_row + behind);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        __builtin_prefetch(soon + r * b_row, 0, 2);
        __builtin_prefetch(soon + r * b_row + line, 0, 2);
      }
    } else if (j % page == 0) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        __builtin_prefetch(b + r * b_row + j + page);
        __builtin_prefetch(b + r * b_row + j + page + line);
      }
    }
    V sum[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) sum[v] = first ? hn::Zero(d) : hn::LoadU(d, y + j + v * lanes<T>());
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        sum[v] = hn::MulAdd(element[r], hn::LoadU(d, b + r * b_row + j + v * lanes<T>()), sum[v]);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) hn::StoreU(sum[v], d, y + j + v * lanes<T>());
  }
  for (; j < columns; ++j) {
    T sum = first ? T{0} : y[j];
    for (int r = 0; r < rows; ++r) sum += hn::GetLane(element[r]) * b[r * b_row + j];
    y[j] = sum;
  }
}

// y[j] = sum over p < k of x[p * x_step] * b[p * b_row + j]
template <Streaming streaming, class T>
void add_rows(std::int64_t k, std::int64_t columns, const T* x, std::int64_t x_step, T alpha,
              const T* b, std::int64_t b_row, T* y) {
  std::int64_t p = 0;
  for (; p + streams <= k; p += streams) {
    add_group<streams, streaming>(columns, x + p * x_step, x_step, alpha, b + p * b_row, b_row, y,
                                  p == 0);
  }
  for (; p < k; ++p) {
    add_group<1, streaming>(columns, x + p * x_step, x_step, alpha, b + p * b_row, b_row, y,
                            p == 0);
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
  constexpr std::int64_t cached_bytes = 16 << 20;
  const bool asked = cpu::asks_memory_for_lines() &&
                     call.n * call.k * static_cast<std::int64_t>(sizeof(T)) > cached_bytes;
  for (std::int64_t j = begin; j < end; j += run) {
    const std::int64_t columns = std::min(run, end - j);
    const T* b = static_cast<const T*>(at(call.b, call.in, batch, 0, j));
    if (call.b.column == 1) {
      const T* a = static_cast<const T*>(at(call.a, call.in, batch, 0, 0));
      const auto add = asked ? add_rows<Streaming::asked, T> : add_rows<Streaming::left, T>;
      add(call.k, columns, a, call.a.column, alpha, b, call.b.row, y);
    } else {
      dot_columns(call.k, columns, x, alpha, b, call.b.column, y);
    }
    sums.j0 = j;
    sums.finish(0, 1, j, columns);
  }
}

}  // namespace

inline void gemv_f32(const Call& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
                     const float* x, float* y, std::int64_t run) {
  multiply(call, batch, begin, end, x, y, run);
}
inline void gemv_f64(const Call& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
                     const double* x, double* y, std::int64_t run) {
  multiply(call, batch, begin, end, x, y, run);
}
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
