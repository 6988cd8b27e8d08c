// SPDX-License-Identifier: Apache-2.0
// A digit that somebody drew, as the data sets have theirs.
#pragma once

#include <string>

#include "data.hpp"

namespace digits {

/// A PNG file of any size, ink dark on light or light on dark: grey, cut to the ink, brought to the
/// middle of an image of this edge. Throws rung::Error for what is no picture, or blank.
Images read_picture(const std::string& path, std::int64_t edge);

}  // namespace digits
