// SPDX-License-Identifier: Apache-2.0
// A folder in the shape of a CUDA toolkit, for build systems that look for one.
#pragma once

#include <string>

namespace rung::emulate {

/// Returns the path of a folder with bin/nvcc, include and lib64, which it writes if it is missing
/// or older than rung's libraries. It is in the user's cache, since it holds absolute paths.
std::string toolkit_folder();

/// Returns the version that nvcc and the headers claim, "13.0.0".
std::string toolkit_version();

}  // namespace rung::emulate
