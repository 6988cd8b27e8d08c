// SPDX-License-Identifier: Apache-2.0
// Work of a kernel in a call, Rates of a kernel on a machine, and the seconds that follow: the
// model by which the library chooses among kernels, on every backend.
//
//   seconds = start + launch * launches + |memory, arithmetic, waiting, issue|
//   memory     = share * bytes / the nominal rate of the memory, or of the cache that holds them
//   arithmetic = share * operations / the nominal rate of the units
//   waiting    = waves * (wave + round * rounds)        waves = blocks / (resident * units), >= 1
//   issue      = max(1, blocks / units) * (block + step * steps)
// where |...| is close to the largest of the four (`overlap`), and units are SMs or threads. Work
// follows from a kernel's code and the call alone; `share` to `step` are coefficients of a kernel
// on a machine, which `rung survey --fit` writes to results/MACHINE/rates/OPERATOR.json.
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

/// Facts of a kernel in one call. What is 0 is not stated: bytes and operations are then the
/// operator's own cost.
struct Work {
  Amount bytes = 0;       // that memory has to move, of the footprint
  Amount operations = 0;  // of the arithmetic units, those made again included
  Amount launches = 1;    // kernels, one after another; counted on a GPU only
  Amount blocks = 1;      // of the grid; on a CPU pieces, such as rows, with costs of their own
  Amount resident = 1;    // blocks that one SM holds at a time
  Amount rounds = 0;      // loads and barriers of a block that wait for the one before
  Amount steps = 0;       // a block's instructions, in units of the kernel's own (packs, taps ...)
  Amount threads = 1;     // CPU threads that share it
  std::string_view path;  // of a kernel that has several, each with rates of its own: "cut"
};

/// Coefficients of the model, by index of Rates::of.
enum class RateTerm : unsigned char {
  start,       // seconds
  launch,      // seconds per launch; of each further thread on a CPU
  memory,      // nominal times: of bytes beyond `middle_bytes`, or any on a GPU
  middle,      // of bytes in a cache that cores share
  near,        // of bytes in a core's own caches
  arithmetic,  // nominal times
  wave,        // seconds
  round,       // seconds
  block,       // seconds of a unit
  step,        // seconds of a unit
};
inline constexpr std::size_t term_count = 10;
RUNG_API std::string_view to_string(RateTerm term);

/// Coefficients of one kernel on one machine.
struct Rates {
  std::array<double, term_count> of{};
};

/// Factors that the coefficients multiply, by index of Rates::of.
using WorkTerms = std::array<double, term_count>;
RUNG_API WorkTerms terms_of(const Work& work, const Context& context);

/// Seconds of a kernel, and of what it is made of.
struct Prediction {
  double seconds = 0;
  double starting = 0, memory = 0, arithmetic = 0, waiting = 0, issue = 0;
  /// "launch", "memory", "arithmetic", "latency" or "instructions": the largest part.
  [[nodiscard]] RUNG_API const char* limiter() const;
};
RUNG_API Prediction predict(const WorkTerms& terms, const Rates& rates, Backend backend);

}  // namespace rung
