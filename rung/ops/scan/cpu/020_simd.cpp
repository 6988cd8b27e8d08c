// SPDX-License-Identifier: Apache-2.0
// scan / simd
//
// Idea     A vector of 16 floats is scanned in its register in four steps; step k adds to every
//          lane the value 2^k lanes before it. Four vectors are scanned in parallel; a single
//          addition then carries the running value through all four.
// Changes  Against serial: one dependent addition per 64 elements instead of one per element. Sums
//          are blocked: a block of 4 KiB is summed on its own, then added to the running value, so
//          that rounding errors grow with a block's length plus the number of blocks. Large results
//          are written by non-temporal stores.
// Cost     Per vector of 16 floats: 5 permutations and 8 additions; each element read and written
//          once.
// Limits   One thread. Strided elements are gathered into a buffer first. Products of 8- and 64-bit
//          integers, and CPUs without AVX2, use a scalar loop.
// Source   W. Hillis & G. Steele, Data Parallel Algorithms, CACM 1986; W. Zhang, Y. Wang & K.
//          Ross, Parallel Prefix Sum with SIMD, ADMS 2020.
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE Floating
#endif

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/lane_scan-inl.hpp"
#include "rung/cpu/lines.hpp"
#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/split.hpp"  // types: Floating Integers
#include "rung/ops/scan/cpu/detail/chunks.hpp"
#include "rung/ops/scan/cpu/detail/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {

template <class T, class Operation>
class Vectors;

#if HWY_MAX_BYTES > 16
constexpr int abreast = 4;  // vectors scanned in parallel

template <class T, class Operation>
class Vectors {
 public:
  using L = Lane<T>;
  using D = hn::ScalableTag<L>;
  using V = hn::Vec<D>;
  struct Combine {
    HWY_INLINE V operator()(D d, V a, V b) const { return combine(Operation(), d, a, b); }
  };
  using Lanes = LaneScan<Combine, L, std::is_same_v<Operation, ScanSum>>;
  static constexpr std::int64_t lanes = HWY_MAX_BYTES / static_cast<std::int64_t>(sizeof(L));
  static constexpr std::int64_t group = abreast * lanes;
  static constexpr int page = 4096;
  /// Elements per block of a sum.
  static constexpr std::int64_t block = page / static_cast<std::int64_t>(sizeof(T)) / group * group;

  static void scan(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                   bool stream) {
    const T* from = static_cast<const T*>(x);
    scan_chunk<false>(from, static_cast<T*>(y), n, carry, exclusive, stream, from);
  }
  static Carry scan_and_total(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                              bool stream, const void* totaled) {
    return scan_chunk<true>(static_cast<const T*>(x), static_cast<T*>(y), n, carry, exclusive,
                            stream, static_cast<const T*>(totaled));
  }

  static Carry total(const void* from, std::int64_t n) {
    const D d;
    const T* x = static_cast<const T*>(from);
    Totals totals;
    std::int64_t i = 0;
    while (i + group <= n) {
      totals.begin_block();
      for (const std::int64_t end = block_end(i, n); i < end; i += group) {
#pragma GCC unroll 4
        for (int k = 0; k < abreast; ++k) totals.add(k, load_as(d, x + i + k * lanes));
      }
    }
    for (int k = 0; i < n; i += lanes, ++k) totals.add_some(k, x + i, n - i);
    return totals.combined(Lanes());
  }

 private:
  static HWY_INLINE V identity() { return hn::Set(D(), identity_of<T, Operation>); }
  /// Returns the end of the block at `begin`, cut at the last whole group.
  static std::int64_t block_end(std::int64_t begin, std::int64_t n) {
    return std::min(begin + block, n / group * group);
  }

  /// Total of a chunk: element i of a block is added to sum[(i / lanes) mod 4], vectors to vectors.
  struct Totals {
    V blocks;  // sum of the blocks before this one, lane by lane
    V sum[abreast];

