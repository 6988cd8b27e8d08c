// SPDX-License-Identifier: Apache-2.0
// reduce: cost, reference results and tolerances.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "rung/harness/inputs.hpp"
#include "rung/ops/reduce/op/reduce.hpp"

namespace rung {
namespace {

/// Extents and x's strides of some of x's axes, uncollapsed: the oracle shares no index arithmetic
/// with the rungs.
struct Axes {
  Extents shape;
  Extents strides;
  Axes(const ConstTensorRef& x, AxisSet set) {
    for (int axis = 0; axis < x.rank(); ++axis) {
      if ((set >> axis & 1) == 0) continue;
      shape[shape.rank++] = x.shape[axis];
      strides[strides.rank++] = x.strides[axis];
    }
  }
  [[nodiscard]] std::int64_t offset(std::int64_t linear) const {
    std::int64_t sum = 0;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      sum += linear % shape[axis] * strides[axis];
      linear /= shape[axis];
    }
    return sum;
  }
};

struct Result {
  double value = 0;
  double magnitude = 0;
};

/// Returns the reduction of element(0) to element(count - 1). Floating x in Real (double; long
/// double for f64), integers exactly, modulo 2^64.
template <class T, class Element>
Result reduce_one(Reduction operation, DType out, std::int64_t count, const Element& element) {
  using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  constexpr bool integral = std::is_integral_v<T>;
  using Exact = std::conditional_t<integral, std::uint64_t, Real>;
  const auto value_at = [&](std::int64_t i) { return static_cast<Accumulator<T>>(element(i)); };
  switch (operation) {
    case Reduction::sum:
    case Reduction::mean:
    case Reduction::norm:
    case Reduction::product: {
      const bool multiplies = operation == Reduction::product;
      Exact total = multiplies ? 1 : 0;
      Real size = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number with a sign
        const auto term = static_cast<Exact>(value_at(i));
        if (multiplies) {
          total *= term;
        } else {
          total += operation == Reduction::norm ? term * term : term;
        }
        size += std::abs(static_cast<Real>(value_at(i)));
      }
      if constexpr (integral) {
        const auto whole = static_cast<std::int64_t>(total);
        if (operation == Reduction::mean) {
          const auto mean = static_cast<long double>(whole) / static_cast<long double>(count);
          return {static_cast<double>(mean),
                  static_cast<double>(size) / static_cast<double>(count)};
        }
        // y keeps the low bits.
        return visit<std::int8_t, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t>(
            out, [&]<class Y>() {
              return Result{static_cast<double>(static_cast<Y>(whole)), 0};
            });
      } else if (operation == Reduction::norm) {
        const auto norm = static_cast<double>(std::sqrt(total));
        return {norm, norm};
      } else if (operation == Reduction::mean) {
        return {static_cast<double>(total / static_cast<Real>(count)),
                static_cast<double>(size / static_cast<Real>(count))};
      } else {
        return {static_cast<double>(total),
                static_cast<double>(multiplies ? std::abs(total) : size)};
      }
    }
    default:
      break;
  }
  const bool least = operation == Reduction::min || operation == Reduction::argmin;
  const bool arg = operation == Reduction::argmin || operation == Reduction::argmax;
  if (count == 0) {
    if (arg) return {-1, 0};
    if constexpr (integral) {
      using Limits = std::numeric_limits<T>;
      return {static_cast<double>(least ? Limits::max() : Limits::lowest()), 0};
    } else {
      const double infinity = std::numeric_limits<double>::infinity();
      return {least ? infinity : -infinity, 0};
    }
  }
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    const auto before = value_at(best);
    if constexpr (!integral) {
      if (std::isnan(before)) break;
      if (std::isnan(value_at(i))) {
        best = i;
        break;
      }
    }
    if (least ? value_at(i) < before : value_at(i) > before) best = i;
  }
  return {arg ? static_cast<double>(best) : static_cast<double>(value_at(best)), 0};
}

}  // namespace

