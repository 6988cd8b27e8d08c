// SPDX-License-Identifier: Apache-2.0
// Direction vectors of Sobol's sequences. Dimension 0 is van der Corput's sequence; each other
// dimension has a primitive polynomial over GF(2), ordered by degree and value as in the tables of
// Joe and Kuo (2008), which cuRAND uses. The initial odd numbers of a dimension are free
// parameters: the tables optimize them, while this file hashes them from the dimension. The first
// two dimensions should therefore equal cuRAND's (according to its documentation; not compared);
// each of the others is equally uniform, but in another order.
#include <array>
#include <cstdint>
#include <vector>

#include "rung/emulate/runtime/api.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/sobol.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;  // Steele, Lea and Flood's finalizer
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// Polynomials over GF(2), one bit per coefficient, modulo a given polynomial.
struct Field {
  std::uint32_t modulus;
  int degree;

  [[nodiscard]] std::uint32_t product(std::uint32_t a, std::uint32_t b) const {
    std::uint32_t sum = 0;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) sum ^= a;
      a <<= 1;
      if ((a >> degree & 1) != 0) a ^= modulus;
    }
    return sum;
  }
  [[nodiscard]] std::uint32_t power_of_x(std::uint32_t exponent) const {
    std::uint32_t result = 1, square = product(1, 2);
    for (; exponent != 0; exponent >>= 1, square = product(square, square)) {
      if ((exponent & 1) != 0) result = product(result, square);
    }
    return result;
  }
};

/// Returns true if the polynomial is primitive: the order of x is 2^degree - 1 and not a proper
/// divisor of it.
bool is_primitive(std::uint32_t polynomial, int degree) {
  const Field field{polynomial, degree};
  const std::uint32_t order = (1u << degree) - 1;
  if (field.power_of_x(order) != 1) return false;
  std::uint32_t left = order;
  for (std::uint32_t prime = 2; left > 1; ++prime) {
    if (prime * prime > left) prime = left;
    if (left % prime != 0) continue;
    while (left % prime == 0) left /= prime;
    if (field.power_of_x(order / prime) == 1) return false;
  }
  return true;
}

using Vectors = std::array<std::uint64_t, 64>;

/// Computes m[k] = 2 a1 m[k-1] + 4 a2 m[k-2] + ... + 2^s m[k-s] + m[k-s], where + is XOR. Returns
/// the vectors m[k] / 2^(k+1) as 64-bit fractions.
Vectors vectors_of(std::uint32_t polynomial, int degree, int dimension) {
  std::array<std::uint64_t, 64> m{};
  for (int k = 0; k < 64; ++k) {
    std::uint64_t& now = m[static_cast<std::size_t>(k)];
    if (k < degree) {
      const auto seed = 64 * static_cast<std::uint64_t>(dimension) + static_cast<std::uint64_t>(k);
      now = (mixed(seed) & ((std::uint64_t{1} << k) - 1)) << 1 | 1;
      continue;
    }
    now = m[static_cast<std::size_t>(k - degree)];
    for (int i = 1; i <= degree; ++i) {
      if ((polynomial >> (degree - i) & 1) != 0) now ^= m[static_cast<std::size_t>(k - i)] << i;
    }
  }
  for (int k = 0; k < 64; ++k) m[static_cast<std::size_t>(k)] <<= 63 - k;
  return m;
}

std::vector<std::uint64_t> all_vectors() {
  std::vector<std::uint64_t> all;
  all.reserve(std::size_t{sobol_dimensions} * 64);
  for (int k = 0; k < 64; ++k) all.push_back(std::uint64_t{1} << (63 - k));
  int dimension = 1;
  for (int degree = 1; dimension < sobol_dimensions; ++degree) {
    for (std::uint32_t one = (1u << degree) | 1; one < 2u << degree && dimension < sobol_dimensions;
         one += 2) {
      if (!is_primitive(one, degree)) continue;
      const Vectors vectors = vectors_of(one, degree, dimension++);
      all.insert(all.end(), vectors.begin(), vectors.end());
    }
  }
  return all;
}

}  // namespace

const unsigned long long* sobol_vectors64() {
  static const std::vector<std::uint64_t> all = all_vectors();
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));
  return reinterpret_cast<const unsigned long long*>(all.data());
}
const unsigned* sobol_vectors32() {
  static const std::vector<unsigned> all = [] {
    std::vector<unsigned> shorter;
    shorter.reserve(std::size_t{sobol_dimensions} * 32);
    const unsigned long long* long_ones = sobol_vectors64();
    for (std::size_t i = 0; i < std::size_t{sobol_dimensions} * 64; ++i) {
      if (i % 64 < 32) shorter.push_back(static_cast<unsigned>(long_ones[i] >> 32));
    }
    return shorter;
  }();
  return all.data();
}
unsigned long long sobol_shift(int dimension) {
  return mixed(0x5eed0000u + static_cast<std::uint64_t>(dimension));
}

}  // namespace rung::cuda
