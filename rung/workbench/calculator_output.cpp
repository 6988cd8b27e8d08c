// SPDX-License-Identifier: Apache-2.0
// Prints a calculation as a page, as a row of a table, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rung/workbench/calculator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

/// Converts a figure to JSON: infinity and NaN become null, whole numbers integers.
ordered_json figure_to_json(const Figure& figure) {
  if (const auto* word = std::get_if<std::string>(&figure)) return *word;
  if (const auto* yes = std::get_if<bool>(&figure)) return *yes;
  const double value = std::get<double>(figure);
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 0x1p53) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

/// Returns the JSON key of a name: "blocks per SM" becomes blocks_per_sm.
std::string key_of(const std::string& name) {
  std::string key;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!key.empty() && key.back() != '_') {
      key += '_';
    }
  }
  if (key.ends_with('_')) key.pop_back();
  return key;
}

std::string formula_of(const Sheet::Line& line) {
  const bool says_more = line.numbers != line.formula && line.numbers != line.text;
  return says_more ? fmt::format("{} = {}", line.formula, line.numbers) : line.formula;
}

const Sheet::Line* find_line(const std::vector<Sheet::Line>& lines, const std::string& name) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const Sheet::Line& line) { return line.name == name; });
  return found == lines.end() ? nullptr : &*found;
}

std::size_t widest_name(const std::vector<Sheet::Line>& lines, std::size_t least) {
  for (const Sheet::Line& line : lines) least = std::max(least, shown_width(line.name));
  return least;
}

std::string name_column(const std::string& name, std::size_t width) {
  return name + std::string(width - shown_width(name) + 2, ' ');
}

std::string commands_text(const char* title, const std::vector<std::string>& commands) {
  std::string text;
  for (const std::string& command : commands) {
    text += (text.empty() ? fmt::format("\n{}:\n", title) : "") + "  " + command + '\n';
  }
  return text;
}

constexpr const char* counted_title = "Counted on the simulated GPU by";
constexpr const char* measured_title = "Measured by";

/// Returns the commands of all sheets without duplicates.
std::vector<std::string> distinct_commands(const std::vector<Sheet>& sheets,
                                           std::vector<std::string> (Sheet::*commands)() const) {
  std::vector<std::string> all;
  for (const Sheet& sheet : sheets) {
    for (const std::string& one : (sheet.*commands)()) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  return all;
}

}  // namespace

void Sheet::input(const std::string& name, const std::string& symbol, const std::string& text,
                  Figure value) {
  const bool has_symbol = !symbol.empty() && symbol != name;
  inputs_.push_back({has_symbol ? name + " " + symbol : name, "", "", text, std::move(value)});
  symbols_[name] = {has_symbol ? symbol : name, text};
}

void Sheet::let(const std::string& name, double value, Unit unit, const std::string& symbol) {
  symbols_[name] = {symbol.empty() ? name : symbol, format_quantity(value, unit)};
}

void Sheet::result(const std::string& name, std::string_view formula, double value, Unit unit) {
  const std::string text = format_quantity(value, unit);
  results_.push_back({name, filled(formula, false), filled(formula, true), text, value});
  symbols_[name] = {name, text};
}

void Sheet::plain_result(const std::string& name, const std::string& text, Figure value) {
  results_.push_back({name, "", "", text, std::move(value)});
}

std::string Sheet::filled(std::string_view formula, bool with_numbers) const {
  std::string text;
  while (!formula.empty()) {
    const std::size_t open = std::min(formula.find('{'), formula.size());
    text += formula.substr(0, open);
    formula.remove_prefix(open);
    if (formula.empty()) break;
    const std::size_t close = formula.find('}');
    const auto found = symbols_.find(formula.substr(1, close - 1));
    if (found == symbols_.end()) {
      throw std::logic_error(fmt::format("a formula names {}", formula));
    }
    text += with_numbers ? found->second.text : found->second.symbol;
    formula.remove_prefix(close + 1);
  }
  return text;
}

std::string Sheet::text() const {
  const std::size_t width = widest_name(results_, widest_name(inputs_, 0));
  std::string text;
  for (const Line& line : inputs_)
    text += wrapped(line.text, text_width(), name_column(line.name, width));
  text += '\n';
  for (const Line& line : results_) {
    const std::string formula = line.formula.empty() ? "" : formula_of(line) + " = ";
    text += wrapped(formula + line.text, text_width(), name_column(line.name, width));
  }
  if (!picture_.empty()) text += (results_.empty() ? "" : "\n") + picture_;
  if (!remarks_.empty()) text += '\n';
  for (const std::string& sentence : remarks_) text += wrapped(sentence, text_width());
  return text + counted_text() + commands_text(measured_title, measured_by_);
}

