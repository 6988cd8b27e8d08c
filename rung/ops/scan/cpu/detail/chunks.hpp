// SPDX-License-Identifier: Apache-2.0
// Lines cut into chunks, as the fast CPU rungs see a scan: item i is chunk i mod chunks() of line
// i / chunks(). A chunk's total can be had without its carry, and its prefixes given the carry.
//
// The size of chunks follows from the length alone, not from the number of threads, on which
// results must not depend. 64 KiB are scanned in some 2 us, twenty times what it takes to hand a
// carry from core to core; lines that come from memory are cut into 256 KiB, so that each core
// reads long stretches of it, of which L2 still holds what was summed when it is scanned.
#pragma once

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "rung/core/require.hpp"
#include "rung/ops/scan/cpu/detail/heads.hpp"
#include "rung/ops/scan/cpu/detail/kernels.hpp"

namespace rung::scan_cpu {

inline constexpr std::int64_t min_chunk_bytes = 64 << 10;
constexpr std::int64_t chunk_bytes(std::int64_t line_bytes) {
  return line_bytes < 4 << 20 ? min_chunk_bytes : 256 << 10;
}
/// At most, of a line of n elements; what does not depend on the type's size.
constexpr std::size_t max_chunks(std::int64_t n) {
  return static_cast<std::size_t>(n / (min_chunk_bytes / 8) + 1);
}

/// Streaming stores spare reading what they replace, but what is written next to the caches is not
/// found there: worth it for what would not have stayed.
inline bool is_streamed(const Scan::Args& args) {
  constexpr std::int64_t stream_bytes = 24 << 20;
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  return !same_place(args.x, args.y) && args.length() * args.lines.size() * size > stream_bytes;
}

class Chunks {
 public:
  /// Enough for the heads and the staging buffers of `threads` threads, then `more` bytes.
  Chunks(const Scan::Args& args, Context& context, int threads, std::size_t more)
      : args_(args),
        kernel_(kernel_of(args.x.dtype, args.operation)),
        size_(static_cast<std::int64_t>(size_of(args.x.dtype))),
        chunk_(chunk_bytes(args.length() * size_) / size_),
        chunks_((args.length() + chunk_ - 1) / chunk_),
        staged_(!args.is_contiguous()) {
    const std::size_t head_bytes = round_up(Heads::size(args) * sizeof(std::uint64_t));
    const std::size_t staging_bytes =
        staged_ ? static_cast<std::size_t>(threads) * static_cast<std::size_t>(chunk_ * size_) : 0;
    auto* memory = static_cast<std::byte*>(context.workspace(head_bytes + staging_bytes + more));
    heads_ = Heads(args, reinterpret_cast<std::uint64_t*>(memory));
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

  /// What a chunk adds to its carry: its total, or, where a segment begins in it, that of the last
  /// one, before which nothing counts.
  struct Total {
    Carry value;
    bool restarts = false;
  };
  [[nodiscard]] Total total(std::int64_t item, int rank) const {
    const Place at = place(item);
    const std::int64_t head = heads_.last(at.begin, at.end);
    const std::int64_t begin = std::max(head, at.begin);
    const void* x = element(args_.x.data, at.x + begin * args_.x_stride());
    if (staged_) {
      std::byte* buffer = staging(rank);
      copy(x, args_.x_stride(), buffer, 1, at.end - begin);
      x = buffer;
    }
    return {kernel_.total(x, at.end - begin), head >= 0};
  }
  [[nodiscard]] Carry after(Carry carry, const Total& total) const {
    return kernel_.combine(total.restarts ? kernel_.identity : carry, total.value);
  }

  /// Scans a chunk; finish() when all are. The carry after it, where `onward`; that takes a pass of
  /// its own over each vector, though not over memory.
  Carry scan(std::int64_t item, Carry carry, bool onward, int rank) const {
    const Place at = place(item);
    const std::byte* x = element(args_.x.data, at.x + at.begin * args_.x_stride());
    std::byte* y = element(args_.y.data, at.y + at.begin * args_.y_stride());
    if (staged_) {
      std::byte* buffer = staging(rank);
      copy(x, args_.x_stride(), buffer, 1, at.end - at.begin);
      carry = scan_pieces(at, buffer, buffer, carry, onward, false);
      copy(buffer, 1, y, args_.y_stride(), at.end - at.begin);
      return carry;
    }
    return scan_pieces(at, x, y, carry, onward, stream_);
  }
  /// Scans a chunk, and the total of another one, which comes from memory meanwhile.
  [[nodiscard]] Total scan_and_total(std::int64_t item, Carry carry, std::int64_t other,
                                     int rank) const {
    const Place at = place(item);
    const Place to_come = place(other);
    if (staged_ || heads_.any() || to_come.end - to_come.begin != at.end - at.begin) {
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
  /// Every thread's last word: what it streamed can be seen by all. (After each chunk it would hold
  /// up the next: rows of 4096 floats, 16 million in all, took 5 % longer.)
  void finish() const {
    if (stream_) hwy::FlushStream();
  }

 private:
  /// A chunk: elements [begin, end) of the line whose first elements are at x and y.
  struct Place {
    std::int64_t x, y, begin, end;
  };
  [[nodiscard]] Place place(std::int64_t item) const {
    const std::int64_t line = item / chunks_;
    const std::int64_t begin = item % chunks_ * chunk_;
    return {args_.lines.offset<0>(line), args_.lines.offset<1>(line), begin,
            std::min(begin + chunk_, args_.length())};
  }

  /// Segment by segment.
  Carry scan_pieces(const Place& at, const std::byte* x, std::byte* y, Carry carry, bool onward,
                    bool stream) const {
    for (std::int64_t i = at.begin;;) {
      if (heads_.at(i)) carry = kernel_.identity;
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

  void copy(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride,
            std::int64_t n) const {
    const DType words[] = {DType::u8, DType::u16, DType::f32, DType::f64};
    visit<std::uint8_t, std::uint16_t, float, double>(
        words[std::countr_zero(static_cast<std::uint64_t>(size_))], [&]<class Word>() {
          const auto* in = static_cast<const Word*>(from);
          auto* out = static_cast<Word*>(to);
          // Backwards, as reversed lines are read and written: the compiler makes vectors of
          // strides that it knows (bf16: 0.5 ns per element without).
          if (from_stride == -1 && to_stride == 1) {
            std::reverse_copy(in - (n - 1), in + 1, out);
          } else if (from_stride == 1 && to_stride == -1) {
            std::reverse_copy(in, in + n, out - (n - 1));
          } else {
            for (std::int64_t i = 0; i < n; ++i) out[i * to_stride] = in[i * from_stride];
          }
        });
  }

  static std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  const Scan::Args& args_;
  Kernel kernel_;
  std::int64_t size_;
  std::int64_t chunk_;
  std::int64_t chunks_;
  bool staged_;
  bool stream_ = false;
  Heads heads_;
  std::byte* staging_ = nullptr;
  std::byte* more_ = nullptr;
};

/// Threads that are worth waking for so much work.
inline int useful_threads(const Scan::Args& args, const Context& context) {
  constexpr double bytes_a_thread = 128 << 10;
  const double threads = Scan::cost(args).bytes / 2 / bytes_a_thread;
  return std::clamp(static_cast<int>(std::min(threads, 1e6)), 1, context.threads());
}

/// Of all rungs that are built on chunks, and so give the same bits. Independent of the number of
/// threads, as the choice must be: other rungs add in other orders. (A 2-core Zen 5 vCPU.)
inline double chunk_seconds(const Scan::Args& args, double passes) {
  constexpr double start = 26e-9, an_offset = 2e-9, a_segment = 7e-9;
  constexpr double worth_sharing = 256 << 10, shared = 1.5;
  const double bytes = Scan::cost(args).bytes;
  const auto lines = static_cast<double>(args.lines.size());
  // Elements of 1, 2, 4 and 8 bytes, of which those of 2 are widened; gathered first where they are
  // not contiguous.
  const std::size_t size = size_of(args.x.dtype);
  const double contiguous = size == 8   ? 0.12e-9
                            : size == 4 ? 0.09e-9
                            : size == 2 ? 0.18e-9
                                        : 0.045e-9;
  const double gathered = size >= 4 ? 0.6e-9 : size == 2 ? 0.8e-9 : 1.3e-9;
  const double elements =
      Scan::cost(args).operations * (args.is_contiguous() ? contiguous : gathered);
  const double a_line = args.is_contiguous() ? 10e-9 : 15e-9;
  double segments = 0;
  if (args.has_segments()) {
    const auto offsets = static_cast<double>(args.offsets.size());
    const double begun = std::min(offsets, static_cast<double>(args.length()));
    segments = offsets * an_offset + lines * begun * a_segment;
  }
  return start +
         (lines * a_line + segments + elements * passes) / (bytes > worth_sharing ? shared : 1);
}

}  // namespace rung::scan_cpu
