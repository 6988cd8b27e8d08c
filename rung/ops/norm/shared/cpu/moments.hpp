// SPDX-License-Identifier: Apache-2.0
// Row statistics: moments of blocks, their combination, and the scale that results are computed
// with. No vector code. Shared by norm and norm_backward.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/dtype.hpp"

namespace rung::norm_cpu {

/// Elements per block of a row. Statistics are computed per block, so that the second pass over it
/// hits L1 (16 KiB of f32) and sums stay short. Results depend on the block size, not on the
/// threads.
constexpr std::int64_t block = 4096;
constexpr std::int64_t blocks_of(std::int64_t n) { return (n + block - 1) / block; }

/// Moments about `center`, a rounded mean: rest = sum(s - center), the part of the mean lost to
/// rounding, and squares = sum((s - center)^2). RMS norm has center = rest = 0. If squares
/// overflow, layer norm keeps the mean in `center`, with rest = 0 (finite_moments()).
template <class V>
struct Moments {
  V center;
  V rest;
  V squares;
};

template <class V>
inline constexpr V infinite = std::numeric_limits<V>::infinity();

/// Bound from which a mean counts as an overflow, because s - center may be infinite. The squares
/// of such elements overflow anyway, unless all are equal.
template <class V>
inline constexpr V too_large = static_cast<V>(sizeof(V) == 8 ? 0x1p960 : 0x1p100);

/// Returns whether the sums of a layer norm row are in range; false if it has infinite elements.
template <class V>
bool in_range(V squares, V mean) {
  return squares < infinite<V> && std::abs(mean) < too_large<V>;
}

/// Recomputes the moments of finite elements whose sums overflow: the mean, and infinite squares. A
/// NaN or infinity among the elements, or n = 0, makes all three NaN. Slow: scalar, in a type of
/// wider range. element(i) returns s[i].
template <class V, class Element>
[[gnu::noinline, gnu::cold]] Moments<V> moments_past_overflow(const Element& element,
                                                              std::int64_t n) {
  using Wider = std::conditional_t<std::is_same_v<V, double>, long double, double>;
  Wider sum = 0;
  V poison = n == 0 ? std::numeric_limits<V>::quiet_NaN() : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const V value = element(i);
    sum += static_cast<Wider>(value);
    poison += value - value;  // NOLINT: NaN where it is not finite
  }
  // Clamp: rounding must not make the mean infinite.
  constexpr Wider most = std::numeric_limits<V>::max();
  const auto mean = static_cast<V>(std::clamp(sum / static_cast<Wider>(n), -most, most));
  return {mean + poison, poison, infinite<V> + poison};
}

/// Returns the moments of layer norm's n contiguous elements: `moments` if they are in range, else
/// recomputed ones.
template <class T>
Moments<Accumulator<T>> finite_moments(const Moments<Accumulator<T>>& moments, const T* s,
                                       std::int64_t n) {
  using V = Accumulator<T>;
  if (in_range(moments.squares, moments.center)) return moments;
  return moments_past_overflow<V>([s](std::int64_t i) { return static_cast<V>(s[i]); }, n);
}

/// Coefficients of z = (s - center) rstd + shift. The mean is center + rest / n, more digits than V
/// has; shift carries the part that center cannot represent. If the squares overflow, all but the
/// mean are 0, so that s - center does not overflow.
template <class V>
struct Scale {
  V center;
  V rstd;
  V shift;
  V mean;
};

template <class V>
V rstd_of(V variance, double epsilon) {
  // Clamp a variance that rounding made negative; propagate a NaN.
  const V positive = variance < 0 ? V{0} : variance;
  return 1 / std::sqrt(positive + static_cast<V>(epsilon));
}

/// Returns the scale of a row that is one block.
template <class V>
Scale<V> scale_of(const Moments<V>& moments, std::int64_t n, double epsilon) {
  const V part = 1 / static_cast<V>(n);
  const V rest = moments.rest * part;
  // 0 * infinity, for n = 0, gives the required NaN.
  const V rstd = rstd_of(moments.squares * part - rest * rest, epsilon);
  // Branch-free: callers vectorize this over several rows.
  const V center = moments.squares == infinite<V> ? V{0} : moments.center;
  return {center, rstd, -rest * rstd, moments.center + rest};
}

/// Combines the moments of a row's blocks, in double, about the center of the first block. Only
/// differences of centers are added, never the centers themselves, so that f64 keeps the digits
/// that a large mean would cost [Chan, Golub & LeVeque]. The first center differs from the mean of
/// n elements by at most sqrt(n / block) standard deviations, which costs n / block roundings; the
/// contract allows n / 8.
template <class V>
class CombinedMoments {
 public:
  /// Starts a row of n elements.
  explicit CombinedMoments(std::int64_t n) : part_(1 / static_cast<double>(n)) {}

  /// Adds the moments of the next `count` elements.
  void add(const Moments<double>& part, std::int64_t count) {
    const auto length = static_cast<double>(count);
    if (empty_) center_ = part.center;
    empty_ = false;
    const double away = part.center - center_;
    const double moved = length * away;
    rest_ += part.rest + moved;
    squares_ += part.squares + away * (2 * part.rest + moved);
    rough_mean_ += part.center * (length * part_);
  }
  void add(const Moments<V>& part, std::int64_t count) requires(!std::is_same_v<V, double>) {
    add(widened(part), count);
  }

  [[nodiscard]] Scale<V> scale(double epsilon) const {
    // A sum that overflows in V must overflow for any partition into blocks.
    if (static_cast<V>(squares_) == infinite<V>) {
      // Exact for equal elements, whose squares are rounding errors only; it may be infinite.
      const double mean = center_ + rest_ * part_;
      constexpr double most = std::numeric_limits<V>::max();
      return {0, 0, 0,
              static_cast<V>(std::clamp(std::isfinite(mean) ? mean : rough_mean_, -most, most))};
    }
    const double rest = rest_ * part_;
    const auto rstd = static_cast<V>(rstd_of(squares_ * part_ - rest * rest, epsilon));
    const auto center = static_cast<V>(center_ + rest);
    const auto left = static_cast<V>(rest - (static_cast<double>(center) - center_));
    return {center, rstd, -left * rstd, center};
  }

  static Moments<double> widened(const Moments<V>& part) {
    return {static_cast<double>(part.center), static_cast<double>(part.rest),
            static_cast<double>(part.squares)};
  }

 private:
  double part_;  // 1 / n
  bool empty_ = true;
  double center_ = 0;
  double rest_ = 0;
  double squares_ = 0;
  double rough_mean_ = 0;  // a mean whose sum cannot overflow
};

}  // namespace rung::norm_cpu
