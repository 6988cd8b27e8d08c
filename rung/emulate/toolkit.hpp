// SPDX-License-Identifier: Apache-2.0
// A folder with the layout of a CUDA toolkit, for build systems that search for a toolkit.
#pragma once

#include <string>

namespace rung::emulate {

/// Returns the path of a folder with bin/nvcc, include and lib64; writes the folder if it is
/// missing or older than rung's libraries. It is in the user's cache, since it contains absolute
/// paths.
std::string toolkit_folder();

/// Returns the toolkit version that nvcc and the headers report, "13.0.0".
std::string toolkit_version();

}  // namespace rung::emulate
