// SPDX-License-Identifier: Apache-2.0
// softmax / row pipeline
//
// Idea     software pipeline over rows: one loop writes row r, makes the exponentials of row r + 1
//          and finds the maximum of row r + 2, vector by vector. Memory is read and written all the
//          time, while the FMA units work, and no row waits for its sum's last exponential.
// Changes  against non_temporal: the three passes belong to three rows and share a loop
//          (detail/pipeline-inl.hpp: pipeline_rows). Non-temporal stores only where x and y
//          together exceed L3; a row is then written from its end, as what is read has just passed
//          those addresses modulo 4 KiB (4K aliasing). And every call:
//          - columns, along another axis: a vector holds as many rows, each online, as a column
//            would not stay in L1 (detail/columns-inl.hpp);
//          - rows longer than 65536 elements: in pieces of 8192, whose maxima and sums are
//            combined;
//          - rows that are neither contiguous nor adjacent: gathered into a buffer first;
//          - f64, f16 and bf16, the logarithm.
// Cost     x read once, y written once: the 8 bytes per f32 element that must move, and some 15
//          operations per vector. Columns that exceed L2, and long rows: x is read twice.
// Limits   one thread.
// Tried    EXPERIMENTS.md: other polynomials, prefetch distances, block sizes, what else to fuse.
// Source   M. Lam, Software pipelining, 1988; M. Milakov and N. Gimelshein, Online normalizer
//          calculation for softmax, 2018.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>
#include <algorithm>
#include <type_traits>
#include <utility>

#include "rung/cpu/split.hpp"  // types: float double f16 bf16
#include "rung/ops/softmax/cpu/detail/columns-inl.hpp"
#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"
#include "rung/ops/softmax/cpu/detail/pipeline-inl.hpp"

// The share of one thread in a call of softmax, for one combination of types: rows, blocks of
// columns, rows that are gathered first, and long rows that all threads share.
HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t piece = cpu::row_piece;

template <class T, class Y>
class Worker {
 public:
  using Sum = Accumulator<T>;

  Worker(const Call& call, void* scratch)
      : args_(*call.args),
        x_(static_cast<const T*>(args_.x.data)),
        y_(static_cast<Y*>(args_.y.data)),
        scale_(static_cast<Sum>(args_.scale)),
        stream_(call.stream),
        scratch_(static_cast<Sum*>(scratch)) {}

  void rows(cpu::Range share) const {
    if (share.size() <= 0) return;
    if (stream_)
      return args_.log ? row_pipeline<true, true>(share) : row_pipeline<false, true>(share);
    return args_.log ? row_pipeline<true, false>(share) : row_pipeline<false, false>(share);
  }