    HWY_INLINE Totals() : blocks(identity()) { clear(); }
    HWY_INLINE void clear() {
#pragma GCC unroll 4
      for (int k = 0; k < abreast; ++k) sum[k] = identity();
    }
    [[nodiscard]] HWY_INLINE V with_this_block() const {
      const D d;
      const V left = combine(Operation(), d, sum[0], sum[1]);
      const V right = combine(Operation(), d, sum[2], sum[3]);
      return combine(Operation(), d, blocks, combine(Operation(), d, left, right));
    }
    HWY_INLINE void begin_block() {
      blocks = with_this_block();
      clear();
    }
    HWY_INLINE void add(int k, V v) { sum[k] = combine(Operation(), D(), sum[k], v); }
    HWY_INLINE void add_some(int k, const T* x, std::int64_t n) {
      const D d;
      if (n >= lanes) return add(k, load_as(d, x));
      const auto some = static_cast<std::size_t>(n);
      const V added = combine(Operation(), d, sum[k], load_as_n(d, x, some));
      sum[k] = hn::IfThenElse(hn::FirstN(d, some), added, sum[k]);
    }
    [[nodiscard]] HWY_INLINE Carry combined(const Lanes& lane_scan) const {
      const V scanned = lane_scan.scan(with_this_block());
      return Carry::of(hn::GetLane(lane_scan.last(scanned)));
    }
  };
  /// Prefetches a group one page ahead of x. A scan has about 17 instructions per line, so few
  /// loads fit the reorder buffer (16 million floats in rows of 4096, one thread of a 2-core Zen 5
  /// vCPU: 2.8 times the speed of std with four lines at each new page, 2.9 with all lines 2 KiB
  /// ahead, 3.0 at 4 KiB, 2.9 at 8 KiB; a copy 3.05). Prefetches into all levels: a chunk is
  /// scanned after it is totaled, and would otherwise be loaded from memory twice (2^27 floats on a
  /// 2-core Emerald Rapids vCPU: 56 ms instead of 81; on Zen 5 no difference).
  static HWY_INLINE void prefetch_group(const T* x) {
    const auto* ahead = reinterpret_cast<const std::byte*>(x) + page;
#pragma GCC unroll 4
    for (int at = 0; at < group * static_cast<int>(sizeof(T)); at += 64) {
      __builtin_prefetch(ahead + at, 0, 3);
    }
  }

