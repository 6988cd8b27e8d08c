// SPDX-License-Identifier: Apache-2.0
// Writes options in the syntax that Problem and the operators' make() parse.
#include "rung/harness/problem_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace rung {

ProblemWriter::ProblemWriter(DType dtype, const Extents& extents) {
  problem_.dtype = dtype;
  problem_.extents.assign(extents.at, extents.at + extents.rank);
  if (extents.rank == 0) problem_.extents = {1};
}

ProblemWriter& ProblemWriter::option(std::string_view name, std::string value) {
  problem_.options.push_back({std::string(name), std::move(value)});
  return *this;
}

ProblemWriter& ProblemWriter::flag(std::string_view name, bool given) {
  return given ? option(name, "") : *this;
}

ProblemWriter& ProblemWriter::text(std::string_view name, std::string_view value,
                                   std::string_view otherwise) {
  return value != otherwise ? option(name, std::string(value)) : *this;
}

ProblemWriter& ProblemWriter::dtype(std::string_view name, DType value, DType otherwise) {
  return text(name, rung::to_string(value), rung::to_string(otherwise));
}

ProblemWriter& ProblemWriter::integer(std::string_view name, std::int64_t value,
                                      std::int64_t otherwise) {
  return value != otherwise ? option(name, std::to_string(value)) : *this;
}

ProblemWriter& ProblemWriter::number(std::string_view name, double value, double otherwise) {
  if (value == otherwise || !std::isfinite(value)) return *this;
  char digits[32];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value);
  return option(name, std::string(digits, end));
}

ProblemWriter& ProblemWriter::extents(std::string_view name, const Extents& list) {
  return list.rank != 0 ? option(name, rung::to_string(list)) : *this;
}

ProblemWriter& ProblemWriter::axes(std::string_view name, const Extents& list, int rank) {
  if (list.rank == 0) return *this;
  // A comma would end the option, so that only a single axis can be written as a negative index.
  if (list.rank == 1) return option(name, std::to_string(list[0]));
  std::string digits;
  for (int i = 0; i < list.rank; ++i) digits += std::to_string(list[i] + (list[i] < 0 ? rank : 0));
  return option(name, digits);
}

ProblemWriter& ProblemWriter::per_axis(std::string_view name, const PerAxis& numbers, int axes,
                                       int otherwise) {
  const PerAxis fewest = fewest_numbers(numbers, axes);
  if (fewest.count == 1) return integer(name, fewest.at[0], otherwise);
  std::string joined;
  for (int axis = 0; axis < axes; ++axis) {
    joined += (axis == 0 ? "" : "x") + std::to_string(fewest.at[axis]);
  }
  return option(name, joined);
}

PerAxis fewest_numbers(const PerAxis& numbers, int axes) {
  const int count = std::min(numbers.count, axes);
  const int* const end = numbers.at + std::max(count, 0);
  const bool equal = std::all_of(numbers.at, end, [&](int one) { return one == numbers.at[0]; });
  return equal ? PerAxis(numbers.at[0]) : numbers;
}

}  // namespace rung
