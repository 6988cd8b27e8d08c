// SPDX-License-Identifier: Apache-2.0
// reduce / threads
//
// Idea     Threads divide whole results; few results are divided into chunks, segments into
//          batches. Kernels are those of blocks, short_rows and columns; elements of other types or
//          strides are gathered and widened piece by piece into L1.
// Changes  Against blocks: several threads; f16, bf16 and small integers; segments and any strides.
// Cost     x loaded once; 16 bytes per chunk of 16384 elements or more if threads share a result.
// Limits   Every valid call. Strided elements are gathered one by one. The partition depends on
//          shapes and strides only, so results are bitwise independent of the thread count.
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "rung/ops/reduce/cpu/detail/kernels.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

// With fewer results than this, each is divided into chunks.
constexpr std::int64_t cut_below = 64;
constexpr std::int64_t min_chunk = 16384;
constexpr std::int64_t usual_chunk = 131072;  // amortizes the cost of a chunk
// Rows shorter than eight usual chunks are divided into about eight. 2^20 floats from L3, one
// thread of a 2-core Zen 4 vCPU: 0.953 to 0.970 of Eigen's speed with 32 chunks, 0.968 to 1.006
// with 8, 0.985 to 0.991 with 4.
constexpr std::int64_t usual_chunks = 8;
constexpr std::int64_t max_chunks = 4096;
// multiple of the block size of every instruction set
constexpr std::int64_t block_multiple = 8192;
constexpr std::int64_t batch = 256;        // results per call of a kernel
constexpr std::int64_t gathered = 8192;    // elements gathered at a time: 32 or 64 KiB
constexpr std::int64_t least_grouped = 4;  // minimum rows to group in one kernel call
// contiguous runs of at least this length are read in place
constexpr std::int64_t direct_run = 512;

static_assert(min_chunk % block_multiple == 0 && gathered % block_multiple == 0);
static_assert(32 * batch <= gathered);  // rows to transpose

/// Returns the number of elements of x times their size: bytes read.
std::int64_t bytes_of(const Reduce::Args& args) {
  return args.kept.size() * args.terms.size() * static_cast<std::int64_t>(size_of(args.x.dtype));
}

/// Returns segment bound i. Throws Error if it is outside the axis or less than bound i - 1.
std::int64_t segment_bound(const Reduce::Args& args, std::int64_t i) {
  const auto at = [&](std::int64_t index) {
    const std::int64_t place = index * args.offsets.strides[0];
    return args.offsets.dtype == DType::i32
               ? std::int64_t{static_cast<const std::int32_t*>(args.offsets.data)[place]}
               : static_cast<const std::int64_t*>(args.offsets.data)[place];
  };
  const std::int64_t bound = at(i);
  const std::int64_t before = i > 0 ? at(i - 1) : 0;
  if (bound >= before && bound >= 0 && bound <= args.terms.size()) return bound;
  throw Error(ErrorCode::invalid_argument,
              "reduce: offsets[" + std::to_string(i) + "] is " + std::to_string(bound) + " after " +
                  std::to_string(before) + "; accepted: ascending numbers from 0 to " +
                  std::to_string(args.terms.size()));
}

