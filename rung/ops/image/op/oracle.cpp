// SPDX-License-Identifier: Apache-2.0
// Cost, reference results and tolerances of image. Written from the header's formulas, pixel by
// pixel, in long double, for u8 in integers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/image/op/image.hpp"

namespace rung {
namespace {

using Real = long double;
constexpr Real unit = 0x1p-24L;       // unit roundoff of f32
constexpr Real smallest = 0x1p-149L;  // error bound of subnormal results

struct Value {
  Real value = 0;
  Real error = 0;
};

/// A sum, and the sum of the absolute values of its terms.
struct Sum {
  Real value = 0;
  Real size = 0;
  void add(Real weight, Real x) {
    value += weight * x;
    size += std::abs(weight * x);
  }
};

class Reference {
 public:
  explicit Reference(const Image::Args& args)
      : args_(args), is_u8_(args.x.dtype == DType::u8), options_(args.options) {
    const int radius = options_.radius;
    taps_.assign(2 * static_cast<std::size_t>(radius) + 1, Real{1});
    if (options_.filter == ImageFilter::box) return;
    const Real sigma = options_.sigma > 0 ? options_.sigma : 0.3 * (radius - 1) + 0.8;
    Real sum = 0;
    for (int k = -radius; k <= radius; ++k) {
      sum += tap(k) = std::exp(-0.5L * (k / sigma) * (k / sigma));
    }
    for (Real& weight : taps_) weight /= sum;
    if (!is_u8_) return;
    Real left = 0;
    Real rest = 256;
    for (int k = radius; k > 0; --k) {
      const Real wanted = 256 * tap(k) + left;
      tap(k) = tap(-k) = std::floor(wanted + 0.5L);
      left = wanted - tap(k);
      rest -= 2 * tap(k);
    }
    tap(0) = rest;
  }

  /// Returns channel `channel` of a pixel of y; `picture` is the first element of the picture in x.
  [[nodiscard]] Value at(const void* picture, std::int64_t row, std::int64_t column,
                         int channel) const {
    const Pixel pixel{picture, row, column};
    switch (options_.filter) {
      case ImageFilter::grey:
        return channel == 1 ? copy(x(pixel, 0, 0, 3)) : grey(pixel);
      case ImageFilter::box:
      case ImageFilter::gaussian:
        return blur(pixel, channel);
      case ImageFilter::unsharp:
        return is_alpha(channel) ? copy(x(pixel, 0, 0, channel)) : unsharp(pixel, channel);
      case ImageFilter::sobel:
        return is_alpha(channel) ? copy(x(pixel, 0, 0, channel)) : sobel(pixel, channel);
    }
    return {};
  }

 private:
  struct Pixel {
    const void* picture;
    std::int64_t row, column;
  };

  [[nodiscard]] std::size_t place(std::int64_t k) const {
    return static_cast<std::size_t>(k + options_.radius);
  }
  Real& tap(int k) { return taps_[place(k)]; }
  [[nodiscard]] Real tap(int k) const { return taps_[place(k)]; }
  [[nodiscard]] bool is_alpha(int channel) const {
    return (args_.channels == 2 && channel == 1) || (args_.channels == 4 && channel == 3);
  }
  static Value copy(Real value) { return {value, 0}; }

  [[nodiscard]] bool is_zero(std::int64_t index, std::int64_t extent) const {
    return options_.edge == ImageEdge::zero && (index < 0 || index >= extent);
  }
  /// Returns the value of a neighbor, or its replacement outside the picture.
  [[nodiscard]] Real x(const Pixel& pixel, std::int64_t down, std::int64_t across,
                       int channel) const {
    if (is_zero(pixel.row + down, args_.rows)) return 0;
    const std::int64_t row = std::clamp<std::int64_t>(pixel.row + down, 0, args_.rows - 1);
    const std::int64_t column =
        std::clamp<std::int64_t>(pixel.column + across, 0, args_.columns - 1);
    const std::int64_t at =
        row * args_.from.row + column * args_.from.column + channel * args_.from.channel;
    return is_u8_ ? static_cast<Real>(static_cast<const std::uint8_t*>(pixel.picture)[at])
                  : static_cast<Real>(static_cast<const float*>(pixel.picture)[at]);
  }

