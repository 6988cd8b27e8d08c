// SPDX-License-Identifier: Apache-2.0
// The data: images and labels from .npy files, the part for training and the part for testing, and
// each epoch's order.
#pragma once

#include <rung/rung.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace digits {

inline constexpr int classes = 10;

/// Images of one edge, row by row, from 0 (paper) to 1 (ink), and what they show.
struct Images {
  std::int64_t edge = 0;
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  [[nodiscard]] std::int64_t size() const { return edge * edge; }  // of an image
  /// Returns the shape of a batch of n images: n x 1 x edge x edge.
  [[nodiscard]] rung::Extents shape(std::int64_t n) const { return {n, 1, edge, edge}; }
};

struct Split {
  Images train;
  Images test;  // every fifth image
};

/// FOLDER/NAME_images.npy (u8, images x edge x edge) and FOLDER/NAME_labels.npy (i64), as
/// tools/digits_data.py writes them. Throws rung::Error for what is anything else.
Split load(const std::string& folder, const std::string& name);

/// Normalization of pixels to mean 0 and variance 1 over the training images.
struct Scale {
  float mean = 0;
  float factor = 1;
  static Scale of(const Images& images);
};

/// The images of an epoch in an order, and (shift) each moved by up to so many pixels, that follow
/// from the seed and the epoch's number alone.
Images shuffled(const Images& images, std::uint64_t seed, int epoch, int shift);

/// Images on a device, scaled, with their labels.
struct OnDevice {
  rung::Tensor images;
  rung::Tensor labels;
  void upload(const Images& from, const Scale& scale, rung::Context& context);
  /// Images `first` and n - 1 more.
  [[nodiscard]] rung::ConstTensorRef batch(std::int64_t first, std::int64_t n) const;
  [[nodiscard]] rung::ConstTensorRef batch_labels(std::int64_t first, std::int64_t n) const;
};

}  // namespace digits
