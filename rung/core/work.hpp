// SPDX-License-Identifier: Apache-2.0
// Time model by which the library chooses among kernels, on every backend: Work of a kernel in a
// call, Rates of a kernel on a machine, and the predicted seconds.
//
//   seconds = start + launch * launches + |memory, arithmetic, waiting, issue|
//   memory     = factor * bytes / nominal bandwidth of the memory or cache that holds the operands
//   arithmetic = factor * operations / nominal arithmetic throughput
//   waiting    = waves * (wave + round * rounds)        waves = blocks / (resident * units), >= 1
//   issue      = max(1, blocks / units) * (block + step * steps)
// where |...| is the sum on a CPU and, on a GPU, which overlaps the four, their 4-norm (a smooth
// maximum); units are SMs or threads. Work depends only on the kernel's code and the call. The two
// factors and `start`, `launch`, `wave`, `round`, `block` and `step` are coefficients (RateTerm)
// fitted for a kernel on a machine, which `rung survey --fit` writes to
// results/MACHINE/rates/OPERATOR.json. On a CPU `waiting` is 0, and `launches` is the number of
// threads minus one.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung {

/// A number of bytes, blocks or steps, of any arithmetic type.
struct Amount {
  double value = 0;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Amount(T amount) : value(static_cast<double>(amount)) {}  // NOLINT: implicit on purpose
  constexpr operator double() const { return value; }                 // NOLINT
};

/// Facts of a kernel in one call. Bytes and operations of 0 are replaced by the operator's cost.
struct Work {
  Amount bytes = 0;       // moved to and from memory
  Amount operations = 0;  // executed by the arithmetic units, recomputation included
  Amount launches = 1;    // consecutive kernels; GPU only
  Amount blocks = 1;      // in the grid; on a CPU, units of work with a fixed cost, such as rows
  Amount resident = 1;    // resident blocks per SM
  Amount rounds = 0;      // dependent loads and barriers per block
  Amount steps = 0;       // instructions per block, in units that the kernel defines (packs, taps)
  Amount threads = 1;     // CPU threads used
  std::string_view path;  // rates key, if the kernel has several sets of rates: "cut"
};

/// Coefficients of the model; indices of Rates::of.
enum class RateTerm : unsigned char {
  start,       // seconds
  launch,      // seconds per launch; on a CPU, per further thread
  memory,      // factor on the nominal time; bytes beyond `middle_bytes` on a CPU, all on a GPU
  middle,      // factor; bytes in a cache shared by cores
  near,        // factor; bytes in a core's private caches
  arithmetic,  // factor on the nominal time
  wave,        // seconds per wave
  round,       // seconds per round
  block,       // seconds per block
  step,        // seconds per step
};
inline constexpr std::size_t term_count = 10;
RUNG_API std::string_view to_string(RateTerm term);

/// Coefficients of one kernel on one machine.
struct Rates {
  std::array<double, term_count> of{};
};

/// Factors by which the coefficients are multiplied; same indices as Rates::of.
using WorkTerms = std::array<double, term_count>;
RUNG_API WorkTerms terms_of(const Work& work, const Context& context);

/// Predicted seconds of a kernel, and their parts.
struct Prediction {
  double seconds = 0;
  double starting = 0, memory = 0, arithmetic = 0, waiting = 0, issue = 0;
  /// Returns the largest part: "launch", "memory", "arithmetic", "latency" or "instructions".
  [[nodiscard]] RUNG_API const char* limiter() const;
};
RUNG_API Prediction predict(const WorkTerms& terms, const Rates& rates, Backend backend);

}  // namespace rung