  /// Scans x and returns the total of `incoming`: x itself, or a chunk from memory while x is
  /// cached.
  template <bool with_total>
  static Carry scan_chunk(const T* x, T* y, std::int64_t n, Carry carry, bool exclusive,
                          bool stream, const T* incoming) {
    const D d;
    const Lanes lane_scan;
    [[maybe_unused]] Totals totals;
    // Value before the next vector: the value before its block combined with the block's sum so
    // far.
    V before_block = hn::Set(d, carry.as<L>());
    V in_block = identity();
    V before = before_block;
    const auto result = [&](V start, V scanned) HWY_ATTR {
      return exclusive ? lane_scan.exclusive(start, scanned)
                       : combine(Operation(), d, start, scanned);
    };
    const auto advance = [&](V sum) HWY_ATTR {
      in_block = combine(Operation(), d, in_block, sum);
      before = combine(Operation(), d, before_block, in_block);
    };
    const auto one = [&](V v) HWY_ATTR {
      const V scanned = lane_scan.scan(v);
      const V scan_of_one = result(before, scanned);
      advance(lane_scan.last(scanned));
      return scan_of_one;
    };
    // If y's vectors are unaligned, non-temporal stores go through a buffer: starting vectors at an
    // aligned address instead would make the bits of results depend on y's address.
    const bool aligned = reinterpret_cast<std::uintptr_t>(y) % HWY_MAX_BYTES == 0;
    const bool buffered = stream && !aligned;
    alignas(64) T buffer[block];
    std::int64_t i = 0;
    const auto groups = [&]<bool past>(T* out, std::int64_t end) HWY_ATTR {
      // Local copies: the compiler keeps captured variables in memory.
      const V base = before_block;
      V own = in_block;
      V now = before;
      [[maybe_unused]] Totals sums = totals;
      for (; i < end; i += group, out += group) {
        if (stream) prefetch_group(incoming + i);
        V v[abreast];
#pragma GCC unroll 4
        for (int k = 0; k < abreast; ++k) {
          v[k] = load_as(d, x + i + k * lanes);
          if constexpr (with_total) sums.add(k, load_as(d, incoming + i + k * lanes));
        }
        // sum of the group's vectors so far, so that `now` has one dependent addition per group
        V sum = v[0];
#pragma GCC unroll 4
        for (int k = 0; k < abreast; ++k) {
          const V scanned = lane_scan.scan(v[k]);
          const V start = k == 0 ? now : combine(Operation(), d, now, sum);
          put<past>(result(start, scanned), d, out + k * lanes);
          const V last = lane_scan.last(scanned);
          sum = k == 0 ? last : combine(Operation(), d, sum, last);
        }
        own = combine(Operation(), d, own, sum);
        now = combine(Operation(), d, base, own);
      }
      in_block = own;
      before = now;
      if constexpr (with_total) totals = sums;
    };
    while (i + group <= n) {
      const std::int64_t begin = i;
      const std::int64_t end = block_end(begin, n);
      before_block = before;
      in_block = identity();
      if constexpr (with_total) totals.begin_block();
      // Prefetches the address translation of a page of y: a TLB miss stalls non-temporal stores
      // (2^26 floats, one thread of a noisy 2-core Zen 5 vCPU: 13 ms with the prefetch, 15.5
      // without).
      if (stream) __builtin_prefetch(reinterpret_cast<const std::byte*>(y + begin) + 2 * page, 1);
      if (stream && aligned) {
        groups.template operator()<true>(y + begin, end);
      } else {
        groups.template operator()<false>(buffered ? buffer : y + begin, end);
      }
      if (buffered) {
        const std::int64_t bytes = (end - begin) * static_cast<std::int64_t>(sizeof(T));
        cpu::stream_line(buffer, y + begin, bytes);
      }
    }
    for (int k = 0; i < n; i += lanes, ++k) {
      if constexpr (with_total) totals.add_some(k, incoming + i, n - i);
      if (n - i >= lanes) {
        store_as(one(load_as(d, x + i)), d, y + i);
      } else {
        const auto some = static_cast<std::size_t>(n - i);
        store_as_n(one(load_as_n(d, x + i, some)), d, y + i, some);
      }
    }
    if constexpr (with_total) return totals.combined(lane_scan);
    return {};
  }
};
#endif

/// Scalar implementation with the same interface.
template <class T, class Operation>
class Loop {
 public:
  using L = Lane<T>;
  static constexpr L identity = identity_of<T, Operation>;
  static constexpr std::int64_t block = 256;  // elements per block of a sum

  static void scan(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                   bool stream) {
    scan_and_total(x, y, n, carry, exclusive, stream, x);
  }
  static Carry total(const void* from, std::int64_t n) {
    const T* x = static_cast<const T*>(from);
    L sum = identity;
    for (std::int64_t i = 0; i < n;) {
      L in_block = identity;
      for (const std::int64_t end = blocked ? std::min(i + block, n) : n; i < end; ++i) {
        in_block = Operation()(in_block, static_cast<L>(x[i]));
      }
      sum = Operation()(sum, in_block);
    }
    return Carry::of(sum);
  }
  static Carry scan_and_total(const void* from, void* to, std::int64_t n, Carry carry,
                              bool exclusive, bool, const void* totaled) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    const T* incoming = static_cast<const T*>(totaled);
    return exclusive ? scan_chunk<true>(x, y, n, carry, incoming)
                     : scan_chunk<false>(x, y, n, carry, incoming);
  }

 private:
  /// True if the operation rounds; then sums and products are blocked.
  static constexpr bool blocked =
      std::is_floating_point_v<L> &&
      (std::is_same_v<Operation, ScanSum> || std::is_same_v<Operation, ScanProduct>);

  template <bool exclusive>
  static Carry scan_chunk(const T* x, T* y, std::int64_t n, Carry carry, const T* incoming) {
    L running = carry.as<L>();
    L sum = identity;
    for (std::int64_t i = 0; i < n;) {
      const std::int64_t end = blocked ? std::min(i + block, n) : n;
      [[maybe_unused]] const L before_block = running;
      L in_block = identity;
      L sum_in_block = identity;
      for (; i < end; ++i) {
        // Before the store, since y may alias `incoming`.
        sum_in_block = Operation()(sum_in_block, static_cast<L>(incoming[i]));
        const L before = running;
        if constexpr (blocked) {
          in_block = Operation()(in_block, static_cast<L>(x[i]));
          running = Operation()(before_block, in_block);
        } else {
          running = Operation()(running, static_cast<L>(x[i]));
        }
        y[i] = static_cast<T>(exclusive ? before : running);
      }
      sum = Operation()(sum, sum_in_block);
    }
    return Carry::of(sum);
  }
};

