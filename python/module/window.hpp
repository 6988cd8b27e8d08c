// SPDX-License-Identifier: Apache-2.0
// Strides, paddings, dilations and windows of conv and pool: a number for all axes of an image, or
// one for each.
#pragma once

#include <climits>
#include <string>

#include "python/module/call.hpp"
#include "rung/core/per_axis.hpp"

namespace rung::python {

/// Reads the next argument; `left_out` stands for None.
inline PerAxis per_axis(Call& call, const char* name, int axes, int left_out) {
  const Extents given = call.integers(name);
  if (given.rank > 1 && given.rank != axes) {
    call.reject(std::string(name) + " has " + std::to_string(given.rank) +
                " entries; accepted: one for all axes, or " + std::to_string(axes));
  }
  if (given.rank == 0) return left_out;
  PerAxis numbers;
  numbers.count = given.rank;
  for (int axis = 0; axis < given.rank; ++axis) {
    if (given[axis] < INT_MIN || given[axis] > INT_MAX) {
      call.reject(std::string(name) + " is " + std::to_string(given[axis]) +
                  ", out of an int's range");
    }
    numbers.at[axis] = static_cast<int>(given[axis]);
  }
  return numbers;
}

/// Reads stride, padding and dilation.
template <class Options>
void read_window(Call& call, int axes, int left_out_stride, Options& options) {
  options.stride = per_axis(call, "stride", axes, left_out_stride);
  options.padding = per_axis(call, "padding", axes, 0);
  options.dilation = per_axis(call, "dilation", axes, 1);
}

/// Returns the number of axes of an image of a tensor N x C x image or N x image x C.
inline int image_axes(const Call& call, const Array& x, const char* name) {
  const int axes = x.shape().rank - 2;
  if (axes < 1 || axes > 3) {
    call.reject(std::string(name) + " has " + axis_count(x.shape().rank) +
                "; accepted: 3 to 5, images and channels included");
  }
  return axes;
}

/// Returns the shape, which the caller has to give, of a result that follows from no other tensor.
inline Extents given_shape(Call& call, const Extents& given, const char* name) {
  if (given.rank == 0) {
    call.reject(std::string(name) + " and out are left out; give one of them");
  }
  return given;
}

}  // namespace rung::python
