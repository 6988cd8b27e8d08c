// SPDX-License-Identifier: Apache-2.0
// Text tables and the few number formats that all commands share.
#include "rung/workbench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rung::workbench {
namespace {

constexpr std::size_t gap = 2;                 // spaces between columns
constexpr std::size_t least_last_column = 16;  // narrower than this, wrapping cannot be read

void append_padded(std::string& line, const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, cell.size()), ' ');
  line += right ? space + cell : cell + space;
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> width(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& row : rows_) width[c] = std::max(width[c], row[c].size());
    if (width[c] == 0) continue;
    width[c] = std::max(width[c], columns_[c].title.size());
    shown.push_back(c);
  }
  if (shown.empty()) return "";

  const std::size_t last = shown.back();
  std::size_t before = 0;
  for (const std::size_t c : shown) before += c == last ? 0 : width[c] + gap;
  const std::size_t room =
      page_width > before + least_last_column ? page_width - before : least_last_column;
  width[last] = std::min(width[last], room);

  std::string text;
  const auto add_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (const std::size_t c : shown) {
      if (c == last) break;
      append_padded(line, cells[c], width[c], columns_[c].right);
      line.append(gap, ' ');
    }
    const std::vector<std::string> parts = wrap(cells[last], width[last]);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (part > 0) line.assign(before, ' ');
      append_padded(line, parts[part], width[last], columns_[last].right);
      append_line(text, line);
    }
  };
  std::vector<std::string> titles;
  titles.reserve(columns_.size());
  for (const Column& column : columns_) titles.push_back(column.title);
  add_row(titles);
  for (const auto& row : rows_) add_row(row);
  return text;
}

std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (text.size() - begin > width) {
    std::size_t end = text.rfind(' ', begin + width);
    if (end == std::string::npos || end <= begin) end = begin + width;
    lines.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end);
    if (begin == std::string::npos) return lines;
  }
  lines.push_back(text.substr(begin));
  return lines;
}

std::string format_number(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string format_seconds(double seconds) {
  struct Unit {
    const char* name;
    double size;
  };
  constexpr Unit units[] = {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}};
  // 0.9995 and not 1: what would print as 1000 us is 1.00 ms.
  for (const Unit& unit : units) {
    if (seconds >= 0.9995 * unit.size) {
      return fmt::format("{} {}", format_number(seconds / unit.size), unit.name);
    }
  }
  return fmt::format("{} ns", format_number(seconds / 1e-9));
}

std::string format_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

}  // namespace rung::workbench
