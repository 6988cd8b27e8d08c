// SPDX-License-Identifier: Apache-2.0
// gemm / byte_dots
//
// Idea     i8 with few rows or columns in C: each element of C is a dot product along k. Up to four
//          rows of A times four columns of B share their loads; bytes are widened to 16 bits and
//          multiplied in pairs, whose sums accumulate in 32 bits, modulo 2^32.
// Changes  against bytes: no table and no panel of B, of which a narrow C would use one column.
// Cost     8 loads for 16 vector multiply-adds. An operand that is not contiguous along k is copied
//          first, 512 steps of k at a time; the short operand is copied once per 64 rows of the
//          long one.
// Limits   i8; at most 16 rows or columns in C.
// Source   pmaddwd, as in FBGEMM's and gemmlowp's kernels.
#include "rung/cpu/foreach_target.hpp"

#include <array>
#include <cstring>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"
#include "rung/ops/gemm/cpu/detail/textbook.hpp"

// Kernel: four rows of A times four columns of B; a dimension with fewer than four left uses one.
#ifndef RUNG_OPS_GEMM_CPU_81_BYTE_DOTS
#define RUNG_OPS_GEMM_CPU_81_BYTE_DOTS
namespace rung::gemm_cpu {
namespace {
constexpr int byte_dots_side = 4;

/// Arguments of sums[i][j] += sum over p < k of a[i][p] * b[j][p], modulo 2^32. With fewer than
/// four rows or columns, the last one is repeated.
struct ByteDots {
  std::int64_t k;
  std::array<const std::int8_t*, byte_dots_side> a, b;
  std::uint32_t (*sums)[byte_dots_side];
};
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

template <int rows, int columns>
HWY_NOINLINE void byte_dots_of(const ByteDots& s) {
#if HWY_TARGET > HWY_AVX2  // scalar fallback
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      std::uint32_t sum = 0;
      for (std::int64_t p = 0; p < s.k; ++p) {
        sum += static_cast<std::uint32_t>(int{s.a[i][p]} * int{s.b[j][p]});
      }
      s.sums[i][j] += sum;
    }
  }
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::int32_t> d;
  const hn::Repartition<std::int16_t, decltype(d)> wide;
  const hn::Rebind<std::int8_t, decltype(wide)> bytes;
  using V = hn::Vec<decltype(d)>;
  using Wide = hn::Vec<decltype(wide)>;
  constexpr auto step = static_cast<std::int64_t>(hn::MaxLanes(wide));
  // Accumulator additions are serially dependent: several chains if C has few elements.
  constexpr int chains = rows * columns == 1 ? 4 : 1;
  V sum[chains][rows * columns];
  for (auto& chain : sum) {
#pragma GCC unroll 16
    for (V& one : chain) one = hn::Zero(d);
  }
  const auto add = [&](const std::array<const std::int8_t*, byte_dots_side>& a,
                       const std::array<const std::int8_t*, byte_dots_side>& b, std::int64_t p,
                       V(&to)[rows * columns]) HWY_ATTR {
    Wide right[columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) right[j] = hn::PromoteTo(wide, hn::LoadU(bytes, b[j] + p));
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      const Wide left = hn::PromoteTo(wide, hn::LoadU(bytes, a[i] + p));
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) {
        V& element = to[i * columns + j];
        // A pair sums to at most 2 x 2^14. On x86 both products go to the first accumulator.
        V second = hn::Zero(d);
        element = hn::ReorderWidenMulAccumulate(d, left, right[j], element, second);
      }
    }
  };
  std::int64_t p = 0;
  for (; p + chains * step <= s.k; p += chains * step) {
#pragma GCC unroll 4
    for (int chain = 0; chain < chains; ++chain) add(s.a, s.b, p + chain * step, sum[chain]);
  }
  for (; p + step <= s.k; p += step) add(s.a, s.b, p, sum[0]);
  if (p < s.k) {
    // The remainder is copied and zero-padded: no byte beyond the operands is read.
    HWY_ALIGN std::int8_t rest[rows + columns][step] = {};
    std::array<const std::int8_t*, byte_dots_side> a{}, b{};
    const auto left = static_cast<std::size_t>(s.k - p);
    for (int i = 0; i < rows; ++i) {
      std::memcpy(rest[i], s.a[i] + p, left);
      a[i] = rest[i];
    }
    for (int j = 0; j < columns; ++j) {
      std::memcpy(rest[rows + j], s.b[j] + p, left);
      b[j] = rest[rows + j];
    }
    add(a, b, 0, sum[0]);
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      V all = sum[0][i * columns + j];
      for (int chain = 1; chain < chains; ++chain) {
        all = hn::Add(all, sum[chain][i * columns + j]);
      }
      // Unsigned, so that overflow wraps.
      HWY_ALIGN std::uint32_t lanes[hn::MaxLanes(d)];
      hn::Store(hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), all),
                hn::RebindToUnsigned<decltype(d)>(), lanes);
      for (const std::uint32_t lane : lanes) s.sums[i][j] += lane;
    }
  }