void Sheet::count() {
  for (CountedBy& one : counted_by_) {
    if (!one.counting.figures.empty()) one.counted = workbench::count(one.counting);
  }
}

std::vector<std::string> Sheet::counting_commands() const {
  std::vector<std::string> commands;
  commands.reserve(counted_by_.size());
  for (const CountedBy& one : counted_by_) commands.push_back(one.command);
  return commands;
}

std::string Sheet::counted_text() const {
  std::string text;
  for (const CountedBy& one : counted_by_) {
    text += (text.empty() ? fmt::format("\n{}:\n", counted_title) : "") + "  " + one.command + '\n';
    const std::vector<CountedFigure>& figures = one.counting.figures;
    if (!one.counted.why_not.empty()) {
      text += wrapped("not counted here: " + one.counted.why_not, text_width(), "    ");
    }
    std::size_t width = 0;
    for (const CountedFigure& figure : figures) width = std::max(width, shown_width(figure.name));
    for (std::size_t i = 0; i < one.counted.values.size(); ++i) {
      text += fmt::format("    {}{}\n", name_column(figures[i].name, width),
                          format_quantity(one.counted.values[i], figures[i].unit));
    }
  }
  return text;
}

/// Returns the input values for which, and only for which, a result uses this formula:
/// "kogge-stone: " or "n = 16 and 2,048: "; names several inputs if no single one decides.
std::string Sheet::whose_formula(const std::vector<Sheet>& sheets,
                                 const std::vector<std::size_t>& varied, const std::string& result,
                                 const std::string& formula) {
  constexpr std::size_t most = 3;
  const auto has_it = [&](const Sheet& sheet) {
    const Line* const own = find_line(sheet.results_, result);
    return own != nullptr && own->formula == formula;
  };
  const auto listed = [&](const auto& value_of) {
    std::vector<std::string> values;
    for (const Sheet& sheet : sheets) {
      if (!has_it(sheet)) continue;
      if (std::string one = value_of(sheet);
          std::find(values.begin(), values.end(), one) == values.end()) {
        values.push_back(std::move(one));
      }
    }
    if (values.size() > most) {
      return fmt::format("{} and {} more", values.front(), values.size() - 1);
    }
    return fmt::format("{}", fmt::join(values, " and "));
  };
  for (const std::size_t i : varied) {
    const auto value_of = [i](const Sheet& sheet) { return sheet.inputs_[i].text; };
    const bool decides = std::all_of(sheets.begin(), sheets.end(), [&](const Sheet& with) {
      return !has_it(with) || std::all_of(sheets.begin(), sheets.end(), [&](const Sheet& without) {
        return has_it(without) || value_of(with) != value_of(without);
      });
    });
    if (!decides) continue;
    const Line& input = sheets.front().inputs_[i];
    const bool is_word = std::holds_alternative<std::string>(input.value);
    return fmt::format("{}{}: ", is_word ? "" : input.name + " = ", listed(value_of));
  }
  return listed([&](const Sheet& sheet) {
           std::string values;
           for (const std::size_t i : varied) {
             values += (values.empty() ? "" : " ") + sheet.inputs_[i].text;
           }
           return values;
         }) +
         ": ";
}

