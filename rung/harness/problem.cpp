// SPDX-License-Identifier: Apache-2.0
// Parses and prints problems. Text is from command lines and files: anything but a valid problem is
// an Error that names the invalid part.
#include "rung/harness/problem.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rung/core/suggestion.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {
namespace {

constexpr std::string_view example = "as in 'f32 1024x1024x1024,ta,batch=4'";
// Maximum length of a problem's text; longer text is rejected, and quoted in part.
constexpr std::size_t longest = 1000;

std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 80;
  std::string result = "'";
  for (const char c : text.substr(0, shown)) {
    const bool printable = c >= ' ' && c <= '~';
    result += printable ? c : '?';
  }
  return result + (text.size() > shown ? "...'" : "'");
}

[[noreturn]] void fail_problem(std::string_view problem, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "problem " + quoted(problem) + ": " + what);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Removes and returns the part of `text` before `separator`, or all of it if there is none.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

std::int64_t parse_extent(std::string_view problem, std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc::result_out_of_range) {
    fail_problem(problem, "extent " + quoted(text) + " does not fit 63 bits");
  }
  if (text.empty() || status != std::errc() || stop != end || text.front() == '-') {
    const bool has_blank = text.find(' ') != std::string_view::npos;
    fail_problem(problem, "extent " + quoted(text) +
                              " is not a whole number >= 0; extents are joined by 'x'" +
                              (has_blank ? ", and options follow a comma without blanks, " : ", ") +
                              std::string(example));
  }
  return value;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_value(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != ',' && c != '=';
  });
}

Problem::Option parse_option(std::string_view problem, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (!is_name(name)) {
    fail_problem(problem, "option " + quoted(text) +
                              " has no name; options are letters and digits, " +
                              std::string(example));
  }
  if (equals == std::string_view::npos) return {std::string(name), ""};
  const std::string_view value = text.substr(equals + 1);
  if (!is_value(value)) fail_problem(problem, "option " + quoted(name) + " has no value after '='");
  return {std::string(name), std::string(value)};
}

const Problem::Option* find(const Problem& problem, std::string_view name) {
  for (const Problem::Option& option : problem.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

/// Returns the value of an option as a number; T is double or std::int64_t.
template <class T>
T parse_number(const Problem& problem, const Problem::Option& option, const char* kind) {
  T value{};
  const char* end = option.value.data() + option.value.size();
  const auto [stop, status] = std::from_chars(option.value.data(), end, value);
  bool good = !option.value.empty() && status == std::errc() && stop == end;
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
  if (!good) {
    fail_problem(problem.to_string(), "option " + quoted(option.name) + " is " +
                                          quoted(option.value) + ", which is not " + kind);
  }
  return value;
}

}  // namespace

Problem Problem::parse(std::string_view text) {
  if (text.size() > longest) {
    fail_problem(text, "longer than " + std::to_string(longest) + " characters");
  }
  std::string_view rest = trimmed(text);
  Problem problem;
  const std::string_view type = next_part(rest, ' ');
  try {
    problem.dtype = parse_dtype(type);
  } catch (const Error&) {
    std::vector<std::string_view> types;
    for (std::string_view names = dtype_names(); !names.empty();) {
      types.push_back(trimmed(next_part(names, ',')));
    }
    fail_problem(text, "starts with " + quoted(type) + ", not with a dtype" +
                           did_you_mean(type, types) + "; accepted: " + dtype_names() + ", " +
                           std::string(example));
  }
  rest = trimmed(rest);
  const bool has_options = rest.find(',') != std::string_view::npos;
  std::string_view extents = next_part(rest, ',');
  Extents shape;
  for (bool more = true; more;) {
    more = extents.find('x') != std::string_view::npos;
    const std::int64_t extent = parse_extent(text, next_part(extents, 'x'));
    if (shape.rank == max_rank) {
      fail_problem(text, "more than " + std::to_string(max_rank) + " extents");
    }
    shape[shape.rank++] = extent;
    problem.extents.push_back(extent);
  }
  for (bool more = has_options; more;) {
    more = rest.find(',') != std::string_view::npos;
    Option option = parse_option(text, next_part(rest, ','));
    if (problem.has(option.name))
      fail_problem(text, "option " + quoted(option.name) + " is given twice");
    problem.options.push_back(std::move(option));
  }
  return problem;
}

std::vector<Problem> Problem::parse_all(std::initializer_list<std::string_view> texts) {
  std::vector<Problem> problems;
  problems.reserve(texts.size());
  for (const std::string_view text : texts) problems.push_back(parse(text));
  return problems;
}

std::string Problem::to_string() const {
  std::string text(rung::to_string(dtype));
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    text += (axis == 0 ? " " : "x") + std::to_string(extents[axis]);
  }
  for (const Option& option : options) {
    text += "," + option.name;
    if (!option.value.empty()) text += "=" + option.value;
  }
  return text;
}

bool Problem::has(std::string_view name) const { return find(*this, name) != nullptr; }

std::string_view Problem::text(std::string_view name, std::string_view otherwise) const {
  const Option* option = find(*this, name);
  return option != nullptr ? std::string_view(option->value) : otherwise;
}

double Problem::number(std::string_view name, double otherwise) const {
  const Option* option = find(*this, name);
  return option != nullptr ? parse_number<double>(*this, *option, "a finite number") : otherwise;
}

std::int64_t Problem::integer(std::string_view name, std::int64_t otherwise, Whole accepted) const {
  const Option* option = find(*this, name);
  if (option == nullptr) return otherwise;
  const auto value = parse_number<std::int64_t>(*this, *option, "a whole number");
  if (value < accepted.min || value > accepted.max) {
    fail_problem(to_string(), "option " + quoted(option->name) + " is " + quoted(option->value) +
                                  "; accepted: " + std::to_string(accepted.min) + " to " +
                                  std::to_string(accepted.max));
  }
  return value;
}

void Problem::expect(std::string_view op, std::size_t rank,
                     std::initializer_list<std::string_view> names) const {
  if (extents.size() != rank) {
    fail_problem(to_string(), std::string(op) + " takes " + std::to_string(rank) +
                                  " extents, not " + std::to_string(extents.size()));
  }
  for (const Option& option : options) {
    if (std::find(names.begin(), names.end(), option.name) != names.end()) continue;
    std::string list;
    for (const std::string_view name : names)
      list += (list.empty() ? "" : ", ") + std::string(name);
    fail_problem(to_string(), std::string(op) + " has no option " + quoted(option.name) +
                                  did_you_mean(option.name, names) +
                                  "; accepted: " + (list.empty() ? "none" : list));
  }
}

}  // namespace rung