Cost Reduce::cost(const Args& args) {
  // Elements of broadcast axes are read once.
  double elements = 1;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    if (args.x.strides[axis] != 0) elements *= static_cast<double>(args.x.shape[axis]);
  }
  if (args.x.empty()) elements = 0;
  const auto results = static_cast<double>(args.results());
  Cost cost;
  cost.written = results * static_cast<double>(size_of(args.y.dtype));
  cost.bytes = elements * static_cast<double>(size_of(args.x.dtype)) + cost.written;
  if (args.has_segments()) {
    cost.bytes +=
        static_cast<double>(args.segments() + 1) * static_cast<double>(size_of(args.offsets.dtype));
  }
  cost.operations = static_cast<double>(args.kept.size()) * static_cast<double>(args.terms.size()) *
                    (args.operation == Reduction::norm ? 2 : 1);
  return cost;
}

void Reduce::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const Axes kept(args.x, ~args.reduced & ((AxisSet{1} << args.x.rank()) - 1));
  const Axes terms(args.x, args.reduced);
  const auto offset_at = [&](std::int64_t i) {
    const std::int64_t place = i * args.offsets.strides[0];
    return args.offsets.dtype == DType::i32
               ? std::int64_t{static_cast<const std::int32_t*>(args.offsets.data)[place]}
               : static_cast<const std::int64_t*>(args.offsets.data)[place];
  };
  visit<float, double, f16, bf16, std::int8_t, std::uint8_t, std::uint16_t, std::int32_t,
        std::int64_t>(args.x.dtype, [&]<class T>() {
    const T* x = static_cast<const T*>(args.x.data);
    for (std::size_t i = 0; i < output.rows.size(); ++i) {
      for (std::int64_t column = 0; column < output.length; ++column) {
        // Indexes y in C order, including kept axes of extent 1.
        const std::int64_t linear = output.rows[i] * output.length + column;
        std::int64_t first = 0;
        std::int64_t count = args.terms.size();
        std::int64_t outer = linear;
        if (args.has_segments()) {
          const std::int64_t segment = linear % args.segments();
          outer = linear / args.segments();
          first = offset_at(segment);
          count = offset_at(segment + 1) - first;
        }
        const T* from = x + kept.offset(outer);
        const Result result =
            reduce_one<T>(args.operation, args.y.dtype, count,
                          [&](std::int64_t term) { return from[terms.offset(first + term)]; });
        const std::size_t at =
            i * static_cast<std::size_t>(output.length) + static_cast<std::size_t>(column);
        output.value[at] = result.value;
        output.magnitude[at] = result.magnitude;
      }
    }
  });
}

Tolerance Reduce::tolerance(const Args& args, const RungInfo& rung, Values values) {
  Tolerance tolerance;
  const bool exact =
      args.is_arg() || args.operation == Reduction::min || args.operation == Reduction::max;
  const bool integral = !is_floating(args.x.dtype);
  if (exact || (integral && args.operation != Reduction::mean)) return tolerance;
  const bool wide = args.x.dtype == DType::f64 || integral;
  const double unit = epsilon(wide ? DType::f64 : DType::f32) / 2;
  // The bounds that reduce.hpp documents. Rungs that reduce never chooses may sum a row in one
  // chain.
  const auto n = static_cast<double>(args.terms.size());
  double roundings = rung.peer || rung.teaching ? std::max(n, 80.0) : 80;
  if (args.operation == Reduction::norm) roundings = roundings / 2 + 2;
  if (args.operation == Reduction::product) roundings = n + 1;
  // Sums of small integers, and products of powers of two, are exact in any order: the check
  // detects a single missing term. The root and the quotient round once, in the accumulator.
  if (values == Values::integers || integral) {
    roundings = args.operation == Reduction::norm || args.operation == Reduction::mean ? 2 : 0;
  }
  tolerance.magnitude = roundings * unit;
  tolerance.relative = epsilon(args.y.dtype) / 2 * 1.01;
  // Subnormal results are rounded to a fixed step.
  const double smallest = args.y.dtype == DType::f16    ? 0x1p-24
                          : args.y.dtype == DType::bf16 ? 0x1p-133
                          : args.y.dtype == DType::f64  ? 0x1p-1074
                                                        : 0x1p-149;
  tolerance.absolute = 2 * smallest;
  return tolerance;
}

}  // namespace rung
