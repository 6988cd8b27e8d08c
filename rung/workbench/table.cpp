// SPDX-License-Identifier: Apache-2.0
// Layout of text tables.
#include "rung/workbench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace rung::workbench {
namespace {

constexpr std::size_t gap = 2;        // spaces between columns
constexpr std::size_t min_cell = 8;   // minimum width of a truncated cell
constexpr std::size_t mark_size = 4;  // "[12]"

std::size_t sum(const std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns) {
  std::size_t total = columns.empty() ? 0 : gap * (columns.size() - 1);
  for (const std::size_t c : columns) total += widths[c];
  return total;
}

}  // namespace

/// Layout of a table: columns shown, their widths, and footnotes.
class Table::Layout {
 public:
  Layout(const Table& table, std::size_t width) : table_(table), width_(width) {
    const std::size_t count = table.columns_.size();
    for (std::size_t c = 0; c < count; ++c) {
      natural_.push_back(longest(c, width));
      if (natural_[c] > 0) shown_.push_back(c);
    }
    if (shown_.empty()) return;
    const std::size_t last = shown_.back();
    const Column& column = table.columns_[last];
    has_remarks_ = shown_.size() > 1 && !column.right && column.fit == Fit::keep;
    remarks_ = last;
    for (const std::size_t c : shown_) {
      natural_[c] = std::max(natural_[c], shown_width(table.columns_[c].title));
    }
    widths_ = natural_;
    const std::size_t min_remark = std::max(mark_size, shown_width(column.title));
    if (has_remarks_) widths_[last] = std::min(widths_[last], min_remark);
    cut_yielding_columns();
    drop_columns(Fit::yield);
    drop_columns(Fit::drop);
    cut_columns(Fit::cut);
    // Last resort on a very narrow terminal: truncate columns to keep, then drop them.
    cut_columns(Fit::keep);
    drop_columns(Fit::keep);
    if (sum(widths_, shown_) > width_ && shown_.size() == 1) widths_[shown_.front()] = width_;
    if (has_remarks_) {
      const std::size_t before = sum(widths_, shown_) - widths_[last];
      const std::size_t room = width > before ? width - before : 0;
      widths_[last] = std::max(min_remark, std::min(natural_[last], room));
    }
  }

  [[nodiscard]] bool shows(std::string_view title) const {
    return std::any_of(shown_.begin(), shown_.end(),
                       [&](std::size_t c) { return table_.columns_[c].title == title; });
  }