/// Divides a reduction along rows among the threads of a team. W is the wide type of partial
/// results.
template <class W>
class RowWorker {
 public:
  explicit RowWorker(const Reduce::Args& args)
      : args_(args),
        fold_(fold_of(args.operation)),
        is_arg_(args.is_arg()),
        folded_(cpu::gathered_type(args.x.dtype)),
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
    // fold_rows against transposition, one thread of a 2-core Zen 5 vCPU: 10,000 rows of 2 f32, 21
    // and 9 us; of 12 f32, 23 and 39 us; of 12 bf16, 83 and 44 us; 143,159 rows of 4 f64, argmin,
    // 3.1 and 0.31 ms.
    const std::int64_t most = args.is_arg() ? 16 : !native ? 12 : size_ == 4 ? 6 : 4;
    transposed_ = !args.has_segments() && length >= 2 && length <= most && kept >= 0 &&
                  args.kept.shape[kept] >= 16;
  }

  [[nodiscard]] bool gathers() const { return !direct_ || transposed_; }
  /// Bytes of a thread's buffer, needed if gathers() is true.
  static constexpr std::int64_t buffer_bytes = gathered * 8 + 16 * columns_at_most;
  void gather_in(std::byte* buffer) { buffer_ = buffer; }
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }

  /// Reduces this thread's share of many results of equal length, without segments.
  void many_results(const cpu::Team& team) {
    // A single thread skips share()'s division.
    const cpu::Range share =
        team.size() == 1 ? cpu::Range{0, args_.kept.size()} : team.share(args_.kept.size());
    const int last = args_.kept.rank - 1;
    const std::int64_t inner = last < 0 ? 1 : args_.kept.shape[last];
    for (std::int64_t i = share.begin; i < share.end;) {
      // Results along the innermost kept axis are a constant stride apart.
      const std::int64_t along = i < inner ? i : i % inner;
      const std::int64_t in_a_row = std::min({batch, share.end - i, inner - along});
      std::int64_t at[2] = {0, 0};
      if (i > 0) args_.kept.offsets(i, at);
      std::array<W, batch> value;
      std::array<W, batch> rest;
      const std::int64_t stride = last < 0 ? 0 : args_.kept.strides[0][last];
      const std::int64_t length = args_.terms.size();
      if (transposed_) {
        transpose_rows(at[0], stride, in_a_row, value.data(), rest.data());
      } else if (contiguous_) {
        fold({.x = element(at[0]),
              .stride = stride,
              .rows = in_a_row,
              .length = length,
              .value = value.data(),
              .rest = rest.data(),
              .arg = is_arg_,
              .reading = reading_});
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

  /// Folds this thread's share of the chunks of all results into pairs, indexed [result][chunk].
  void some_chunks(const cpu::Team& team, W* value, W* rest) {
    const cpu::Range share = team.share(args_.results() * chunks_);
    for (std::int64_t task = share.begin; task < share.end; ++task) {
      const auto [base, first, count] = result_at(task / chunks_);
      const std::int64_t begin = std::min(task % chunks_ * chunk_, count);
      const std::int64_t end = std::min(begin + chunk_, count);
      fold_terms(base, first, begin, end, value[task], rest[task]);
    }
  }

  /// Combines the chunks of this thread's share of few results: the stored pairs, or, if `value` is
  /// null, chunks that it folds itself in the same order.
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
          combine(fold_, is_arg_, total, lost, one, other);
        }
      }
      std::int64_t at[2];
      args_.kept.offsets(i / segments_, at);
      if (args_.has_segments()) at[1] += i % segments_ * args_.segment_step();
      store_results(args_, at[1], 0, 1, &total, &lost, count);
    }
  }

  /// Reduces batches of segments, scheduled dynamically because segment lengths may differ widely.
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
                   .arg = is_arg_});
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
    std::int64_t base;   // offset in x, in elements
    std::int64_t first;  // index of the first term
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

  void fold(const Rows& rows) const {
    if (!grouped_ || !fold_short_rows(folded_, fold_, rows)) fold_rows(folded_, fold_, rows);
  }

  [[nodiscard]] const std::byte* element(std::int64_t offset) const {
    return static_cast<const std::byte*>(args_.x.data) + offset * size_;
  }

  /// Folds terms [first + begin, first + end) of the row at `base`; positions are relative to
  /// `first`.
  void fold_terms(std::int64_t base, std::int64_t first, std::int64_t begin, std::int64_t end,
                  W& value, W& rest) {
    value = identity<W>(fold_);
    rest = is_arg_ ? -1 : 0;
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
                 .arg = is_arg_,
                 .reading = direct_ ? reading_ : Reading::near});
      if (is_arg_) other += static_cast<W>(t);
      if (t == begin) {
        value = one;
        rest = other;
      } else {
        combine(fold_, is_arg_, value, rest, one, other);
      }
      t += count;
    }
  }

  /// Gathers terms [t, t + count) of the row at `base`.
  void gather_terms(std::int64_t base, std::int64_t t, std::int64_t count, std::byte* to,
                    std::int64_t size) const {
    while (count > 0) {
      const std::int64_t some = std::min(count, args_.terms.rank <= 1 ? count : run_ - t % run_);
      cpu::gather(args_.x.dtype, element(base + args_.terms.offset(t)), run_stride_, some, to);
      t += some;
      count -= some;
      to += some * size;
    }
  }

  /// Gathers several short rows, then folds them in one kernel call.
  void gather_rows(std::int64_t base, std::int64_t stride, std::int64_t rows, W* value, W* rest) {
    const std::int64_t length = args_.terms.size();
    const std::int64_t size = static_cast<std::int64_t>(size_of(folded_));
    const std::int64_t at_once = gathered / std::max<std::int64_t>(length, 1);
    for (std::int64_t r = 0; r < rows; r += at_once) {
      const std::int64_t some = std::min(at_once, rows - r);
      for (std::int64_t i = 0; i < some; ++i) {
        gather_terms(base + (r + i) * stride, 0, length, buffer_ + i * length * size, size);
      }
      fold({.x = buffer_,
            .stride = length,
            .rows = some,
            .length = length,
            .value = value + r,
            .rest = rest + r,
            .arg = is_arg_});
    }
  }

  /// Transposes rows too short to fill a vector and folds them as columns.
  void transpose_rows(std::int64_t base, std::int64_t stride, std::int64_t rows, W* value,
                      W* rest) {
    const std::int64_t length = args_.terms.size();
    const std::int64_t size = static_cast<std::int64_t>(size_of(folded_));
    for (std::int64_t t = 0; t < length; ++t) {
      cpu::gather(args_.x.dtype, element(base + args_.terms.offset(t)), stride, rows,
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
                  .arg = is_arg_});
  }

  const Reduce::Args& args_;
  Fold fold_;
  bool is_arg_;
  DType folded_;
  std::int64_t size_;            // bytes per element of x
  std::byte* buffer_ = nullptr;  // this thread's gathered elements
  std::int64_t run_ = 1;         // terms along the innermost reduced axis
  std::int64_t run_stride_ = 1;
  bool contiguous_ = false;  // the terms of a result are one run in a type that kernels take
  bool direct_ = false;      // runs are long enough to be read in place
  bool transposed_ = false;  // many rows of a few terms are transposed
  bool grouped_ = false;     // short rows are folded together
  Reading reading_ = Reading::near;
  std::int64_t segments_ = 1;
  std::int64_t chunk_ = 1;
  std::int64_t chunks_ = 1;
};

