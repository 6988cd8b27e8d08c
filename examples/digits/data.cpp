// SPDX-License-Identifier: Apache-2.0
// Images from files, in the order of an epoch, on a device.
#include "data.hpp"

#include <rung/harness/npy.hpp>
#include <rung/harness/random.hpp>

#include <cmath>
#include <utility>

namespace digits {
namespace {

[[noreturn]] void reject(const std::string& path, const std::string& what) {
  throw rung::Error(rung::ErrorCode::invalid_argument, path + " " + what);
}

rung::Tensor read(const std::string& path, rung::DType dtype, int rank) {
  rung::Tensor tensor = rung::read_npy(path);
  const rung::TensorRef ref = tensor;
  if (ref.dtype != dtype || ref.shape.rank != rank ||
      ref.strides != ref.shape.contiguous_strides()) {
    reject(path, "is " + std::string(to_string(ref.dtype)) + " " + to_string(ref.shape) +
                     "; accepted: " + std::string(to_string(dtype)) + " with " +
                     std::to_string(rank) + " axes in C order");
  }
  return tensor;
}

}  // namespace

Split load(const std::string& folder, const std::string& name) {
  const std::string images_path = folder + "/" + name + "_images.npy";
  const std::string labels_path = folder + "/" + name + "_labels.npy";
  const rung::Tensor images = read(images_path, rung::DType::u8, 3);
  const rung::Tensor labels = read(labels_path, rung::DType::i64, 1);
  const std::int64_t count = images.shape()[0];
  const std::int64_t edge = images.shape()[1];
  if (images.shape()[2] != edge || edge < 1 || edge > 1024) {
    reject(images_path, "holds images of " + std::to_string(edge) + " x " +
                            std::to_string(images.shape()[2]) + "; accepted: squares");
  }
  if (labels.shape()[0] != count || count < 10) {
    reject(labels_path, "holds " + std::to_string(labels.shape()[0]) + " labels for " +
                            std::to_string(count) + " images; accepted: as many, 10 or more");
  }
  const auto* pixels = images.data<std::uint8_t>();
  float brightest = 1;
  for (std::int64_t i = 0; i < count * edge * edge; ++i) {
    brightest = std::max(brightest, static_cast<float>(pixels[i]));
  }
  Split split;
  split.train.edge = split.test.edge = edge;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = labels.data<std::int64_t>()[i];
    if (label < 0 || label >= classes) {
      reject(labels_path, "has the label " + std::to_string(label) + "; accepted: 0 to 9");
    }
    Images& part = i % 5 == 4 ? split.test : split.train;
    part.labels.push_back(label);
    for (std::int64_t at = i * edge * edge; at < (i + 1) * edge * edge; ++at) {
      part.pixels.push_back(static_cast<float>(pixels[at]) / brightest);
    }
  }
  return split;
}

Scale Scale::of(const Images& images) {
  double sum = 0;
  double squares = 0;
  for (const float pixel : images.pixels) {
    sum += pixel;
    squares += double{pixel} * pixel;
  }
  const auto count = static_cast<double>(images.pixels.size());
  const double mean = sum / count;
  return {static_cast<float>(mean),
          static_cast<float>(1 / std::sqrt(squares / count - mean * mean + 1e-12))};
}

Images shuffled(const Images& images, std::uint64_t seed, int epoch, int shift) {
  rung::Random random(rung::random_stream(seed, "epoch " + std::to_string(epoch)));
  const auto count = static_cast<std::size_t>(images.count());
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const std::int64_t edge = images.edge;
  Images made{.edge = edge,
              .pixels = std::vector<float>(images.pixels.size()),
              .labels = std::vector<std::int64_t>(count)};
  const auto moved = [&] {
    return static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(shift) + 1)) -
           shift;
  };
  for (std::size_t i = 0; i < count; ++i) {
    made.labels[i] = images.labels[order[i]];
    const float* from = images.pixels.data() + order[i] * static_cast<std::size_t>(edge * edge);
    float* to = made.pixels.data() + i * static_cast<std::size_t>(edge * edge);
    const std::int64_t down = moved();
    const std::int64_t right = moved();
    for (std::int64_t row = 0; row < edge; ++row) {
      for (std::int64_t column = 0; column < edge; ++column) {
        const std::int64_t r = row - down;
        const std::int64_t c = column - right;
        const bool inside = r >= 0 && r < edge && c >= 0 && c < edge;
        to[row * edge + column] = inside ? from[r * edge + c] : 0;
      }
    }
  }
  return made;
}

void OnDevice::upload(const Images& from, const Scale& scale, rung::Context& context) {
  const std::int64_t count = from.count();
  std::vector<float> scaled(from.pixels.size());
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    scaled[i] = (from.pixels[i] - scale.mean) * scale.factor;
  }
  if (images.shape() != from.shape(count)) {
    images = rung::Tensor(rung::DType::f32, from.shape(count), context.device());
    labels = rung::Tensor(rung::DType::i64, {count}, context.device());
  }
  context.synchronize();  // nobody reads the last epoch's any more
  rung::copy(rung::ConstTensorRef(scaled, from.shape(count)), images);
  rung::copy(rung::ConstTensorRef(from.labels), labels);
}

rung::ConstTensorRef OnDevice::batch(std::int64_t first, std::int64_t n) const {
  rung::ConstTensorRef part = images;
  part.data = static_cast<const float*>(part.data) + first * part.strides[0];
  part.shape[0] = n;
  return part;
}

rung::ConstTensorRef OnDevice::batch_labels(std::int64_t first, std::int64_t n) const {
  rung::ConstTensorRef part = labels;
  part.data = static_cast<const std::int64_t*>(part.data) + first;
  part.shape[0] = n;
  return part;
}

}  // namespace digits
