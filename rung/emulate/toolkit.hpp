// SPDX-License-Identifier: Apache-2.0
// Folder with the layout of a CUDA toolkit, for build systems that search for one.
#pragma once

#include <string>

namespace rung::emulate {

/// Returns the path of a folder with bin/nvcc, include and lib64; writes it if it is missing or
/// older than rung's libraries. It is in the user's cache, since it contains absolute paths.
std::string toolkit_folder();

/// Returns the version reported by nvcc and the headers, "13.0.0".
std::string toolkit_version();

}  // namespace rung::emulate
