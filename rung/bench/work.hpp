// SPDX-License-Identifier: Apache-2.0
// Work (additions) and span (dependent steps) of parallel sums and scans. Exact for every whole
// number n from 1 to 2^53, not only powers of two.
#pragma once

namespace rung::bench {

struct ParallelWork {
  double additions = 0;
  double steps = 0;
};

/// Returns the least k with 2^k >= n.
double ceil_log2(double n);

/// Counts an inclusive scan in which element i adds element i - s, for s = 1, 2, 4 ...:
/// n k - (2^k - 1) additions in k = ceil(log2 n) steps; n log2 n - (n - 1) for a power of two.
/// Source: Kogge & Stone 1973; Hillis & Steele 1986.
ParallelWork kogge_stone(double n);

/// Counts an inclusive scan by an up-sweep and a down-sweep: 2 (n - 1) - log2 n additions in
/// 2 log2 n - 1 steps for a power of two. For other n, additions beyond the end are omitted.
/// Source: Brent & Kung 1982.
ParallelWork brent_kung(double n);

/// Counts a tree reduction: n - 1 additions in ceil(log2 n) steps.
ParallelWork tree_sum(double n);

/// Return the steps of a sum of c sections of n elements each. Serialized: one tree per section,
/// and the hardware runs the blocks one after another, c log2 n. Coarsened: each of n / 2 threads
/// first adds 2 c elements, then one tree, 2 (c - 1) + log2 n.
double serialized_steps(double n, double c);
double coarsened_steps(double n, double c);

}  // namespace rung::bench
