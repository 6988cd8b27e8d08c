// SPDX-License-Identifier: Apache-2.0
// Problem: element type, extents and options of a computation as a value, with one textual syntax
// for the command line, JSON, check and bench:  f32 1024x1024x1024,ta,batch=4
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"

namespace rung {

struct RUNG_API Problem {
  struct Option {
    std::string name;
    std::string value;  // empty for a flag
    bool operator==(const Option&) const = default;
  };

  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::vector<Option> options;

  /// Parses a text such as "f32 16x4096x4096,ta,alpha=2". Throws Error(invalid_argument) that names
  /// the invalid part.
  static Problem parse(std::string_view text);
  static std::vector<Problem> parse_all(std::initializer_list<std::string_view> texts);
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::string_view text(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] double number(std::string_view name, double otherwise) const;
  /// Range of a whole number. integer() throws Error(invalid_argument) for values outside of it.
  struct Whole {
    std::int64_t min;
    std::int64_t max;
  };
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise,
                                     Whole accepted = {INT64_MIN, INT64_MAX}) const;
  /// Ranges of options: counts; axes, negative ones from the end; numbers of axes.
  static constexpr Whole count{0, INT32_MAX};
  static constexpr Whole axis{-max_rank, max_rank - 1};
  static constexpr Whole axes{1, max_rank};

  /// Throws Error(invalid_argument) unless there are `rank` extents and all options are in `names`.
  void expect(std::string_view op, std::size_t rank,
              std::initializer_list<std::string_view> names) const;

  bool operator==(const Problem&) const = default;
};

}  // namespace rung
