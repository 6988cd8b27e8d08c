// SPDX-License-Identifier: Apache-2.0
// Strides, paddings, dilations and windows of conv and pool: a number for all axes of an image, or
// one for each.
#pragma once

#include <climits>
#include <string>

#include "python/module/call.hpp"

namespace rung::python {

/// An option per axis: at[i] is that of the image's axis i.
struct AxisOption {
  int at[3] = {};
};

/// Reads the next argument; `left_out` stands for None.
inline AxisOption axis_option(Call& call, const char* name, int axes, int left_out) {
  const Extents given = call.integers(name);
  if (given.rank > 1 && given.rank != axes) {
    call.reject(std::string(name) + " has " + std::to_string(given.rank) +
                " entries; accepted: one for all axes, or " + std::to_string(axes));
  }
  AxisOption option;
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t value = given.rank == 0 ? left_out : given[given.rank == 1 ? 0 : axis];
    if (value < INT_MIN || value > INT_MAX) {
      call.reject(std::string(name) + " is " + std::to_string(value) + ", out of an int's range");
    }
    option.at[axis] = static_cast<int>(value);
  }
  return option;
}

/// Axes of an image of a tensor N x C x image or N x image x C.
inline int image_axes(const Call& call, const Array& x, const char* name) {
  const int axes = x.shape().rank - 2;
  if (axes < 1 || axes > 3) {
    call.reject(std::string(name) + " has " + axis_count(x.shape().rank) +
                "; accepted: 3 to 5, images and channels included");
  }
  return axes;
}

struct Window {
  AxisOption stride, padding, dilation;
};

inline Window window_of(Call& call, int axes, int left_out_stride) {
  Window window;
  window.stride = axis_option(call, "stride", axes, left_out_stride);
  window.padding = axis_option(call, "padding", axes, 0);
  window.dilation = axis_option(call, "dilation", axes, 1);
  return window;
}

/// Sets an option that is a number per axis, PerAxis.
template <class PerAxis>
void set_per_axis(PerAxis& to, const AxisOption& from, int axes) {
  to.count = axes;
  for (int axis = 0; axis < axes; ++axis) to.at[axis] = from.at[axis];
}

/// Sets those that conv and pool share: as PerAxis, or as a field per axis.
template <class Options>
void set_window(Options& options, const Window& window, int axes) {
  if constexpr (requires { options.stride_height; }) {
    if constexpr (requires { options.stride_depth; }) {
      if (axes == 3) {
        options.stride_depth = window.stride.at[0];
        options.padding_depth = window.padding.at[0];
        options.dilation_depth = window.dilation.at[0];
      }
    }
    if (axes >= 2) {
      options.stride_height = window.stride.at[axes - 2];
      options.padding_height = window.padding.at[axes - 2];
      options.dilation_height = window.dilation.at[axes - 2];
    }
    options.stride_width = window.stride.at[axes - 1];
    options.padding_width = window.padding.at[axes - 1];
    options.dilation_width = window.dilation.at[axes - 1];
  } else {
    set_per_axis(options.stride, window.stride, axes);
    set_per_axis(options.padding, window.padding, axes);
    set_per_axis(options.dilation, window.dilation, axes);
  }
}

template <class Options>
void set_kernel(Options& options, const AxisOption& kernel) {
  if constexpr (requires { options.kernel_height; }) {
    options.kernel_height = kernel.at[0];
    options.kernel_width = kernel.at[1];
  } else {
    set_per_axis(options.kernel, kernel, 2);
  }
}

/// The shape of a result that follows from no other tensor: given by the caller.
inline Extents given_shape(Call& call, const Extents& given, const char* name) {
  if (given.rank == 0) {
    call.reject(std::string(name) + " and out are left out; give one of them");
  }
  return given;
}

}  // namespace rung::python