  void gathered(cpu::Range share) const {
    // x and y as a contiguous row of the arithmetic type, behind the room for exponentials.
    const std::int64_t length = args_.length();
    Sum* const row_x = scratch_ + length;
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      std::int64_t at[2];
      args_.rows.offsets(row, at);
      const T* const x = x_ + at[0];
      for (std::int64_t i = 0; i < length; ++i) {
        row_x[i] = static_cast<Sum>(x[i * args_.rows.steps[0]]);
      }
      Worker<Sum, Sum>(args_, scale_, scratch_).one_row(row_x, row_x, scratch_);
      Y* const y = y_ + at[1];
      for (std::int64_t i = 0; i < length; ++i) {
        y[i * args_.rows.steps[1]] = static_cast<Y>(row_x[i]);
      }
    }
  }

  void columns(cpu::Range share, std::int64_t block) const {
    const std::int64_t run = args_.rows.run();
    const std::int64_t blocks = (run + block - 1) / block;
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      const std::int64_t first = unit % blocks * block;
      const std::int64_t count = std::min(block, run - first);
      std::int64_t at[2];
      args_.rows.offsets(unit / blocks * run + first, at);
      const ColumnBlock<const T> x{x_ + at[0], args_.rows.steps[0]};
      const ColumnBlock<Y> y{y_ + at[1], args_.rows.steps[1]};
      softmax_columns(x, y, args_.length(), count, scale_, args_.log, scratch_);
    }
  }

  /// All threads share each row, a piece at a time. The pieces do not depend on their number, and
  /// their results are combined in one order: the bits are the same for any.
  void long_rows(const cpu::Team& team, Sum* maxima) const {
    const std::int64_t length = args_.length();
    const std::int64_t pieces = cpu::row_pieces(length);
    Sum* sums = maxima + pieces;
    const cpu::Range share = team.share(pieces);
    // From the last row to the first: of an x that exceeds the caches, they hold the end if it has
    // just been written or read (8x1000000 on a 2-core Zen 5 vCPU: 2.1 ms instead of 2.3).
    for (std::int64_t row = args_.count() - 1; row >= 0; --row) {
      std::int64_t at[2];
      args_.rows.offsets(row, at);
      const T* x = x_ + at[0];
      for (std::int64_t p = share.begin; p < share.end; ++p) {
        const std::int64_t first = p * piece;
        const std::int64_t count = std::min(piece, length - first);
        maxima[p] = row_maximum<Sum>(x + first, count);
        const T* fetch = p + 1 < share.end ? x + first + piece : nullptr;
        sums[p] = row_sum<false>(x + first, count, maxima[p], scale_, scratch_, fetch);
      }
      team.wait();
      Sum maximum = no_maximum<Sum>;
      Sum sum = 0;
      for (std::int64_t p = 0; p < pieces; ++p) maximum = std::max(maximum, maxima[p]);
      for (std::int64_t p = 0; p < pieces; ++p) {
        sum += sums[p] * std::exp((maxima[p] - maximum) * scale_);
      }
      const std::int64_t first = share.begin * piece;
      write(x + first, y_ + at[1] + first, std::min(share.end * piece, length) - first, maximum,
            sum);
      team.wait();  // before the next row's maxima
    }
  }

 private:
  template <class, class>
  friend class Worker;

  /// Where a row begins in each tensor.
  struct Place {
    std::int64_t x, y;
  };
  HWY_INLINE Place place(std::int64_t row) const {
    const auto& others = args_.rows.others;
    if (others.rank <= 1) {  // a walk through the axes costs as much as 32 elements
      return {row * others.strides[0][0], row * others.strides[1][0]};
    }
    std::int64_t at[2];
    others.offsets(row, at);
    return {at[0], at[1]};
  }

  /// For rows that were gathered.
  Worker(const Softmax::Args& args, Sum scale, Sum* scratch)
      : args_(args), scale_(scale), scratch_(scratch) {}

  /// Software pipeline over rows (pipeline_rows): store row r, exponentiate r + 1, find the maximum
  /// of r + 2. Past the end, the last row is repeated.
  template <bool log, bool streams>
  void row_pipeline(cpu::Range share) const {
    const std::int64_t length = args_.length();
    const auto place_of = [&](std::int64_t row) { return place(std::min(row, share.end - 1)); };
    Place at = place(share.begin);
    Place next_at = place_of(share.begin + 1);
    const std::int64_t ahead = cpu::elements_ahead(
        prefetch_distance, x_ + place_of(share.begin + 2).x, y_ + at.y, prefetch_into_l2);
    const std::int64_t asked = 2 + ahead / length;
    std::int64_t coming = streams ? place_of(share.begin + asked).x : 0;
    Sum* kept = scratch_;
    Sum* made = streams ? scratch_ + padded_length(length) : scratch_;
    RowStatistics<Sum> here{row_maximum<Sum>(x_ + at.x, length), 0};
    here.sum = exponentials(x_ + at.x, here.maximum, kept);
    RowStatistics<Sum> next{0, 0};
    if (share.size() > 1) next.maximum = row_maximum<Sum>(x_ + next_at.x, length);
    for (std::int64_t row = share.begin; row + 1 < share.end; ++row) {
      const Place after = place_of(row + 2);
      const std::int64_t then = streams ? place_of(row + asked + 1).x : 0;
      const PipelineStages<T, Y> rows{x_ + at.x,
                                      y_ + at.y,
                                      x_ + next_at.x,
                                      x_ + after.x,
                                      {x_ + coming, x_ + then, ahead % length, length}};
      Sum maximum_after;
      pipeline_rows<log, streams>(rows, length, scale_, here, next, maximum_after, kept, made);
      here = next;
      next.maximum = maximum_after;
      at = next_at;
      next_at = after;
      coming = then;
      std::swap(kept, made);
    }
    write_results(x_ + at.x, y_ + at.y, here.maximum, here.sum, kept);
  }

  HWY_NOINLINE void one_row(const T* x, Y* y, Sum* kept) const {
    const Sum maximum = row_maximum<Sum>(x, args_.length());
    write_results(x, y, maximum, exponentials(x, maximum, kept), kept);
  }

  /// The row's sum; its exponentials stay in `kept`, except for the logarithm.
  HWY_INLINE Sum exponentials(const T* x, Sum maximum, Sum* kept) const {
    const std::int64_t length = args_.length();
    if (args_.log) return row_sum<false, Sum, T>(x, length, maximum, scale_, kept, nullptr);
    return row_sum<true, Sum, T>(x, length, maximum, scale_, kept, nullptr);
  }
  HWY_INLINE void write_results(const T* x, Y* y, Sum maximum, Sum sum, const Sum* kept) const {
    if (args_.log) {
      write_log(x, y, args_.length(), maximum, sum, scale_, stream_);
    } else {
      write_kept(kept, y, args_.length(), sum, stream_);
    }
  }

  void write(const T* x, Y* y, std::int64_t length, Sum maximum, Sum sum) const {
    if (length <= 0) return;
    if (args_.log) {
      write_log(x, y, length, maximum, sum, scale_, stream_);
    } else {
      // The last pieces first: they are still in L2.
      for (std::int64_t first = (length - 1) / piece * piece; first >= 0; first -= piece) {
        write_again(x + first, y + first, std::min(piece, length - first), maximum, sum, scale_,
                    stream_, -piece);
      }
    }
  }

  const Softmax::Args& args_;
  const T* x_ = nullptr;
  Y* y_ = nullptr;
  Sum scale_;
  bool stream_ = false;
  Sum* scratch_;
};

