// SPDX-License-Identifier: Apache-2.0
// gemm / dot products
//
// Idea     if both operands are contiguous along k and C is small or narrow, C's elements are dot
//          products along k: four rows of A times four columns of B at a time, or one row times 16.
//          One reduction tree combines the lanes of all 16 sums. A matrix of two to four columns
//          times a vector deinterleaves its rows on loading.
// Changes  against gemv: several rows share the loads of B. Against packed_simd and small: neither
//          operand is packed, which would gather columns one element at a time.
// Cost     8 loads for 16 vector multiply-adds; about 45 instructions combine the lanes of 16
//          elements of C.
// Limits   rows of A contiguous; columns of B contiguous, or up to 16 columns that are copied
//          first; at most 16 rows or columns in C.
#include "rung/cpu/foreach_target.hpp"

#include <tuple>

#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

// Kernel of dots: a few rows of C times a run of columns.
#ifndef RUNG_OPS_GEMM_CPU_78_DOTS
#define RUNG_OPS_GEMM_CPU_78_DOTS
namespace rung::gemm_cpu {
namespace {
constexpr int dot_rows = 4;
constexpr int dot_columns_at_once = 4;
constexpr int dot_columns_of_a_row = 16;  // columns per run if C has one row

/// Arguments of Y = alpha * A * B + beta * Y: with sums over p < k, element (i, j) of A * B is
/// sum a[i * a_row + p] * b[j * b_column + p], and that of Y is y[i * y_row + j].
template <class In>
struct Dots {
  using T = Accumulator<In>;
  std::int64_t rows, columns, k;  // rows: up to dot_rows
  const In* a;
  std::int64_t a_row;
  const In* b;
  std::int64_t b_column;
  T alpha, beta;
  T* y;
  std::int64_t y_row;
};
}  // namespace
}  // namespace rung::gemm_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;

/// Reduces `count` vectors to the sums of their lanes. Adds neighbors in pairs, which halves the
/// number of vectors and doubles the sums per vector, until a vector holds one sum per lane.
template <int lanes_each, int count, class T, class V>
HWY_INLINE void sums_of_lanes(V (&v)[count], T* sums) {
  [[maybe_unused]] const Full<T> d;
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < count; ++i) sums[i] = hn::GetLane(v[i]);
#else
  if constexpr (lanes_each == 1) {
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) hn::StoreU(v[i], d, sums + i * lanes<T>());
  } else if constexpr (count == 1) {  // more lanes than sums: fold the vector with itself
    V folded[1] = {hn::Add(hn::ConcatEven(d, v[0], v[0]), hn::ConcatOdd(d, v[0], v[0]))};
    sums_of_lanes<lanes_each / 2>(folded, sums);
  } else {
    V half[count / 2];
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) {
      half[i] = hn::Add(hn::ConcatEven(d, v[2 * i + 1], v[2 * i]),
                        hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]));
    }
    sums_of_lanes<lanes_each / 2>(half, sums);
  }
#endif
}

template <int rows, int columns, class In>
HWY_NOINLINE void dots_of_rows(const Dots<In>& s) {
  using T = Accumulator<In>;
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  for (std::int64_t j = 0; j < s.columns; j += columns) {
    const In* column[columns];
    for (int c = 0; c < columns; ++c) {
      column[c] = s.b + std::min(j + c, s.columns - 1) * s.b_column;
    }
    constexpr int sums = (rows == 3 ? 4 : rows) * columns;  // a power of two
    constexpr int chains = chains_of<rows * columns>;
    V sum[sums];
    V more[chains][sums];  // accumulators of the later vectors of an iteration; [0] is unused
#pragma GCC unroll 16
    for (int i = 0; i < sums; ++i) {
      sum[i] = hn::Zero(d);
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) more[c][i] = hn::Zero(d);
    }
    const auto add = [&](std::int64_t p, V(&to)[sums], auto load) HWY_ATTR {
      V b[columns];
#pragma GCC unroll 16
      for (int c = 0; c < columns; ++c) b[c] = load(column[c] + p);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const V a = load(s.a + r * s.a_row + p);
#pragma GCC unroll 16
        for (int c = 0; c < columns; ++c) {
          to[r * columns + c] = hn::MulAdd(a, b[c], to[r * columns + c]);
        }
      }
    };
    const auto whole = [&](const In* from) HWY_ATTR { return load_as(d, from); };
    std::int64_t p = 0;
    if constexpr (chains > 1) {
      for (; p + chains * lanes<T>() <= s.k; p += chains * lanes<T>()) {
        add(p, sum, whole);
#pragma GCC unroll 4
        for (int c = 1; c < chains; ++c) add(p + c * lanes<T>(), more[c], whole);
      }
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) {
#pragma GCC unroll 4
        for (int i = 0; i < sums; ++i) sum[i] = hn::Add(sum[i], more[c][i]);
      }
    }
    for (; p + lanes<T>() <= s.k; p += lanes<T>()) add(p, sum, whole);
    if (p < s.k) {
      const auto left = static_cast<std::size_t>(s.k - p);
      add(p, sum, [&](const In* from) HWY_ATTR { return load_as_n(d, from, left); });
    }
    alignas(64) T total[std::max(sums, lanes<T>())];
    sums_of_lanes<lanes<T>()>(sum, total);
    const int there = static_cast<int>(std::min<std::int64_t>(columns, s.columns - j));
    for (int r = 0; r < rows; ++r) {
      T* const y = s.y + r * s.y_row + j;
      if (s.beta == T{0}) {
        for (int c = 0; c < there; ++c) y[c] = s.alpha * total[r * columns + c];
      } else {
        for (int c = 0; c < there; ++c) y[c] = s.alpha * total[r * columns + c] + s.beta * y[c];
      }
    }
  }
}

