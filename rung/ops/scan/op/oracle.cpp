// SPDX-License-Identifier: Apache-2.0
// scan: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/scan/op/scan.hpp"

namespace rung {
namespace {

/// Type in which the oracle combines: exact modulo 2^64 for integers, wider than any rung
/// otherwise.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t,
                                std::conditional_t<std::is_same_v<T, double>, long double, double>>;

template <class T>
struct Running {
  ScanOperation operation;
  Wide<T> value = identity();
  double magnitude = 0;

  [[nodiscard]] Wide<T> identity() const {
    using Limits = std::numeric_limits<Wide<T>>;
    const bool sum = operation == ScanOperation::sum;
    if (sum || operation == ScanOperation::product) return sum ? 0 : 1;
    const bool min = operation == ScanOperation::min;
    if constexpr (std::is_integral_v<T>) {
      const std::int64_t extreme =
          // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is meant to be kept
          min ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
      return static_cast<Wide<T>>(extreme);
    } else {
      return min ? Limits::infinity() : -Limits::infinity();
    }
  }

  void restart() {
    value = identity();
    magnitude = 0;
  }

  void add(T element) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): here too, sums are modulo 2^64
    const auto x = static_cast<Wide<T>>(static_cast<Accumulator<T>>(element));
    switch (operation) {
      case ScanOperation::sum:
        value += x;
        magnitude += static_cast<double>(x < 0 ? -x : x);
        return;
      case ScanOperation::product:
        value *= x;
        return;
      case ScanOperation::min:
      case ScanOperation::max:
        // A NaN replaces the value, and no later value replaces a NaN.
        if (x != x || wins(x)) value = x;  // NOLINT(misc-redundant-expression)
        return;
    }
  }

  [[nodiscard]] bool wins(Wide<T> x) const {
    const bool min = operation == ScanOperation::min;
    if constexpr (std::is_integral_v<T>) {
      return min ? static_cast<T>(x) < static_cast<T>(value)
                 : static_cast<T>(x) > static_cast<T>(value);
    } else {
      return min ? x < value : x > value;
    }
  }

  /// Returns the result converted to the element type: integers wrap.
  [[nodiscard]] double result() const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<double>(static_cast<T>(value));
    } else {
      return static_cast<double>(value);
    }
  }
};

/// Returns heads: element i is true if a segment begins at element i of the (possibly reversed)
/// line.
std::vector<bool> heads_of(const Scan::Args& args) {
  const std::int64_t n = args.length();
  std::vector<bool> heads(static_cast<std::size_t>(n));
  if (!args.has_segments()) return heads;
  visit<std::int32_t, std::int64_t>(args.offsets.dtype, [&]<class I>() {
    const auto offsets = args.offsets.view<const I, 1>();
    for (std::int64_t i = 0; i < offsets.shape[0]; ++i) {
      const std::int64_t at = offsets(i);
      if (at <= 0 || at >= n) continue;
      heads[static_cast<std::size_t>(args.reverse ? n - at : at)] = true;
    }
  });
  return heads;
}

/// Calls visit(i, running value of element i) for elements 0 to `last` of one line.
template <class T, class Visit>
void walk(const Scan::Args& args, const std::vector<bool>& heads, std::int64_t line,
          std::int64_t last, const Visit& visit) {
  const T* x = static_cast<const T*>(args.x.data) + args.lines.offset<0>(line);
  Running<T> running{args.operation};
  for (std::int64_t i = 0; i <= last; ++i) {
    if (heads[static_cast<std::size_t>(i)]) running.restart();
    if (args.exclusive) visit(i, running);
    running.add(x[i * args.x_stride()]);
    if (!args.exclusive) visit(i, running);
  }
}

