// SPDX-License-Identifier: Apache-2.0
// Draws problems from patterns in integer arithmetic: floating-point logarithms and products may
// differ in their last bits between machines.
#include "rung/harness/problem_pattern.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "rung/core/error.hpp"

namespace rung {
namespace {

[[noreturn]] void refuse(std::string_view pattern, const std::string& what) {
  throw Error(ErrorCode::invalid_argument,
              "pattern '" + std::string(pattern) + "': " + what +
                  "; accepted: a problem with ranges and alternatives, as in '(f32|bf16) "
                  "1..4096x1..64(|,axis=0)'");
}

/// Returns the base-2 logarithm in units of 2^-32, interpolated linearly between powers of two.
constexpr std::uint64_t log_of(std::uint64_t x) {
  const int power = std::bit_width(x) - 1;
  const std::uint64_t above = x - (std::uint64_t{1} << power);
  const std::uint64_t part = power <= 32 ? above << (32 - power) : above >> (power - 32);
  return (static_cast<std::uint64_t>(power) << 32) + part;
}
/// Returns the inverse of log_of(), rounded down.
constexpr std::uint64_t from_log(std::uint64_t log) {
  const int power = static_cast<int>(log >> 32);
  const std::uint64_t part = log & 0xffffffffu;
  return (std::uint64_t{1} << power) + (power <= 32 ? part >> (32 - power) : part << (power - 32));
}

bool is_prime(std::uint64_t x) {
  if (x < 4) return x > 1;
  if (x % 2 == 0) return false;
  for (std::uint64_t divisor = 3; divisor * divisor <= x; divisor += 2) {
    if (x % divisor == 0) return false;
  }
  return true;
}

std::uint64_t prime_up_to(std::uint64_t x) {
  while (x > 2 && !is_prime(x)) --x;
  return x;
}

std::uint64_t draw_whole(std::uint64_t least, std::uint64_t most, Random& random) {
  const std::uint64_t first = log_of(least);
  const std::uint64_t x = from_log(first + random.below(log_of(most + 1) - first));
  const std::uint64_t power = std::bit_floor(x);
  // Each entry has probability 1/16, a duplicate entry 2/16; x is unchanged with 6/16.
  const std::array special = {power,       power, power - 1, power + 1,      x / 16 * 16,
                              x / 16 * 16, x | 1, x | 1,     prime_up_to(x), prime_up_to(x)};
  const std::uint64_t kind = random.below(16);
  return std::clamp(kind < special.size() ? special[kind] : x, least, most);
}

constexpr std::int64_t decimals = 1000000;

/// Parses a number with up to six decimals; returns millionths.
std::optional<std::int64_t> millionths(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  std::int64_t whole = 0;
  const std::string_view front = text.substr(0, point);
  const auto [stop, error] = std::from_chars(front.data(), front.data() + front.size(), whole);
  if (error != std::errc() || stop != front.data() + front.size()) return {};
  std::int64_t value = 0;
  if (__builtin_mul_overflow(whole, decimals, &value) || value > INT64_MAX - decimals) return {};
  std::int64_t unit = decimals;
  const std::string_view part = point == std::string_view::npos ? "" : text.substr(point + 1);
  if (part.size() > 6 || part.find('.') != std::string_view::npos) return {};
  for (const char digit : part) {
    unit /= 10;
    value += unit * (digit - '0');
  }
  return negative ? -value : value;
}

std::string from_millionths(std::int64_t value) {
  const std::string part = std::to_string(value < 0 ? -value % decimals : value % decimals);
  return (value < 0 ? "-" : "") + std::to_string(value < 0 ? -value / decimals : value / decimals) +
         "." + std::string(6 - part.size(), '0') + part;
}

std::string draw_range(std::string_view pattern, std::string_view from, std::string_view to,
                       Random& random) {
  const auto least = millionths(from);
  const auto most = millionths(to);
  if (!least || !most || *least > *most) {
    refuse(pattern, "'" + std::string(from) + ".." + std::string(to) + "' is no range");
  }
  if (from.find('.') != std::string_view::npos || to.find('.') != std::string_view::npos) {
    const auto span = static_cast<std::uint64_t>(*most - *least) + 1;
    return from_millionths(*least + static_cast<std::int64_t>(random.below(span)));
  }
  if (*least < decimals) refuse(pattern, "whole numbers are drawn from 1 on");
  return std::to_string(draw_whole(static_cast<std::uint64_t>(*least / decimals),
                                   static_cast<std::uint64_t>(*most / decimals), random));
}

struct Alternative {
  std::string_view text;
  std::uint64_t weight = 1;
};

/// Splits the text within parentheses at the bars of its own nesting level.
std::vector<Alternative> alternatives(std::string_view pattern, std::string_view inside) {
  std::vector<Alternative> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= inside.size(); ++at) {
    const char c = at < inside.size() ? inside[at] : '|';
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != '|' || (depth > 0 && at < inside.size())) continue;
    Alternative one{inside.substr(begin, at - begin)};
    begin = at + 1;
    const std::size_t star = one.text.rfind('*');
    if (star != std::string_view::npos && one.text.find(')', star) == std::string_view::npos) {
      const std::string_view weight = one.text.substr(star + 1);
      const char* const end = weight.data() + weight.size();
      const auto [stop, error] = std::from_chars(weight.data(), end, one.weight);
      if (error != std::errc() || stop != end || one.weight < 1 || one.weight > 1000) {
        refuse(pattern, "'*" + std::string(weight) + "' is no weight");
      }
      one.text = one.text.substr(0, star);
    }
    found.push_back(one);
  }
  return found;
}

/// Returns the index of the parenthesis that closes the one at `open`.
std::size_t closing(std::string_view pattern, std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) return at;
  }
  refuse(pattern, "a parenthesis is not closed");
}

constexpr std::string_view digits = "0123456789.";
constexpr int max_depth = 64;  // of parentheses: each level is a recursive call

std::string draw(std::string_view pattern, std::string_view text, Random& random, int depth = 0) {
  if (depth > max_depth) {
    refuse(pattern, "parentheses are nested more than " + std::to_string(max_depth) + " deep");
  }
  std::string result;
  std::string number;  // digits that end at the current position, perhaps the start of a range
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(') {
      const std::size_t end = closing(pattern, text, at);
      const auto choices = alternatives(pattern, text.substr(at + 1, end - at - 1));
      std::uint64_t weights = 0;
      for (const Alternative& one : choices) weights += one.weight;
      std::uint64_t left = random.below(weights);
      auto chosen = choices.begin();
      for (; left >= chosen->weight; ++chosen) left -= chosen->weight;
      result += draw(pattern, chosen->text, random, depth + 1);
      number.clear();
      at = end;
    } else if (c == ')' || c == '|' || c == '*') {
      refuse(pattern, std::string("'") + c + "' is outside of parentheses");
    } else if (c == '.' && text.substr(at).starts_with("..")) {
      std::size_t end = at + 2;
      if (end < text.size() && text[end] == '-') ++end;
      end = std::min(text.find_first_not_of(digits, end), text.size());
      result.resize(result.size() - number.size());
      result += draw_range(pattern, number, text.substr(at + 2, end - at - 2), random);
      number.clear();
      at = end - 1;
    } else {
      result += c;
      const bool goes_on = c != '-' && digits.find(c) != std::string_view::npos;
      if (!goes_on) number.clear();
      if (goes_on || c == '-') number += c;
    }
  }
  return result;
}

}  // namespace

std::string draw_text(std::string_view pattern, Random& random) {
  return draw(pattern, pattern, random);
}

}  // namespace rung