  [[nodiscard]] std::string text() {
    if (shown_.empty()) return "";
    std::vector<std::string> titles;
    titles.reserve(table_.columns_.size());
    for (const Column& column : table_.columns_) titles.push_back(column.title);
    std::string text = line(titles, Tone::strong);
    for (const Row& row : table_.rows_) text += line(row.cells, row.tone);
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      text += wrapped(notes_[i], width_, fmt::format("[{}] ", i + 1));
    }
    if (!dropped_.empty()) {
      text += toned(Tone::faint, wrapped("no room for: " + dropped_, width_));
    }
    return text;
  }

 private:
  /// Returns the width of the widest cell of a column.
  [[nodiscard]] std::size_t longest(std::size_t c, std::size_t limit) const {
    std::size_t most = 0;
    for (const Row& row : table_.rows_) most = std::max(most, shown_width(row.cells[c]));
    return std::min(most, std::max(limit, min_cell));
  }

  /// Narrows columns of this fit, to no less than `least`, while the line is too wide.
  void shrink(Fit fit, std::size_t least) {
    for (const std::size_t c : shown_) {
      const Column& column = table_.columns_[c];
      const std::size_t all = sum(widths_, shown_);
      const std::size_t limit = std::max(least, shown_width(column.title));
      if (column.fit != fit || all <= width_ || widths_[c] <= limit) continue;
      widths_[c] -= std::min(all - width_, widths_[c] - limit);
    }
  }

  /// Narrows yielding columns and columns to cut. A column to cut keeps at least `readable`
  /// characters while a yielding column is still shown.
  void cut_yielding_columns() {
    constexpr std::size_t readable = 28;
    const bool any = std::any_of(shown_.begin(), shown_.end(), [&](std::size_t c) {
      return table_.columns_[c].fit == Fit::yield;
    });
    if (!any) return;
    shrink(Fit::yield, readable);
    const std::vector<std::size_t> before = widths_;
    shrink(Fit::cut, readable);
    shrink(Fit::yield, min_cell);
    if (sum(widths_, shown_) <= width_) return;
    widths_ = before;
    shrink(Fit::yield, min_cell);
  }

  void drop_columns(Fit fit) {
    for (std::size_t i = shown_.size(); i-- > 0 && sum(widths_, shown_) > width_;) {
      const Column& column = table_.columns_[shown_[i]];
      const bool is_kept = fit == Fit::keep && (i == 0 || (has_remarks_ && shown_[i] == remarks_));
      if (column.fit != fit || is_kept) continue;
      dropped_ = column.title + (dropped_.empty() ? "" : ", " + dropped_);
      shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// Narrows the widest columns of this fit until the line fits or all have their minimum width.
  void cut_columns(Fit fit) {
    while (sum(widths_, shown_) > width_) {
      std::size_t* widest = nullptr;
      for (const std::size_t c : shown_) {
        const Column& column = table_.columns_[c];
        const bool is_number = fit == Fit::keep && column.right;
        if (column.fit != fit || is_number || widths_[c] <= min_cell) continue;
        if (has_remarks_ && c == remarks_) continue;
        if (widest == nullptr || widths_[c] > *widest) widest = &widths_[c];
      }
      if (widest == nullptr) return;
      --*widest;
    }
  }

  std::string line(const std::vector<std::string>& cells, Tone tone) {
    std::string text;
    for (const std::size_t c : shown_) {
      if (c != shown_.front()) text.append(gap, ' ');
      std::string cell = cells[c];
      if (shown_width(cell) > widths_[c]) {
        const bool is_remark = has_remarks_ && c == remarks_;
        cell = is_remark ? mark_of(cell) : cut(cell, widths_[c]);
      }
      const std::string blanks(widths_[c] - std::min(widths_[c], shown_width(cell)), ' ');
      text += table_.columns_[c].right ? blanks + cell : cell + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return toned(tone, text) + '\n';
  }

  /// Returns the mark "[1]" of a remark; equal remarks share a number.
  std::string mark_of(const std::string& remark) {
    const auto [found, is_new] = marks_.try_emplace(remark, notes_.size() + 1);
    if (is_new) notes_.push_back(remark);
    return fmt::format("[{}]", found->second);
  }

  const Table& table_;
  std::size_t width_;
  std::vector<std::size_t> shown_;
  std::vector<std::size_t> natural_;
  std::vector<std::size_t> widths_;
  bool has_remarks_ = false;
  std::size_t remarks_ = 0;
  std::vector<std::string> notes_;
  std::map<std::string, std::size_t> marks_;
  std::string dropped_;
};

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells, Tone tone) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), tone});
}

std::string Table::text(std::size_t width) const { return Layout(*this, width).text(); }

bool Table::shows(std::string_view title, std::size_t width) const {
  return Layout(*this, width).shows(title);
}

std::size_t shown_width(std::string_view text) {
  // Counts all bytes except UTF-8 continuation bytes.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string cut(std::string_view text, std::size_t width) {
  if (shown_width(text) <= width) return std::string(text);
  const std::string_view dots = std::string_view("...").substr(0, width);
  std::size_t shown = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && shown++ == width - dots.size()) break;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  return std::string(text.substr(0, end)) + std::string(dots);
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

std::string wrapped(const std::string& text, std::size_t width, const std::string& head) {
  std::string all;
  for (const std::string& line : wrap(text, width - std::min(width - 1, head.size()))) {
    all += (all.empty() ? head : std::string(head.size(), ' ')) + line + '\n';
  }
  return all;
}

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t begin = std::min(part.find_first_not_of(' '), part.size());
    if (begin == part.size()) continue;
    if (!line.empty()) line += line.ends_with(':') ? " " : "; ";
    line += part.substr(begin);
  }
  return line;
}

void say(const std::string& paragraph) { fmt::print("{}", wrapped(paragraph, text_width())); }

std::string whole(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
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
  // 0.9995 instead of 1: a value that would print as 1000 us becomes 1.00 ms.
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

std::string count_of(const std::string& number, std::string_view noun) {
  std::string text = number + ' ' + std::string(noun);
  if (number == "1") return text;
  const bool hisses =
      noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") || noun.ends_with("sh");
  return text + (hisses ? "es" : "s");
}

}  // namespace rung::workbench