#endif
}

/// Returns the kernels, indexed by [four rows][four columns]; index 0 is a single row or column.
inline auto byte_dots() {
  using Function = void(const ByteDots&);
  return std::array<std::array<Function*, 2>, 2>{
      {{byte_dots_of<1, 1>, byte_dots_of<1, 4>}, {byte_dots_of<4, 1>, byte_dots_of<4, 4>}}};
}

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(byte_dots);

constexpr std::int64_t side = byte_dots_side;
constexpr std::int64_t narrow = 16;  // rows or columns of C
/// Steps of k copied at a time from an operand that is not contiguous along k: copies of 16 columns
/// and four rows take 10 KiB of L1.
constexpr std::int64_t copied_depth = 512;

/// Product C = op(A) op(B), or C^T = op(B)^T op(A)^T if that has fewer columns.
struct Product {
  RowMajorProduct call;
  bool transposed;
  std::int64_t rows, columns;  // of the computed matrix; columns are the short side
  // Strides in elements: between rows (columns), along k, and between matrices.
  struct Lines {
    const std::int8_t* data;
    std::int64_t next, along, batch;
  } left, right;

  explicit Product(const Gemm::Args& args) : call(row_major_product(args)) {
    transposed = call.n > call.m;
    rows = transposed ? call.n : call.m;
    columns = transposed ? call.m : call.n;
    const Lines a{static_cast<const std::int8_t*>(call.a.data), call.a.row, call.a.column,
                  call.a.batch};
    const Lines b{static_cast<const std::int8_t*>(call.b.data), call.b.column, call.b.row,
                  call.b.batch};
    left = transposed ? b : a;
    right = transposed ? a : b;
  }
};

/// Applies the epilogue to one element.
void finish(const RowMajorProduct& call, std::int64_t batch, std::int64_t i, std::int64_t j,
            std::uint32_t sum) {
  const auto element = [&](const auto& x) { return x.batch * batch + x.row * i + x.column * j; };
  auto* const c = static_cast<std::int32_t*>(call.c.data) + element(call.c);
  const auto load = [](const void* data, std::int64_t at) {
    return static_cast<std::uint32_t>(static_cast<const std::int32_t*>(data)[at]);
  };
  std::uint32_t value = gemm_factor<std::uint32_t>(call.alpha) * sum;
  if (call.beta != 0) value += gemm_factor<std::uint32_t>(call.beta) * load(c, 0);
  if (call.bias.data != nullptr) value += load(call.bias.data, element(call.bias));
  if (call.activation == Activation::relu && static_cast<std::int32_t>(value) < 0) value = 0;
  if (call.residual.data != nullptr) value += load(call.residual.data, element(call.residual));
  *c = static_cast<std::int32_t>(value);
}

/// Buffers of one thread: copies of operands that are not contiguous along k, and the sums of its
/// rows.
constexpr std::int64_t rows_at_once = 64;
struct ThreadBuffers {
  alignas(64) std::int8_t left[side][copied_depth];
  alignas(64) std::int8_t right[narrow][copied_depth];
  std::uint32_t sums[rows_at_once / side][narrow / side][side][side];
};

/// Returns `count` pointers to lines of an operand from `first` on at step p of k; `lines` of them
/// are distinct, the last one is repeated. Lines that are not contiguous are copied to `memory`.
template <std::size_t count>
std::array<const std::int8_t*, count> lines_at(const Product::Lines& from, std::int64_t batch,
                                               std::int64_t first, std::int64_t lines,
                                               std::int64_t p, std::int64_t depth,
                                               std::int8_t (*memory)[copied_depth]) {
  std::array<const std::int8_t*, count> at{};
  for (std::size_t i = 0; i < count; ++i) {
    const auto line = std::min(static_cast<std::int64_t>(i), lines - 1);
    at[i] = from.data + batch * from.batch + (first + line) * from.next + p * from.along;
    if (from.along == 1) continue;
    std::int8_t* const to = memory[line];
    for (std::int64_t q = 0; line == static_cast<std::int64_t>(i) && q < depth; ++q) {
      to[q] = at[i][q * from.along];
    }
    at[i] = to;
  }
  return at;
}

