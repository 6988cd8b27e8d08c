// SPDX-License-Identifier: Apache-2.0
// gemm / matrix times vector
//
// Idea     one row (or column) of C: two operations per matrix element, so memory bandwidth is the
//          only limit. Along contiguous rows of B, eight rows at a time are scaled and added to C;
//          along contiguous columns, four dot products run in parallel.
// Changes  against few_rows: no packing and no staging of a tile; the hardware prefetchers follow
//          few long streams and need software prefetch only at page boundaries.
// Cost     the matrix once.
// Limits   f32 and f64; the matrix contiguous in one direction.
// Source   the BLAS's gemv.
#include "rung/cpu/foreach_target.hpp"

#include <tuple>

#include "rung/cpu/prefetch.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

// Kernels of gemv: sums of scaled rows, or dot products of columns.
HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

constexpr int streams = 8;  // rows read in parallel

// Prefetcher of B's rows from memory: the hardware alone, helped at page ends (`left`), or
// software, which prefetches every line into L2, 16 lines ahead (`prefetched`). Software
// prefetch gains on Zen 4 and costs a tenth or more where B is cached (EXPERIMENTS.md).
enum class Streaming { left, prefetched };

// Computes y[j] = sum over r < rows of x[r * x_step] * b[r * b_row + j], plus y[j] unless `first`.
template <int rows, Streaming streaming, class T>
void add_group(std::int64_t columns, const T* x, std::int64_t x_step, T alpha, const T* b,
               std::int64_t b_row, T* y, bool first) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr std::int64_t step = 2 * lanes<T>();
  // The hardware prefetchers stop at page ends (4 KiB): the first lines of each row's next page are
  // prefetched a page ahead, so that its stream has started before it is needed (1x4096x4096 on a
  // 2-core Zen 5 vCPU: +10 %; four lines instead of two: half of that; every line: -25 %, as the
  // requests compete for the L1 miss buffers).
  constexpr std::int64_t page = 4096 / sizeof(T);
  constexpr std::int64_t line = 64 / sizeof(T);
  V element[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) element[r] = hn::Set(d, alpha * x[r * x_step]);
  std::int64_t j = 0;
  for (; j + step <= columns; j += step) {
    if constexpr (streaming == Streaming::prefetched) {
      // After the last column, prefetching continues in the next group of rows.
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
  for (; j < columns; j += lanes<T>()) {
    const auto some =
        hn::FirstN(d, static_cast<std::size_t>(std::min<std::int64_t>(columns - j, lanes<T>())));
    V sum = first ? hn::Zero(d) : hn::MaskedLoad(some, d, y + j);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      sum = hn::MulAdd(element[r], hn::MaskedLoad(some, d, b + r * b_row + j), sum);
    }
    hn::BlendedStore(sum, some, d, y + j);
  }
}

// Computes y[j] = sum over p < k of x[p * x_step] * b[p * b_row + j].
template <Streaming streaming, class T>
void add_rows(std::int64_t k, std::int64_t columns, const T* x, std::int64_t x_step, T alpha,
              const T* b, std::int64_t b_row, T* y) {
  std::int64_t p = 0;
  const auto groups_of = [&]<int rows>() HWY_ATTR {
    for (; p + rows <= k; p += rows) {
      add_group<rows, streaming>(columns, x + p * x_step, x_step, alpha, b + p * b_row, b_row, y,
                                 p == 0);
    }
  };
  groups_of.template operator()<streams>();
  groups_of.template operator()<2>();
  groups_of.template operator()<1>();
}

// Computes y[j] = alpha * sum over p < k of x[p] * b[j * b_column + p].
template <class T>
void dot_columns(std::int64_t k, std::int64_t columns, const T* x, T alpha, const T* b,
                 std::int64_t b_column, T* y) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr int adjacent = 4;
  constexpr int chains = 2;  // accumulators per column: 8 in all cover the FMA latency
  for (std::int64_t j = 0; j < columns; j += adjacent) {
    const T* column[adjacent];
    for (int c = 0; c < adjacent; ++c) column[c] = b + std::min(j + c, columns - 1) * b_column;
    V sum[adjacent][chains];
#pragma GCC unroll 4
    for (int c = 0; c < adjacent; ++c) {
#pragma GCC unroll 2
      for (int v = 0; v < chains; ++v) sum[c][v] = hn::Zero(d);
    }
    std::int64_t p = 0;
    for (; p + chains * lanes<T>() <= k; p += chains * lanes<T>()) {
#pragma GCC unroll 2
      for (int v = 0; v < chains; ++v) {
        const V element = hn::LoadU(d, x + p + v * lanes<T>());
#pragma GCC unroll 4
        for (int c = 0; c < adjacent; ++c) {
          sum[c][v] = hn::MulAdd(element, hn::LoadU(d, column[c] + p + v * lanes<T>()), sum[c][v]);
        }
      }
    }
    for (; p < k; p += lanes<T>()) {
      const auto mask =
          hn::FirstN(d, static_cast<std::size_t>(std::min<std::int64_t>(k - p, lanes<T>())));
      const V element = hn::MaskedLoad(mask, d, x + p);
#pragma GCC unroll 4
      for (int c = 0; c < adjacent; ++c) {
        sum[c][0] = hn::MulAdd(element, hn::MaskedLoad(mask, d, column[c] + p), sum[c][0]);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < adjacent; ++c) {
      const T total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[c][0], sum[c][1])));
      if (j + c < columns) y[j + c] = alpha * total;
    }
  }
}

