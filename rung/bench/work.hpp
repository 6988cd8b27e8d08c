// SPDX-License-Identifier: Apache-2.0
// Work and steps of parallel sums: additions in all, and rounds one after another. Exact for every
// n, not only powers of two; n is a whole number from 1 to 2^53.
#pragma once

namespace rung::bench {

struct ParallelWork {
  double additions = 0;
  double steps = 0;
};

/// The least k with 2^k >= n.
double ceil_log2(double n);

/// An inclusive scan in which element i adds element i - s, for s = 1, 2, 4 ...:
/// n k - (2^k - 1) additions in k = ceil(log2 n) steps; of a power of two, n log2 n - (n - 1).
/// Source: Kogge & Stone 1973; Hillis & Steele 1986.
ParallelWork kogge_stone(double n);

/// An inclusive scan up a tree and down again: of a power of two, 2 (n - 1) - log2 n additions in
/// 2 log2 n - 1 steps. Of other n what the kernel does that leaves out elements beyond the end.
/// Source: Brent & Kung 1982.
ParallelWork brent_kung(double n);

/// A sum by a tree: n - 1 additions in ceil(log2 n) steps.
ParallelWork tree_sum(double n);

/// Steps of a sum of c sections of n elements. By a tree each, where the hardware runs the blocks
/// one after another: c log2 n. With threads that first add 2 c elements each: 2 (c - 1) + log2 n.
double serialized_steps(double n, double c);
double coarsened_steps(double n, double c);

}  // namespace rung::bench
