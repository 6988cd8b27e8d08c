// SPDX-License-Identifier: Apache-2.0
// A text table that fits the terminal: columns as wide as their content. If the width does not
// suffice, remarks become footnotes, then columns are dropped, then cells are truncated.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "rung/workbench/terminal.hpp"

namespace rung::workbench {

class Table {
 public:
  /// Treatment of a column if the table is too wide, step by step: `yield` columns are truncated,
  /// with `cut` columns as long as these stay readable, then dropped; `drop` columns are dropped;
  /// `cut` columns are truncated; `keep` columns are truncated or dropped only as a last resort.
  enum class Fit : unsigned char { keep, cut, drop, yield };
  struct Column {
    std::string title;
    bool right = false;  // align right, for numbers
    Fit fit = Fit::keep;
  };

  /// The last column holds remarks, unless it aligns right or has another fit: a remark that does
  /// not fit is replaced by a number in brackets and explained below the table. Columns are dropped
  /// from right to left.
  explicit Table(std::vector<Column> columns);
  /// Adds a row of one cell per column; missing trailing cells are empty. `tone` applies to the
  /// whole row.
  void add(std::vector<std::string> cells, Tone tone = Tone::plain);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Returns the table. Omits columns that are empty in every row; names dropped columns below the
  /// table.
  [[nodiscard]] std::string text(std::size_t width = terminal_width()) const;
  /// Returns true if text() shows this column: a legend explains only columns that are shown.
  [[nodiscard]] bool shows(std::string_view title, std::size_t width = terminal_width()) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Tone tone;
  };
  class Layout;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// Returns the number of characters of UTF-8 text, assuming one column each.
std::size_t shown_width(std::string_view text);
/// Returns the text, truncated with "..." if it is wider than `width`.
std::string cut(std::string_view text, std::size_t width);
/// Breaks text at spaces into lines of at most `width`; truncates longer words.
std::vector<std::string> wrap(const std::string& text, std::size_t width);
/// Returns wrap() as one text: `head` begins the first line, and the other lines are indented by
/// its width.
std::string wrapped(const std::string& text, std::size_t width, const std::string& head = "");
/// Joins the lines of a message for wrapping: lines after a colon are separated by semicolons.
std::string one_line(std::string_view text);
/// Prints a paragraph on standard output, wrapped to text_width().
void say(const std::string& paragraph);

/// Formats a time with three digits and a unit: "1.23 ms", "45.6 us", "52 ns".
std::string format_seconds(double seconds);
/// Formats a rate or ratio with three significant digits, without an exponent.
std::string format_number(double value);
/// Formats a whole number exactly: "327,360".
std::string whole(double value);
/// Formats a number of bytes: "48 KiB", "32 MiB".
std::string format_bytes(double bytes);
/// Formats a count with its noun: "1 rung", "2 rungs", "0 launches". `number`: as printed.
std::string count_of(const std::string& number, std::string_view noun);
template <std::integral Number>
std::string count_of(Number number, std::string_view noun) {
  return count_of(std::to_string(number), noun);
}

}  // namespace rung::workbench
