// SPDX-License-Identifier: Apache-2.0
// Numbers with units.
#include "rung/workbench/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view text,
                         std::string_view accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted: {}", option, text, accepted));
}

/// Removes a number and the blanks after it from the front of `text`; returns false if there is
/// none.
bool take_number(std::string_view& text, double& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  text = std::string_view(stopped, static_cast<std::size_t>(end - stopped));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

/// Returns the factor of a prefix: 1 for "", bare^3 for "G", 1024^3 for "Gi"; 0 if it is not a
/// prefix.
double prefix_scale(std::string_view prefix, double bare) {
  if (prefix.empty()) return 1;
  constexpr std::string_view letters = "KMGTPE";
  const std::size_t at = letters.find(prefix[0] == 'k' ? 'K' : prefix[0]);
  const bool binary = prefix.substr(1) == "i";
  if (at == std::string_view::npos || (prefix.size() != 1 && !binary)) return 0;
  return std::pow(binary ? 1024 : bare, static_cast<double>(at + 1));
}

/// Returns the factor of a rate's unit, whose `name` is optional: "GB/s", "G".
double rate_scale(std::string_view text, std::string_view name) {
  if (text.ends_with(name)) text.remove_suffix(name.size());
  return prefix_scale(text, 1000);
}

double seconds_scale(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},           {"s", 1},     {"ms", 1e-3}, {"us", 1e-6},
      {"\u00b5s", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}};
  for (const auto& [name, scale] : units) {
    if (text == name) return scale;
  }
  return 0;
}

double scale_of(std::string_view text, Unit unit) {
  switch (unit) {
    case Unit::count:
      return prefix_scale(text, 1000);
    case Unit::number:
      return text.empty() ? 1 : 0;
    case Unit::bytes:
      if (text.ends_with("iB")) return prefix_scale(text.substr(0, text.size() - 1), 1024);
      if (text.ends_with('B')) return prefix_scale(text.substr(0, text.size() - 1), 1000);
      return prefix_scale(text, 1024);
    case Unit::seconds:
      return seconds_scale(text);
    case Unit::bytes_per_second:
      return rate_scale(text, "B/s");
    case Unit::operations_per_second:
      for (const std::string_view name : {"FLOP/s", "FLOPS", "FLOPs"}) {
        if (text.ends_with(name)) return rate_scale(text, name);
      }
      return rate_scale(text, "OP/s");
    case Unit::hertz:
      return rate_scale(text, "Hz");
    case Unit::part:
      return text.empty() ? 1 : text == "%" ? 0.01 : 0;
  }
  return 0;
}

/// Parses a number with a unit, converted to the base unit; returns false if `text` is not one.
bool read_quantity(std::string_view text, Unit unit, double& number) {
  if (!take_number(text, number)) return false;
  const double scale = scale_of(text, unit);
  // Division rounds correctly: 90 % becomes the double nearest to 0.9.
  number = scale < 1 ? number / std::round(1 / scale) : number * scale;
  return scale != 0 && std::isfinite(number);
}

constexpr double exact_integers = 0x1p53;  // all integers up to here are exact in double

std::string accepted_text(Unit unit, const Accepted& accepted) {
  const auto range = [&](std::string_view what) {
    return accepted.least > 0 || accepted.zero
               ? fmt::format("{} from {}", what, format_quantity(accepted.least, unit))
               : fmt::format("{} above 0", what);
  };
  switch (unit) {
    case Unit::count: {
      const double most = std::min(accepted.most, exact_integers);
      return fmt::format("a whole number from {} to {}, as in 4096, 1M (10^6) or 1Mi (2^20)",
                         whole(accepted.zero ? accepted.least : std::max(1.0, accepted.least)),
                         most == exact_integers ? "2^53" : whole(most));
    }
    case Unit::number:
      return range("a number");
    case Unit::bytes:
      return range("bytes") + ", as in 4096, 32KiB or 32KB";
    case Unit::seconds:
      return range("a time") + ", as in 500ns, 1.5ms or 2e-3";
    case Unit::bytes_per_second:
      return range("a rate") + ", as in 204.8GB/s, 3TB/s or 3e12";
    case Unit::operations_per_second:
      return range("a rate") + ", as in 37.4TFLOP/s, 100GFLOP/s or 1e11";
    case Unit::hertz:
      return range("a frequency") + ", as in 1.98GHz or 2e9";
    case Unit::part:
      return "a part from 0 to 1, as in 0.9 or 90%";
  }
  return "";
}