template <class W>
void reduce_rows(const Reduce::Args& args, Context& context, int threads) {
  const RowWorker<W> plan(args);
  constexpr std::int64_t buffer_bytes = RowWorker<W>::buffer_bytes;
  // Threads divide the results, or, if there are fewer than 2 per thread, the chunks of all
  // results.
  const bool split = plan.chunks() > 1 && threads > 1 && args.results() < 2 * threads;
  const std::int64_t pairs = split ? args.results() * plan.chunks() : 0;
  const std::int64_t buffers = plan.gathers() ? threads * buffer_bytes : 0;
  std::byte* workspace = nullptr;
  if (pairs + buffers > 0) {
    const std::size_t bytes = static_cast<std::size_t>(pairs) * 2 * sizeof(W);
    workspace =
        static_cast<std::byte*>(context.workspace(bytes + static_cast<std::size_t>(buffers)));
  }
  W* value = reinterpret_cast<W*>(workspace + buffers);
  W* rest = value + pairs;
  std::atomic<std::int64_t> next = 0;
  const auto ranks = split ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    RowWorker<W> worker = plan;
    if (plan.gathers()) worker.gather_in(workspace + team.rank() * buffer_bytes);
    if (plan.chunks() > 1) {
      if (split) {
        worker.some_chunks(team, value, rest);
        team.wait();
      }
      worker.few_results(team, split ? value : nullptr, rest);
    } else if (args.has_segments()) {
      worker.batches_of_segments(next);
    } else {
      worker.many_results(team);
    }
  });
}

/// Returns how to read a short row. A row slightly longer than fits an L1 of 48 KiB beside other
/// data is read in eight streams, of which L1 keeps more than half until the next call; a single
/// stream evicts each line before its reuse (64 KiB, 2-core Zen 5 vCPU: 360 GB/s instead of 180;
/// 270 instead of 170 after a loop that has just written it; 4 to 8 % slower from L2 or beyond). An
/// L1 of 32 KiB keeps none of it (2-core Zen 4 vCPU: 90 GB/s in streams, 106 in order).
Reading reading_of_one(std::int64_t bytes) {
  constexpr std::int64_t within_l1 = 40 << 10;
  constexpr std::int64_t about_l1 = 64 << 10;
  static const bool l1_is_large = sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
  return l1_is_large && bytes > within_l1 && bytes <= about_l1 ? Reading::streams : Reading::near;
}

template <class W>
void one_row(const Reduce::Args& args) {
  const std::int64_t length = args.terms.size();
  const std::int64_t bytes = length * static_cast<std::int64_t>(size_of(args.x.dtype));
  W value;
  W rest;
  fold_rows(args.x.dtype, fold_of(args.operation),
            {.x = args.x.data,
             .stride = 0,
             .rows = 1,
             .length = length,
             .value = &value,
             .rest = &rest,
             .arg = args.is_arg(),
             .reading = args.is_arg() ? Reading::near : reading_of_one(bytes)});
  store_results(args, 0, 0, 1, &value, &rest, length);
}

/// Reduces a single short contiguous row with little overhead. Returns false, and does nothing, if
/// the problem does not qualify.
bool reduce_one_row(const Reduce::Args& args) {
  if (args.kept.size() != 1 || args.has_segments() || args.terms.size() > min_chunk) return false;
  if (!has_plain_rows(args)) return false;
  with_wide(args.x.dtype, [&]<class W>() { one_row<W>(args); });
  return true;
}

/// Returns 1 if x is smaller than 512 KiB, where waking threads costs more than it gains, else all
/// threads of the context.
int useful_threads(const Reduce::Args& args, const Context& context) {
  constexpr std::int64_t min_bytes = 512 << 10;
  return bytes_of(args) < min_bytes ? 1 : context.threads();
}

Work work(const Reduce::Args& args, const Context& context) {
  return row_facts(args, useful_threads(args, context));
}

void run(const Reduce::Args& args, Context& context) {
  if (reduce_one_row(args) || reduce_one_tile(args, context)) return;
  const int threads = useful_threads(args, context);
  if (has_columns(args)) return reduce_columns(args, context, threads);
  if (args.results() == 0) return;
  with_wide(args.x.dtype, [&]<class W>() { reduce_rows<W>(args, context, threads); });
}

const Rung<Reduce> self{
    {.name = "threads", .step = 60, .after = "blocks", .work = work, .run = run}};
}  // namespace
}  // namespace rung
