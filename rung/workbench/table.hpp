// SPDX-License-Identifier: Apache-2.0
// A text table that fits a terminal of 100 columns: columns as wide as their content, the last one
// wrapped under itself where it is too long.
#pragma once

#include <string>
#include <vector>

namespace rung::workbench {

inline constexpr std::size_t page_width = 100;

class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers align right
  };

  explicit Table(std::vector<Column> columns);
  /// One cell a column; missing cells at the end are empty.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Columns that are empty in every row are left out.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Breaks at spaces so that no line is wider than `width` (a longer word is cut).
std::vector<std::string> wrap(const std::string& text, std::size_t width);

/// "1.23 ms", "45.6 us", "52 ns": three digits and a unit.
std::string format_seconds(double seconds);
/// Three significant digits without an exponent, for rates and ratios.
std::string format_number(double value);
/// "48 KiB", "32 MiB".
std::string format_bytes(double bytes);

}  // namespace rung::workbench
