// SPDX-License-Identifier: Apache-2.0
// stencil / opencv: the peer OpenCV - filter2D, sepFilter2D, boxFilter - in a module beside
// librung, so that librung starts where OpenCV is missing.
//
// Limits   Images of f32, f64 and u8; one or two axes; no wrapped edges, no scale. boxFilter keeps
//          running sums, and with them rounding errors of large values that have left the window:
//          it is timed on f32 and u8 only, and on ordinary values.
#include <cmath>
#include <string>
#include <vector>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/stencil/op/steps.hpp"
#include "rung/ops/stencil/peers/opencv/module.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

namespace module = peer_stencil_opencv;

struct OpenCv {
  DynamicLibrary library{"RUNG_PEER_STENCIL_OPENCV", {peers::module_path("stencil_opencv")}};
  module::Apply* apply;
  module::Version* version;

  OpenCv() {
    library.require(apply, "rung_stencil_opencv_apply");
    library.require(version, "rung_stencil_opencv_version");
  }
};
const OpenCv& opencv() {
  static const OpenCv loaded;
  return loaded;
}

Support present() { return opencv().library.present(); }
std::string about() { return std::string("OpenCV ") + opencv().version(); }

module::Element element_of(DType type) {
  return type == DType::f32   ? module::Element::f32
         : type == DType::f64 ? module::Element::f64
                              : module::Element::u8;
}

/// Returns false if x has values of 1000 and more, or NaN. Inspects f32 arrays of up to 2^22
/// elements; larger ones, which are timed, are assumed ordinary, because the scan would take longer
/// than the filter.
bool has_ordinary_values(const Stencil::Args& args) {
  constexpr std::int64_t worth_looking = std::int64_t{1} << 22;
  if (args.elements() > worth_looking || args.x.dtype != DType::f32) return true;
  const std::int64_t columns = args.columns().extent;
  for (std::int64_t row = 0; row < args.elements() / columns; ++row) {
    std::int64_t at[2];
    args.batch.offsets(row / args.rows().extent, at);
    const float* x =
        static_cast<const float*>(args.x.data) + at[0] + row % args.rows().extent * args.rows().x;
    for (std::int64_t i = 0; i < columns; ++i) {
      if (!(std::abs(x[i]) < 1000)) return false;
    }
  }
  return true;
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.axes > 2) return unsupported("images only");
  const auto takes = [](DType type) {
    return type == DType::f32 || type == DType::f64 || type == DType::u8;
  };
  if (!takes(args.x.dtype)) return unsupported("f32, f64 and u8 only");
  if (args.edge == StencilEdge::wrap) return unsupported("no wrapped edges");
  if (args.scale != 1) return unsupported("no scale");
  if (args.iterations > 1 && args.x.dtype != args.y.dtype) return unsupported("y unlike x");
  const Stencil::Axis& rows = args.rows();
  const Stencil::Axis& columns = args.columns();
  constexpr std::int64_t most = 1 << 30;
  if (rows.extent > most || columns.extent > most) return unsupported("extents beyond an int");
  const bool strided = columns.extent > 1 && (columns.x != 1 || columns.y != 1);
  const bool overlapping = rows.extent > 1 && (rows.x < columns.extent || rows.y < columns.extent);
  if (strided || overlapping) return unsupported("rows must be contiguous, one after the other");
  if (args.weights == Stencil::Weights::ones) {
    if (args.x.dtype == DType::f64) return unsupported("no windows of f64");
    if (!has_ordinary_values(args)) return unsupported("windows of ordinary values only");
  }
  return supported;
}

/// Returns a mask as OpenCV requires it: contiguous. A convolution's mask is reversed already.
template <class W>
std::vector<W> contiguous(const ConstTensorRef& from, int rows, int columns, std::int64_t row,
                          std::int64_t column) {
  std::vector<W> weights;
  const auto* data = static_cast<const W*>(from.data);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) weights.push_back(data[i * row + j * column]);
  }
  return weights;
}

template <class W>
void run_typed(const Stencil::Args& args, Context& context) {
  const int rows = args.rows().taps;
  const int columns = args.columns().taps;
  std::vector<W> mask, across, down;
  if (args.weights == Stencil::Weights::mask) {
    mask = contiguous<W>(args.mask, rows, columns, args.mask.strides[1], args.mask.strides[2]);
  } else if (args.weights == Stencil::Weights::separable) {
    across = contiguous<W>(args.across, 1, columns, 0, args.across.strides[0]);
    down = args.axes > 1 ? contiguous<W>(args.down, rows, 1, args.down.strides[0], 0)
                         : std::vector<W>{W(1)};
  }
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    const std::size_t x_size = size_of(step.x.dtype);
    const std::size_t y_size = size_of(step.y.dtype);
    const auto bytes = [](std::int64_t extent, std::int64_t stride, std::int64_t row,
                          std::size_t size) {
      return static_cast<std::size_t>(extent > 1 ? stride : row) * size;
    };
    const std::int64_t extent = step.rows().extent;
    const module::Filter filter{
        .from = element_of(step.x.dtype),
        .to = element_of(step.y.dtype),
        .form = static_cast<module::Form>(step.weights),
        .edge = static_cast<module::Edge>(step.edge),
        .rows = static_cast<int>(extent),
        .columns = static_cast<int>(step.columns().extent),
        .x_row = bytes(extent, step.rows().x, step.columns().extent, x_size),
        .y_row = bytes(extent, step.rows().y, step.columns().extent, y_size),
        .mask_rows = rows,
        .mask_columns = columns,
        .anchor_row = step.rows().origin,
        .anchor_column = step.columns().origin,
        .mask = mask.data(),
        .across = across.data(),
        .down = down.data()};
    for (std::int64_t array = 0; array < step.arrays(); ++array) {
      std::int64_t at[2];
      step.batch.offsets(array, at);
      const auto* x =
          static_cast<const std::byte*>(step.x.data) + at[0] * static_cast<std::int64_t>(x_size);
      auto* y = static_cast<std::byte*>(step.y.data) + at[1] * static_cast<std::int64_t>(y_size);
      if (!opencv().apply(filter, x, y, context.threads())) {
        throw Error(ErrorCode::internal, "OpenCV reported a failure");
      }
    }
  });
}

void run(const Stencil::Args& args, Context& context) {
  if (args.x.dtype == DType::f64) {
    run_typed<double>(args, context);
  } else {
    run_typed<float>(args, context);
  }
}

const Rung<Stencil> self{{.name = "opencv",
                          .peer = true,
                          .about = about,
                          .present = present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
