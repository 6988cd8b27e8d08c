// SPDX-License-Identifier: Apache-2.0
// Lines divided into chunks: item i is chunk i mod chunks() of line i / chunks(). The total of a
// chunk needs no carry; its prefixes do.
//
// The chunk size depends on the line length only: results must not depend on the thread count. 64
// KiB take about 2 us, twenty times the latency of a carry between cores; lines that come from
// memory have chunks of 256 KiB: long sequential streams that still fit L2 between total and scan.
#pragma once

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/cpu/gather.hpp"
#include "rung/ops/scan/cpu/detail/heads.hpp"
#include "rung/ops/scan/cpu/detail/kernels.hpp"

namespace rung::scan_cpu {

inline constexpr std::int64_t min_chunk_bytes = 64 << 10;
constexpr std::int64_t chunk_bytes(std::int64_t line_bytes) {
  return line_bytes < 4 << 20 ? min_chunk_bytes : 256 << 10;
}
/// Returns an upper bound on the chunks of a line of n elements of any type.
constexpr std::size_t max_chunks(std::int64_t n) {
  return static_cast<std::size_t>(n / (min_chunk_bytes / 8) + 1);
}

/// Returns whether to use non-temporal stores, which avoid write-allocate reads, for results too
/// large for the caches.
inline bool is_streamed(const Scan::Args& args) {
  constexpr std::int64_t stream_bytes = 24 << 20;
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  return !same_place(args.x, args.y) && args.length() * args.lines.size() * size > stream_bytes;
}

class Chunks {
 public:
  /// Allocates the bitmap of heads, staging buffers for `threads` threads, and `more` bytes.
  Chunks(const Scan::Args& args, Context& context, int threads, std::size_t more)
      : args_(args),
        kernel_(kernel_of(args.x.dtype, args.operation)),
        size_(static_cast<std::int64_t>(size_of(args.x.dtype))),
        chunk_(chunk_bytes(args.length() * size_) / size_),
        chunks_(ceil_div(args.length(), chunk_)),
        staged_(!args.is_contiguous()) {
    const std::size_t head_bytes =
        round_up(head_words(args) * sizeof(std::uint64_t), std::size_t{64});
    const std::size_t staging_bytes =
        staged_ ? static_cast<std::size_t>(threads) * static_cast<std::size_t>(chunk_ * size_) : 0;
    auto* memory = static_cast<std::byte*>(context.workspace(head_bytes + staging_bytes + more));
    heads_ = heads_of(args, reinterpret_cast<std::uint64_t*>(memory));
    staging_ = memory + head_bytes;
    more_ = staging_ + staging_bytes;
    stream_ = is_streamed(args);
  }

  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  [[nodiscard]] std::int64_t items() const { return chunks_ * args_.lines.size(); }
  [[nodiscard]] bool is_first(std::int64_t item) const { return item % chunks_ == 0; }
  [[nodiscard]] bool is_last(std::int64_t item) const { return item % chunks_ == chunks_ - 1; }
  [[nodiscard]] Carry identity() const { return kernel_.identity; }
  [[nodiscard]] void* more() const { return more_; }

  /// Total of a chunk; if segments begin in the chunk, total of its last segment, with `restarts`.
  struct Total {
    Carry value;
    bool restarts = false;
  };
  [[nodiscard]] Total total(std::int64_t item, int rank) const {
    const ChunkRange at = range_of(item);
    const std::int64_t head = heads_.last(at.begin, at.end);
    const std::int64_t begin = std::max(head, at.begin);
    const void* x = element(args_.x.data, at.x + begin * args_.x_stride());
    if (staged_) {
      std::byte* buffer = staging(rank);
      cpu::copy_strided(size_, x, args_.x_stride(), buffer, 1, at.end - begin);
      x = buffer;
    }
    return {kernel_.total(x, at.end - begin), head >= 0};
  }
  [[nodiscard]] Carry after(Carry carry, const Total& total) const {
    return kernel_.combine(total.restarts ? kernel_.identity : carry, total.value);
  }

