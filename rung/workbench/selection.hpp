// SPDX-License-Identifier: Apache-2.0
// Maps words of a command line to operators, rungs, backends and problems; errors for unknown words
// list the known ones.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/workbench/command.hpp"

namespace rung::workbench {

/// Name of the public call, the library's own choice, in lists of rungs.
inline constexpr std::string_view public_call = "best";

/// Returns the operator of this name. Throws Error(not_available) with build instructions if this
/// build leaves it out, else Error(invalid_argument) that lists the operators.
const AnyOperator& known_operator(const std::string& name);
/// Returns the message that known_operator() would throw; "" if the operator exists.
std::string why_no_operator(const std::string& name);
/// An operator of the source tree that this build leaves out.
struct LeftOutOperator {
  std::string_view name;
  std::string_view summary;
};
std::vector<LeftOutOperator> left_out_operators();

/// Selection of operators, and of a rung ("" for all): "gemm/packed_simd", "gemm" or "".
struct Target {
  std::vector<const AnyOperator*> operators;
  std::string rung;
};
Target select_target(const std::string& text);

/// Returns the step number as shown in tables; "shape" or "type" for a rung that is no step, "" for
/// a peer.
std::string step_text(const RungInfo& rung);
/// Returns the kind of a rung for JSON: "step", "shape", "type" or "peer".
const char* kind_name(const RungInfo& rung);

/// Throws Error that lists the rungs of the operator unless `rung` is one of them (on `backend`, if
/// given) or the public call.
void expect_rung(const AnyOperator& op, std::string_view rung, std::optional<Backend> backend);

/// Returns the requested backend, or all available ones if `requested` is empty. Throws
/// Error(not_available) if the requested one is unavailable. Appends a line to `missing` for each
/// unavailable one.
std::vector<Backend> select_backends(const std::string& requested,
                                     std::vector<std::string>& missing);

/// Help of the option --device, for commands that time or check.
inline constexpr const char* device_help =
    "which GPU, or which OpenCL device over all platforms; default: 0, the first";
inline constexpr int max_device = 1023;
/// Returns a context on device number `device` of a backend. Throws Error(invalid_argument) if it
/// is not 0 on the CPU or the simulated GPU.
Context context_on(Backend backend, int threads, int device);
/// Returns the device name in parentheses, to follow a backend's name: " (NVIDIA H100)"; "" for the
/// CPU and the simulated GPU.
std::string device_in_parentheses(const Context& context);

/// Parses problems; "f32 64x64x64" may be one word or two.
std::vector<Problem> parse_problems(const std::vector<std::string>& words);

/// Throws if a problem is invalid or empty, before its tensors are filled or any rung runs. `what`:
/// "time" or "explain".
void expect_work(const AnyOperator& op, const Problem& problem, const Context& context,
                 std::string_view what);

/// Parses a layout and values, in the format of to_string(Variant).
Variant parse_variant(std::string_view text);

/// Returns whether a rung is available here: its backend and the libraries it needs.
Availability rung_availability(const RungInfo& rung);

// Completion candidates: operators, operators and their rungs ("gemm/"), comma-separated rungs of
// the preceding operator, backends, and variants.
std::vector<std::string> complete_operators(const Completing& completing);
std::vector<std::string> complete_targets(const Completing& completing);
std::vector<std::string> complete_rungs(const Completing& completing);
std::vector<std::string> complete_backends(const Completing& completing);
std::vector<std::string> complete_variants(const Completing& completing);

/// Joins words: "a, b, c".
std::string join(const std::vector<std::string>& words);
/// Splits at commas; empty parts are dropped.
std::vector<std::string> split_commas(const std::string& text);

}  // namespace rung::workbench
