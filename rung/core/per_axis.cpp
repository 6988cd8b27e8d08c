// SPDX-License-Identifier: Apache-2.0
// PerAxis: validates the count of its numbers and parses them from text.
#include "rung/core/per_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "rung/core/error.hpp"
#include "rung/core/require.hpp"

namespace rung {

PerAxis::PerAxis(std::initializer_list<int> numbers) : count(static_cast<int>(numbers.size())) {
  if (numbers.size() > most) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} numbers for the axes of an image; accepted: up to {}",
                            numbers.size(), most));
  }
  std::copy(numbers.begin(), numbers.end(), at);
}

void require_per_axis(std::string_view op, std::string_view name, const PerAxis& numbers, int axes,
                      int otherwise) {
  if (numbers.count == 1) return;
  if (numbers.count < axes || numbers.count > PerAxis::most) {
    reject(op, fmt::format("{} has {} numbers; accepted: 1, or {}, one for each axis of the image",
                           name, numbers.count, axes));
  }
  for (int axis = axes; axis < numbers.count; ++axis) {
    if (numbers.at[axis] == otherwise) continue;
    reject(op, fmt::format("{}[{}] is {}, of an axis that the image lacks; accepted: {}", name,
                           axis, numbers.at[axis], otherwise));
  }
}

PerAxis parse_per_axis(std::string_view op, std::string_view name, std::string_view text,
                       int axes) {
  PerAxis numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (numbers.count < axes) {
    const auto [stop, error] = std::from_chars(at, end, numbers.at[numbers.count]);
    if (error != std::errc{}) break;
    ++numbers.count;
    if (stop == end) {
      if (numbers.count == 1 || numbers.count == axes) return numbers;
      break;
    }
    if (*stop != 'x') break;
    at = stop + 1;
  }
  reject(op, fmt::format("{} is '{}'; accepted: a number, or {} joined by x", name, text, axes));
}

}  // namespace rung
