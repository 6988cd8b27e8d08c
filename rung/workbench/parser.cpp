// SPDX-License-Identifier: Apache-2.0
// Options and positional arguments of a command. Values are parsed here rather than by CLI11, so
// that errors state the given value and the accepted range in readable numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "rung/core/suggestion.hpp"
#include "rung/workbench/cli.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

constexpr std::size_t max_quoted = 40;

std::map<const CLI::Option*, OptionDetails> option_details;
std::map<const CLI::App*, CommandDetails> command_details;

std::string refusal(const std::string& given, std::string_view accepted,
                    std::string_view suggestion = "") {
  return fmt::format("'{}' given{}; accepted: {}", cut(given, max_quoted), suggestion, accepted);
}

template <class T>
bool read_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

/// Formats a number with the fewest digits that identify it: 4096, 1e+15.
template <class T>
std::string readable(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return fmt::format("{:g}", value);
  }
}

/// Range of T: from min to max, or above min.
template <class T>
struct Range {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
  bool above = false;

  [[nodiscard]] bool holds(T value) const {
    return (above ? value > min : value >= min) && value <= max;
  }
  [[nodiscard]] std::string to_string() const {
    std::string text = std::is_integral_v<T> ? "a whole number" : "a number";
    constexpr bool is_natural = std::is_same_v<T, std::uint64_t>;
    const std::string most =
        is_natural && max == std::numeric_limits<T>::max() ? "2^64 - 1" : readable(max);
    const bool bounded = max != std::numeric_limits<T>::max() || is_natural;
    if (above) return text + " above " + readable(min);
    if (min == std::numeric_limits<T>::lowest() && !is_natural) return text;
    return text + (bounded ? fmt::format(" from {} to {}", readable(min), most)
                           : ", at least " + readable(min));
  }
};

/// Returns a validator. `any`: without a range, infinity and NaN are accepted too, as some
/// operators allow.
template <class T>
auto check_number(const Range<T>& range, bool any = false) {
  return [range, any](const std::string& text) -> std::string {
    T value{};
    const bool good = read_number(text, value) && (any || range.holds(value));
    return good ? "" : refusal(text, range.to_string());
  };
}

/// Throws if a positional argument and an option share a name: CLI11 2.1 accepts this, 2.4 rejects
/// it at run time.
CLI::Option* with_own_name(const CLI::App& app, CLI::Option* added) {
  const auto calls_itself = [](const CLI::Option* option, const std::string& name) {
    const std::vector<std::string>& names = option->get_lnames();
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const CLI::Option* other : app.get_options()) {
    if (other == added) continue;
    if (calls_itself(other, added->get_name(true)) || calls_itself(added, other->get_name(true))) {
      throw std::logic_error("two arguments of one name: " + added->get_name());
    }
  }
  // A single validator: between() and other constraints replace the check that it calls.
  added->check(CLI::Validator(
      [added](const std::string& text) {
        const auto& check = details(added).check;
        return check ? check(text) : std::string();
      },
      ""));
  return added;
}

}  // namespace

OptionDetails& details(const CLI::Option* option) { return option_details[option]; }
CommandDetails& details(const CLI::App* app) { return command_details[app]; }
void forget_details() {
  option_details.clear();
  command_details.clear();
}

Option Option::required(bool required) const { return Option(option_->required(required)); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::between(int min, int max) const {
  details(option_).check = check_number(Range<int>{min, max});
  return *this;
}
Option Option::between(double min, double max) const {
  details(option_).check = check_number(Range<double>{min, max});
  return *this;
}
Option Option::positive() const {
  if (option_->get_type_name() == "N") {
    details(option_).check = check_number(Range<std::uint64_t>{.min = 1});
  } else {
    details(option_).check = check_number(Range<double>{.min = 0, .above = true});
  }
  return *this;
}
Option Option::not_negative() const {
  details(option_).check = check_number(Range<double>{.min = 0});
  return *this;
}
Option Option::one_of(std::vector<std::string> words) const {
  completes([words](const Completing&) { return words; });
  option_->description(fmt::format("{}: {}", option_->get_description(), fmt::join(words, ", ")));
  details(option_).check = [words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return refusal(text, fmt::format("{}", fmt::join(words, ", ")), did_you_mean(text, words));
  };
  return *this;
}
Option Option::completes(Candidates candidates) const {
  details(option_).candidates = std::move(candidates);
  return *this;
}
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::word_by_word() const { return Option(option_->allow_extra_args(false)); }
bool Option::given() const { return option_->count() != 0; }

template <class T>
Option Parser::add_option(const std::string& names, T& value, const std::string& help) const {
  CLI::Option* added = nullptr;
  if constexpr (std::is_integral_v<T>) {
    // Not parsed by CLI11, which reads 010 as octal.
    added = app_->add_option(names, CLI::callback_t([&value](const CLI::results_t& words) {
                               return words.size() == 1 && read_number(words.front(), value);
                             }),
                             help);
    details(added).check = check_number(Range<T>{});
    added->type_name("N");
  } else {
    added = app_->add_option(names, value, help);
    constexpr bool is_real = std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>;
    if (is_real) details(added).check = check_number(Range<double>{}, true);
    added->type_name(is_real ? "NUMBER" : "WORD");
  }
  return Option(with_own_name(*app_, added));
}
template Option Parser::add_option(const std::string&, std::string&, const std::string&) const;
template Option Parser::add_option(const std::string&, int&, const std::string&) const;
template Option Parser::add_option(const std::string&, double&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::vector<std::string>&,
                                   const std::string&) const;
template Option Parser::add_option(const std::string&, std::vector<double>&,
                                   const std::string&) const;
Option Parser::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(with_own_name(*app_, app_->add_flag(names, value, help)));
}
void Parser::purpose(const std::string& text) const { details(app_).purpose = text; }
void Parser::example(const std::string& command, const std::string& comment) const {
  details(app_).examples.emplace_back(command, comment);
}
void Parser::exit_codes(const std::vector<std::pair<int, std::string>>& meanings) const {
  details(app_).exit_codes = meanings;
}
void Parser::footer(const std::string& text) const { app_->footer(text); }
Parser Parser::add_command(const std::string& name, const std::string& summary) const {
  app_->require_subcommand(1);
  CLI::App* const added = app_->add_subcommand(name, summary);
  add_common_options(*added);
  return Parser(added);
}
bool Parser::parsed() const { return app_->parsed(); }
void Parser::leave_unknown() const {
  app_->allow_extras();
  app_->positionals_at_end(false);
}
std::vector<std::string> Parser::unread() const { return app_->remaining(); }

}  // namespace rung::workbench
