// SPDX-License-Identifier: Apache-2.0
// From the words of a command line to operators, rungs, backends and problems; an unknown word is
// answered with those that exist.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/workbench/command.hpp"

namespace rung::workbench {

/// The name under which the public call is listed beside the rungs: the library's own choice.
inline constexpr std::string_view public_call = "best";

/// Returns the operator of this name. Throws Error(not_available) that says how to build it where
/// this build leaves it out, else Error(invalid_argument) that lists the operators.
const AnyOperator& known_operator(const std::string& name);
/// Returns what known_operator() throws; "" where there is such an operator.
std::string why_no_operator(const std::string& name);
/// Operator of the source tree that this build leaves out.
struct LeftOutOperator {
  std::string_view name;
  std::string_view summary;
};
std::vector<LeftOutOperator> left_out_operators();

/// "gemm/packed_simd" or "gemm" or "": which operators, and which rung of them ("" for all).
struct Target {
  std::vector<const AnyOperator*> operators;
  std::string rung;
};
Target select_target(const std::string& text);

/// Returns what a table shows where a step has its number: "shape" or "type" of a rung that is no
/// step, "" of a peer.
std::string step_text(const RungInfo& rung);
/// Returns the same for JSON: "step", "shape", "type" or "peer".
const char* kind_name(const RungInfo& rung);

/// Throws Error that lists the operator's rungs unless one of them, or the public call, has this
/// name (on `backend`, if given).
void expect_rung(const AnyOperator& op, std::string_view rung, std::optional<Backend> backend);

/// The backends to use: the one asked for - Error(not_available) when it cannot be had - or all
/// that can. `missing` receives a line for each other one.
std::vector<Backend> select_backends(const std::string& asked, std::vector<std::string>& missing);

/// The option --device of the commands that time and check.
inline constexpr const char* device_help =
    "which GPU, or which OpenCL device over all platforms; default: 0, the first";
inline constexpr int max_device = 1023;
/// A context on the `device`-th device of a backend. Throws Error(invalid_argument) for another one
/// than 0 on the CPU or the simulated GPU.
Context context_on(Backend backend, int threads, int device);
/// "gemm on opencl (NVIDIA H100)": the name of a device that is not the CPU, in parentheses with a
/// blank before; "" of the CPU and of the simulated GPU.
std::string device_in_parentheses(const Context& context);

/// Problems as given on a command line; "f32 64x64x64" may come as one word or as two.
std::vector<Problem> parse_problems(const std::vector<std::string>& words);

/// Throws what a problem has wrong, or that it leaves nothing to do - "time", "explain" -, before
/// its tensors are filled and any rung sees it.
void expect_work(const AnyOperator& op, const Problem& problem, const Context& context,
                 std::string_view what);

/// A layout and values as to_string(Variant) spells them.
Variant parse_variant(std::string_view text);

/// Returns whether a rung can be used at all here: its backend, then the libraries it needs.
Availability rung_availability(const RungInfo& rung);

// What a shell completes to: operators, operators and their rungs ("gemm/"), the rungs of the
// operator before, separated by commas, backends, and variants.
std::vector<std::string> complete_operators(const Completing& completing);
std::vector<std::string> complete_targets(const Completing& completing);
std::vector<std::string> complete_rungs(const Completing& completing);
std::vector<std::string> complete_backends(const Completing& completing);
std::vector<std::string> complete_variants(const Completing& completing);

/// "a, b, c".
std::string join(const std::vector<std::string>& words);
/// Splits at commas; empty parts are dropped.
std::vector<std::string> split_commas(const std::string& text);

}  // namespace rung::workbench
