// SPDX-License-Identifier: Apache-2.0
// softmax_backward / row pipeline
//
// Idea     Software pipeline over rows: one loop writes the gradient of row r and sums the products
//          of row r + 1, so that loads and stores overlap throughout.
// Changes  Against simd: the two passes run on two rows in one loop (stream_gradient) with
//          non-temporal stores, if y, dy and dx together exceed L3. All arguments are supported:
//          rows longer than 65536 elements in pieces of 8192 whose sums are combined, strided rows
//          gathered into a buffer, f64, f16 and bf16, and the logarithm.
// Cost     y and dy are read once, dx is written once: the compulsory 12 bytes per f32 element.
//          Long rows read y and dy twice.
// Limits   One thread.
// Source   M. Lam, Software pipelining, 1988.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>
#include <algorithm>
#include <type_traits>

#include "rung/cpu/row-inl.hpp"
#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/softmax_backward/cpu/detail/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// Returns whether dx is stored non-temporally: y, dy and dx together exceed L3, and dx is neither
/// y nor dy.
bool bypasses_caches(const SoftmaxBackward::Args& args) {
  const auto written = static_cast<std::int64_t>(size_of(args.dx.dtype));
  return args.dx.data != args.y.data && args.dx.data != args.dy.data &&
         reinterpret_cast<std::uintptr_t>(args.dx.data) % size_of(args.dx.dtype) == 0 &&
         cpu::rows_bypass_caches(args.length(), args.count(), written,
                                 2 * static_cast<std::int64_t>(size_of(args.y.dtype)));
}

/// Adds the products dy y to the accumulators.
template <class Sum, class T>
HWY_INLINE void add_products(Chains<Sum>& chains, const T* y, const T* dy, std::int64_t length) {
  const Full<Sum> d;
  for_vectors<Sum>(
      length,
      [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
        chains.at[c] = hn::MulAdd(load_as(d, dy + i), load_as(d, y + i), chains.at[c]);
      },
      [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
        chains.at[1] = hn::MulAdd(load_as_n(d, dy + i, n), load_as_n(d, y + i, n), chains.at[1]);
      });
}
/// Returns the sum of dy y; with log, of dy.
template <class Sum, class T>
HWY_INLINE Sum row_products(const T* y, const T* dy, std::int64_t length, bool log) {
  const Full<Sum> d;
  Chains<Sum> chains(0);
  if (log) {
    for_vectors<Sum>(
        length,
        [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
          chains.at[c] = hn::Add(chains.at[c], load_as(d, dy + i));
        },
        [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
          chains.at[1] = hn::Add(chains.at[1], load_as_n(d, dy + i, n));
        });
  } else {
    add_products(chains, y, dy, length);
  }
  return chains.sum();
}

/// Writes the gradient of one row.
template <class Sum, class T, class Y>
HWY_INLINE void write_gradient(const T* y, const T* dy, Y* dx, std::int64_t length, Sum sum,
                               Sum scale, bool log, bool stream) {
  const Full<Sum> d;
  const auto total = hn::Set(d, sum);
  const auto factor = hn::Set(d, scale);
  if (log) {
    const auto exponent = hn::Set(d, log2_e<Sum>);
    write_row<Sum>(dx, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto e = exp2<true>(d, hn::Mul(load_some(d, y + i, n...), exponent));
      return hn::Mul(hn::NegMulAdd(e, total, load_some(d, dy + i, n...)), factor);
    });
  } else {
    write_row<Sum>(dx, length, stream, [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto difference = hn::Sub(load_some(d, dy + i, n...), total);
      return hn::Mul(hn::Mul(difference, load_some(d, y + i, n...)), factor);
    });
  }
}

