// SPDX-License-Identifier: Apache-2.0
// RowEngine: what one thread does of a reduction along rows - results one after another, or cut
// into chunks where there are few.
#pragma once

#include <array>
#include <atomic>

#include "rung/core/integer.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/reduce/cpu/detail/engine.hpp"
#include "rung/ops/reduce/cpu/detail/finish.hpp"
#include "rung/ops/reduce/cpu/detail/kernels.hpp"

namespace rung::reduce_cpu {

inline constexpr std::int64_t cut_below =
    64;  // fewer results are cut into chunks, for threads to share
inline constexpr std::int64_t min_chunk = 16384;
inline constexpr std::int64_t usual_chunk = 131072;  // enough for what a chunk costs not to show
// Of less than such chunks. 2^20 floats from L3, one thread of a 2-core Zen 4 vCPU: in 32 of them
// .953 to .970 of Eigen's speed, in 8 .968 to 1.006, in 4 .985 to .991; and 8 threads are enough.
inline constexpr std::int64_t usual_chunks = 8;
inline constexpr std::int64_t max_chunks = 4096;
inline constexpr std::int64_t batch = 256;        // results that one call of a kernel makes
inline constexpr std::int64_t gathered = 8192;    // elements gathered at a time: 32 or 64 KiB
inline constexpr std::int64_t least_grouped = 4;  // rows that are worth grouping
inline constexpr std::int64_t direct_run = 512;   // contiguous runs from here on are not gathered

static_assert(min_chunk % block_multiple == 0 && gathered % block_multiple == 0);
static_assert(32 * batch <= gathered);  // rows that are turned

/// Rows of a call that reads so much. Asking for lines ahead pays from L3 (4 MiB: 110 to 127 GB/s
/// on a 2-core Zen 5 vCPU) and costs from memory (512 MiB: 40 to 35), where pages are asked for. On
/// a 2-core Zen 4 vCPU it is the other way round: from L3 60 GB/s asked for and 74 left alone, from
/// memory 18 by pages and 22 by lines into L2 (two threads: 26 and 40).
inline Reading reading_of(double bytes) {
  constexpr double within_l2 = 512 << 10;
  constexpr double within_l3 = 16 << 20;
  if (cpu::asks_memory_for_lines()) return bytes <= within_l3 ? Reading::near : Reading::asked;
  return bytes <= within_l2 ? Reading::near : bytes <= within_l3 ? Reading::lines : Reading::pages;
}

/// A thread's view of a call, for the wide type W of its results.
template <class W>
class RowEngine {
 public:
  explicit RowEngine(const Reduce::Args& args)
      : args_(args),
        fold_(fold_of(args.operation)),
        folded_(folded_as(args.x.dtype)),
        size_(static_cast<std::int64_t>(size_of(args.x.dtype))) {
    const int last = args.terms.rank - 1;
    run_ = last < 0 ? 1 : args.terms.shape[last];
    run_stride_ = last < 0 ? 1 : args.terms.strides[0][last];
    const bool native = folded_ == args.x.dtype && (run_stride_ == 1 || run_ == 1);
    contiguous_ = native && args.terms.rank <= 1;
    direct_ = contiguous_ || (native && run_ >= direct_run);
    reading_ = reading_of(static_cast<double>(bytes_of(args)));
    segments_ = args.has_segments() ? args.segments() : 1;
    const std::int64_t length = args.terms.size();
    const bool few = args.results() < cut_below && length > min_chunk;
    chunk_ = std::max<std::int64_t>(length, 1);
    if (few) {
      const std::int64_t chunk = std::max(std::clamp(length / usual_chunks, min_chunk, usual_chunk),
                                          ceil_div(length, max_chunks));
      chunk_ = round_up(chunk, block_multiple);
      chunks_ = std::max<std::int64_t>(ceil_div(length, chunk_), 1);
    }
    grouped_ = !args.is_arg() && args.kept.size() >= least_grouped;
    const int kept = args.kept.rank - 1;
    // On a 2-core Zen 5 vCPU, one thread, by fold_rows and turned: 10,000 rows of 2 f32 21 and 9
    // us, of 12 23 and 39; of 12 bf16 83 and 44; 143,159 of 4 f64, argmin, 3.1 and 0.31 ms.
    const std::int64_t most = args.is_arg() ? 16 : !native ? 12 : size_ == 4 ? 6 : 4;
    turned_ = !args.has_segments() && length >= 2 && length <= most && kept >= 0 &&
              args.kept.shape[kept] >= 16;
  }

  [[nodiscard]] bool gathers() const { return !direct_ || turned_; }
  /// Memory of the calling thread's own, where it gathers().
  static constexpr std::int64_t buffer_bytes = gathered * 8 + 16 * columns_at_most;
  void gather_in(std::byte* buffer) { buffer_ = buffer; }
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }

