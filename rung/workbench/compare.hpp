// SPDX-License-Identifier: Apache-2.0
// Judging numbers: what a rung wrote against what the oracle says, within a derived tolerance.
#pragma once

#include <string>
#include <vector>

#include "rung/core/operator.hpp"
#include "rung/core/tensor.hpp"
#include "rung/harness/inputs.hpp"

namespace rung::workbench {

/// Returns the rows of an output to judge: all, or the first and last two and some at random, as
/// many as a sequential oracle can afford. `operations` is the cost of the whole problem.
std::vector<std::int64_t> rows_to_judge(const Extents& shape, double operations,
                                        std::uint64_t seed);

/// Elements a row: the last extent (1 for a scalar).
std::int64_t row_length(const Extents& shape);

/// "" when every judged element of `got` (C-contiguous, on the host) is within
///   absolute + relative * |expected| + magnitude * m
/// of what is expected; NaN and infinities must be the same class and sign. Otherwise how many are
/// not, and for the first: where, what it is, what was expected and the bound.
std::string mismatch(std::string_view name, const Tensor& got, const Oracle::Output& expected,
                     const Tolerance& tolerance);

/// Returns whether an output of zeros would pass for this one: then a pass tells little. Not of an
/// output without elements.
bool zeros_pass(DType dtype, const Oracle::Output& expected, const Tolerance& tolerance);

/// "" unless an element still holds what it held before the run. For floating types poison is a NaN
/// that no arithmetic makes, so one element tells; an integer may come to hold the same bits by
/// right, so only whole rows of eight or more elements tell.
std::string unwritten(std::string_view name, const Tensor& before, const Tensor& after);

/// "" when both hold the same bits, else the first difference.
std::string difference(std::string_view name, const Tensor& first, const Tensor& second);

}  // namespace rung::workbench