/// Writes the gradient of one row with non-temporal stores and returns the sum of the products of
/// the next, so that loads and stores overlap (4096x4096 on a 2-core Zen 5 vCPU: 4.5 ms, 5.4 in
/// separate loops). The row is written from its end, because the elements read last are still in
/// L1, three quarters of a row of 4096 (another measurement: 4.3 ms from its beginning, 3.8 from
/// its end). Without the logarithm.
template <class Sum, class T, class Y>
HWY_INLINE Sum stream_gradient(const T* y, const T* dy, Y* dx, const T* next_y, const T* next_dy,
                               std::int64_t length, Sum sum, Sum scale) {
  using Stored = StoredTag<Y, Full<Sum>>;
  using Bits = hn::TFromD<Stored>;
  const Full<Sum> d;
  const auto total = hn::Set(d, sum);
  const auto factor = hn::Set(d, scale);
  Chains<Sum> chains(0);
  const auto gradient = [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    const auto incoming = load_some(d, dy + i, n...);
    return hn::Mul(hn::Mul(hn::Sub(incoming, total), load_some(d, y + i, n...)), factor);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t head = std::min(before_vectors<Sum>(dx), length);
  const std::int64_t whole = (length - head) / (4 * lanes) * (4 * lanes);
  for (std::int64_t i = 0; i < whole; i += 4 * lanes) {
    const std::int64_t from_end = head + whole - 4 * lanes - i;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const std::int64_t at = i + c * lanes;
      chains.at[c] = hn::MulAdd(load_as(d, next_dy + at), load_as(d, next_y + at), chains.at[c]);
      const std::int64_t to = from_end + c * lanes;
      hn::Stream(narrow<Y>(d, gradient(to)), Stored(), reinterpret_cast<Bits*>(dx + to));
    }
  }
  if (head > 0) {
    const auto count = static_cast<std::size_t>(head);
    store_as_n(gradient(0, count), d, dx, count);
  }
  const std::int64_t behind = head + whole;
  write_row<Sum>(dx + behind, length - behind, true,
                 [&](std::int64_t i, auto... n)
                     HWY_ATTR RUNG_ALWAYS_INLINE { return gradient(behind + i, n...); });
  add_products(chains, next_y + whole, next_dy + whole, length - whole);
  return chains.sum();
}

/// One thread's part of the rows, for one combination of types.
template <class T, class Y>
class Gradients {
 public:
  using Sum = Accumulator<T>;

  Gradients(const SoftmaxBackward::Args& args, bool stream)
      : args_(args),
        y_(static_cast<const T*>(args_.y.data)),
        dy_(static_cast<const T*>(args_.dy.data)),
        dx_(static_cast<Y*>(args_.dx.data)),
        scale_(static_cast<Sum>(args_.scale)),
        stream_(stream) {}

  void rows(cpu::Range share) const {
    if (share.size() <= 0) return;
    const std::int64_t length = args_.length();
    const T* y = y_of(share.begin);
    const T* dy = dy_of(share.begin);
    Y* dx = dx_of(share.begin);
    Sum sum = row_products<Sum>(y, dy, length, args_.log);
    for (std::int64_t row = share.begin; row + 1 < share.end; ++row) {
      const T* next_y = y_of(row + 1);
      const T* next_dy = dy_of(row + 1);
      Y* next_dx = dx_of(row + 1);
      if (stream_ && !args_.log) {
        sum = stream_gradient(y, dy, dx, next_y, next_dy, length, sum, scale_);
      } else {
        write_gradient(y, dy, dx, length, sum, scale_, args_.log, stream_);
        sum = row_products<Sum>(next_y, next_dy, length, args_.log);
      }
      y = next_y;
      dy = next_dy;
      dx = next_dx;
    }
    write_gradient(y, dy, dx, length, sum, scale_, args_.log, stream_);
  }

  /// Computes strided rows: copies y and dy to contiguous rows of the arithmetic type, and the
  /// result back.
  void gathered(cpu::Range share, Sum* row_y) const {
    const std::int64_t length = args_.length();
    Sum* const row_dy = row_y + length;
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const T* const y = y_of(row);
      const T* const dy = dy_of(row);
      Y* const dx = dx_of(row);
      for (std::int64_t i = 0; i < length; ++i) {
        row_y[i] = static_cast<Sum>(y[i * args_.rows.steps[0]]);
        row_dy[i] = static_cast<Sum>(dy[i * args_.rows.steps[1]]);
      }
      const Sum sum = row_products<Sum>(row_y, row_dy, length, args_.log);
      write_gradient(row_y, row_dy, row_y, length, sum, scale_, args_.log, false);
      for (std::int64_t i = 0; i < length; ++i) {
        dx[i * args_.rows.steps[2]] = static_cast<Y>(row_y[i]);
      }
    }
  }

  /// Computes long rows, each split over all threads by pieces. Pieces do not depend on the thread
  /// count and are combined in a fixed order, so results are bitwise equal for any number of
  /// threads.
  void long_rows(const cpu::Team& team, Sum* sums) const {
    constexpr std::int64_t piece = cpu::row_piece;
    const std::int64_t length = args_.length();
    const std::int64_t pieces = cpu::row_pieces(length);
    const cpu::Range share = team.share(pieces);
    // From the last row to the first: if the operands exceed the caches, these hold the end.
    for (std::int64_t row = args_.count() - 1; row >= 0; --row) {
      const T* y = y_of(row);
      const T* dy = dy_of(row);
      for (std::int64_t p = share.begin; p < share.end; ++p) {
        const std::int64_t first = p * piece;
        sums[p] =
            row_products<Sum>(y + first, dy + first, std::min(piece, length - first), args_.log);
      }
      team.wait();
      Sum sum = 0;
      for (std::int64_t p = 0; p < pieces; ++p) sum += sums[p];
      const std::int64_t first = share.begin * piece;
      const std::int64_t count = std::min(share.end * piece, length) - first;
      if (count > 0) {
        write_gradient(y + first, dy + first, dx_of(row) + first, count, sum, scale_, args_.log,
                       stream_);
      }
      team.wait();  // before the sums of the next row are written
    }
  }

 private:
  HWY_INLINE const T* y_of(std::int64_t row) const { return y_ + args_.rows.offset<0>(row); }
  HWY_INLINE const T* dy_of(std::int64_t row) const { return dy_ + args_.rows.offset<1>(row); }
  HWY_INLINE Y* dx_of(std::int64_t row) const { return dx_ + args_.rows.offset<2>(row); }

  const SoftmaxBackward::Args& args_;
  const T* y_;
  const T* dy_;
  Y* dx_;
  Sum scale_;
  bool stream_;
};

