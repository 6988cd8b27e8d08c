// SPDX-License-Identifier: Apache-2.0
// Parses the command line of a calculator and runs a calculation for each combination of input
// values.
#include "rung/workbench/calculator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <iterator>
#include <stdexcept>

#include "rung/core/suggestion.hpp"

namespace rung::workbench {
namespace {

constexpr std::size_t max_lines = 1000;

std::string without_dashes(const std::string& name) {
  return name.substr(name.find_first_not_of('-'));
}

[[noreturn]] void refuse_input(const std::string& option, const std::string& text,
                               const std::string& accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted: {}", option, text, accepted));
}

std::vector<std::string> split_at(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string accepted_shape(const InputSpec& input) {
  static const char* const examples[] = {"16", "16x8", "8x8x4", "4x64x56x56", "64x64x8x8x4"};
  std::string counts;
  std::string text;
  for (const std::size_t count : input.extents) {
    counts += fmt::format("{}{}", text.empty() ? "" : " or ", count);
    text += fmt::format("{}{}", text.empty() ? "" : " or ",
                        examples[std::min(count, std::size(examples)) - 1]);
  }
  return (counts.empty() ? "" : counts + " ") +
         "whole numbers of 1 or more with x between, as in " + (text.empty() ? "16x16" : text);
}

Given::Value read_shape(const InputSpec& input, const std::string& text) {
  Given::Value value;
  const std::vector<std::string> parts = split_at(text, 'x');
  const bool fits = input.extents.empty() || std::find(input.extents.begin(), input.extents.end(),
                                                       parts.size()) != input.extents.end();
  if (!fits) refuse_input(input.name, text, accepted_shape(input));
  for (const std::string& part : parts) {
    try {
      value.numbers.push_back(parse_quantity(input.name, part, Unit::count, input.accepted));
    } catch (const Error&) {
      refuse_input(input.name, text, accepted_shape(input));
    }
    value.text += (value.text.empty() ? "" : "x") + fmt::format("{:.0f}", value.numbers.back());
  }
  return value;
}

Given::Value read_value(const InputSpec& input, const std::string& text) {
  if (input.kind == InputKind::shape) return read_shape(input, text);
  if (input.kind == InputKind::quantity) {
    const double number = parse_quantity(input.name, text, input.unit, input.accepted);
    return {format_quantity(number, input.unit), {number}};
  }
  const std::vector<std::string>& words = input.words;
  if (words.empty()) return {text, {}};
  std::string small = text;  // words are lowercase: H100 becomes h100
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::find(words.begin(), words.end(), small) == words.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' given{}; accepted: {}", input.name, text,
                            did_you_mean(text, words), fmt::join(words, ", ")));
  }
  return {small, {}};
}

Figure figure_of(const InputSpec& input, const Given::Value& value) {
  if (input.kind == InputKind::quantity) return value.numbers.front();
  return value.text;
}

const char* input_type_name(const InputSpec& input) {
  if (input.kind == InputKind::shape) return "SHAPE";
  if (input.kind == InputKind::word) return "WORD";
  switch (input.unit) {
    case Unit::count:
      return "N";
    case Unit::number:
      return "NUMBER";
    case Unit::bytes:
      return "BYTES";
    case Unit::seconds:
      return "TIME";
    case Unit::bytes_per_second:
    case Unit::operations_per_second:
      return "RATE";
    case Unit::hertz:
      return "FREQUENCY";
    case Unit::part:
      return "PART";
  }
  return "";
}

}  // namespace

const Given::Value& Given::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw std::logic_error("a calculator has no input " + name);
  return found->second;
}
double Given::operator[](const std::string& name) const { return at(name).numbers.at(0); }
double Given::value_or(const std::string& name, double otherwise) const {
  return has(name) ? (*this)[name] : otherwise;
}
const std::vector<double>& Given::shape(const std::string& name) const { return at(name).numbers; }
const std::string& Given::word(const std::string& name) const { return at(name).text; }

struct Calculator::State {
  std::string title;
  std::vector<InputSpec> inputs;
  std::deque<std::string> texts;  // one per input; a deque keeps addresses valid
  bool json = false;

  /// Returns the values of an input: none, one or several.
  [[nodiscard]] std::vector<Given::Value> values(std::size_t at) const {
    const InputSpec& input = inputs[at];
    const std::string& text = texts[at];
    if (text.empty()) {
      if (input.optional) return {};
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: not given ({})", input.name, input.help));
    }
    std::vector<Given::Value> values;
    for (const std::string& part :
         input.takes_commas ? std::vector<std::string>{text} : split_at(text, ',')) {
      values.push_back(read_value(input, part));
    }
    return values;
  }

  [[nodiscard]] std::vector<Sheet> sheets(const Compute& compute) const;
};

std::vector<Sheet> Calculator::State::sheets(const Compute& compute) const {
  std::vector<std::vector<Given::Value>> choices;
  std::size_t rows = 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    choices.push_back(values(i));
    rows *= std::max<std::size_t>(1, choices.back().size());
    if (rows > max_lines) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: the lists make more than {} lines; accepted: fewer values",
                              inputs[i].name, max_lines));
    }
  }
  std::vector<Sheet> all;
  for (std::size_t row = 0; row < rows; ++row) {
    Given given;
    Sheet sheet;
    std::size_t left = rows;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (choices[i].empty()) continue;
      left /= choices[i].size();
      const Given::Value& value = choices[i][row / left % choices[i].size()];
      const std::string name = without_dashes(inputs[i].name);
      given.set(name, value);
      sheet.input(name, inputs[i].symbol, value.text, figure_of(inputs[i], value));
    }
    compute(given, sheet);
    all.push_back(std::move(sheet));
  }
  return all;
}

Calculator::Calculator(Parser app, std::string title, std::vector<InputSpec> inputs)
    : state_(std::make_shared<State>()) {
  state_->title = std::move(title);
  state_->inputs = std::move(inputs);
  for (const InputSpec& input : state_->inputs) {
    std::string& text = state_->texts.emplace_back(input.fallback);
    std::string help = input.help;
    if (!input.words.empty()) help += fmt::format(": {}", fmt::join(input.words, ", "));
    if (input.unit == Unit::seconds) help += "; without a unit, seconds";
    if (!input.fallback.empty()) help += "; default: " + input.fallback;
    const std::string names = input.name + (input.alias.empty() ? "" : "," + input.alias);
    const Option option = app.add_option(names, text, help).type_name(input_type_name(input));
    if (!input.words.empty())
      option.completes([words = input.words](const Completing&) { return words; });
  }
  app.add_flag("--json", state_->json, "one object");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "an input is missing or out of its range"}});
}

CommandSpec::Action Calculator::action(Compute compute) const {
  return [state = state_, compute = std::move(compute)]() -> int {
    std::vector<Sheet> sheets = state->sheets(compute);
    if (sheets.size() == 1) sheets.front().count();
    if (state->json) {
      fmt::print("{}\n", Sheet::json(state->title, sheets));
    } else {
      fmt::print("{}", sheets.size() == 1 ? sheets.front().text() : Sheet::table(sheets));
    }
    return exit_good;
  };
}

}  // namespace rung::workbench
