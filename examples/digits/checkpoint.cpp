// SPDX-License-Identifier: Apache-2.0
// A .npz file is a zip archive of .npy files. Ours are stored, not compressed, in one fixed form:
// what is read must be, header by header, what would have been written for this network.
#include "checkpoint.hpp"

#include <rung/harness/file_writer.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace digits {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw rung::Error(rung::ErrorCode::io, path + " " + what);
}

// --- zip
// ------------------------------------------------------------------------------------------

std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xedb88320U : 0);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i & 0xff);
}

/// Returns the common part of a file's header and its entry in the directory.
std::string attributes(std::string_view name, std::string_view content) {
  std::string made;
  put(made, 20, 2);    // version
  put(made, 0, 2);     // flags
  put(made, 0, 2);     // stored
  put(made, 0, 2);     // time
  put(made, 0x21, 2);  // the first day that there is
  put(made, crc32(content), 4);
  put(made, content.size(), 4);
  put(made, content.size(), 4);
  put(made, name.size(), 2);
  put(made, 0, 2);  // extra field
  return made;
}
std::string file_header(std::string_view name, std::string_view content) {
  return "PK\x03\x04" + attributes(name, content) + std::string(name);
}

// --- npy
// ------------------------------------------------------------------------------------------

std::string npy_header(std::string_view type, const rung::Extents& shape) {
  std::string text = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < shape.rank; ++axis) text += std::to_string(shape[axis]) + ",";
  text += "), }";
  while ((text.size() + 11) % 64 != 0) text += ' ';
  text += '\n';
  std::string made("\x93NUMPY\x01\x00", 8);
  put(made, text.size(), 2);
  return made + text;
}

/// An item of a checkpoint: a name, a header, and host memory that is written or read.
struct Item {
  std::string name;
  std::string header;
  void* data;
  std::size_t bytes;
};

class Content {
 public:
  Content(const std::string& model, Progress& progress, const Parameters& parameters)
      : values(static_cast<std::size_t>(parameters.size())),
        first(values.size()),
        second(values.size()),
        settings{progress.epoch, progress.step, progress.epochs,
                 progress.batch, progress.seed, progress.shift},
        numbers{progress.rate, double{progress.scale.mean}, double{progress.scale.factor}} {
    add("run_" + model, "<i8", {6}, settings.data(), sizeof settings);
    add("rate_mean_factor", "<f8", {3}, numbers.data(), sizeof numbers);
    for (const Parameters::Entry& entry : parameters.entries()) {
      add(entry.name, "<f4", entry.shape, values.data() + entry.first,
          static_cast<std::size_t>(entry.shape.product()) * sizeof(float));
    }
    const rung::Extents all{parameters.size()};
    add("first_moment", "<f4", all, first.data(), first.size() * sizeof(float));
    add("second_moment", "<f4", all, second.data(), second.size() * sizeof(float));
  }
  std::vector<Item> items;
  std::vector<float> values, first, second;
  std::array<std::int64_t, 6> settings;
  std::array<double, 3> numbers;

 private:
  void add(const std::string& name, std::string_view type, const rung::Extents& shape, void* data,
           std::size_t bytes) {
    items.push_back({name + ".npy", npy_header(type, shape), data, bytes});
  }
};

}  // namespace

void save(const std::string& path, const std::string& model, const Progress& progress,
          const Parameters& parameters) {
  Progress copied = progress;
  Content content(model, copied, parameters);
  rung::copy(parameters.values, rung::TensorRef(content.values));
  rung::copy(parameters.first_moment, rung::TensorRef(content.first));
  rung::copy(parameters.second_moment, rung::TensorRef(content.second));
  std::string archive;
  std::string directory;
  for (const Item& item : content.items) {
    const std::string file =
        item.header + std::string(static_cast<const char*>(item.data), item.bytes);
    directory += "PK\x01\x02";
    put(directory, 20, 2);  // made by version
    directory += attributes(item.name, file);
    put(directory, 0, 2);               // comment
    put(directory, 0, 4);               // disk, attributes
    put(directory, 0, 4);               // attributes
    put(directory, archive.size(), 4);  // where the file is
    directory += item.name;
    archive += file_header(item.name, file) + file;
  }
  const std::size_t begin = archive.size();
  archive += directory + "PK\x05\x06";
  put(archive, 0, 4);  // disks
  put(archive, content.items.size(), 2);
  put(archive, content.items.size(), 2);
  put(archive, directory.size(), 4);
  put(archive, begin, 4);
  put(archive, 0, 2);  // comment
  rung::write_file(path, archive);
}

void restore(const std::string& path, const std::string& model, Progress& progress,
             Parameters& parameters) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path, "cannot be read");
  const std::string archive{std::istreambuf_iterator<char>(stream), {}};
  Content content(model, progress, parameters);
  std::size_t at = 0;
  for (const Item& item : content.items) {
    const std::size_t lead = 30 + item.name.size();  // of the file's header in the archive
    const std::size_t bytes = item.header.size() + item.bytes;
    if (archive.size() - at < lead + bytes || archive.size() < at) {
      fail(path, "ends before " + item.name);
    }
    const std::string_view file = std::string_view(archive).substr(at + lead, bytes);
    if (archive.compare(at, lead, file_header(item.name, file)) != 0 ||
        file.substr(0, item.header.size()) != item.header) {
      fail(path, "is no checkpoint of this model, or damaged, at " + item.name);
    }
    std::memcpy(item.data, file.data() + item.header.size(), item.bytes);
    at += lead + bytes;
  }
  const Progress was{
      .epoch = content.settings[0],
      .step = content.settings[1],
      .epochs = content.settings[2],
      .batch = content.settings[3],
      .seed = content.settings[4],
      .shift = content.settings[5],
      .rate = content.numbers[0],
      .scale = {static_cast<float>(content.numbers[1]), static_cast<float>(content.numbers[2])}};
  if (progress.epochs != 0 &&
      (was.epochs != progress.epochs || was.batch != progress.batch || was.seed != progress.seed ||
       was.shift != progress.shift || was.rate != progress.rate)) {
    fail(path, "was written by a run with other epochs, batch, seed, shift or rate");
  }
  progress = was;
  rung::copy(rung::ConstTensorRef(content.values), parameters.values);
  rung::copy(rung::ConstTensorRef(content.first), parameters.first_moment);
  rung::copy(rung::ConstTensorRef(content.second), parameters.second_moment);
}

}  // namespace digits