/// Computes `rows` rows of the result from `row` on.
void multiply_rows(const Product& product, std::int64_t batch, std::int64_t row, std::int64_t rows,
                   ThreadBuffers& memory) {
  const std::int64_t k = product.call.k, columns = product.columns;
  const bool copies = product.left.along != 1 || product.right.along != 1;
  const std::int64_t depth = copies ? copied_depth : k;
  const auto kernels = HWY_DYNAMIC_DISPATCH(byte_dots)();
  std::memset(memory.sums, 0,
              static_cast<std::size_t>(ceil_div(rows, side)) * sizeof memory.sums[0]);
  for (std::int64_t p = 0; p < k; p += depth) {
    ByteDots s{};
    s.k = std::min(depth, k - p);
    const auto right = lines_at<narrow>(product.right, batch, 0, columns, p, s.k, memory.right);
    for (std::int64_t i = 0; i < rows; i += side) {
      s.a = lines_at<side>(product.left, batch, row + i, std::min(side, rows - i), p, s.k,
                           memory.left);
      for (std::int64_t j = 0; j < columns; j += side) {
        std::copy_n(right.begin() + j, side, s.b.begin());
        s.sums = memory.sums[i / side][j / side];
        kernels[rows - i > 1 ? 1 : 0][columns - j > 1 ? 1 : 0](s);
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::uint32_t sum = memory.sums[i / side][j / side][i % side][j % side];
      product.transposed ? finish(product.call, batch, j, row + i, sum)
                         : finish(product.call, batch, row + i, j, sum);
    }
  }
}

/// Returns the thread count that pays. Storing one element takes as long as some hundred
/// multiply-adds.
int threads_of(const Product& product, int available) {
  constexpr std::int64_t of_an_element = 512, of_a_thread = 1 << 18;
  const std::int64_t products =
      product.call.batch * product.rows * product.columns * (product.call.depth() + of_an_element);
  return static_cast<int>(std::clamp<std::int64_t>(products / of_a_thread, 1, available));
}

Work work(const Gemm::Args& args, const Context& context) {
  const Product product(args);
  const auto rows = static_cast<double>(product.rows), k = static_cast<double>(args.k());
  const auto columns = static_cast<double>(product.columns);
  const double groups = std::ceil(rows / side) * std::ceil(columns / side);
  return {.operations = 2 * static_cast<double>(args.batch()) * rows * columns * k,
          .blocks = static_cast<double>(args.batch()) * groups,
          .steps = rows * std::ceil(columns / side) * k / groups,
          .threads = threads_of(product, context.threads())};
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.a.dtype != DType::i8) return unsupported("takes i8");
  if (std::min(args.m(), args.n()) > narrow) {
    return unsupported("C has more than 16 rows and more than 16 columns");
  }
  if (args.alpha == 0 || args.k() == 0) return unsupported("k or alpha is 0");
  return supported;
}

void run(const Gemm::Args& args, Context& context) {
  const Product product(args);
  // Equal parts per thread, of at least `side` rows, which share the loads of a column.
  const int available = threads_of(product, context.threads());
  const std::int64_t of_each = ceil_div<std::int64_t>(product.rows, available);
  const std::int64_t step =
      std::clamp<std::int64_t>(ceil_div(of_each, side) * side, side, rows_at_once);
  const std::int64_t parts = ceil_div(product.rows, step);
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(available, product.call.batch * parts));
  auto* const memory = static_cast<ThreadBuffers*>(
      context.workspace(static_cast<std::size_t>(threads) * sizeof(ThreadBuffers)));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(product.call.batch * parts);
    for (std::int64_t at = mine.begin; at < mine.end; ++at) {
      const std::int64_t row = at % parts * step;
      multiply_rows(product, at / parts, row, std::min(step, product.rows - row),
                    memory[team.rank()]);
    }
  });
}

const Rung<Gemm> self{
    {.name = "byte_dots", .after = "bytes", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
