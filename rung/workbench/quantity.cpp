// SPDX-License-Identifier: Apache-2.0
// Numbers with units.
#include "rung/workbench/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "rung/core/error.hpp"

namespace rung::workbench {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view text,
                         std::string_view accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted: {}", option, text, accepted));
}

/// Takes a number off the front, and the blanks behind it; false: there is none.
bool take_number(std::string_view& text, double& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  text = std::string_view(stopped, static_cast<std::size_t>(end - stopped));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

/// Takes one of these letters off the front; base to the power of its place, or 1.
double take_prefix(std::string_view& text, std::string_view letters, double base) {
  const std::size_t at = text.empty() ? std::string_view::npos : letters.find(text.front());
  if (at == std::string_view::npos) return 1;
  text.remove_prefix(1);
  return std::pow(base, static_cast<double>(at + 1));
}

double read_bytes(std::string_view option, std::string_view text) {
  constexpr const char* accepted = "bytes, as in 4096, 48K or 48KiB";
  std::string_view rest = text;
  double number = 0;
  if (!take_number(rest, number) || number < 0) refuse(option, text, accepted);
  number *= take_prefix(rest, "KMG", 1024);
  if (!rest.empty() && rest != "B" && rest != "iB") refuse(option, text, accepted);
  return number;
}

}  // namespace

int parse_bytes(std::string_view option, std::string_view text) {
  const double number = read_bytes(option, text);
  if (number > std::numeric_limits<int>::max() || number != std::floor(number)) {
    refuse(option, text, "a whole number of bytes below 2 GiB");
  }
  return static_cast<int>(number);
}

std::int64_t parse_many_bytes(std::string_view option, std::string_view text) {
  const double number = read_bytes(option, text);
  if (number < 1 || number > 0x1p50 || number != std::floor(number)) {
    refuse(option, text, "a whole number of bytes from 1 to 2^50");
  }
  return static_cast<std::int64_t>(number);
}

double parse_fraction(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  double number = 0;
  const bool reads = take_number(rest, number) && (rest.empty() || rest == "%");
  if (rest == "%") number /= 100;
  if (!reads || number < 0 || number > 1) {
    refuse(option, text, "a part from 0 to 1, as in 0.9 or 90%");
  }
  return number;
}

double parse_rate(std::string_view option, std::string_view text, std::string_view unit) {
  std::string_view rest = text;
  double number = 0;
  bool reads = take_number(rest, number);
  number *= take_prefix(rest, "KMGTP", 1000);
  // Beyond, times become infinite or vanish.
  constexpr double least = 1;
  constexpr double most = 1e24;
  reads = reads && (rest.empty() || rest == unit) && number >= least && number <= most;
  if (!reads) {
    refuse(option, text, fmt::format("a rate from 1 to 1e24, as in 4.8T{0} or 4.8e12", unit));
  }
  return number;
}

}  // namespace rung::workbench