/// Formats a value with a metric prefix: "5.568 TFLOP/s".
std::string with_prefix(double value, std::string_view unit) {
  constexpr const char* prefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  std::size_t at = 0;
  for (; value >= 999.95 && at + 1 < std::size(prefixes); ++at) value /= 1000;
  return fmt::format("{:.4g} {}{}", value, prefixes[at], unit);
}

std::string format_small_time(double seconds) {
  constexpr std::pair<const char*, double> units[] = {
      {"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
  for (const auto& [name, per_second] : units) {
    if (seconds * per_second >= 0.99995)
      return fmt::format("{:.4g} {}", seconds * per_second, name);
  }
  return fmt::format("{:.4g} ns", seconds * 1e9);
}

std::string format_exact_bytes(double bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double scaled = bytes;
  std::size_t unit = 0;
  for (; scaled >= 1024 && std::fmod(scaled, 1024) == 0 && unit + 1 < std::size(units); ++unit) {
    scaled /= 1024;
  }
  // Six digits and more are hard to read: 1,054,688 KiB become 1.006 GiB.
  constexpr double readable = 1e5;
  constexpr double readable_bytes = 1e9;
  if (scaled >= (unit == 0 ? readable_bytes : readable)) {
    for (; scaled >= 1024 && unit + 1 < std::size(units); ++unit) scaled /= 1024;
  }
  if (scaled >= exact_integers || scaled != std::floor(scaled)) {
    return fmt::format("{:.4g} {}", scaled, units[unit]);
  }
  return fmt::format("{} {}", whole(scaled), bytes == 1 ? "byte" : units[unit]);
}

double read_bytes(std::string_view option, std::string_view text) {
  double number = 0;
  if (!read_quantity(text, Unit::bytes, number) || number < 0) {
    refuse(option, text, "bytes, as in 4096, 48K or 48KiB");
  }
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
  const double scale = rate_scale(rest, unit);
  number *= scale;
  // Outside this range, times would overflow or underflow.
  constexpr double least = 1;
  constexpr double most = 1e24;
  reads = reads && scale != 0 && number >= least && number <= most;
  if (!reads) {
    refuse(option, text, fmt::format("a rate from 1 to 1e24, as in 4.8T{0} or 4.8e12", unit));
  }
  return number;
}

double parse_quantity(std::string_view option, std::string_view text, Unit unit,
                      const Accepted& accepted) {
  double number = 0;
  bool reads = read_quantity(text, unit, number);
  reads = reads && number >= accepted.least && number <= accepted.most;
  reads = reads && (number != 0 || accepted.zero || unit == Unit::part);
  if (unit == Unit::count)
    reads = reads && number == std::floor(number) && number <= exact_integers;
  if (unit == Unit::part) reads = reads && number <= 1;
  if (!reads) refuse(option, text, accepted_text(unit, accepted));
  return number;
}

int parse_kibi_count(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  double number = 0;
  const bool reads = take_number(rest, number);
  number *= prefix_scale(rest, 1024);
  if (!reads || number < 1 || number > 0x1p30 || number != std::floor(number)) {
    refuse(option, text, "a whole number from 1 to 2^30, as in 16384 or 16K");
  }
  return static_cast<int>(number);
}

std::string format_quantity(double value, Unit unit) {
  switch (unit) {
    case Unit::count:
    case Unit::number:
      if (std::abs(value) < exact_integers && (value == std::floor(value) || value >= 1000)) {
        return whole(value);
      }
      return fmt::format("{:.4g}", value);
    case Unit::bytes:
      return format_exact_bytes(value);
    case Unit::seconds:
      return format_small_time(value);
    case Unit::bytes_per_second:
      return with_prefix(value, "B/s");
    case Unit::operations_per_second:
      return with_prefix(value, "FLOP/s");
    case Unit::hertz:
      return with_prefix(value, "Hz");
    case Unit::part:
      return fmt::format("{:.4g} %", 100 * value);
  }
  return "";
}

}  // namespace rung::workbench
