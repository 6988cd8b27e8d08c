// SPDX-License-Identifier: Apache-2.0
// Problems on which image is checked and timed, their construction, and the command-line syntax.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/option_effect.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/image/op/image.hpp"

namespace rung {
namespace {

constexpr std::string_view filters[] = {"grey", "box", "gaussian", "unsharp", "sobel"};
constexpr std::string_view weights[] = {"tenths", "bt601", "bt709", "tenths_by_term"};
constexpr std::string_view edges[] = {"clamp", "zero"};

template <class Enum, std::size_t N>
Enum parse_word(std::string_view option, std::string_view text,
                const std::string_view (&words)[N]) {
  const auto found = std::find(std::begin(words), std::end(words), text);
  if (found == std::end(words)) {
    reject(Image::name, fmt::format("{} is '{}'; accepted: {}", option, text,
                                    fmt::join(std::begin(words), std::end(words), ", ")));
  }
  return static_cast<Enum>(found - std::begin(words));
}

/// Returns the shape of y; `opaque`: grey drops the alpha channel.
Extents result_shape(const Extents& x, const ImageOptions& options, bool opaque) {
  Extents shape = x;
  if (options.filter != ImageFilter::grey || x.rank < 3) return shape;
  std::int64_t& channels = shape[options.planar ? x.rank - 3 : x.rank - 1];
  channels = channels == 4 && !opaque ? 2 : 1;
  return shape;
}

// Pictures of all sizes, interleaved and planar, under every filter; batches of small pictures.
constexpr std::string_view survey_patterns[] = {
    "(u8*3|f32) 1..4096x1..4096x(3*2|4)(*2|,weights=tenths|,weights=bt709)",
    "(u8*3|f32) 1..4096x1..4096x(1|3*2|4),(box|gaussian|unsharp)(*2|,radius=1..15)",
    "(u8*2|f32) 1..4096x1..4096x(1|3|4),sobel",
    "(u8*3|f32) (3|4)x1..2048x1..2048,planar(|,box|,gaussian|,sobel)",
    "(u8*2|f32) 1..1024x1..128x1..128x3(|,box|,gaussian|,sobel)",
};
const Survey<Image> survey{survey_patterns};

const RunExample examples[] = {
    {"image", "photo.png -o grey.png"},
    {"image", "photo.png --filter gaussian --radius 3 -o soft.png"},
};

}  // namespace

std::vector<Problem> Image::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      // Empty pictures, single pixels, rows, columns, pictures smaller than the window.
      "u8 0x7x3",
      "u8 5x0x4,box",
      "f32 0x3x4x5,planar,sobel",
      "u8 1x1x3",
      "u8 1x1x1,gaussian,radius=15",
      "u8 1x7x3,box,radius=4",
      "u8 9x1x4,unsharp,radius=3",
      "f32 1x1x2,sobel",
      "f32 2x3x3,gaussian,radius=7",
      "u8 3x2x3,sobel",
      // Grey: every weight, with and without alpha, widths around vectors and packs.
      "u8 7x33x3,weights=tenths",
      "u8 4x16x3,weights=bt601",
      "u8 5x67x3,weights=bt709",
      "u8 6x64x4",
      "u8 6x37x4,opaque",
      "u8 6x37x4,weights=tenths",
      "u8 7x83x3,weights=tenths_by_term",
      "u8 4x9x71,planar,weights=tenths_by_term",
      "f32 5x20x4,weights=tenths_by_term",
      "u8 3x9x70,planar",
      "u8 4x9x71,planar,weights=bt709",
      "u8 4x9x71,planar,opaque,weights=tenths",
      "f32 7x33x3,weights=tenths",
      "f32 7x35x4",
      "f32 3x9x70,planar,weights=bt709",
      "f32 4x5x18,planar,opaque",
      "u8 2x3x5x20x3,weights=tenths",
      "u8 2x3x4x5x22,planar",
      "u8 1100x2x5x4",
      // Blurs: radii, channels, edges, batches.
      "u8 20x40x3,box,radius=1",
      "u8 17x70x3,box,radius=2",
      "u8 33x35x4,box,radius=7",
      "u8 40x31x1,box,radius=8",
      "u8 35x33x3,box,radius=15",
      "u8 9x20x2,box,radius=0",
      "u8 1x1x1,box,radius=15,edge=zero,truncate",
      "u8 17x70x3,box,edge=zero,truncate",
      "u8 20x31x4,box,radius=1,truncate",
      "u8 35x33x1,box,radius=9,edge=zero",
      "u8 3x12x40,planar,box,radius=5,edge=zero,truncate",
      "u8 13x40x2,box,radius=11,truncate",
      "f32 17x70x3,box,edge=zero",
      "u8 17x70x3,gaussian",
      "u8 17x33x4,gaussian,radius=1",
      "u8 35x40x1,gaussian,radius=15",
      "u8 20x29x3,gaussian,radius=6,sigma=0.4",
      "u8 20x29x3,gaussian,radius=5,sigma=40",
      "u8 9x20x2,gaussian,radius=0",
      "u8 3x17x70,planar,gaussian,radius=3",
      "u8 4x20x37,planar,box,radius=3",
      "u8 2x3x12x20x4,box",
      "f32 17x70x3,box,radius=2",
      "f32 35x33x4,box,radius=15",
      "f32 17x40x3,gaussian",
      "f32 35x33x1,gaussian,radius=15,sigma=3",
      "f32 3x17x40,planar,gaussian,radius=4",
      "f32 2x3x2x9x20,planar,box,radius=1",
      // Unsharp and Sobel.
      "u8 17x45x3,unsharp",
      "u8 17x45x4,unsharp,amount=2.5,radius=4",
      "u8 3x17x45,planar,unsharp,amount=-0.3",
      "u8 12x23x2,unsharp,radius=1,amount=64",
      "f32 17x45x3,unsharp,amount=1.5",
      "f32 12x23x4,unsharp,radius=5",
      "u8 17x45x3,sobel",
      "u8 17x45x4,sobel",
      "u8 3x17x70,planar,sobel",
      "u8 20x66x1,sobel",
      "f32 17x45x3,sobel",
      "f32 4x9x45,planar,sobel",
  });
  if (backend == Backend::simt) return problems;
  // More than one band of rows (128), panel of columns (2040 or 4092 elements) or thread block;
  // with large windows, whose pixels cost hundreds of loads each, only one of these.
  const std::vector<Problem> larger = Problem::parse_all({
      "u8 300x701x3",
      "u8 300x701x4,weights=tenths",
      "f32 300x701x3",
      "u8 270x701x3,box",
      "u8 140x41x4,box,radius=11",
      "u8 270x701x3,box,edge=zero,truncate",
      "u8 25x1101x4,box,radius=11",
      "u8 3x140x2101,planar,gaussian",
      "u8 150x90x3,gaussian,radius=9",
      "u8 25x1401x3,gaussian,radius=9",
      "u8 140x521x4,unsharp",
      "u8 140x701x3,sobel",
      "f32 150x101x3,box,radius=6",
      "f32 15x1401x3,box,radius=6",
      "f32 140x521x4,gaussian",
      "f32 140x701x3,sobel",
      "f32 140x701x3,unsharp,radius=3",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Image::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"u8 3000x4000x3", "u8 3000x4000x3,weights=tenths",
                                 "u8 3000x4000x4", "f32 3000x4000x3", "u8 3000x4000x3,box,radius=1",
                                 "u8 3000x4000x3,box,radius=5", "u8 3000x4000x3,box,radius=15",
                                 "u8 3000x4000x3,gaussian", "u8 3x3000x4000,planar,gaussian",
                                 "u8 3000x4000x3,gaussian,radius=6", "f32 3000x4000x3,gaussian",
                                 "u8 3000x4000x3,unsharp", "u8 3000x4000x3,sobel"});
    case Backend::cuda:
      return Problem::parse_all({"u8 2160x3840x3", "u8 4320x7680x3", "u8 4320x7680x4",
                                 "f32 4320x7680x3", "u8 4321x7681x3", "u8 4320x7680x3,box,radius=1",
                                 "u8 4320x7680x3,box,radius=5", "u8 4320x7680x3,gaussian",
                                 "u8 3x4320x7680,planar,gaussian", "u8 4321x7681x3,gaussian",
                                 "f32 4320x7680x3,gaussian", "f32 4320x7680x3,gaussian,radius=5",
                                 "u8 4320x7680x3,unsharp", "u8 4320x7680x3,sobel"});
    case Backend::simt:
      return Problem::parse_all({"u8 64x64x3", "u8 48x64x3,box", "u8 48x64x3,gaussian",
                                 "f32 48x64x3,gaussian", "u8 48x64x3,sobel"});
  }
  return {};
}

