// SPDX-License-Identifier: Apache-2.0
// Compares a rung's output with the oracle, with its poison, and with a second run.
#include "rung/workbench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>

#include "rung/core/dtype.hpp"
#include "rung/core/parallel.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr double oracle_operations = 3e7;  // budget of a sequential oracle, about 30 ms
constexpr double judged_elements = 65536;  // budget of comparisons, about 1 ms
constexpr std::int64_t min_rows = 12;      // regardless of the cost of a row
constexpr std::int64_t telling_row = 8;    // shorter integer rows may equal poison by chance

const unsigned char* element(const Tensor& tensor, std::int64_t index) {
  return static_cast<const unsigned char*>(tensor.ref().data) +
         index * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

/// Formats an index in C order as a position: "c[3, 17]".
std::string position(std::string_view name, const Extents& shape, std::int64_t index) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank));
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    at[static_cast<std::size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return fmt::format("{}[{}]", name, fmt::join(at, ", "));
}

/// Returns the value rounded to a type, including overflow of narrow types.
double stored(DType dtype, double value) {
  unsigned char bits[8] = {};
  store_from_double(dtype, bits, value);
  return load_as_double(dtype, bits);
}

bool agrees(DType dtype, double got, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  if (std::isfinite(got)) return std::abs(got - expected) <= bound;
  // Accepted only if a value within the bound overflows to the same non-finite value.
  const double edge = stored(dtype, expected + std::copysign(bound, expected));
  return std::isnan(got) ? std::isnan(edge) : got == edge;
}

/// Returns the error bound of a judged element.
double bound_of(const Oracle::Output& expected, std::size_t position, const Tolerance& tolerance) {
  return tolerance.absolute + tolerance.relative * std::abs(expected.value[position]) +
         tolerance.magnitude * expected.magnitude[position];
}

struct Hits {
  std::int64_t count = 0;
  std::int64_t first = 0;  // smallest index, if count > 0
};

/// Counts the hits among positions [0, count) and finds the first, on all cores.
template <class IsHit>
Hits find_all(std::int64_t count, const IsHit& is_hit) {
  constexpr std::int64_t grain = 65536;
  Hits all;
  std::mutex mutex;
  for_each_part(count, grain, [&](std::int64_t begin, std::int64_t end) {
    Hits mine;
    for (std::int64_t at = begin; at < end; ++at) {
      if (is_hit(at) && mine.count++ == 0) mine.first = at;
    }
    const std::lock_guard lock(mutex);
    if (mine.count > 0 && (all.count == 0 || mine.first < all.first)) all.first = mine.first;
    all.count += mine.count;
  });
  return all;
}

}  // namespace

std::int64_t row_length(const Extents& shape) {
  return shape.rank == 0 ? 1 : shape[shape.rank - 1];
}

std::vector<std::int64_t> rows_to_judge(const Extents& shape, double operations,
                                        std::uint64_t seed) {
  const std::int64_t length = row_length(shape);
  const std::int64_t elements = shape.product();
  const std::int64_t count = length == 0 ? 0 : elements / length;
  std::vector<std::int64_t> rows;
  if (count == 0) return rows;
  const double of_all = std::min(oracle_operations / std::max(operations, 1.0),
                                 judged_elements / static_cast<double>(elements));
  const auto wanted = std::max(
      min_rows, static_cast<std::int64_t>(std::min(of_all, 1.0) * static_cast<double>(count)));
  if (wanted >= count) {
    for (std::int64_t row = 0; row < count; ++row) rows.push_back(row);
    return rows;
  }
  // Both ends, where tails and blocks fail, and random rows in between, reproducible by the seed.
  std::mt19937_64 random(seed);
  rows = {0, 1, count - 2, count - 1};
  while (static_cast<std::int64_t>(rows.size()) < wanted) {
    rows.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::string mismatch(std::string_view name, const Tensor& got, const Oracle::Output& expected,
                     const Tolerance& tolerance) {
  struct Judged {
    std::int64_t index;
    double value, want, bound;
  };
  const auto judge = [&](std::int64_t at) {
    const auto position = static_cast<std::size_t>(at);
    const std::int64_t row = expected.rows[static_cast<std::size_t>(at / expected.length)];
    const std::int64_t index = row * expected.length + at % expected.length;
    const double want = expected.value[position];
    return Judged{index, load_as_double(got.dtype(), element(got, index)), want,
                  bound_of(expected, position, tolerance)};
  };
  const auto judged = static_cast<std::int64_t>(expected.rows.size()) * expected.length;
  const Hits wrong = find_all(judged, [&](std::int64_t at) {
    const Judged one = judge(at);
    return !agrees(got.dtype(), one.value, one.want, one.bound);
  });
  if (wrong.count == 0) return "";
  const Judged first = judge(wrong.first);
  return fmt::format(
      "{} is {:.9g}, expected {:.9g}, off by {:.3g}, allowed {:.3g} (wrong: {} of {})",
      position(name, got.shape(), first.index), first.value, first.want,
      std::abs(first.value - first.want), first.bound, wrong.count,
      count_of(judged, "judged element"));
}

bool zeros_pass(DType dtype, const Oracle::Output& expected, const Tolerance& tolerance) {
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    if (!agrees(dtype, 0.0, expected.value[i], bound_of(expected, i, tolerance))) return false;
  }
  return !expected.value.empty();
}

std::string unwritten(std::string_view name, const Tensor& before, const Tensor& after) {
  const std::int64_t elements = after.shape().product();
  const std::size_t bytes = size_of(after.dtype());
  const bool floating = is_floating(after.dtype());
  const std::int64_t step = floating ? 1 : row_length(after.shape());
  if (elements == 0 || (!floating && step < telling_row)) return "";
  const Hits same = find_all(elements / step, [&](std::int64_t at) {
    const std::int64_t index = at * step;
    if (std::memcmp(element(before, index), element(after, index),
                    static_cast<std::size_t>(step) * bytes) != 0) {
      return false;
    }
    // Integers have no NaN: their poison is an ordinary value.
    return !floating || std::isnan(load_as_double(before.dtype(), element(before, index)));
  });
  if (same.count == 0) return "";
  return fmt::format("{} was never written (as before the run: {} of {})",
                     position(name, after.shape(), same.first * step), same.count * step,
                     count_of(elements, "element"));
}

std::string difference(std::string_view name, const Tensor& first, const Tensor& second) {
  const std::int64_t elements = first.shape().product();
  const std::size_t bytes = size_of(first.dtype());
  if (elements == 0 || std::memcmp(element(first, 0), element(second, 0),
                                   static_cast<std::size_t>(elements) * bytes) == 0) {
    return "";
  }
  for (std::int64_t index = 0; index < elements; ++index) {
    if (std::memcmp(element(first, index), element(second, index), bytes) == 0) continue;
    return fmt::format("two runs differ: {} is {:.9g}, then {:.9g}",
                       position(name, first.shape(), index),
                       load_as_double(first.dtype(), element(first, index)),
                       load_as_double(second.dtype(), element(second, index)));
  }
  return "";
}

}  // namespace rung::workbench