/// Multiplies one row of A of k <= 4 elements by adjacent columns of B of k elements each, a vector
/// of sums at a time.
template <int k, class T>
HWY_NOINLINE void dots_of_pixels(const Dots<T>& s) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  V x[k];
#pragma GCC unroll 4
  for (int p = 0; p < k; ++p) x[p] = hn::Set(d, s.alpha * s.a[p]);
  std::int64_t j = 0;
  for (; j + lanes<T>() <= s.columns; j += lanes<T>()) {
    V b[4];
    if constexpr (k == 2) hn::LoadInterleaved2(d, s.b + j * k, b[0], b[1]);
    if constexpr (k == 3) hn::LoadInterleaved3(d, s.b + j * k, b[0], b[1], b[2]);
    if constexpr (k == 4) hn::LoadInterleaved4(d, s.b + j * k, b[0], b[1], b[2], b[3]);
    V sum = hn::Mul(x[0], b[0]);
#pragma GCC unroll 4
    for (int p = 1; p < k; ++p) sum = hn::MulAdd(x[p], b[p], sum);
    hn::StoreU(sum, d, s.y + j);
  }
  for (; j < s.columns; ++j) {
    T sum = 0;
    for (int p = 0; p < k; ++p) sum += hn::GetLane(x[p]) * s.b[j * k + p];
    s.y[j] = sum;
  }
}

template <int columns, class In>
HWY_INLINE void dots_by(const Dots<In>& s) {
  if (s.rows == 4) return dots_of_rows<4, columns>(s);
  if (s.rows == 3) return dots_of_rows<3, columns>(s);
  if (s.rows == 2) return dots_of_rows<2, columns>(s);
  dots_of_rows<1, columns>(s);
}

template <class In>
void dots_of(const Dots<In>& s) {
  if constexpr (sizeof(In) >= 4) {
    if (s.rows == 1 && s.b_column == s.k && s.beta == 0) {
      if (s.k == 2) return dots_of_pixels<2>(s);
      if (s.k == 3) return dots_of_pixels<3>(s);
      if (s.k == 4) return dots_of_pixels<4>(s);
    }
  }
  if (s.rows == 1 && s.columns > dot_columns_at_once) {
    return dots_of_rows<1, dot_columns_of_a_row>(s);
  }
  if (s.columns == 1) return dots_by<1>(s);
  if (s.columns == 2) return dots_by<2>(s);
  dots_by<dot_columns_at_once>(s);
}

/// Returns the kernels, indexed by type of A and B.
inline auto dots_kernels() {
  return std::tuple{&dots_of<float>, &dots_of<double>, &dots_of<bf16>, &dots_of<f16>};
}

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(dots_kernels);

constexpr std::int64_t narrow = 16;        // maximum rows or columns of C
constexpr std::int64_t run_of_dots = 256;  // columns per epilogue run

// Largest copy of non-contiguous columns of B, in elements, and the largest k of such a copy: four
// rows of A then stay in L2.
constexpr std::int64_t max_copied = 1 << 18;
constexpr std::int64_t max_copied_k = 8192;

/// Copies B to `to` with contiguous columns and returns the copy as an operand.
template <class In>
Operand copy_columns(const RowMajorProduct& call, In* to) {
  const std::int64_t pitch = copied_row<In>(call.k);
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    const In* from = static_cast<const In*>(at(call.b, call.in, batch, 0, 0));
    In* column = to + batch * call.n * pitch;
    for (std::int64_t j = 0; j < call.n; ++j, from += call.b.column, column += pitch) {
      for (std::int64_t p = 0; p < call.k; ++p) column[p] = from[p * call.b.row];
    }
  }
  return {to, 1, pitch, call.n * pitch};
}