  /// A thread's part of many results of equal length, without segments.
  void many_results(const cpu::Team& team) {
    // One thread has it all, without a division.
    const cpu::Range share =
        team.size() == 1 ? cpu::Range{0, args_.kept.size()} : team.share(args_.kept.size());
    const int last = args_.kept.rank - 1;
    const std::int64_t inner = last < 0 ? 1 : args_.kept.shape[last];
    for (std::int64_t i = share.begin; i < share.end;) {
      // Neighbors along the innermost kept axis are equally far apart.
      const std::int64_t along = i < inner ? i : i % inner;
      const std::int64_t in_a_row = std::min({batch, share.end - i, inner - along});
      std::int64_t at[2] = {0, 0};
      if (i > 0) args_.kept.offsets(i, at);
      std::array<W, batch> value;
      std::array<W, batch> rest;
      const std::int64_t stride = last < 0 ? 0 : args_.kept.strides[0][last];
      const std::int64_t length = args_.terms.size();
      if (turned_) {
        turn_rows(at[0], stride, in_a_row, value.data(), rest.data());
      } else if (contiguous_) {
        fold_rows(folded_, fold_,
                  {.x = element(at[0]),
                   .stride = stride,
                   .rows = in_a_row,
                   .length = length,
                   .value = value.data(),
                   .rest = rest.data(),
                   .arg = args_.is_arg(),
                   .reading = reading_,
                   .grouped = grouped_});
      } else if (length <= gathered / 2 && !direct_) {
        gather_rows(at[0], stride, in_a_row, value.data(), rest.data());
      } else {
        for (std::int64_t r = 0; r < in_a_row; ++r) {
          fold_terms(at[0] + r * stride, 0, 0, length, value[r], rest[r]);
        }
      }
      store_results(args_, at[1], last < 0 ? 0 : args_.kept.strides[1][last], in_a_row,
                    value.data(), rest.data(), length);
      i += in_a_row;
    }
  }

  /// A thread's part of the chunks of all results; pairs are at [result][chunk].
  void some_chunks(const cpu::Team& team, W* value, W* rest) {
    const cpu::Range share = team.share(args_.results() * chunks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const auto [base, first, count] = result_at(task / chunks_);
      const std::int64_t begin = std::min(task % chunks_ * chunk_, count);
      const std::int64_t end = std::min(begin + chunk_, count);
      fold_terms(base, first, begin, end, value[task], rest[task]);
    }
  }