template <class T, class Operation>
Kernel make_kernel() {
  using L = Lane<T>;
  using Made =
      std::conditional_t<has_vectors<T, Operation>, Vectors<T, Operation>, Loop<T, Operation>>;
  return {
      .scan = Made::scan,
      .total = Made::total,
      .scan_and_total = Made::scan_and_total,
      .combine = [](Carry before,
                    Carry total) { return Carry::of(Operation()(before.as<L>(), total.as<L>())); },
      .identity = Carry::of(identity_of<T, Operation>)};
}

template <class... Ts>
Kernel find(Types<Ts...> /*family*/, DType dtype, ScanOperation operation) {
  return visit<Ts...>(dtype, [&]<class T>() {
    return visit_scan(operation, [&]<class Operation>() { return make_kernel<T, Operation>(); });
  });
}
Kernel kernel(DType dtype, ScanOperation operation) {
  return find(RUNG_SPLIT_TYPE(), dtype, operation);
}

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::scan_cpu {
namespace {
HWY_EXPORT(kernel);
}  // namespace

/// Returns the kernel of a type of Family; defined in Family's part of this file.
template <class Family>
Kernel kernel_among(DType dtype, ScanOperation operation);
template <>
Kernel kernel_among<RUNG_SPLIT_TYPE>(DType dtype, ScanOperation operation) {
  return HWY_DYNAMIC_DISPATCH(kernel)(dtype, operation);
}

#if RUNG_SPLIT_ONCE
Kernel kernel_of(DType dtype, ScanOperation operation) {
  return is_floating(dtype) ? kernel_among<Floating>(dtype, operation)
                            : kernel_among<Integers>(dtype, operation);
}

namespace {
std::int64_t segments_of(const Scan::Args& args) {
  return args.has_segments() ? std::min<std::int64_t>(args.offsets.size(), args.length()) : 0;
}
std::string_view line_path(const Scan::Args& args) {
  constexpr std::string_view paths[] = {"1", "2", "", "8"};
  const auto size = size_of(args.x.dtype);
  if (!args.is_contiguous()) return size < 4 ? "narrow apart" : "apart";
  return args.has_segments() ? "segments" : paths[std::countr_zero(size)];
}
}  // namespace

Work chunk_work(const Scan::Args& args, int threads, int passes) {
  const double elements = passes * Scan::cost(args).operations;
  Work work = cpu::piece_work(args.lines.size() * (1 + segments_of(args)), elements, threads,
                              line_path(args));
  work.operations = elements;
  return work;
}

namespace {

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const Chunks chunks(args, context, 1, 0);
  Carry carry;
  for (std::int64_t item = 0; item < chunks.items(); ++item) {
    if (chunks.is_first(item)) carry = chunks.identity();
    carry = chunks.scan(item, carry, !chunks.is_last(item), 0);
  }
  chunks.finish();
}

Work work(const Scan::Args& args, const Context&) { return chunk_work(args, 1, 1); }

const Rung<Scan> self{{.name = "simd", .step = 20, .after = "serial", .work = work, .run = run}};
}  // namespace
#endif
}  // namespace rung::scan_cpu
#endif