  [[nodiscard]] Value grey(const Pixel& pixel) const {
    static constexpr Real exact[4][3] = {{0.3L, 0.6L, 0.1L},
                                         {0.299L, 0.587L, 0.114L},
                                         {0.2126L, 0.7152L, 0.0722L},
                                         {0.3L, 0.6L, 0.1L}};
    static constexpr int whole[4][3] = {
        {3, 6, 1}, {9798, 19235, 3735}, {6966, 23436, 2366}, {3, 6, 1}};
    const auto which = static_cast<std::size_t>(options_.weights);
    if (is_u8_ && options_.weights == GreyWeights::tenths_by_term) {
      Real terms = 0;
      for (int c = 0; c < 3; ++c) terms += std::floor(whole[which][c] * x(pixel, 0, 0, c) / 10);
      return copy(terms);
    }
    Sum sum;
    for (int c = 0; c < 3; ++c) {
      sum.add(is_u8_ ? whole[which][c] : exact[which][c], x(pixel, 0, 0, c));
    }
    if (!is_u8_) return {sum.value, 6 * unit * sum.size + 6 * smallest};
    return copy(options_.weights == GreyWeights::tenths ? std::floor(sum.value / 10)
                                                        : std::floor((sum.value + 16384) / 32768));
  }

  [[nodiscard]] Value blur(const Pixel& pixel, int channel) const {
    const int radius = options_.radius;
    Sum sum;
    for (int l = -radius; l <= radius; ++l) {
      const Sum& column = column_sum(pixel, l, channel);
      sum.value += tap(l) * column.value;
      sum.size += tap(l) * column.size;
    }
    const bool is_box = options_.filter == ImageFilter::box;
    const Real taps = 2 * radius + 1;
    if (is_u8_) {
      return copy(is_box ? std::floor(sum.value / (taps * taps) + (options_.truncate ? 0 : 0.5L))
                         : std::floor((sum.value + 32768) / 65536));
    }
    const Real scale = is_box ? 1 / (taps * taps) : 1;
    return {sum.value * scale,
            (2 * taps + 8) * unit * sum.size * scale + (2 * taps + 8) * smallest};
  }

  /// Returns the sum of the window's column at distance `across`, cached for adjacent pixels of a
  /// row.
  [[nodiscard]] const Sum& column_sum(const Pixel& pixel, std::int64_t across, int channel) const {
    static const Sum nothing;
    if (is_zero(pixel.column + across, args_.columns)) return nothing;
    if (columns_of_.picture != pixel.picture || columns_of_.row != pixel.row) {
      columns_of_ = pixel;
      column_sums_.assign(static_cast<std::size_t>(args_.columns * args_.channels), {});
    }
    const std::int64_t column =
        std::clamp<std::int64_t>(pixel.column + across, 0, args_.columns - 1);
    std::optional<Sum>& sum =
        column_sums_[static_cast<std::size_t>(column * args_.channels + channel)];
    if (!sum) {
      sum.emplace();
      for (int k = -options_.radius; k <= options_.radius; ++k) {
        sum->add(tap(k), x(pixel, k, across, channel));
      }
    }
    return *sum;
  }

  [[nodiscard]] Value unsharp(const Pixel& pixel, int channel) const {
    const Value b = blur(pixel, channel);
    const Real value = x(pixel, 0, 0, channel);
    if (is_u8_) {
      const Real amount = std::round(256 * Real{options_.amount});
      const Real sharp = value + std::floor(((value - b.value) * amount + 128) / 256);
      return copy(std::clamp<Real>(sharp, 0, 255));
    }
    const Real amount = std::abs(Real{options_.amount});
    const Real size = std::abs(value) + amount * (std::abs(value) + std::abs(b.value) + b.error);
    return {value + Real{options_.amount} * (value - b.value),
            amount * b.error + 4 * unit * size + 2 * smallest};
  }