// Computes columns [begin, end) of C, a run of sums at a time.
template <class T>
void multiply(const RowMajorProduct& call, std::int64_t batch, std::int64_t begin, std::int64_t end,
              const T* x, T* y, std::int64_t run) {
  Sums<T> sums{call, kernels<T>(), batch, true, y, run};
  const T alpha = static_cast<T>(call.alpha);
  constexpr std::int64_t cached_bytes = 16 << 20;
  const bool prefetched = cpu::prefetches_into_l2() &&
                          call.n * call.k * static_cast<std::int64_t>(sizeof(T)) > cached_bytes;
  // Sums are written directly to C unless an epilogue or a conversion follows.
  const bool plain = call.direct() && call.beta == 0 && !call.has_epilogue();
  for (std::int64_t j = begin; j < end; j += run) {
    const std::int64_t columns = std::min(run, end - j);
    T* const to = plain ? static_cast<T*>(at(call.c, call.out, batch, 0, j)) : y;
    const T* b = static_cast<const T*>(at(call.b, call.in, batch, 0, j));
    if (call.b.column == 1) {
      const T* a = static_cast<const T*>(at(call.a, call.in, batch, 0, 0));
      const auto add =
          prefetched ? add_rows<Streaming::prefetched, T> : add_rows<Streaming::left, T>;
      add(call.k, columns, a, call.a.column, alpha, b, call.b.row, to);
    } else {
      dot_columns(call.k, columns, x, alpha, b, call.b.column, to);
    }
    if (plain) continue;
    sums.j0 = j;
    sums.finish(0, 1, j, columns);
  }
}

inline auto gemv_kernels() { return std::tuple{&multiply<float>, &multiply<double>}; }

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(gemv_kernels);

constexpr std::int64_t max_k = 1 << 20;

/// Returns the thread count: 1 below 256 KiB, else all. Two cores reach 1.5 times the memory
/// bandwidth of one.
template <class T>
int threads_of(const RowMajorProduct& call, const Context& context) {
  const double bytes = static_cast<double>(call.n * call.k * call.batch) * sizeof(T);
  return bytes < 256 << 10 ? 1 : context.threads();
}

template <class T>
void gemv(const RowMajorProduct& call, Context& context) {
  const int threads = threads_of<T>(call, context);
  // Sums of 4096 columns stay in L1 together with the streams.
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
  const auto multiply =
      std::get < std::is_same_v<T, double> ? 1 : 0 > (HWY_DYNAMIC_DISPATCH(gemv_kernels)());
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const std::int64_t line = 64 / sizeof(T);  // avoids false sharing
    const bool by_matrix = call.batch >= team.size();
    const cpu::Range matrices = by_matrix ? team.share(call.batch) : cpu::Range{0, call.batch};
    cpu::Range lines{0, ceil_div(call.n, line)};
    if (!by_matrix) lines = team.share(lines.end);
    T* y = workspace + team.rank() * run;
    for (std::int64_t batch = matrices.begin; batch < matrices.end; ++batch) {
      const T* x = copy_x ? copy : static_cast<const T*>(at(call.a, call.in, batch, 0, 0));
      const std::int64_t end = std::min(lines.end * line, call.n);
      multiply(call, batch, lines.begin * line, end, x, y, run);
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const RowMajorProduct call = row_major_product(args);
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

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  const bool rows = call.b.column == 1;
  return {.operations = vector_operations(Gemm::cost(args).operations / 2 / lanes_of(call) +
                                          finish_fmas(call, false)),
          .blocks = call.batch,
          .steps = rows ? call.k : call.n,
          .threads = with_sums(call.in, [&]<class T>() { return threads_of<T>(call, context); }),
          .path = rows ? "" : "dots"};
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  visit<float, double>(call.in, [&]<class T>() { gemv<T>(call, context); });
}

const Rung<Gemm> self{
    {.name = "gemv", .after = "few_rows", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
