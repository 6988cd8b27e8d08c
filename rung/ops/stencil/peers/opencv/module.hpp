// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_stencil_opencv.so, which the stencil peer OpenCV loads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rung::peer_stencil_opencv {

enum class Element : std::uint8_t { f32, f64, u8 };
enum class Form : std::uint8_t { mask, separable, window };
enum class Edge : std::uint8_t { zero, clamp, mirror };

/// One image and one mask. Weights are contiguous; f64 for f64, otherwise f32.
struct Filter {
  Element from, to;
  Form form;
  Edge edge;
  int rows, columns;
  std::size_t x_row, y_row;  // row strides in bytes
  int mask_rows, mask_columns;
  int anchor_row, anchor_column;
  const void *mask, *across, *down;
};

/// Types of the module's two extern "C" symbols. Apply returns false when OpenCV reports a failure.
using Apply = bool(const Filter& filter, const void* x, void* y,
                   int threads);  // rung_stencil_opencv_apply
using Version = const char*();    // rung_stencil_opencv_version

}  // namespace rung::peer_stencil_opencv
