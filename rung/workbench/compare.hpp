// SPDX-License-Identifier: Apache-2.0
// Judges results: a rung's output against the oracle's, within a derived tolerance.
#pragma once

#include <string>
#include <vector>

#include "rung/core/operator.hpp"
#include "rung/core/tensor.hpp"
#include "rung/harness/inputs.hpp"

namespace rung::workbench {

/// Returns the rows of an output to judge: all, or the first and last two and random ones, as many
/// as a sequential oracle can compute. `operations`: cost of the whole problem.
std::vector<std::int64_t> rows_to_judge(const Extents& shape, double operations,
                                        std::uint64_t seed);

/// Returns the elements per row: the last extent (1 for a scalar).
std::int64_t row_length(const Extents& shape);

/// Compares every judged element of `got` (C-contiguous, on the host) with the expected value.
/// Accepts errors up to
///   absolute + relative * |expected| + magnitude * m
/// NaN and infinities must match in class and sign. Returns "" if all are accepted, else the number
/// of mismatches, and position, value, expected value and bound of the first.
std::string mismatch(std::string_view name, const Tensor& got, const Oracle::Output& expected,
                     const Tolerance& tolerance);

/// Returns true if an output of zeros would pass as well, which makes a pass meaningless. False for
/// an empty output.
bool zeros_pass(DType dtype, const Oracle::Output& expected, const Tolerance& tolerance);

/// Returns "" unless an element still holds its poison. Floating-point poison is a NaN that no
/// arithmetic produces, so one element suffices; an integer result may equal its poison, so only
/// whole rows of at least eight elements count.
std::string unwritten(std::string_view name, const Tensor& before, const Tensor& after);

/// Returns "" if both tensors are bitwise equal, else the first difference.
std::string difference(std::string_view name, const Tensor& first, const Tensor& second);

}  // namespace rung::workbench
