// SPDX-License-Identifier: Apache-2.0
// Measured results as pictures (SVG). A picture's first line names what it is made of:
//   <!-- rung:picture h200/gemm_ladder f32 4096x4096x4096 -->
// and `rung report --into FILE.svg` makes the rest.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rung::workbench {

/// The begin of a picture's first line.
inline constexpr std::string_view picture_marker = "<!-- rung:picture ";

/// Draws a results file. The JSON of `rung bench` gives a bar per rung and peer on a logarithmic
/// scale, of the problem that `filter` names; of `rung survey`, or an array of them, a point per
/// problem: seconds of the public call, and its speed relative to the fastest peer. Throws Error as
/// results_to_markdown().
std::string results_to_picture(const std::string& json, const std::string& filter);

/// Renews a picture from results(NAME). Throws Error(invalid_argument) without a marker.
std::string renewed_picture(const std::string& document,
                            const std::function<std::string(const std::string& name)>& results);

}  // namespace rung::workbench
