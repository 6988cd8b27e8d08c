// SPDX-License-Identifier: Apache-2.0
// Random problems as data. A pattern is the text of a problem in which
//   1..4096      stands for a whole number: log-uniform, and often one that kernels like - a power
//                of two, a multiple of 16 - or do not: odd, prime, beside a power of two
//   -4.0..4.0    (with a decimal point) for a number with six decimals, uniform
//   (a|b*3|)     for one of its alternatives - here a, b three times as often, or nothing - which
//                may contain all of these again
// as in  (f32*2|bf16) 1..65536x1..64(|,axis=0)
// The same random numbers make the same problem on every machine.
#pragma once

#include <string>
#include <string_view>

#include "rung/core/export.hpp"
#include "rung/harness/random.hpp"

namespace rung {

/// A problem's text. Throws Error(invalid_argument) for what is no pattern.
RUNG_API std::string draw_text(std::string_view pattern, Random& random);

}  // namespace rung
