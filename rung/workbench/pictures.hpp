// SPDX-License-Identifier: Apache-2.0
// Measured results as pictures (SVG). The first line of a picture names its data:
//   <!-- rung:picture h200/gemm_ladder f32 4096x4096x4096 -->
// and `rung report --into FILE.svg` generates the rest.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rung::workbench {

/// Start of a picture's first line.
inline constexpr std::string_view picture_marker = "<!-- rung:picture ";

/// Returns a picture of a results file. For JSON of `rung bench`: a bar per rung and peer on a
/// logarithmic scale, for the problem that `filter` names. For JSON of `rung survey`, or an array
/// of such: a point per problem, with seconds of the public call and speed relative to the fastest
/// peer. Throws the errors of results_to_markdown().
std::string results_to_picture(const std::string& json, const std::string& filter);

/// Returns the picture, regenerated from results(NAME). Throws Error(invalid_argument) if the
/// marker is missing.
std::string renewed_picture(const std::string& document,
                            const std::function<std::string(const std::string& name)>& results);

}  // namespace rung::workbench