template <class In>
void dots(RowMajorProduct call, Context& context) {
  using T = Accumulator<In>;
  const Kernels<T>& ks = kernels<T>();
  const auto kernel = std::get<void (*)(const Dots<In>&)>(HWY_DYNAMIC_DISPATCH(dots_kernels)());
  const int threads = threads_worth(call, context.threads());
  const bool copied = call.b.row != 1;
  const std::int64_t staging_size = threads * dot_rows * run_of_dots;
  const std::int64_t copy_size = copied ? call.batch * call.n * copied_row<In>(call.k) : 0;
  const auto staging_bytes = static_cast<std::size_t>(staging_size) * sizeof(T);
  auto* const workspace = static_cast<std::byte*>(
      context.workspace(staging_bytes + static_cast<std::size_t>(copy_size) * sizeof(In)));
  T* const staging = reinterpret_cast<T*>(workspace);
  if (copied) call.b = copy_columns(call, reinterpret_cast<In*>(workspace + staging_bytes));
  // Sums are written directly to C unless an epilogue or a conversion follows.
  const bool plain = call.direct() && !call.has_epilogue();
  // Groups with nearly equal numbers of rows.
  const std::int64_t groups = ceil_div<std::int64_t>(call.m, dot_rows);
  const std::int64_t step = groups == 1 ? call.m : ceil_div(call.m, groups);
  const std::int64_t runs = ceil_div(call.n, run_of_dots);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    T* const y = staging + team.rank() * dot_rows * run_of_dots;
    const cpu::Range mine = team.share(call.batch * runs * groups);
    // Indices advance incrementally: divisions would take longer than a small product.
    std::int64_t group = 0, run = 0, batch = 0;
    if (mine.begin > 0) {
      group = mine.begin % groups;
      run = mine.begin / groups % runs;
      batch = mine.begin / groups / runs;
    }
    for (std::int64_t left = mine.size(); left > 0; --left) {
      const std::int64_t i = group * step;
      const std::int64_t j = run * run_of_dots;
      Dots<In> s{};
      s.rows = std::min(step, call.m - i);
      s.columns = std::min(run_of_dots, call.n - j);
      s.k = call.k;
      s.a = static_cast<const In*>(at(call.a, call.in, batch, i, 0));
      s.a_row = call.a.row;
      s.b = static_cast<const In*>(at(call.b, call.in, batch, 0, j));
      s.b_column = call.b.column;
      s.alpha = static_cast<T>(call.alpha);
      s.beta = plain ? static_cast<T>(call.beta) : T{0};
      s.y = plain ? static_cast<T*>(at(call.c, call.out, batch, i, j)) : y;
      s.y_row = plain ? call.c.row : run_of_dots;
      kernel(s);
      if (!plain) {
        Sums<T>{call, ks, batch, true, y, run_of_dots, i, j}.finish(i, s.rows, j, s.columns);
      }
      if (++group < groups) continue;
      group = 0;
      if (++run < runs) continue;
      run = 0;
      ++batch;
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const RowMajorProduct call = row_major_product(args);
  if (args.has_bytes()) return unsupported("8-bit operands");
  if (call.a.column != 1) return unsupported("takes contiguous rows of A");
  if (call.b.row != 1 &&
      (call.n > narrow || call.k > max_copied_k || call.batch * call.n * call.k > max_copied)) {
    return unsupported("the columns of B are not contiguous, and too large to copy");
  }
  if (std::min(call.m, call.n) > narrow) {
    return unsupported("C has more than 16 rows and more than 16 columns");
  }
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  return supported;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  const bool narrow_type = size_of(call.in) == 2;  // widened on loading; sums may be rounded
  const bool pixels =
      !narrow_type && call.m == 1 && call.k >= 2 && call.k <= 4 && call.b.column == call.k;
  const double columns = n <= 2 ? n : m == 1 && n > 4 ? dot_columns_of_a_row : dot_columns_at_once;
  const double groups = batch * std::ceil(m / dot_rows);
  const double tiles = groups * std::ceil(n / columns);
  const double vectors = std::ceil(k / lanes_of(call));
  const double rows = std::min<double>(m, dot_rows);
  // B is read again per group of rows unless it stays in the near caches.
  constexpr double near_bytes = 1 << 20;
  const double size = static_cast<double>(size_of(call.in));
  const double again = k * n * size < near_bytes ? 0 : (groups - batch) * k * n * size;
  return {
      .bytes = Gemm::cost(args).bytes + again,
      .operations = vector_operations(tiles * vectors * rows * columns + finish_fmas(call, false)),
      .blocks = tiles,
      .steps = call.b.row != 1 ? batch * n * k / tiles : vectors * (rows + std::min(n, columns)),
      .threads = threads_worth(call, context.threads()),
      .path = pixels            ? "pixels"
              : call.b.row != 1 ? (narrow_type ? "copied, widened" : "copied")
              : narrow_type     ? "widened"
                                : ""};
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  visit<float, double, bf16, f16>(call.in, [&]<class In>() { dots<In>(call, context); });
}

const Rung<Gemm> self{
    {.name = "dots", .after = "gemv", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
