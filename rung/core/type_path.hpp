// SPDX-License-Identifier: Apache-2.0
// type_path(): the rates key (Work::path) of kernels whose speed depends on the element type.
#pragma once

#include <string_view>

#include "rung/core/dtype.hpp"

namespace rung {

/// Returns the rates key of an element type: f64 and 16-bit types have separate rates, since they
/// need more or fewer instructions per byte than f32.
inline std::string_view type_path(DType type) {
  return type == DType::f64 ? "f64" : size_of(type) == 2 ? "16-bit" : "";
}

}  // namespace rung
