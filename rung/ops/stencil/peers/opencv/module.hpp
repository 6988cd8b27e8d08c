// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_stencil_opencv.so: what the stencil peer OpenCV loads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rung::peer_stencil_opencv {

enum class Element : std::uint8_t { f32, f64, u8 };
enum class Form : std::uint8_t { mask, separable, window };
enum class Edge : std::uint8_t { zero, clamp, mirror };

/// One image under one mask; weights are contiguous, f32, for f64 f64.
struct Filter {
  Element from, to;
  Form form;
  Edge edge;
  int rows, columns;
  std::size_t x_row, y_row;  // bytes from one row to the next
  int mask_rows, mask_columns;
  int anchor_row, anchor_column;
  const void *mask, *across, *down;
};

/// The module's symbols, both extern "C"; false when OpenCV reports a failure.
using Apply = bool(const Filter& filter, const void* x, void* y,
                   int threads);  // rung_stencil_opencv_apply
using Version = const char*();    // rung_stencil_opencv_version

}  // namespace rung::peer_stencil_opencv
