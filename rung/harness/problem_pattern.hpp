// SPDX-License-Identifier: Apache-2.0
// Patterns of random problems. A pattern is the text of a problem in which
//   1..4096      is a random whole number: log-uniform, but 10 of 16 draws are replaced by a number
//                that kernels treat specially: a power of two or a neighbor of one, a multiple of
//                16, an odd number or a prime
//   -4.0..4.0    (with a decimal point) is a uniform random number with six decimals
//   (a|b*3|)     is one of its alternatives: here a, b (three times as often) or nothing.
//                Alternatives can be nested
// such as  (f32*2|bf16) 1..65536x1..64(|,axis=0)
// The same random numbers make the same problem on every machine.
#pragma once

#include <string>
#include <string_view>

#include "rung/core/export.hpp"
#include "rung/harness/random.hpp"

namespace rung {

/// Draws a problem's text from a pattern. Throws Error(invalid_argument) for an invalid pattern.
RUNG_API std::string draw_text(std::string_view pattern, Random& random);

}  // namespace rung
