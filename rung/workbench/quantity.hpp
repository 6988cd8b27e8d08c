// SPDX-License-Identifier: Apache-2.0
// Numbers with units on a command line. Each parser throws Error that names the option, the given
// text and what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rung::workbench {

/// Parses a number of bytes: "4096", "48K", "48 KiB", "1M" in multiples of 1024, "48KB" of 1000.
int parse_bytes(std::string_view option, std::string_view text);
/// Parses a number of bytes that may exceed 2 GiB, such as "4G"; at least 1.
std::int64_t parse_many_bytes(std::string_view option, std::string_view text);
/// Parses a fraction from 0 to 1: "0.9" or "90%".
double parse_fraction(std::string_view option, std::string_view text);
/// Parses a rate from 1 to 1e24, "4.8TB/s", "67 TFLOP/s", "3e12", with prefixes of 1000; `unit` may
/// be omitted.
double parse_rate(std::string_view option, std::string_view text, std::string_view unit);

/// Unit of a calculator's number, for parsing and printing. A number without a unit is in the base
/// unit: bytes, seconds, bytes per second ...
enum class Unit : unsigned char {
  count,  // a whole number, to 2^53: "1024", "1e6", "1M" of 10^6, "1Mi" of 2^20
  number,
  bytes,                  // "4096", "32K" and "32KiB" of 1024, "32KB" of 1000
  seconds,                // "500ns", "1.5 ms"
  bytes_per_second,       // "204.8GB/s", "3TB/s", "900GiB/s"
  operations_per_second,  // "37.4TFLOP/s"
  hertz,                  // "1.98GHz"
  part,                   // "0.5", "50%"
};
/// Range of accepted values: from `least`, excluding 0 if `least` is 0 and `zero` is false.
struct Accepted {
  double least = 0;
  double most = 1e30;
  bool zero = false;
};
double parse_quantity(std::string_view option, std::string_view text, Unit unit,
                      const Accepted& accepted = {});
/// Parses a whole number, such as "16K" registers; K and Ki are 1024.
int parse_kibi_count(std::string_view option, std::string_view text);
/// Formats a quantity: "6,912 bytes", "1.5 MB/s", "412.5 ns". Four significant digits; whole
/// numbers exactly. Bytes that are a whole number of KiB, MiB ... are exact in that unit up to five
/// digits, others exact in bytes up to nine digits.
std::string format_quantity(double value, Unit unit);

}  // namespace rung::workbench
