// SPDX-License-Identifier: Apache-2.0
//
// The kernels of kernels.hpp for one type and operation.
//
// Four vectors are scanned in parallel, so that their steps overlap; the running value then goes
// through the four by a single addition. Where the machine has no vectors of several blocks, or the
// operation no vector form, a plain loop does the same. Sums are blocked: elements are added to the
// sum of their block, blocks to the running value, so that rounding errors grow with the length of
// a block and the number of blocks, not with the length of a chunk (scan.hpp states the bound).
#if defined(RUNG_OPS_SCAN_CPU_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SCAN_CPU_KERNELS_INL_HPP_
#undef RUNG_OPS_SCAN_CPU_KERNELS_INL_HPP_
#else
#define RUNG_OPS_SCAN_CPU_KERNELS_INL_HPP_
#endif

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/scan/cpu/detail/kernels.hpp"
#include "rung/ops/scan/cpu/detail/lanes-inl.hpp"
#include "rung/ops/scan/cpu/detail/stream-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;  // load_as, store_as

constexpr int abreast = 4;  // vectors

/// What elements of T are in registers: f16 and bf16 as float.
template <class T>
using Lane = std::conditional_t<std::is_class_v<T>, float, T>;

template <class Operation>
constexpr ScanOperation operation_of =
    std::is_same_v<Operation, ScanSum>       ? ScanOperation::sum
    : std::is_same_v<Operation, ScanProduct> ? ScanOperation::product
    : std::is_same_v<Operation, ScanMin>     ? ScanOperation::min
                                             : ScanOperation::max;

#if HWY_MAX_BYTES > 16

template <class T, class Operation>
class Vectors {
 public:
  using L = Lane<T>;
  using D = hn::ScalableTag<L>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t lanes = HWY_MAX_BYTES / static_cast<std::int64_t>(sizeof(L));
  static constexpr std::int64_t group = abreast * lanes;
  static constexpr int page = 4096;
  /// Elements per block of a sum.
  static constexpr std::int64_t block = page / static_cast<std::int64_t>(sizeof(T)) / group * group;

  static void scan(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                   bool stream) {
    const T* from = static_cast<const T*>(x);
    run<false>(from, static_cast<T*>(y), n, carry, exclusive, stream, from);
  }
  static Carry scan_and_total(const void* x, void* y, std::int64_t n, Carry carry, bool exclusive,
                              bool stream, const void* totalled) {
    return run<true>(static_cast<const T*>(x), static_cast<T*>(y), n, carry, exclusive, stream,
                     static_cast<const T*>(totalled));
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
    return totals.combined(LaneScan<Operation, L>());
  }

  static void columns(const void* from, std::int64_t x_step, void* to, std::int64_t y_step,
                      std::int64_t rows, std::int64_t width, void* running_values, bool exclusive,
                      [[maybe_unused]] bool stream) {
    const D d;
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    L* running = static_cast<L*>(running_values);
    for (std::int64_t row = 0; row < rows; ++row, x += x_step, y += y_step) {
      std::int64_t j = 0;
      const auto whole_vectors = [&]<bool past>() HWY_ATTR {
        for (; j + lanes <= width; j += lanes) {
          if (stream) __builtin_prefetch(x + x_step + j, 0, 0);
          const V before = hn::LoadU(d, running + j);
          const V after = combine(Operation(), d, before, load_as(d, x + j));
          put<past>(exclusive ? before : after, d, y + j);
          hn::StoreU(after, d, running + j);
        }
      };
      const bool past = stream && reinterpret_cast<std::uintptr_t>(y) % HWY_MAX_BYTES == 0;
      past ? whole_vectors.template operator()<true>() : whole_vectors.template operator()<false>();
      if (j == width) continue;
      // The running values are padded to whole vectors.
      const auto rest = static_cast<std::size_t>(width - j);
      const V before = hn::LoadU(d, running + j);
      const V after = combine(Operation(), d, before, load_as_n(d, x + j, rest));
      store_as_n(exclusive ? before : after, d, y + j, rest);
      hn::StoreU(after, d, running + j);
    }
  }

 private:
  static HWY_INLINE V identity() {
    return hn::Set(D(), static_cast<L>(scan_identity<T>(operation_of<Operation>)));
  }
  /// Returns the end of the block of whole groups that begins at `begin`.
  static std::int64_t block_end(std::int64_t begin, std::int64_t n) {
    return std::min(begin + block, n / group * group);
  }

  /// The total of a chunk: vectors added to vectors, within a block element i to sum
  /// (i / lanes) mod 4.
  struct Totals {
    V blocks;  // the sum of all blocks before this one, lane by lane
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
    [[nodiscard]] HWY_INLINE Carry combined(const LaneScan<Operation, L>& lane_scan) const {
      const V scanned = lane_scan.scan(with_this_block());
      return Carry::of(hn::GetLane(lane_scan.last(scanned)));
    }
  };
  /// Asks for what lies a page ahead of a group of x. A scan has some 17 instructions for each line
  /// it loads, so that few loads fit the processor's window (16 million floats in rows of 4096, one
  /// thread of a 2-core Zen 5 vCPU: 2.8 times the speed of std with four lines at each new page,
  /// 2.9 with all lines 2 KiB ahead, 3.0 at 4 KiB, 2.9 at 8; a copy 3.05). Into all levels: what is
  /// totalled now is scanned next, and past L2 it would have to come from memory twice (2^27 floats
  /// on a 2-core Emerald Rapids vCPU: 81 ms, not 56; on Zen 5 no difference).
  static HWY_INLINE void prefetch_group(const T* x) {
    const auto* ahead = reinterpret_cast<const std::byte*>(x) + page;
#pragma GCC unroll 4
    for (int at = 0; at < group * static_cast<int>(sizeof(T)); at += 64) {
      __builtin_prefetch(ahead + at, 0, 3);
    }
  }