template <class T>
void reference(const Scan::Args& args, Oracle::Output& output) {
  const std::int64_t n = args.length();
  const std::vector<bool> heads = heads_of(args);
  const int rank = args.y.rank();
  const auto put = [&](std::size_t row, std::int64_t column, const Running<T>& running) {
    const std::size_t at =
        row * static_cast<std::size_t>(output.length) + static_cast<std::size_t>(column);
    output.value[at] = running.result();
    output.magnitude[at] = running.magnitude;
  };
  if (args.axis == rank - 1) {  // a row of the output is a line
    for (std::size_t row = 0; row < output.rows.size(); ++row) {
      walk<T>(args, heads, output.rows[row], n - 1, [&](std::int64_t i, const Running<T>& running) {
        put(row, args.reverse ? n - 1 - i : i, running);
      });
    }
    return;
  }
  // A row crosses lines, at one position of the scan axis. Axes of the normalized tensor: the axes
  // before and after the scan axis in their order; a row's index is linear in the original order,
  // which has the scan axis in between and lacks the last axis.
  std::int64_t inner = 1;
  for (int axis = args.axis; axis < rank - 2; ++axis) inner *= args.y.shape[axis];
  // Groups rows across the same lines, by position: each line is walked once for all its rows.
  std::map<std::int64_t, std::map<std::int64_t, std::size_t>> groups;
  for (std::size_t row = 0; row < output.rows.size(); ++row) {
    const std::int64_t index = output.rows[row];
    const std::int64_t place = index / inner % n;
    groups[index / inner / n * inner + index % inner][args.reverse ? n - 1 - place : place] = row;
  }
  for (const auto& [outer, rows] : groups) {
    const std::int64_t last = rows.rbegin()->first;
    for (std::int64_t column = 0; column < output.length; ++column) {
      auto wanted = rows.begin();
      walk<T>(args, heads, outer * output.length + column, last,
              [&](std::int64_t i, const Running<T>& running) {
                if (i == wanted->first) put((wanted++)->second, column, running);
              });
    }
  }
}

}  // namespace

Cost Scan::cost(const Args& args) {
  const auto elements = static_cast<double>(args.length()) * static_cast<double>(args.lines.size());
  const double written = elements * static_cast<double>(size_of(args.x.dtype));
  double bytes = 2 * written;
  if (args.has_segments()) {
    bytes +=
        static_cast<double>(args.offsets.size()) * static_cast<double>(size_of(args.offsets.dtype));
  }
  return {.bytes = bytes, .operations = elements, .written = written};
}

void Scan::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  if (args.y.empty()) return;
  visit<float, double, f16, bf16, std::int8_t, std::uint8_t, std::uint16_t, std::int32_t,
        std::int64_t>(args.x.dtype, [&]<class T>() { rung::reference<T>(args, output); });
}

Tolerance Scan::tolerance(const Args& args, const RungInfo& rung, Values values) {
  Tolerance tolerance;
  if (!is_floating(args.x.dtype)) return tolerance;  // exact
  const bool sum = args.operation == ScanOperation::sum;
  const bool product = args.operation == ScanOperation::product;
  // Peers may add f16 and bf16 in their own type.
  const bool wide = args.x.dtype == DType::f64 || rung.peer;
  const double unit = epsilon(wide ? args.x.dtype : DType::f32) / 2;
  const double rounding = size_of(args.x.dtype) == 2 ? epsilon(args.x.dtype) / 2 * 1.01 : 0;
  const double terms = static_cast<double>(args.length()) * unit * 1.01;
  // The bound that scan.hpp documents. It grows with the length, which would hide a missing element
  // in a long sum; sums of small integers are exact in any order and must agree in every bit.
  // Exempt are peers that add f16 or bf16 directly: bf16 has no integers between 256 and 258.
  const bool exact = values == Values::integers && !(rung.peer && size_of(args.x.dtype) == 2);
  if (sum && !exact) tolerance.magnitude = terms;
  if (product) tolerance.relative = terms;
  tolerance.relative += rounding;
  // Subnormal f16 and bf16 are rounded to a fixed step.
  if (args.x.dtype == DType::f16) tolerance.absolute = 0x1p-25;
  if (args.x.dtype == DType::bf16) tolerance.absolute = 0x1p-134;
  return tolerance;
}

}  // namespace rung
