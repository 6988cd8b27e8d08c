// SPDX-License-Identifier: Apache-2.0
// The phases of a strided layer's gradient, on hosts and devices. The pixels i = first + stride j
// of an axis have the same taps, so each phase is a layer of stride 1 with a subset of the taps,
// which writes every stride-th pixel.
#pragma once

#include <cstdint>

#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_layer {

RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// Returns the number of phases along one axis, at most the number of its pixels.
RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t phases_along(const SourceAxis& axis) {
  return lesser(axis.divisor, axis.places);
}

/// Returns whether a layer has phases, even if only one.
inline bool is_divided(const Gathered& g) {
  return g.axis[0].divisor != 1 || g.axis[1].divisor != 1 || g.axis[2].divisor != 1;
}

/// Returns the number of phases of a layer, clamped to 2^62.
inline std::int64_t phases_of(const Gathered& g) {
  double all = 1;
  for (const SourceAxis& axis : g.axis) all *= static_cast<double>(phases_along(axis));
  return all < 0x1p62 ? static_cast<std::int64_t>(all) : std::int64_t{1} << 62;
}

/// Returns the number of pixels of the first phase, which has the most.
inline std::int64_t phase_pixels(const Gathered& g) {
  std::int64_t pixels = g.images;
  for (const SourceAxis& axis : g.axis) pixels *= (axis.places - 1) / axis.divisor + 1;
  return pixels;
}

/// Returns a / b. Divisions of 32 bits are several times faster, and used if both operands fit.
RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) {
  const auto narrow_a = static_cast<std::int32_t>(a);
  const auto narrow_b = static_cast<std::int32_t>(b);
  if (narrow_a == a && narrow_b == b && b > 0) return narrow_a / narrow_b;
  return a / b;
}
RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t remainder(std::int64_t a, std::int64_t b) {
  return a - quotient(a, b) * b;
}

/// Axis of one phase, without a divisor: only every `every`-th tap contributes. first_tap is the
/// first contributing tap; -1 if there is none.
struct Phase {
  SourceAxis axis;
  std::int64_t first_tap;
  std::int64_t every;
};
RUNG_HD inline Phase phase_of(const SourceAxis& axis, std::int64_t first) {
  const std::int64_t divisor = axis.divisor;
  if (divisor == 1) return {axis, 0, 1};
  std::int64_t common = divisor;  // becomes gcd(divisor, distance between taps)
  for (std::int64_t rest = axis.between < 0 ? -axis.between : axis.between; rest != 0;) {
    const std::int64_t next = remainder(common, rest);
    common = rest;
    rest = next;
  }
  Phase phase{axis, -1, quotient(divisor, common)};
  phase.axis.places = quotient(axis.places - first - 1, divisor) + 1;
  phase.axis.divisor = 1;
  phase.axis.between = quotient(phase.every * axis.between, divisor);
  for (std::int64_t t = 0; t < lesser(phase.every, axis.kernel); ++t) {
    const std::int64_t at = first + axis.start + t * axis.between;
    if (remainder(at, divisor) != 0) continue;
    phase.first_tap = t;
    phase.axis.start = quotient(at, divisor);
    phase.axis.kernel = quotient(axis.kernel - 1 - t, phase.every) + 1;
    break;
  }
  return phase;
}

/// Returns phase `index` of a layer, as a layer without divisors. Elements of w have `element`
/// bytes, elements of y `written` bytes. A phase without a contributing tap has no terms.
RUNG_HD inline Gathered phase_layer(const Gathered& g, std::int64_t index, std::int64_t element,
                                    std::int64_t written) {
  Gathered made = g;
  bool has_taps = true;
  auto* y = static_cast<unsigned char*>(g.y);
  const auto* w = static_cast<const unsigned char*>(g.w);
  for (int axis = 2; axis >= 0; --axis) {
    const SourceAxis& whole = g.axis[axis];
    const std::int64_t count = phases_along(whole);
    const std::int64_t first = remainder(index, count);
    index = quotient(index, count);
    const Phase phase = phase_of(whole, first);
    made.axis[axis] = phase.axis;
    y += first * g.y_strides[2 + axis] * written;
    made.y_strides[2 + axis] = whole.divisor * g.y_strides[2 + axis];
    has_taps = has_taps && phase.first_tap >= 0;
    if (!has_taps) continue;
    w += phase.first_tap * g.w_strides[2 + axis] * element;
    made.w_strides[2 + axis] = phase.every * g.w_strides[2 + axis];
  }
  made.y = y;
  made.w = w;
  if (has_taps) return made;
  made.q = 0;
  made.w = g.w;
  for (int axis = 0; axis < 3; ++axis) {
    SourceAxis bare;
    bare.places = made.axis[axis].places;
    bare.extent = g.axis[axis].extent;
    made.axis[axis] = bare;
  }
  return made;
}
RUNG_HD inline Gathered phase_layer(const Gathered& g, std::int64_t index, std::int64_t element) {
  return phase_layer(g, index, element, element);
}

}  // namespace rung::conv_layer