  /// A thread's part of few results: what their chunks come to, found in those pairs or, without
  /// them, made here in the same order.
  void few_results(const cpu::Team& team, const W* value, const W* rest) {
    const cpu::Range share = team.share(args_.results());
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      const auto [base, first, count] = result_at(i);
      W total{};
      W lost{};
      for (std::int64_t c = 0; c == 0 || c * chunk_ < count; ++c) {
        W one;
        W other;
        if (value != nullptr) {
          one = value[i * chunks_ + c];
          other = rest[i * chunks_ + c];
        } else {
          fold_terms(base, first, c * chunk_, std::min((c + 1) * chunk_, count), one, other);
        }
        if (c == 0) {
          total = one;
          lost = other;
        } else {
          combine(fold_, args_.is_arg(), total, lost, one, other);
        }
      }
      std::int64_t at[2];
      args_.kept.offsets(i / segments_, at);
      if (args_.has_segments()) at[1] += i % segments_ * args_.segment_step();
      store_results(args_, at[1], 0, 1, &total, &lost, count);
    }
  }

  /// Batches of segments, scheduled dynamically because their lengths may differ wildly.
  void batches_of_segments(std::atomic<std::int64_t>& next) {
    const std::int64_t batches = ceil_div(segments_, batch);
    const std::int64_t tasks = batches * args_.kept.size();
    for (;;) {
      const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      const std::int64_t s0 = task % batches * batch;
      const std::int64_t count = std::min(batch, segments_ - s0);
      std::array<std::int64_t, batch + 1> bounds;
      for (std::int64_t s = 0; s <= count; ++s) bounds[s] = segment_bound(args_, s0 + s);
      std::int64_t at[2];
      args_.kept.offsets(task / batches, at);
      std::array<W, batch> value;
      std::array<W, batch> rest;
      if (contiguous_) {
        fold_rows(folded_, fold_,
                  {.x = element(at[0]),
                   .stride = 0,
                   .rows = count,
                   .length = 0,
                   .bounds = bounds.data(),
                   .value = value.data(),
                   .rest = rest.data(),
                   .arg = args_.is_arg()});
      } else {
        for (std::int64_t s = 0; s < count; ++s) {
          fold_terms(at[0], bounds[s], 0, bounds[s + 1] - bounds[s], value[s], rest[s]);
        }
      }
      store_results(args_, at[1] + s0 * args_.segment_step(), args_.segment_step(), count,
                    value.data(), rest.data(), 0, bounds.data());
    }
  }

 private:
  struct OneResult {
    std::int64_t base;   // of x, in elements
    std::int64_t first;  // term
    std::int64_t count;
  };
  [[nodiscard]] OneResult result_at(std::int64_t i) const {
    OneResult result{0, 0, args_.terms.size()};
    result.base = args_.kept.template offset<0>(i / segments_);
    if (args_.has_segments()) {
      result.first = segment_bound(args_, i % segments_);
      result.count = segment_bound(args_, i % segments_ + 1) - result.first;
    }
    return result;
  }

  [[nodiscard]] const std::byte* element(std::int64_t offset) const {
    return static_cast<const std::byte*>(args_.x.data) + offset * size_;
  }

  /// Terms first + begin to first + end of the row at `base`; a position counts from `first`.
  void fold_terms(std::int64_t base, std::int64_t first, std::int64_t begin, std::int64_t end,
                  W& value, W& rest) {
    value = identity<W>(fold_);
    rest = args_.is_arg() ? -1 : 0;
    const std::int64_t size = static_cast<std::int64_t>(size_of(folded_));
    for (std::int64_t t = begin; t < end;) {
      std::int64_t count = end - t;
      const std::byte* from = buffer_;
      if (direct_) {
        if (!contiguous_) count = std::min(count, run_ - (first + t) % run_);
        from = element(base + args_.terms.offset(first + t));
      } else {
        count = std::min(count, gathered);
        gather_terms(base, first + t, count, buffer_, size);
      }
      W one;
      W other;
      fold_rows(folded_, fold_,
                {.x = from,
                 .stride = 0,
                 .rows = 1,
                 .length = count,
                 .value = &one,
                 .rest = &other,
                 .arg = args_.is_arg(),
                 .reading = direct_ ? reading_ : Reading::near});
      if (args_.is_arg()) other += static_cast<W>(t);
      if (t == begin) {
        value = one;
        rest = other;
      } else {
        combine(fold_, args_.is_arg(), value, rest, one, other);
      }
      t += count;
    }
  }

  /// Terms t to t + count of the row at `base`, contiguous and in the kernels' type.
  void gather_terms(std::int64_t base, std::int64_t t, std::int64_t count, std::byte* to,
                    std::int64_t size) const {
    while (count > 0) {
      const std::int64_t some = std::min(count, args_.terms.rank <= 1 ? count : run_ - t % run_);
      gather(args_.x.dtype, element(base + args_.terms.offset(t)), run_stride_, some, to);
      t += some;
      count -= some;
      to += some * size;
    }
  }

  /// Several short rows with one call of the kernel.
  void gather_rows(std::int64_t base, std::int64_t stride, std::int64_t rows, W* value, W* rest) {
    const std::int64_t length = args_.terms.size();
    const std::int64_t size = static_cast<std::int64_t>(size_of(folded_));
    const std::int64_t at_once = gathered / std::max<std::int64_t>(length, 1);
    for (std::int64_t r = 0; r < rows; r += at_once) {
      const std::int64_t some = std::min(at_once, rows - r);
      for (std::int64_t i = 0; i < some; ++i) {
        gather_terms(base + (r + i) * stride, 0, length, buffer_ + i * length * size, size);
      }
      fold_rows(folded_, fold_,
                {.x = buffer_,
                 .stride = length,
                 .rows = some,
                 .length = length,
                 .value = value + r,
                 .rest = rest + r,
                 .arg = args_.is_arg(),
                 .grouped = grouped_});
    }
  }

  /// Rows that would leave most of a vector idle: their first terms adjacent, then the second
  /// ones and so on, are columns of as many rows as there are terms.
  void turn_rows(std::int64_t base, std::int64_t stride, std::int64_t rows, W* value, W* rest) {
    const std::int64_t length = args_.terms.size();
    const std::int64_t size = static_cast<std::int64_t>(size_of(folded_));
    for (std::int64_t t = 0; t < length; ++t) {
      gather(args_.x.dtype, element(base + args_.terms.offset(t)), stride, rows,
             buffer_ + t * rows * size);
    }
    fold_columns(folded_, fold_,
                 {.x = buffer_,
                  .stride = rows,
                  .rows = length,
                  .columns = rows,
                  .scratch = buffer_ + gathered * 8,
                  .value = value,
                  .rest = rest,
                  .first = true,
                  .arg = args_.is_arg()});
  }

  const Reduce::Args& args_;
  Fold fold_;
  DType folded_;
  std::int64_t size_;            // of an element of x
  std::byte* buffer_ = nullptr;  // of this thread, for what is gathered
  std::int64_t run_ = 1;         // terms along the innermost reduced axis
  std::int64_t run_stride_ = 1;
  bool contiguous_ = false;  // all terms of a result are one run, in the kernels' type
  bool direct_ = false;      // runs are long enough to be read where they lie
  bool turned_ = false;      // rows of a few terms, many of them
  bool grouped_ = false;     // rows that the kernel may put together several at a time
  Reading reading_ = Reading::near;
  std::int64_t segments_ = 1;
  std::int64_t chunk_ = 1;
  std::int64_t chunks_ = 1;
};

}  // namespace rung::reduce_cpu
