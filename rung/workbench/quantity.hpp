// SPDX-License-Identifier: Apache-2.0
// Numbers with units, as people write them on a command line. Each reader throws Error that names
// the option, what was given and what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rung::workbench {

/// "4096", "48K", "48 KiB", "1M": multiples of 1024. "48KB": of 1000.
int parse_bytes(std::string_view option, std::string_view text);
/// Parses a number of bytes that may exceed 2 GiB, as in "4G"; at least one.
std::int64_t parse_many_bytes(std::string_view option, std::string_view text);
/// "0.9" or "90%": from 0 to 1.
double parse_fraction(std::string_view option, std::string_view text);
/// "4.8TB/s", "67 TFLOP/s", "3e12": a rate of 1 to 1e24, in multiples of 1000, and `unit` or none.
double parse_rate(std::string_view option, std::string_view text, std::string_view unit);

/// The unit of a calculator's number: how it is read and printed. Without a unit a
/// number is of the first below: bytes, seconds, bytes per second ...
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
/// Range of accepted values: from `least`, or above 0 if that is 0 and `zero` is false.
struct Accepted {
  double least = 0;
  double most = 1e30;
  bool zero = false;
};
double parse_quantity(std::string_view option, std::string_view text, Unit unit,
                      const Accepted& accepted = {});
/// "16K": a whole number of registers, say; K and Ki are 1024.
int parse_kibi_count(std::string_view option, std::string_view text);
/// "6,912 bytes", "1.5 MB/s", "412.5 ns": four significant digits, whole numbers exactly; of bytes
/// up to five digits of a unit, and up to nine of bytes.
std::string format_quantity(double value, Unit unit);

}  // namespace rung::workbench
