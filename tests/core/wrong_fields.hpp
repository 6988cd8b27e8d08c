// SPDX-License-Identifier: Apache-2.0
// References with one field, set by hand, that contradicts the others or is no valid value: every
// operator must reject them in every argument.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/core/tensor_ref.hpp"
#include "tests/core/expect_error.hpp"

namespace rung::test {

struct WrongField {
  TensorRef tensor;
  std::string words;  // expected in the message
};

/// Returns copies of `right`, which is on the host with elements of at least four bytes, each with
/// one wrong field.
inline std::vector<WrongField> wrong_fields(const TensorRef& right) {
  std::vector<WrongField> all;
  const auto add = [&](const std::string& words, const auto& change) {
    TensorRef tensor = right;
    change(tensor);
    all.push_back({tensor, words});
  };
  const std::string shape = "shape " + to_string(right.shape) + " comes with ";
  add(shape + std::to_string(right.rank() + 1) + " strides", [](auto& tensor) {
    tensor.strides.rank += 1;
  });
  add(right.rank() > 0 ? shape + "0 strides" : shape, [](auto& tensor) {
    tensor.strides.rank = tensor.rank() > 0 ? 0 : 1;
  });
  add("shape has rank 99; accepted: 0 to 8", [](auto& tensor) { tensor.shape.rank = 99; });
  add("shape has rank -1", [](auto& tensor) { tensor.shape.rank = tensor.strides.rank = -1; });
  add("strides has rank 9", [](auto& tensor) { tensor.strides.rank = 9; });
  add("dtype is 99; accepted: f32", [](auto& tensor) { tensor.dtype = static_cast<DType>(99); });
  add("the backend of its device is 7; accepted: cpu, cuda, simt, opencl",
      [](auto& tensor) { tensor.device.backend = static_cast<Backend>(7); });
  add("cpu device 1 does not exist; accepted: 0", [](auto& tensor) { tensor.device.index = 1; });
  add("simt device 2 does not exist", [](auto& tensor) { tensor.device = {Backend::simt, 2}; });
  add("cuda device -1 does not exist; accepted: 0 or more",
      [](auto& tensor) { tensor.device = {Backend::cuda, -1}; });
  add("opencl device -1 does not exist; accepted: 0 or more",
      [](auto& tensor) { tensor.device = {Backend::opencl, -1}; });
  add("data is 0x", [](auto& tensor) { tensor.data = static_cast<std::byte*>(tensor.data) + 2; });
  return all;
}

/// Expects that `body`, a call that succeeds with `right` as its argument `name`, fails with each
/// of its wrong_fields() and names the argument.
template <class Body>
void expect_fields_checked(const std::string& op, const std::string& name, const TensorRef& right,
                           const Body& body) {
  ASSERT_NO_THROW(body(right)) << name;
  for (const WrongField& wrong : wrong_fields(right)) {
    expect_error(ErrorCode::invalid_argument, {op + ": " + name + ": " + wrong.words},
                 [&] { body(wrong.tensor); });
  }
  if (right.rank() == 0) return;
  TensorRef negative = right;
  negative.shape[0] = -1;
  expect_error(ErrorCode::invalid_argument, {op + ": " + name + ": ", "negative extent"},
               [&] { body(negative); });
  TensorRef far = right;
  far.strides[0] = INT64_MAX;
  expect_error(ErrorCode::invalid_argument,
               {op + ": " + name + ": shape " + to_string(right.shape), "leaves the address space"},
               [&] { body(far); });
  TensorRef nowhere = right;
  nowhere.data = nullptr;
  expect_error(ErrorCode::invalid_argument,
               {op + ": " + name + " (" + to_string(right.shape) + ") has a null data pointer"},
               [&] { body(nowhere); });
}

}  // namespace rung::test
