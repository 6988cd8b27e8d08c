// SPDX-License-Identifier: Apache-2.0
// histogram / shared, privatized
//
// Idea     Privatization: each work-group counts in a table of its own in local memory, and adds it
//          to the counts at the end.
// Changes  Against one table in global memory: a local-memory atomic per element, which contends
//          within a group, not the device; global atomics drop to one per bin and group. (CUDA has
//          several rungs before this one.)
// Cost     4 bytes of local memory per bin, one atomic addition per element.
// Limits   The table must fit in local memory. Contiguous x, integers or f32, bins of equal width,
//          i32 counts.
// Source   J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU", 2013.
//
// The host defines VALUE, the type of x, and FLOATS if it is float.

#ifdef FLOATS
typedef struct {
  float low, high, scale;
  int last;
} Range;

// Returns the bin, or -1 outside; NaN fails the comparison and is outside.
int bin_of(float value, Range range) {
  if (!(value >= range.low && value <= range.high)) return -1;
  return min((int)((value - range.low) * range.scale), range.last);
}
#else
typedef struct {
  long low;
  ulong span, bins;
} Range;

// Returns floor((value - low) bins / span), exactly: span has at most 33 bits, bins 31.
int bin_of(long value, Range range) {
  const ulong distance = (ulong)value - (ulong)range.low;
  if (distance >= range.span) return -1;
  return (int)(distance * range.bins / range.span);
}
#endif

kernel void histogram_clear(global uint* counts, ulong counts_start, long stride, uint bins) {
  const uint bin = get_global_id(0);
  if (bin < bins) counts[(long)counts_start + bin * stride] = 0;
}

kernel void histogram_shared_privatized(global const VALUE* x, ulong x_start, ulong n, Range range,
                                        global volatile uint* counts, ulong counts_start,
                                        long stride, uint bins, local volatile uint* table) {
  for (uint bin = get_local_id(0); bin < bins; bin += get_local_size(0)) table[bin] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);  // the table is clear
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
    const int bin = bin_of(x[x_start + i], range);
    if (bin >= 0) atomic_inc(table + bin);
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // the group has counted
  for (uint bin = get_local_id(0); bin < bins; bin += get_local_size(0)) {
    if (table[bin] != 0) atomic_add(counts + (long)counts_start + bin * stride, table[bin]);
  }
}
