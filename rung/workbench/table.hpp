// SPDX-License-Identifier: Apache-2.0
// A text table that fits the terminal: columns as wide as their content. Where the width does not
// suffice, remarks go below the table as footnotes, then columns are left out, then cells are cut.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "rung/workbench/terminal.hpp"

namespace rung::workbench {

class Table {
 public:
  /// The fate of a column for which there is no room. `yield`: it is cut before any other is
  /// dropped, beside columns to cut as long as those stay readable, and is then the first to go.
  /// `keep`: it is cut, or dropped, when nothing else is left to give.
  enum class Fit : unsigned char { keep, cut, drop, yield };
  struct Column {
    std::string title;
    bool right = false;  // numbers align right
    Fit fit = Fit::keep;
  };

  /// The last column is for remarks, unless it aligns right or has another fit: a remark that does
  /// not fit its line is a number in brackets, explained below the table. Columns to drop go from
  /// the right to the left.
  explicit Table(std::vector<Column> columns);
  /// One cell a column; missing cells at the end are empty. `tone` is that of the whole row.
  void add(std::vector<std::string> cells, Tone tone = Tone::plain);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Columns that are empty in every row are left out; those dropped are named below.
  [[nodiscard]] std::string text(std::size_t width = terminal_width()) const;
  /// Returns true if text() has this column: a legend explains no other.
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

/// Returns the number of characters of UTF-8 text, one column each.
std::size_t shown_width(std::string_view text);
/// The text, or its beginning and "..." where it is wider than `width`.
std::string cut(std::string_view text, std::size_t width);
/// Breaks at spaces so that no line is wider than `width` (a longer word is cut).
std::vector<std::string> wrap(const std::string& text, std::size_t width);
/// wrap() as one text: the first line begins with `head`, the others are indented as far.
std::string wrapped(const std::string& text, std::size_t width, const std::string& head = "");
/// A message of several lines as one, to be wrapped: lines below a colon are joined by semicolons.
std::string one_line(std::string_view text);
/// Prints a paragraph on standard output, wrapped to text_width().
void say(const std::string& paragraph);

/// "1.23 ms", "45.6 us", "52 ns": three digits and a unit.
std::string format_seconds(double seconds);
/// Three significant digits without an exponent, for rates and ratios.
std::string format_number(double value);
/// A whole number, exact: "327,360".
std::string whole(double value);
/// "48 KiB", "32 MiB".
std::string format_bytes(double bytes);
/// "1 rung", "2 rungs", "0 launches": a number as it is to be printed, and what it counts.
std::string count_of(const std::string& number, std::string_view noun);
template <std::integral Number>
std::string count_of(Number number, std::string_view noun) {
  return count_of(std::to_string(number), noun);
}

}  // namespace rung::workbench