  /// `incoming` is what comes from memory: x, or what is totalled while x is in a cache already.
  template <bool with_total>
  static Carry run(const T* x, T* y, std::int64_t n, Carry carry, bool exclusive, bool stream,
                   const T* incoming) {
    const D d;
    const LaneScan<Operation, L> lane_scan;
    [[maybe_unused]] Totals totals;
    // The value before the next vector is that before its block, plus the block's own so far.
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
    // Past the caches: through a buffer where y's vectors are not aligned. The results must not
    // depend on the address, so the vectors cannot begin where y is aligned.
    const bool aligned = reinterpret_cast<std::uintptr_t>(y) % HWY_MAX_BYTES == 0;
    const bool buffered = stream && !aligned;
    alignas(64) T buffer[block];
    std::int64_t i = 0;
    const auto groups = [&]<bool past>(T* out, std::int64_t end) HWY_ATTR {
      // Copies, which stay in registers whatever becomes of the closure.
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
        V sum = v[0];  // of the vectors so far: `now` has one chain link per group
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
      // One line of a page of y to come, for its address alone: streaming stores wait long for a
      // translation (2^26 floats, one thread of a noisy 2-core Zen 5 vCPU: 13 ms, 15.5 without).
      if (stream) __builtin_prefetch(reinterpret_cast<const std::byte*>(y + begin) + 2 * page, 1);
      if (stream && aligned) {
        groups.template operator()<true>(y + begin, end);
      } else {
        groups.template operator()<false>(buffered ? buffer : y + begin, end);
      }
      if (buffered) stream_copy(buffer, y + begin, end - begin);
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

/// The same contract, element by element.
template <class T, class Operation>
class Loop {
 public:
  using L = Lane<T>;
  static constexpr L identity = static_cast<L>(scan_identity<T>(operation_of<Operation>));
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
                              bool exclusive, bool, const void* totalled) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    const T* incoming = static_cast<const T*>(totalled);
    return exclusive ? run<true>(x, y, n, carry, incoming) : run<false>(x, y, n, carry, incoming);
  }
  static void columns(const void* from, std::int64_t x_step, void* to, std::int64_t y_step,
                      std::int64_t rows, std::int64_t width, void* running_values, bool exclusive,
                      [[maybe_unused]] bool stream) {
    L* running = static_cast<L*>(running_values);
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* x = static_cast<const T*>(from) + row * x_step;
      T* y = static_cast<T*>(to) + row * y_step;
      for (std::int64_t j = 0; j < width; ++j) {
        const L after = Operation()(running[j], static_cast<L>(x[j]));
        y[j] = static_cast<T>(exclusive ? running[j] : after);
        running[j] = after;
      }
    }
  }

 private:
  /// True if an operation rounds.
  static constexpr bool blocked =
      std::is_floating_point_v<L> &&
      (std::is_same_v<Operation, ScanSum> || std::is_same_v<Operation, ScanProduct>);

  template <bool exclusive>
  static Carry run(const T* x, T* y, std::int64_t n, Carry carry, const T* incoming) {
    L running = carry.as<L>();
    L sum = identity;
    for (std::int64_t i = 0; i < n;) {
      const std::int64_t end = blocked ? std::min(i + block, n) : n;
      [[maybe_unused]] const L before_block = running;
      L in_block = identity;
      L sum_in_block = identity;
      for (; i < end; ++i) {
        // First: y may replace it.
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

#if HWY_MAX_BYTES > 16
/// Products of 8- and 64-bit integers have no vector instruction everywhere.
template <class T, class Operation>
constexpr bool has_vectors = !(std::is_same_v<Operation, ScanProduct> && std::is_integral_v<T> &&
                               (sizeof(T) == 1 || sizeof(T) == 8));
template <class T, class Operation>
using Choice =
    std::conditional_t<has_vectors<T, Operation>, Vectors<T, Operation>, Loop<T, Operation>>;
#else
template <class T, class Operation>
using Choice = Loop<T, Operation>;
#endif

template <class T, class Operation>
Kernel make_kernel() {
  using Made = Choice<T, Operation>;
  using L = Lane<T>;
  static constexpr L identity = static_cast<L>(scan_identity<T>(operation_of<Operation>));
  return {
      .scan = Made::scan,
      .total = Made::total,
      .scan_and_total = Made::scan_and_total,
      .columns = Made::columns,
      .restart = [](void* running,
                    std::int64_t width) { std::fill_n(static_cast<L*>(running), width, identity); },
      .combine = [](Carry before,
                    Carry total) { return Carry::of(Operation()(before.as<L>(), total.as<L>())); },
      .identity = Carry::of(identity)};
}

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