  [[nodiscard]] Value sobel(const Pixel& pixel, int channel) const {
    static constexpr int smooth[3] = {1, 2, 1};
    Sum across;
    Sum down;
    for (int k = -1; k <= 1; ++k) {
      for (int l = -1; l <= 1; ++l) {
        const Real value = x(pixel, k, l, channel);
        across.add(smooth[k + 1] * l, value);
        down.add(smooth[l + 1] * k, value);
      }
    }
    const Real root = std::sqrt(across.value * across.value + down.value * down.value);
    if (is_u8_) return copy(std::min<Real>(std::floor(root + 0.5L), 255));
    return {root, 8 * unit * (across.size + down.size) + 0x1p-74L};
  }

  const Image::Args& args_;
  bool is_u8_;
  ImageOptions options_;
  std::vector<Real> taps_;
  mutable Pixel columns_of_{nullptr, 0, 0};  // pixel whose column sums are cached
  mutable std::vector<std::optional<Sum>> column_sums_;
};

}  // namespace

Cost Image::cost(const Args& args) {
  const auto element = static_cast<double>(size_of(args.x.dtype));
  // Broadcast elements of x are in memory once.
  double read = element;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    const auto extent = static_cast<double>(args.x.shape[axis]);
    if (args.x.strides[axis] != 0 || extent == 0) read *= extent;
  }
  const double results = static_cast<double>(args.y.size());
  double operations = 0;  // per element of y
  switch (args.filter()) {
    case ImageFilter::grey:
      operations = 5;
      break;
    case ImageFilter::box:  // as block sums
      operations = 2 * std::min(3, args.taps() - 1) + 1;
      break;
    case ImageFilter::gaussian:
      operations = 4 * args.taps();
      break;
    case ImageFilter::unsharp:
      operations = 4 * args.taps() + 3;
      break;
    case ImageFilter::sobel:
      operations = 14;
      break;
  }
  const double written = results * element;
  return {.bytes = results == 0 ? 0 : read + written,
          .operations = results * operations,
          .written = written};
}

void Image::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const Reference reference(args);
  const auto bytes = static_cast<std::int64_t>(size_of(args.x.dtype));
  const bool planar = args.options.planar;
  const int rank = args.y.rank();
  std::size_t judged = 0;
  for (const std::int64_t row : output.rows) {
    for (std::int64_t i = 0; i < output.length; ++i, ++judged) {
      // Index of the element in y; offset of its picture in x.
      std::int64_t at[max_rank];
      at[rank - 1] = i;
      std::int64_t rest = row;
      std::int64_t first = 0;
      for (int axis = rank - 2; axis >= 0; --axis) {
        at[axis] = rest % args.y.shape[axis];
        rest /= args.y.shape[axis];
        if (axis < rank - 3) first += at[axis] * args.x.strides[axis];
      }
      const std::int64_t* const pixel = at + rank - 3;
      const auto* picture = static_cast<const std::byte*>(args.x.data) + first * bytes;
      const Value value =
          planar ? reference.at(picture, pixel[1], pixel[2], static_cast<int>(pixel[0]))
                 : reference.at(picture, pixel[0], pixel[1], static_cast<int>(pixel[2]));
      output.value[judged] = static_cast<double>(value.value);
      output.magnitude[judged] = static_cast<double>(value.error);
    }
  }
}

/// Returns the tolerance: the oracle's magnitude is the bound itself; u8 results must be exact.
Tolerance Image::tolerance(const Args& args, const RungInfo&, Values) {
  return {.magnitude = args.x.dtype == DType::u8 ? 0.0 : 1.0 + 1e-9};
}

}  // namespace rung