Image::Call Image::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"grey", "box", "gaussian", "unsharp", "sobel", "weights", "opaque", "radius",
                  "sigma", "amount", "planar", "edge", "truncate"});
  ImageOptions options;
  expect_one_of(name, problem, filters, [](std::string_view one) { return one; });
  for (std::size_t i = 0; i < std::size(filters); ++i) {
    if (!problem.has(filters[i])) continue;
    options.filter = static_cast<ImageFilter>(i);
  }
  options.weights = parse_word<GreyWeights>("weights", problem.text("weights", "bt601"), weights);
  options.radius = static_cast<int>(problem.integer("radius", options.radius));
  options.sigma = problem.number("sigma", options.sigma);
  options.amount = problem.number("amount", options.amount);
  options.planar = problem.has("planar");
  options.edge = parse_word<ImageEdge>("edge", problem.text("edge", "clamp"), edges);
  options.truncate = problem.has("truncate");
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  // u8 values are uniform; other kinds of values are as for every operator.
  const bool is_picture = problem.dtype == DType::u8 && inputs.variant().values == Values::normal;
  const auto uniform = [](std::int64_t, double drawn) { return std::floor(256 * drawn); };
  return {
      .x = is_picture ? inputs.input("x", problem.dtype, shape, uniform)
                      : inputs.input("x", problem.dtype, shape),
      .y = inputs.output("y", problem.dtype, result_shape(shape, options, problem.has("opaque"))),
      .options = options};
}

