// SPDX-License-Identifier: Apache-2.0
// Framework of the calculators (`rung burst`, `rung waves` ...). A calculator declares its inputs
// and fills in a Sheet; the framework parses numbers with units and prints the page, the table over
// lists and the JSON.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rung/workbench/command.hpp"
#include "rung/workbench/counting.hpp"
#include "rung/workbench/quantity.hpp"

namespace rung::workbench {

enum class InputKind : unsigned char { quantity, shape, word };

/// Declaration of an input: an option, or a positional argument if the name has no dashes. Several
/// comma-separated values make a table.
struct InputSpec {
  std::string name;        // "--tile"
  std::string alias = "";  // "--t"
  Unit unit = Unit::count;
  std::string help;
  std::string fallback = "";  // default value
  bool optional = false;      // false: required unless there is a fallback
  std::string symbol = "";    // in formulas; "": the name
  Accepted accepted = {};
  InputKind kind = InputKind::quantity;   // a shape is "16x16", of `unit`
  std::vector<std::size_t> extents = {};  // accepted ranks of a shape; empty: any
  std::vector<std::string> words = {};    // accepted words; empty: any
  bool takes_commas = false;              // commas are part of the value, a word
};

/// Input values of one calculation, by names without dashes.
class Given {
 public:
  struct Value {
    std::string text;  // "32 KiB"
    std::vector<double> numbers;
  };

  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) != 0; }
  [[nodiscard]] double operator[](const std::string& name) const;
  [[nodiscard]] double value_or(const std::string& name, double otherwise) const;
  [[nodiscard]] const std::vector<double>& shape(const std::string& name) const;
  [[nodiscard]] const std::string& word(const std::string& name) const;
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }

 private:
  [[nodiscard]] const Value& at(const std::string& name) const;
  std::map<std::string, Value> values_;
};

/// A number with a unit, a word, or a truth value.
using Figure = std::variant<double, std::string, bool>;

/// A row of a table shown beside the results: (column, value) pairs.
using Record = std::vector<std::pair<std::string, Figure>>;

/// One calculation: its inputs and results.
class Sheet {
 public:
  struct Line {
    std::string name;     // "bytes in flight"
    std::string formula;  // "latency x bandwidth"; "": none
    std::string numbers;  // "500 ns x 3 TB/s"
    std::string text;     // "1.5 MB"
    Figure value;
  };

  void input(const std::string& name, const std::string& symbol, const std::string& text,
             Figure value);
  /// Defines a name for use in formulas; not printed by itself.
  void let(const std::string& name, double value, Unit unit = Unit::count,
           const std::string& symbol = "");
  /// Adds a result. In a formula, "{bytes in flight}" refers to an input or an earlier result: it
  /// is printed once as its symbol and once as its value.
  void result(const std::string& name, std::string_view formula, double value,
              Unit unit = Unit::number);
  /// Adds a result without a formula.
  void plain_result(const std::string& name, const std::string& text, Figure value);
  /// Adds a sentence to the page, but not to a table.
  void remark(const std::string& sentence) { remarks_.push_back(sentence); }
  /// Adds a sentence to the page, and to a table whose row it concerns.
  void warn(const std::string& sentence) {
    remark(sentence);
    warnings_.push_back(sentence);
  }
  /// Adds preformatted lines below the results.
  void picture(const std::string& lines) { picture_ += lines; }
  /// Adds the numbers of a picture to the JSON: an array under `key`, beside the rows.
  void records(const std::string& key, std::vector<Record> table) {
    records_.emplace_back(key, std::move(table));
  }
  /// Names a command that counts or measures the same quantity.
  void counted_by(const std::string& command) { counted_by_.push_back({command, {}, {}}); }
  /// Adds a rung that count() will run; its counters are then added to the page.
  void counted_by(Counting counting) {
    std::string command = counting.command();
    counted_by_.push_back({std::move(command), std::move(counting), {}});
  }
  void measured_by(const std::string& command) { measured_by_.push_back(command); }

  /// Runs the rungs added by counted_by(Counting).
  void count();

  /// Returns the page: inputs, results with their formulas, remarks.
  [[nodiscard]] std::string text() const;
  /// Returns a table with one row per sheet. All sheets have the same inputs.
  static std::string table(const std::vector<Sheet>& sheets);
  static std::string json(const std::string& calculator, const std::vector<Sheet>& sheets);

 private:
  struct CountedBy {
    std::string command;
    Counting counting;
    Counted counted;
  };
  struct Symbol {
    std::string symbol, text;
  };
  [[nodiscard]] std::vector<std::string> counting_commands() const;
  [[nodiscard]] std::vector<std::string> measuring_commands() const { return measured_by_; }
  [[nodiscard]] std::string counted_text() const;
  static std::string whose_formula(const std::vector<Sheet>& sheets,
                                   const std::vector<std::size_t>& varied,
                                   const std::string& result, const std::string& formula);
  [[nodiscard]] std::string filled(std::string_view formula, bool with_numbers) const;

  std::vector<Line> inputs_;
  std::vector<Line> results_;
  std::vector<std::string> remarks_;
  std::vector<std::string> warnings_;
  std::vector<CountedBy> counted_by_;
  std::vector<std::string> measured_by_;
  std::string picture_;
  std::vector<std::pair<std::string, std::vector<Record>>> records_;
  std::map<std::string, Symbol, std::less<>> symbols_;
};

/// Declares the inputs of a calculator's command, and evaluates the calculator once per combination
/// of values if inputs are lists.
class Calculator {
 public:
  using Compute = std::function<void(const Given&, Sheet&)>;

  /// Adds the inputs and --json to a command. `title` identifies the calculator in the JSON: "reuse
  /// stencil".
  Calculator(Parser app, std::string title, std::vector<InputSpec> inputs);
  /// Returns an action that parses the inputs, computes a sheet per combination of values, and
  /// prints.
  [[nodiscard]] CommandSpec::Action action(Compute compute) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rung::workbench
