// SPDX-License-Identifier: Apache-2.0
// Thrust's complex numbers: aliases of std::complex and its functions.
#pragma once

#include <complex>

namespace thrust {

using std::abs;
using std::acos;
using std::arg;
using std::asin;
using std::atan;
using std::complex;
using std::conj;
using std::cos;
using std::cosh;
using std::exp;
using std::log;
using std::log10;
using std::norm;
using std::polar;
using std::pow;
using std::proj;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;

}  // namespace thrust
