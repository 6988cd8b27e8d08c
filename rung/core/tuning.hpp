// SPDX-License-Identifier: Apache-2.0
// Tuning: choice of kernels by measurement, once per distinct call and machine, with the results
// kept in a file; and the log of a program's calls. Contract: Context::set_tuning().
//
// A call that does not repeat the context's last one looks up its key in the file: version of the
// library, device and driver, operator, problem, and layout of every tensor. If there is no entry,
// Tuning::first_call times the candidates (rungs whose estimate is within `tuning_window` of the
// least) on tensors of the call's layout. Results, in-place operands included, are written to
// scratch copies, so that the caller's tensors are unchanged.
//
// An entry can select a slow kernel, but never a wrong one: its kernel must be one of the call's
// own candidates. All other content of the file is skipped.
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

/// Largest ratio of a candidate's estimate to the best estimate.
inline constexpr double tuning_window = 2;

/// Operator-independent interface to a call, for tuning and the log.
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
  /// Returns types, extents and options in the command line's syntax, without layouts.
  [[nodiscard]] virtual std::string problem() const = 0;
  /// Returns the call's tensors in the operator's order.
  [[nodiscard]] virtual std::vector<Tensor> tensors() const = 0;
  /// Returns the rungs that may be chosen for the call, best estimate first.
  [[nodiscard]] virtual std::vector<Candidate> candidates() const = 0;
  /// Runs a rung with other data pointers, one per tensor.
  virtual void run(const RungInfo& rung, std::span<void* const> data, Context& context) = 0;
};

/// Writes the call to stderr, once per process, if the context logs calls.
RUNG_API void log_call(const ObservedCall& call, const Context& context);

/// Returns the rung measured to be fastest, now or before. Null if the context does not tune,
/// nothing is recorded, or nothing could be timed: the stream is being captured in a graph, memory
/// for scratch copies is short, or the call is made within a timed one.
RUNG_API const RungInfo* tuned_rung(ObservedCall& call, Context& context);

/// A recorded choice.
struct Tuned {
  std::string rung;
  std::map<std::string, double> seconds;  // of every candidate that was timed
};

/// Returns the recorded choice for a call; an empty rung if there is none, or if it does not
/// support the call.
RUNG_API Tuned remembered_choice(const ObservedCall& call, const Context& context);
/// Returns the recorded rung if the context tunes; null: the choice is by estimates.
RUNG_API const RungInfo* remembered_rung(const ObservedCall& call, const Context& context);

/// Times the candidates of a call, even if a choice is recorded, and records the fastest.
RUNG_API Tuned tune_again(ObservedCall& call, Context& context);

/// Returns the path of the tuning file: RUNG_TUNE_FILE, else rung/tuning.jsonl in XDG_CACHE_HOME or
/// ~/.cache; "" if the environment names no folder.
RUNG_API std::string tuning_file_path();
/// Returns why choices cannot be stored in the file; "" if no problem is known.
RUNG_API std::string tuning_file_trouble();

/// Return the value of RUNG_TUNE, and whether RUNG_LOG is "calls". Throw Error(invalid_argument)
/// for any other value.
Tuning default_tuning();
bool calls_are_logged();

}  // namespace detail
}  // namespace rung