std::string Sheet::table(const std::vector<Sheet>& sheets) {
  const Sheet& first = sheets.front();
  std::vector<Table::Column> columns;
  std::vector<std::size_t> varied;
  std::string text;
  std::size_t width = 0;
  for (const Sheet& sheet : sheets) {
    width = widest_name(sheet.results_, widest_name(sheet.inputs_, width));
  }
  for (std::size_t i = 0; i < first.inputs_.size(); ++i) {
    const Line& line = first.inputs_[i];
    const bool same = std::all_of(sheets.begin(), sheets.end(), [&](const Sheet& sheet) {
      return sheet.inputs_[i].text == line.text;
    });
    if (same) {
      text += wrapped(line.text, text_width(), name_column(line.name, width));
    } else {
      varied.push_back(i);
      columns.push_back({line.name, true});
    }
  }
  // Not every sheet has every result.
  std::vector<Line> results;
  for (const Sheet& sheet : sheets) {
    for (const Line& line : sheet.results_) {
      if (find_line(results, line.name) == nullptr) results.push_back(line);
    }
  }
  for (const Line& line : results) columns.push_back({line.name, true, Table::Fit::drop});
  Table table(std::move(columns));
  for (const Sheet& sheet : sheets) {
    std::vector<std::string> cells;
    cells.reserve(varied.size() + results.size());
    for (const std::size_t i : varied) cells.push_back(sheet.inputs_[i].text);
    for (const Line& line : results) {
      const Line* const own = find_line(sheet.results_, line.name);
      cells.push_back(own == nullptr ? "" : own->text);
    }
    table.add(std::move(cells));
  }
  text += (text.empty() ? "" : "\n") + table.text() + '\n';
  for (const Line& line : results) {
    std::vector<std::string> formulas;  // one for powers of two and one for other n, for example
    for (const Sheet& sheet : sheets) {
      const Line* const own = find_line(sheet.results_, line.name);
      if (own == nullptr || own->formula.empty()) continue;
      if (std::find(formulas.begin(), formulas.end(), own->formula) != formulas.end()) continue;
      formulas.push_back(own->formula);
    }
    for (const std::string& formula : formulas) {
      const std::string whose =
          formulas.size() == 1 ? "" : whose_formula(sheets, varied, line.name, formula);
      text += wrapped(whose + formula, text_width(), name_column(line.name, width));
    }
  }
  // Remarks of a single sheet are left to its own page.
  const auto in_all = [&](const std::string& sentence) {
    return std::all_of(sheets.begin(), sheets.end(), [&](const Sheet& sheet) {
      const auto& said = sheet.remarks_;
      return std::find(said.begin(), said.end(), sentence) != said.end();
    });
  };
  std::string remarks;
  for (const std::string& sentence : first.remarks_) {
    if (in_all(sentence)) remarks += wrapped(sentence, text_width());
  }
  std::vector<std::string> warned;
  for (const Sheet& sheet : sheets) {
    for (const std::string& sentence : sheet.warnings_) {
      if (in_all(sentence) || std::find(warned.begin(), warned.end(), sentence) != warned.end()) {
        continue;
      }
      warned.push_back(sentence);
      remarks += wrapped("In part of the lines: " + sentence, text_width());
    }
  }
  if (std::all_of(sheets.begin(), sheets.end(), [&](const Sheet& sheet) {
        return !sheet.picture_.empty() && sheet.picture_ == first.picture_;
      })) {
    text += '\n' + first.picture_;
  }
  if (!remarks.empty()) text += '\n' + remarks;
  return text + commands_text(counted_title, distinct_commands(sheets, &Sheet::counting_commands)) +
         commands_text(measured_title, distinct_commands(sheets, &Sheet::measuring_commands));
}

std::string Sheet::json(const std::string& calculator, const std::vector<Sheet>& sheets) {
  ordered_json rows = ordered_json::array();
  ordered_json counted = ordered_json::array();
  for (const Sheet& sheet : sheets) {
    ordered_json inputs = ordered_json::object();
    ordered_json results = ordered_json::object();
    ordered_json formulas = ordered_json::object();
    for (const Line& line : sheet.inputs_) {
      inputs[key_of(line.name.substr(0, line.name.find(' ')))] = figure_to_json(line.value);
    }
    for (const Line& line : sheet.results_) {
      results[key_of(line.name)] = figure_to_json(line.value);
      if (!line.formula.empty()) formulas[key_of(line.name)] = formula_of(line);
    }
    rows.push_back({{"inputs", inputs}, {"results", results}, {"formulas", formulas}});
    for (const CountedBy& one : sheet.counted_by_) {
      ordered_json figures = ordered_json::object();
      for (std::size_t i = 0; i < one.counted.values.size(); ++i) {
        figures[key_of(one.counting.figures[i].name)] = one.counted.values[i];
      }
      if (!figures.empty()) counted.push_back({{"command", one.command}, {"figures", figures}});
    }
  }
  ordered_json all = {{"calculator", calculator},
                      {"rows", rows},
                      {"counted_by", distinct_commands(sheets, &Sheet::counting_commands)},
                      {"counted", counted},
                      {"measured_by", distinct_commands(sheets, &Sheet::measuring_commands)}};
  for (const auto& [key, table] : sheets.front().records_) {
    ordered_json& lines = all[key] = ordered_json::array();
    for (const Record& record : table) {
      ordered_json line = ordered_json::object();
      for (const auto& [name, figure] : record) line[name] = figure_to_json(figure);
      lines.push_back(std::move(line));
    }
  }
  return all.dump(2);
}

}  // namespace rung::workbench