  /// Scans a chunk. Returns the carry after it if `onward`, which sums each vector during its scan.
  /// Call finish() after the last chunk.
  Carry scan(std::int64_t item, Carry carry, bool onward, int rank) const {
    const ChunkRange at = range_of(item);
    const std::byte* x = element(args_.x.data, at.x + at.begin * args_.x_stride());
    std::byte* y = element(args_.y.data, at.y + at.begin * args_.y_stride());
    if (staged_) {
      std::byte* buffer = staging(rank);
      cpu::copy_strided(size_, x, args_.x_stride(), buffer, 1, at.end - at.begin);
      carry = scan_pieces(at, buffer, buffer, carry, onward, false);
      cpu::copy_strided(size_, buffer, 1, y, args_.y_stride(), at.end - at.begin);
      return carry;
    }
    return scan_pieces(at, x, y, carry, onward, stream_);
  }
  /// Scans chunk `item` and returns the total of chunk `other`, loaded from memory meanwhile.
  [[nodiscard]] Total scan_and_total(std::int64_t item, Carry carry, std::int64_t other,
                                     int rank) const {
    const ChunkRange at = range_of(item);
    const ChunkRange to_come = range_of(other);
    if (staged_ || !heads_.is_empty() || to_come.end - to_come.begin != at.end - at.begin) {
      const Total result = total(other, rank);
      scan(item, carry, false, rank);
      return result;
    }
    return {kernel_.scan_and_total(
        element(args_.x.data, at.x + at.begin * args_.x_stride()),
        element(args_.y.data, at.y + at.begin * args_.y_stride()), at.end - at.begin, carry,
        args_.exclusive, stream_,
        element(args_.x.data, to_come.x + to_come.begin * args_.x_stride()))};
  }
  /// Fences a thread's non-temporal stores, once after its last chunk: a fence after each chunk
  /// would stall the next (16 million floats in rows of 4096: 5 %).
  void finish() const {
    if (stream_) hwy::FlushStream();
  }

 private:
  /// A chunk: elements [begin, end) of the line whose first elements are at x and y.
  struct ChunkRange {
    std::int64_t x, y, begin, end;
  };
  [[nodiscard]] ChunkRange range_of(std::int64_t item) const {
    const std::int64_t line = item / chunks_;
    const std::int64_t begin = item % chunks_ * chunk_;
    return {args_.lines.offset<0>(line), args_.lines.offset<1>(line), begin,
            std::min(begin + chunk_, args_.length())};
  }

  /// Scans a chunk segment by segment.
  Carry scan_pieces(const ChunkRange& at, const std::byte* x, std::byte* y, Carry carry,
                    bool onward, bool stream) const {
    for (std::int64_t i = at.begin;;) {
      if (heads_.has(i)) carry = kernel_.identity;
      const std::int64_t end = heads_.next(i + 1, at.end);
      const std::byte* from = x + (i - at.begin) * size_;
      std::byte* to = y + (i - at.begin) * size_;
      if (end < at.end || !onward) {
        kernel_.scan(from, to, end - i, carry, args_.exclusive, stream);
        if (end == at.end) return carry;
      } else {
        const Carry total =
            kernel_.scan_and_total(from, to, end - i, carry, args_.exclusive, stream, from);
        return kernel_.combine(carry, total);
      }
      i = end;
    }
  }

  [[nodiscard]] const std::byte* element(const void* data, std::int64_t index) const {
    return static_cast<const std::byte*>(data) + index * size_;
  }
  [[nodiscard]] std::byte* element(void* data, std::int64_t index) const {
    return static_cast<std::byte*>(data) + index * size_;
  }
  [[nodiscard]] std::byte* staging(int rank) const { return staging_ + rank * chunk_ * size_; }

  const Scan::Args& args_;
  Kernel kernel_;
  std::int64_t size_;
  std::int64_t chunk_;
  std::int64_t chunks_;
  bool staged_;
  bool stream_ = false;
  cpu::BitMap heads_;
  std::byte* staging_ = nullptr;
  std::byte* more_ = nullptr;
};

/// Returns the number of threads that amortize their wake-up.
inline int useful_threads(const Scan::Args& args, const Context& context) {
  constexpr double bytes_per_thread = 128 << 10;
  const double threads = Scan::cost(args).bytes / 2 / bytes_per_thread;
  return std::clamp(static_cast<int>(std::min(threads, 1e6)), 1, context.threads());
}

/// Returns the work of rungs built on chunks, which read x `passes` times: lines and segments have
/// costs of their own (020_simd.cpp).
Work chunk_work(const Scan::Args& args, int threads, int passes);

}  // namespace rung::scan_cpu
