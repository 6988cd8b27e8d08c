// SPDX-License-Identifier: Apache-2.0
// OpenCV's filters, behind the C interface of module.hpp.
#include "rung/ops/stencil/peers/opencv/module.hpp"

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include <algorithm>

namespace rung::peer_stencil_opencv {
namespace {

int type_of(Element element) {
  return element == Element::f32 ? CV_32FC1 : element == Element::f64 ? CV_64FC1 : CV_8UC1;
}

void apply(const Filter& f, const void* x, void* y) {
  const cv::Mat from(f.rows, f.columns, type_of(f.from), const_cast<void*>(x), f.x_row);
  cv::Mat to(f.rows, f.columns, type_of(f.to), y, f.y_row);
  const cv::Point anchor(f.anchor_column, f.anchor_row);
  const int border = f.edge == Edge::zero    ? cv::BORDER_CONSTANT
                     : f.edge == Edge::clamp ? cv::BORDER_REPLICATE
                                             : cv::BORDER_REFLECT_101;
  const int weights = f.from == Element::f64 ? CV_64FC1 : CV_32FC1;
  const auto matrix = [&](int rows, int columns, const void* data) {
    return cv::Mat(rows, columns, weights, const_cast<void*>(data));
  };
  switch (f.form) {
    case Form::mask:
      cv::filter2D(from, to, to.depth(), matrix(f.mask_rows, f.mask_columns, f.mask), anchor, 0,
                   border);
      break;
    case Form::separable:
      cv::sepFilter2D(from, to, to.depth(), matrix(1, f.mask_columns, f.across),
                      matrix(f.mask_rows, 1, f.down), anchor, 0, border);
      break;
    case Form::window:
      cv::boxFilter(from, to, to.depth(), cv::Size(f.mask_columns, f.mask_rows), anchor, false,
                    border);
      break;
  }
}

}  // namespace
}  // namespace rung::peer_stencil_opencv

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API bool rung_stencil_opencv_apply(const rung::peer_stencil_opencv::Filter& filter,
                                               const void* x, void* y, int threads) {
  try {
    // oneTBB warns about more threads than processors.
    const int count = std::min(threads, cv::getNumberOfCPUs());
    if (cv::getNumThreads() != count) cv::setNumThreads(count);
    rung::peer_stencil_opencv::apply(filter, x, y);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}
RUNG_MODULE_API const char* rung_stencil_opencv_version() { return CV_VERSION; }