template <class T, class Y>
void gradients(const SoftmaxBackward::Args& args, const cpu::RowTeam& rows, const cpu::Team& team) {
  using Sum = Accumulator<T>;
  const bool stream = rows.access != cpu::RowAccess::gathered && bypasses_caches(args);
  const Gradients<T, Y> kernel(args, stream);
  switch (rows.access) {
    case cpu::RowAccess::contiguous:
      kernel.rows(team.share(args.count()));
      break;
    case cpu::RowAccess::gathered:
      kernel.gathered(team.share(args.count()), static_cast<Sum*>(rows.scratch(team)));
      break;
    case cpu::RowAccess::long_rows:
      kernel.long_rows(team, static_cast<Sum*>(rows.shared()));
      break;
  }
  if (stream) hwy::FlushStream();
}

/// Returns the kernel for the type of dx: y's type, or f16 or bf16 if y is f32.
RowKernel* kernel_for(DType dx) {
  using T = RUNG_SPLIT_TYPE;
  if constexpr (std::is_same_v<T, float>) {
    if (dx == DType::f16) return gradients<float, f16>;
    if (dx == DType::bf16) return gradients<float, bf16>;
  }
  return gradients<T, T>;
}

}  // namespace
}  // namespace rung::softmax_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace softmax_backward_cpu {
HWY_EXPORT(kernel_for);

/// Returns the kernel for y of type T (float, double, f16 or bf16); one object file per type.
template <class T>
RowKernel* kernel_for(DType dx);
template <>
RowKernel* kernel_for<RUNG_SPLIT_TYPE>(DType dx) {
  return HWY_DYNAMIC_DISPATCH(kernel_for)(dx);
}

#if RUNG_SPLIT_ONCE
cpu::RowTeam divide(const SoftmaxBackward::Args& args, Context& context, int threads) {
  const std::int64_t size = args.y.dtype == DType::f64 ? 8 : 4;
  // Scratch: gathered rows of y and dy per thread; one sum per piece of a long row.
  const std::int64_t scratch = args.rows.are_contiguous() ? 0 : 2 * args.length() * size;
  const bool is_long = cpu::row_access(args.rows) == cpu::RowAccess::long_rows;
  return {context, args.rows, threads, scratch,
          is_long ? cpu::row_pieces(args.length()) * size : 0};
}

RowKernel* row_pipeline(const SoftmaxBackward::Args& args) {
  return visit<float, double, f16, bf16>(args.y.dtype,
                                         [&]<class T>() { return kernel_for<T>(args.dx.dtype); });
}
#endif
}  // namespace softmax_backward_cpu

#if RUNG_SPLIT_ONCE
namespace {

Work work(const SoftmaxBackward::Args& args, const Context&) {
  return cpu::row_facts(args.rows, args.y.dtype, 1);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  using namespace softmax_backward_cpu;
  if (!args.empty()) row_pipeline(args)(args, divide(args, context, 1), cpu::Team(0, 1, nullptr));
}

const Rung<SoftmaxBackward> self{
    {.name = "row_pipeline", .step = 30, .after = "simd", .work = work, .run = run}};

}  // namespace
#endif
}  // namespace rung
#endif