template <class T, class Y>
void work_on(const Call& call, const cpu::RowWork& plan, const cpu::Team& team, void* scratch,
             void* shared) {
  const Worker<T, Y> worker(call, scratch);
  switch (plan.kind) {
    case cpu::RowWork::Kind::rows:
      worker.rows(team.share(plan.units));
      break;
    case cpu::RowWork::Kind::columns:
      worker.columns(team.share(plan.units), plan.columns);
      break;
    case cpu::RowWork::Kind::gathered:
      worker.gathered(team.share(plan.units));
      break;
    case cpu::RowWork::Kind::long_rows:
      worker.long_rows(team, static_cast<typename Worker<T, Y>::Sum*>(shared));
      break;
  }
  if (call.stream) hwy::FlushStream();
}

/// y has x's type, or is f32 for types of two bytes.
Work* kernel_for(DType y) {
  using T = RUNG_SPLIT_TYPE;
  if constexpr (sizeof(T) == 2) {
    if (y == DType::f32) return work_on<T, float>;
  }
  return work_on<T, T>;
}

}  // namespace
}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace softmax_cpu {
HWY_EXPORT(kernel_for);
template <>
Work* kernel_for<RUNG_SPLIT_TYPE>(DType y) {
  return HWY_DYNAMIC_DISPATCH(kernel_for)(y);
}
}  // namespace softmax_cpu

#if RUNG_SPLIT_ONCE
namespace {

double estimate(const Softmax::Args& args, const Context&) { return softmax_cpu::seconds(args, 1); }

void run(const Softmax::Args& args, Context& context) { softmax_cpu::run(args, context, 1); }

const Rung<Softmax> self{{.name = "row_pipeline",
                          .step = 80,
                          .after = "non_temporal",
                          .estimate = estimate,
                          .run = run}};

}  // namespace
#endif
}  // namespace rung
#endif
