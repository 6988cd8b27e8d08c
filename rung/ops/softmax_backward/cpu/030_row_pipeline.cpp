// SPDX-License-Identifier: Apache-2.0
// softmax_backward / row pipeline
//
// Idea     software pipeline over rows: one loop writes the gradient of row r and sums the products
//          of row r + 1, so that memory is read and written all the time.
// Changes  against simd: the two passes belong to two rows and share a loop
//          (detail/gradient-inl.hpp: stream_gradient), with non-temporal stores, where y, dy and dx
//          together exceed L3. And every call:
//          - columns, along another axis: a vector holds as many rows;
//          - rows longer than 65536 elements: in pieces of 8192, whose sums are combined;
//          - rows that are neither contiguous nor adjacent: gathered into a buffer first;
//          - f64, f16 and bf16, the logarithm.
// Cost     y and dy read once, dx written once: the 12 bytes per f32 element that must move.
//          Columns that exceed L2, and long rows: y and dy are read twice.
// Limits   one thread.
// Source   M. Lam, Software pipelining, 1988.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>
#include <algorithm>
#include <type_traits>

#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/softmax_backward/cpu/detail/gradient-inl.hpp"
#include "rung/ops/softmax_backward/cpu/detail/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_backward_cpu::HWY_NAMESPACE {
namespace {

/// The share of one thread in a call, for one combination of types.
template <class T, class Y>
class Gradients {
 public:
  using Sum = Accumulator<T>;

  explicit Gradients(const GradientCall& call)
      : args_(*call.args),
        y_(static_cast<const T*>(args_.y.data)),
        dy_(static_cast<const T*>(args_.dy.data)),
        dx_(static_cast<Y*>(args_.dx.data)),
        scale_(static_cast<Sum>(args_.scale)),
        stream_(call.stream) {}

  void rows(cpu::Range share) const {
    if (share.size() <= 0) return;
    const std::int64_t length = args_.length();
    Place at = place(share.begin);
    Sum sum = row_products<Sum>(y_ + at.y, dy_ + at.dy, length, args_.log);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      const T* y = y_ + at.y;
      const T* dy = dy_ + at.dy;
      Y* dx = dx_ + at.dx;
      const bool last = row + 1 == share.end;
      if (!last) at = place(row + 1);
      if (stream_ && !args_.log && !last) {
        sum = stream_gradient(y, dy, dx, y_ + at.y, dy_ + at.dy, length, sum, scale_);
        continue;
      }
      write_gradient(y, dy, dx, length, sum, scale_, args_.log, stream_);
      if (!last) sum = row_products<Sum>(y_ + at.y, dy_ + at.dy, length, args_.log);
    }
  }

  /// Copies y and dy to contiguous rows of the arithmetic type, and the result back.
  void gathered(cpu::Range share, Sum* row_y) const {
    const std::int64_t length = args_.length();
    Sum* const row_dy = row_y + length;
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      std::int64_t at[3];
      args_.rows.offsets(row, at);
      const T* const y = y_ + at[0];
      const T* const dy = dy_ + at[1];
      Y* const dx = dx_ + at[2];
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

  void columns(cpu::Range share, std::int64_t block, Sum* sums) const {
    const std::int64_t run = args_.rows.run();
    const std::int64_t blocks = (run + block - 1) / block;
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      const std::int64_t first = unit % blocks * block;
      const std::int64_t count = std::min(block, run - first);
      std::int64_t at[3];
      args_.rows.offsets(unit / blocks * run + first, at);
      const ColumnBlock<const T> y{y_ + at[0], args_.rows.steps[0]};
      const ColumnBlock<const T> dy{dy_ + at[1], args_.rows.steps[1]};
      const ColumnBlock<Y> dx{dx_ + at[2], args_.rows.steps[2]};
      column_gradients(y, dy, dx, args_.length(), count, scale_, args_.log, sums);
    }
  }

  /// All threads share each row, a piece at a time. The pieces do not depend on their number, and
  /// their sums are combined in one order: the bits are the same for any.
  void long_rows(const cpu::Team& team, Sum* sums) const {
    constexpr std::int64_t piece = cpu::row_piece;
    const std::int64_t length = args_.length();
    const std::int64_t pieces = cpu::row_pieces(length);
    const cpu::Range share = team.share(pieces);
    // From the last row to the first: of operands that exceed the caches, they hold the end.
    for (std::int64_t row = args_.count() - 1; row >= 0; --row) {
      std::int64_t at[3];
      args_.rows.offsets(row, at);
      const T* y = y_ + at[0];
      const T* dy = dy_ + at[1];
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
        write_gradient(y + first, dy + first, dx_ + at[2] + first, count, sum, scale_, args_.log,
                       stream_);
      }
      team.wait();  // before the next row's sums
    }
  }

 private:
  /// Where a row begins in each tensor.
  struct Place {
    std::int64_t y, dy, dx;
  };
  HWY_INLINE Place place(std::int64_t row) const {
    const auto& others = args_.rows.others;
    if (others.rank <= 1) {  // a walk through the axes costs as much as 32 elements
      return {row * others.strides[0][0], row * others.strides[1][0], row * others.strides[2][0]};
    }
    std::int64_t at[3];
    others.offsets(row, at);
    return {at[0], at[1], at[2]};
  }

  const SoftmaxBackward::Args& args_;
  const T* y_;
  const T* dy_;
  Y* dx_;
  Sum scale_;
  bool stream_;
};

template <class T, class Y>
void gradients(const GradientCall& call, const cpu::RowWork& work, const cpu::Team& team,
               void* scratch, void* shared) {
  using Kind = cpu::RowWork::Kind;
  using Sum = Accumulator<T>;
  const Gradients<T, Y> worker(call);
  switch (work.kind) {
    case Kind::rows:
      worker.rows(team.share(work.units));
      break;
    case Kind::columns:
      worker.columns(team.share(work.units), work.columns, static_cast<Sum*>(scratch));
      break;
    case Kind::gathered:
      worker.gathered(team.share(work.units), static_cast<Sum*>(scratch));
      break;
    case Kind::long_rows:
      worker.long_rows(team, static_cast<Sum*>(shared));
      break;
  }
  if (call.stream) hwy::FlushStream();
}

/// dx has the type of y; of f32 it may have two bytes.
Kernel* kernel_for(DType dx) {
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
template <>
Kernel* kernel_for<RUNG_SPLIT_TYPE>(DType dx) {
  return HWY_DYNAMIC_DISPATCH(kernel_for)(dx);
}
}  // namespace softmax_backward_cpu

#if RUNG_SPLIT_ONCE
namespace {

double estimate(const SoftmaxBackward::Args& args, const Context&) {
  return softmax_backward_cpu::seconds(args, 1);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  softmax_backward_cpu::run(args, context, 1);
}

const Rung<SoftmaxBackward> self{
    {.name = "row_pipeline", .step = 30, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
#endif
}  // namespace rung
#endif
