// SPDX-License-Identifier: Apache-2.0
// stencil / naive
//
// Idea     The definition: for each element of y, multiplies the elements of x under the mask by
//          its weights and sums the products.
// Changes  Baseline.
// Cost     2 K operations per element for a mask of K elements, in one dependency chain of
//          additions; two bounds tests per tap.
// Limits   f32; one or two axes, a mask, zero edges.
// Source   any textbook.
#include "rung/ops/stencil/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

void naive(const Image& x, const Mask& mask, const ImageOut& y) {
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    for (std::int64_t column = 0; column < x.shape[1]; ++column) {
      float sum = 0;
      for (int i = 0; i < mask.rows; ++i) {
        for (int j = 0; j < mask.columns; ++j) {
          const std::int64_t from_row = row + i - mask.origin_row;
          const std::int64_t from_column = column + j - mask.origin_column;
          if (from_row < 0 || from_row >= x.shape[0]) continue;
          if (from_column < 0 || from_column >= x.shape[1]) continue;
          sum += mask(i, j) * x(from_row, from_column);
        }
      }
      y(row, column) = mask.scale * sum;
    }
  }
}

void run(const Stencil::Args& args, Context& context) {
  for_each_image(args, context,
                 [](const Image& x, const Mask& mask, const ImageOut& y) { naive(x, mask, y); });
}

const Rung<Stencil> self{
    {.name = "naive", .step = 10, .teaching = true, .supports = supports_textbook, .run = run}};

}  // namespace
}  // namespace rung
