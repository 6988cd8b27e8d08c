// SPDX-License-Identifier: Apache-2.0
// rung conv-shape: output extents, parameters and operations of a convolution layer.
#include "rung/bench/conv_shape.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

[[noreturn]] void refuse(const char* option, const std::string& text) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", option, text));
}

/// Returns the value for an axis: a single number applies to both axes.
double of_axis(const Given& given, const char* name, std::size_t axis) {
  const std::vector<double>& shape = given.shape(name);
  return shape[shape.size() == 1 ? 0 : axis];
}

bench::ConvAxis axis_of(const Given& given, std::size_t axis) {
  bench::ConvAxis one{.input = given.shape("input")[2 + axis],
                      .window = of_axis(given, "kernel", axis),
                      .stride = of_axis(given, "stride", axis),
                      .padding = of_axis(given, "padding", axis),
                      .dilation = of_axis(given, "dilation", axis)};
  if (one.output() < 1) {
    refuse("--kernel",
           fmt::format("a window of {:.0f} elements given; accepted: at most {:.0f}, "
                       "the {} of the input with its padding",
                       one.reach(), one.input + 2 * one.padding, axis == 0 ? "rows" : "columns"));
  }
  return one;
}

void add_output(const char* name, const char* letter, const bench::ConvAxis& axis, Sheet& sheet) {
  sheet.let("in", axis.input, Unit::count, letter);
  sheet.let("k", axis.window);
  sheet.let("s", axis.stride);
  sheet.let("p", axis.padding);
  sheet.let("d", axis.dilation);
  const bool plain = axis.stride == 1 && axis.padding == 0 && axis.dilation == 1;
  sheet.result(name,
               plain                ? "{in} - {k} + 1"
               : axis.dilation == 1 ? "floor(({in} + 2 x {p} - {k}) / {s}) + 1"
                                    : "floor(({in} + 2 x {p} - {d} ({k} - 1) - 1) / {s}) + 1",
               axis.output(), Unit::count);
}

void compute(const Given& given, Sheet& sheet) {
  const std::vector<double>& input = given.shape("input");
  const bench::ConvLayer layer{.images = input[0],
                               .channels = input[1],
                               .filters = given["out"],
                               .groups = given["groups"],
                               .rows = axis_of(given, 0),
                               .columns = axis_of(given, 1)};
  if (std::fmod(layer.channels, layer.groups) != 0 || std::fmod(layer.filters, layer.groups) != 0) {
    refuse("--groups", fmt::format("{:.0f} given; accepted: a divisor of the {:.0f} channels and "
                                   "the {:.0f} filters",
                                   layer.groups, layer.channels, layer.filters));
  }
  add_output("output rows", "H", layer.rows, sheet);
  add_output("output columns", "W", layer.columns, sheet);
  sheet.let("N", layer.images);
  sheet.let("C", layer.channels / layer.groups, Unit::count,
            layer.groups == 1 ? "C" : "C / groups");
  sheet.let("kh", layer.rows.window);
  sheet.let("kw", layer.columns.window);
  sheet.result("outputs", "{N} x {out} x {output rows} x {output columns}", layer.outputs(),
               Unit::count);
  sheet.result("parameters", "{out} x ({C} x {kh} x {kw} + 1)", layer.parameters(), Unit::count);
  sheet.result("operations", "2 x {outputs} x {C} x {kh} x {kw}", layer.operations(), Unit::count);
  sheet.let("channels", layer.channels, Unit::count, "C");
  sheet.let("H", layer.rows.input);
  sheet.let("W", layer.columns.input);
  sheet.result("dense parameters",
               "{out} x {output rows} x {output columns} x ({channels} x {H} x {W} + 1)",
               layer.dense_parameters(), Unit::count);
  sheet.result("dense against conv", "{dense parameters} / {parameters}",
               layer.dense_parameters() / layer.parameters());
  if (layer.groups == 1) {
    sheet.remark(
        fmt::format("As a matrix product (im2col), per image: {:.0f}x{:.0f} by {:.0f}x{:.0f}.",
                    layer.filters, layer.window_elements(), layer.window_elements(),
                    layer.outputs() / layer.images / layer.filters));
  }
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes what a convolution layer makes of its input: the extents of its output, its "
      "parameters (weights and a bias per filter), its operations (a multiply-add is two), and "
      "what a dense layer between the same tensors would have.");
  app.example("rung conv-shape 1x1x32x32 --out 6 --kernel 5", "LeNet's first layer");
  app.example("rung conv-shape 32x3x224x224 --out 64 --k 7 --s 2 --p 3", "ResNet's");
  const std::vector<std::size_t> per_axis = {1, 2};
  return Calculator(app, "conv-shape",
                    {{.name = "input",
                      .help = "the input's shape: images x channels x rows x columns",
                      .symbol = "NxCxHxW",
                      .accepted = {.most = 1e9},
                      .kind = InputKind::shape,
                      .extents = {4}},
                     {.name = "--out",
                      .help = "filters: channels of the output",
                      .symbol = "K",
                      .accepted = {.most = 1e9}},
                     {.name = "--kernel",
                      .alias = "--k",
                      .help = "rows and columns of the window: 3 or 3x5",
                      .symbol = "k",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = per_axis},
                     {.name = "--stride",
                      .alias = "--s",
                      .help = "from one window to the next",
                      .fallback = "1",
                      .symbol = "s",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = per_axis},
                     {.name = "--padding",
                      .alias = "--p",
                      .help = "zeros on either side",
                      .fallback = "0",
                      .symbol = "p",
                      .accepted = {.most = 1e6, .zero = true},
                      .kind = InputKind::shape,
                      .extents = per_axis},
                     {.name = "--dilation",
                      .help = "from one element of the window to the next",
                      .fallback = "1",
                      .symbol = "d",
                      .accepted = {.most = 1e6},
                      .kind = InputKind::shape,
                      .extents = per_axis},
                     {.name = "--groups",
                      .help = "of channels that do not see each other",
                      .fallback = "1",
                      .accepted = {.most = 1e9}}})
      .action(compute);
}

const Command self{{.name = "conv-shape",
                    .order = 85,
                    .summary = "output extents, parameters and operations of a convolution",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