Problem Image::describe(const Call& call) {
  const ImageOptions& o = call.options;
  const ImageOptions by_default;
  const bool opaque = !(call.y.shape == result_shape(call.x.shape, o, false));
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag(filters[static_cast<std::size_t>(o.filter)], o.filter != ImageFilter::grey)
      .flag("planar", o.planar)
      .text("weights", weights[static_cast<std::size_t>(o.weights)], "bt601")
      .flag("opaque", opaque)
      .integer("radius", o.radius, by_default.radius)
      .number("sigma", o.sigma, by_default.sigma)
      .number("amount", o.amount, by_default.amount)
      .text("edge", edges[static_cast<std::size_t>(o.edge)], "clamp")
      .flag("truncate", o.truncate)
      .problem();
}

std::span<const ArgumentSpec> Image::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 10> specs{{
      {"x", Kind::tensor, true, "H x W x C, u8 or f32; a batch of pictures along axes in front"},
      {"filter", Kind::text, false,
       "default grey; box and gaussian blur alpha like a color, without premultiplying by it",
       "grey|box|gaussian|unsharp|sobel"},
      {"weights", Kind::text, false, "of grey; default bt601", "bt601|bt709|tenths|tenths_by_term"},
      {"opaque", Kind::flag, false, "grey without the alpha channel"},
      {"radius", Kind::number, false, "of blurs and unsharp, 0 to 15; default 2"},
      {"sigma", Kind::number, false, "of gaussian and unsharp; default: one that fits the radius"},
      {"amount", Kind::number, false, "of unsharp; default 1"},
      {"planar", Kind::flag, false, "pictures are C x H x W"},
      {"edge", Kind::text, false, "of box: pixels outside; default clamp", "clamp|zero"},
      {"truncate", Kind::flag, false, "of box: means are rounded down, not to nearest"},
  }};
  return specs;
}

void Image::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& x = call.tensors.at("x");
  ImageOptions options;
  const std::string_view filter = call.text("filter", "grey");
  expect_effect(name, call, "filter", filter,
                {{"weights", "grey"},
                 {"opaque", "grey"},
                 {"radius", "box|gaussian|unsharp"},
                 {"sigma", "gaussian|unsharp"},
                 {"amount", "unsharp"},
                 {"edge", "box"},
                 {"truncate", "box"}});
  options.filter = parse_word<ImageFilter>("filter", filter, filters);
  options.weights = parse_word<GreyWeights>("weights", call.text("weights", "bt601"), weights);
  options.radius =
      static_cast<int>(call.integer(name, "radius", options.radius, {.min = 0, .max = max_radius}));
  options.sigma = call.number("sigma", options.sigma);
  options.amount = call.number("amount", options.amount);
  options.planar = call.has("planar");
  options.edge = parse_word<ImageEdge>("edge", call.text("edge", "clamp"), edges);
  options.truncate = call.has("truncate");
  call.result =
      Tensor(x.dtype(), result_shape(x.shape(), options, call.has("opaque")), context.device());
  image(context, x, call.result, options, pick);
}

}  // namespace rung
