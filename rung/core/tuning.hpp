// SPDX-License-Identifier: Apache-2.0
// Tuning: kernels that are chosen by measurement, once per call and machine, and remembered in a
// file; and the log of a program's calls. Contract: Context::set_tuning().
//
// A first call (one that does not repeat the context's last) looks for its key in the file's
// entries: version of the library, device and driver, operator, problem, and the layout of every
// tensor. Without an entry, Tuning::first_call times the candidates - rungs whose estimate is
// within `tuning_window` of the least - on the call's own layout: what is written is written to
// scratch copies, in-place operands included, so that the caller's tensors stay as they are.
//
// An entry can choose a slow kernel, never a wrong one: its kernel must be one of the call's own
// candidates. Whatever else a file holds is skipped.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct RungInfo;

namespace detail {

/// Candidates are estimated to take at most this many times as long as the best.
inline constexpr double tuning_window = 2;

/// A call that tuning and the log look at, whatever its operator.
class RUNG_API ObservedCall {
 public:
  struct Tensor {
    std::string_view name;
    ConstTensorRef tensor;
    bool written;
  };
  struct Candidate {
    const RungInfo* rung;
    double estimate;  // seconds
  };

  ObservedCall() = default;
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;
  virtual ~ObservedCall() = default;

  [[nodiscard]] virtual std::string_view op() const = 0;
  /// Returns types, extents and options as the command line spells them; not layouts.
  [[nodiscard]] virtual std::string problem() const = 0;
  /// Returns the call's tensors in the operator's order.
  [[nodiscard]] virtual std::vector<Tensor> tensors() const = 0;
  /// Rungs that may be chosen for the call, the best estimate first.
  [[nodiscard]] virtual std::vector<Candidate> candidates() const = 0;
  /// Runs a rung with other data pointers, one per tensor.
  virtual void run(const RungInfo& rung, std::span<void* const> data, Context& context) = 0;
};

/// Writes the call to stderr, once per process, if the context logs calls.
RUNG_API void log_call(const ObservedCall& call, const Context& context);

/// Returns the rung that was measured to be the fastest, now or before; null where the context does
/// not tune, nothing is remembered, or nothing could be timed: the stream is being captured in a
/// graph, memory for scratch copies is short, this call is part of one that is being timed.
RUNG_API const RungInfo* tuned_rung(ObservedCall& call, Context& context);

/// A remembered choice.
struct Tuned {
  std::string rung;
  std::map<std::string, double> seconds;  // of every candidate that was timed
};

/// Returns what is remembered of a call; no rung: nothing, or a kernel that does not take it.
RUNG_API Tuned remembered_choice(const ObservedCall& call, const Context& context);
/// Returns the rung that is remembered where the context tunes; null: as estimated.
RUNG_API const RungInfo* remembered_rung(const ObservedCall& call, const Context& context);

/// Times the candidates of a call, whatever is remembered of it, and remembers the fastest.
RUNG_API Tuned tune_again(ObservedCall& call, Context& context);

/// The file of remembered choices: RUNG_TUNE_FILE, else rung/tuning.jsonl in XDG_CACHE_HOME or
/// ~/.cache; "" where the environment names no folder.
RUNG_API std::string tuning_file_path();
/// Returns why choices are not kept in the file; "" if no problem is known.
RUNG_API std::string tuning_file_trouble();

/// Return the word of RUNG_TUNE, and whether RUNG_LOG is "calls". Throw Error(invalid_argument) for
/// any other word.
Tuning default_tuning();
bool calls_are_logged();

}  // namespace detail
}  // namespace rung
