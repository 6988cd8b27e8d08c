// SPDX-License-Identifier: Apache-2.0
// Numbers with units, as people write them on a command line. Each reader throws Error that names
// the option, what was given and what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rung::workbench {

/// "4096", "48K", "48 KiB", "1M": multiples of 1024.
int parse_bytes(std::string_view option, std::string_view text);
/// The same where it may be more than 2 GiB: "4G"; at least one.
std::int64_t parse_many_bytes(std::string_view option, std::string_view text);
/// "0.9" or "90%": from 0 to 1.
double parse_fraction(std::string_view option, std::string_view text);
/// "4.8TB/s", "67 TFLOP/s", "3e12": a rate of 1 to 1e24, in multiples of 1000, and `unit` or none.
double parse_rate(std::string_view option, std::string_view text, std::string_view unit);

}  // namespace rung::workbench
