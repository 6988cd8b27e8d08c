// SPDX-License-Identifier: Apache-2.0
// Modules: peers compiled into shared objects (mostly C++ templates), beside librung in the build,
// or in rung/ beside it when installed; see cmake/peer_module.cmake. They export C functions on
// plain structs.
#pragma once

#include <string>

#include "rung/core/operator.hpp"

namespace rung::peers {

/// Returns the instruction set of the variant to load, which is that of our own rungs: "avx512",
/// "avx2" or "baseline".
const char* module_isa();

/// Returns the full path of librung_peer_NAME.so, relative to the installed librung.
std::string module_path(const std::string& name);
/// Returns the path of the module's variant for module_isa().
std::string isa_module_path(const std::string& name);

/// Returns whether a comparison with module_isa() is fair: unsupported if our own rungs are scalar.
Support isa_modules_present();

/// Formats a version as modules encode it: 30403 becomes "3.4.3".
std::string version_text(int version);

}  // namespace rung::peers
