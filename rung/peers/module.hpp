// SPDX-License-Identifier: Apache-2.0
// Modules: peers that are compiled by us (templates, mostly) into shared objects beside librung
// (in the build) or in rung/ beside it (installed); see cmake/peer_module.cmake. They export C:
// functions that take plain structs.
#pragma once

#include <string>

#include "rung/core/operator.hpp"

namespace rung::peers {

/// The instruction set of the variant to load, our own rungs' one: "avx512", "avx2", "baseline".
const char* module_isa();

/// Full path of librung_peer_NAME.so, wherever librung was installed.
std::string module_path(const std::string& name);
/// Returns the path of the module's variant for module_isa().
std::string isa_module_path(const std::string& name);

/// Returns whether module_isa() serves what our own rungs are held to: not when those are scalar.
Support isa_modules_present();

/// 30403 as "3.4.3": how modules tell the version of what they hold.
std::string version_text(int version);

}  // namespace rung::peers
